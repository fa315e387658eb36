/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gpu_measure MODE DEVICE [NAME=NUMBER]... [vocab=FILE text=FILE] [out=FILE]
 *
 * scan: nothing is posted; how long each look at all slots takes, by the scanner's own clock.
 *
 * requests: this host posts n slots one after the other into the mapped ring; from before the first
 * store until `done` is read (CLOCK_MONOTONIC), and what the consumer stamped.
 *
 * produce: producers on the device post n slots each (produce.h); from before the first store, and
 * from before the ticket's, until `done` is read. With vocab=FILE and text=FILE they post slices of
 * the text, of `bytes` bytes, as bytes; greedy=1: encoded by longest match. After the last post all
 * rows are compared with those of libtok's ids. Says how many graphs were launched, and how often
 * this host has called the device meanwhile.
 *
 * generate: `n` answers of `made` ids to prompts of `tokens` ids, posted by this host into the
 * mapped ring, `producers` x `lanes` at a time (measure_generate.h). external=1: a thread of this
 * host drives the engine that makes the ids; external=2: a process, gpu_measure engine.
 *
 * drain: `slots` slots are posted, then a consumer embeds them and ends: for a profiler, which lets
 * nothing else run beside a kernel. The ring is in host memory.
 *
 * leave: one slot is embedded, then the process ends with the consumer running. If the end waits
 * for it, it takes the consumer's limit without an owner, here 5 s.
 *
 * Prints one JSON object: what was done, and `series`, each with its clock and how many samples
 * there are. The samples themselves go to FILE, one series after the other, as 64-bit words of
 * ticks; `ns_per_tick` says what one is. Looks are timed in the mode `scan` alone: timing costs
 * stores. TOKD_GPU_RING=host: the ring in this host's memory. Tables and ids come from `seed`.
 * `kind` and `dtype` are enum tokg_kind and tokg_dtype. graphs=1: the consumer as graphs. Ends with
 * 1 where a slot or a row is not right.
 */
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <monotonic.h>
#include "element.h"
#include "measure_generate.h"
#include "measure_texts.h"
#include "post.h"
#include "produce.h"
#include "tok.h"

#define SCAN_NS 1000000000ull /* of looking; the last TOKG_SCAN_TIMES are kept */
#define LOOK_NS 50000000l     /* between looks at the producers */
#define LEFT_MS 5000	      /* without its owner, until a consumer that was left ends */
#define ENGINE_BLOCKS 8	      /* places left for the relay's block, and kernels of an engine */
#define WARM_NS                                                                                    \
	300000000l /* of a GPU's consumer before the first post: its clock rises from idle */

/* What is asked for, by name, with what it is unless given. */
struct asked {
	uint64_t seed, n, kept, limit_s;
	uint32_t kind, dtype, dim, n_ids, producers, slots, slot_bytes, workers, rows, heads;
	uint32_t tokens, batch, in_flight, check_every, bytes, greedy, graphs;
	uint32_t lanes, made, external;
	const char *vocab, *text; /* NULL: no texts */
};

struct measure {
	struct asked a;
	struct tokg_device_config c;
	struct tokg_device *d;
	struct measure_texts texts;
	FILE *out;
	uint32_t n_series;
	bool drained;		  /* for the thread of the mode drain */
	uint64_t host_operations; /* while producers ran: calls of this host to the device */
	uint64_t start_ns;	  /* of the device's start: with graphs it makes them */
};

static uint64_t
random64(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

static void *
table(uint64_t elements, uint32_t dtype, uint64_t *seed)
{
	uint16_t *const t = malloc(elements * (dtype == TOKG_F32 ? 4 : 2));

	if (t == NULL)
		post_fail("no memory for a table of %" PRIu64 " elements", elements);
	for (uint64_t i = 0; i < elements; i++) {
		const float f = (float)(random64(seed) >> 40) * 0x1p-23f - 1.0f;

		if (dtype == TOKG_F32)
			((float *)(void *)t)[i] = f;
		else
			t[i] = tokg_element16_of(dtype, f);
	}
	return t;
}

static void
argument(struct asked *a, const char *text)
{
	const struct {
		const char *name;
		uint64_t *u64;
		uint32_t *u32;
	} known[] = {
		{"seed", &a->seed, NULL},
		{"n", &a->n, NULL},
		{"kept", &a->kept, NULL},
		{"limit_s", &a->limit_s, NULL},
		{"kind", NULL, &a->kind},
		{"dtype", NULL, &a->dtype},
		{"dim", NULL, &a->dim},
		{"n_ids", NULL, &a->n_ids},
		{"producers", NULL, &a->producers},
		{"slots", NULL, &a->slots},
		{"slot_bytes", NULL, &a->slot_bytes},
		{"workers", NULL, &a->workers},
		{"rows", NULL, &a->rows},
		{"heads", NULL, &a->heads},
		{"tokens", NULL, &a->tokens},
		{"batch", NULL, &a->batch},
		{"in_flight", NULL, &a->in_flight},
		{"check_every", NULL, &a->check_every},
		{"bytes", NULL, &a->bytes},
		{"greedy", NULL, &a->greedy},
		{"graphs", NULL, &a->graphs},
		{"lanes", NULL, &a->lanes},
		{"made", NULL, &a->made},
		{"external", NULL, &a->external},
	};
	const char *const is = strchr(text, '=');
	char *end;

	for (size_t i = 0; is != NULL && i < sizeof(known) / sizeof(known[0]); i++) {
		const uint64_t v = strtoull(is + 1, &end, 10);

		if (strlen(known[i].name) != (size_t)(is - text) ||
			strncmp(text, known[i].name, (size_t)(is - text)) != 0)
			continue;
		if (end == is + 1 || *end != '\0' || (known[i].u32 && v > UINT32_MAX))
			post_fail("%s: not a number", text);
		if (known[i].u32)
			*known[i].u32 = (uint32_t)v;
		else
			*known[i].u64 = v;
		return;
	}
	post_fail("%s: not NAME=NUMBER of a name that gpu_measure knows", text);
}

/* Bytes of a producer's outputs: four full slots, and the rows of all that are posted. */
static uint64_t
outputs(const struct measure *m, uint32_t row_bytes)
{
	const struct asked *const a = &m->a;
	const uint64_t least = 4 * tokg_out_bytes(a->slot_bytes / 4, row_bytes);
	uint64_t need = tokg_out_bytes(a->tokens, row_bytes) * (a->batch ? a->batch : 1) * a->slots;
	uint64_t bytes = TOKG_OUT_ALIGN;

	if (a->vocab != NULL) /* the consumer asks for a row for each byte, also in the last slot */
		need = a->slots * m->texts.posted.out_stride + tokg_out_bytes(a->bytes, row_bytes);
	while (bytes < least || bytes < need)
		bytes *= 2;
	return bytes;
}

/* The texts, and the vocabulary that the device encodes them with. */
static void
open_texts(struct measure *m, uint32_t row_bytes)
{
	struct asked *const a = &m->a;

	if (a->text == NULL || a->kind != TOKG_KIND_WORD || a->bytes > a->slot_bytes)
		post_fail("texts: vocab=FILE and text=FILE, kind=%d, and bytes at most %u",
			TOKG_KIND_WORD, a->slot_bytes);
	measure_texts_open(&m->texts, a->vocab, a->greedy != 0);
	measure_texts_make(&m->texts, a->text, a->producers * a->slots, a->bytes, row_bytes);
	a->n_ids = tok_vocab_info(m->texts.v).n_ids;
	m->c.text_vocab = m->texts.v;
	m->c.text_flags = TOK_ADDED_AS_TEXT;
}

/* The device, opened and not started. */
static void
open_device(struct measure *m, const char *name, bool time_scans)
{
	const struct asked *const a = &m->a;
	struct tokg_geometry *const g = &m->c.geometry;
	struct tokg_tables *const t = &m->c.tables;
	const uint32_t row_bytes = a->dim * (a->dtype == TOKG_F32 ? 4 : 2);
	uint64_t seed = a->seed * 2 + 1;
	struct tokg_error err = {{0}};

	if (a->vocab != NULL)
		open_texts(m, row_bytes);
	g->producers = a->producers;
	g->slots = a->slots;
	g->slot_bytes = a->slot_bytes;
	g->flags = TOKG_CHECKED;
	g->kind = t->kind = a->kind;
	g->dtype = t->dtype = a->dtype;
	g->dim = t->dim = a->dim;
	g->n_ids = t->n_ids = a->n_ids;
	g->out_bytes = outputs(m, row_bytes);
	if (a->lanes > 0)
		measure_generate_plan(g, a->lanes);
	t->word = table((uint64_t)a->n_ids * a->dim, a->dtype, &seed);
	if (a->kind != TOKG_KIND_WORD) {
		g->n_positions = t->n_positions = a->slot_bytes / 4;
		t->position = table((uint64_t)t->n_positions * a->dim, a->dtype, &seed);
	}
	if (a->kind == TOKG_KIND_BERT) {
		t->type = table(a->dim, a->dtype, &seed);
		t->gamma = table(a->dim, a->dtype, &seed);
		t->beta = table(a->dim, a->dtype, &seed);
		t->epsilon = 1e-12f;
	}
	if (!tokg_geometry_fill(g, &err))
		post_fail("%s", err.text);
	m->c.ring_epoch = 1;
	m->c.first_cpu = -1;
	m->c.workers = a->workers;
	m->c.rows_of_job = a->rows;
	m->c.heads = a->heads != 0;
	m->c.graphs = a->graphs != 0;
	m->c.external_engine = a->external != 0;
	m->c.stop_id = UINT32_MAX;
	m->c.time_scans = time_scans;
	m->d = post_device(name, &m->c, &err);
	if (m->d == NULL)
		post_fail("%s", err.text);
}

static bool
is_cpu(const struct measure *m)
{
	return strcmp(m->d->ops->name, "cpu") == 0;
}

static void
start(struct measure *m)
{
	const struct timespec warm = {0, WARM_NS};
	const uint64_t from = monotonic_ns();
	struct tokg_error err = {{0}};

	if (m->d->ops->start(m->d, 1, &err) < 0)
		post_fail("%s", err.text);
	m->start_ns = monotonic_ns() - from;
	post_grant(m->d);
	if (!is_cpu(m))
		nanosleep(&warm, NULL);
}

static void
stop(struct measure *m)
{
	struct tokg_error err = {{0}};

	if (m->d->ops->stop(m->d, TOKG_STOP_NOW, 10000, &err) < 0)
		post_fail("%s", err.text);
}

static void
series(struct measure *m, const char *name, const char *clock, double ns_per_tick,
	const uint64_t *ticks, uint64_t n)
{
	printf("%s{\"name\": \"%s\", \"clock\": \"%s\", \"ns_per_tick\": %.9g, \"n\": %" PRIu64 "}",
		m->n_series++ > 0 ? ", " : "", name, clock, ns_per_tick, n);
	if (m->out != NULL && fwrite(ticks, sizeof(*ticks), n, m->out) != n)
		post_fail("the samples cannot be written");
}

static void
begin(const struct measure *m, const char *mode)
{
	const struct tokg_geometry *const g = &m->d->geometry;

	printf("{\"mode\": \"%s\", \"device\": \"%s\", \"ring\": \"%s\", \"order\": \"%s\", "
	       "\"slots\": %u, \"producers\": %u, \"seed\": %" PRIu64 ", \"start_ns\": %" PRIu64
	       ", ",
		mode, m->d->ops->name, m->d->region ? "host" : "gpu", m->d->order_reason,
		g->producers * g->slots, g->producers, m->a.seed, m->start_ns);
}

/* For `others`, blocks of kernels of this process beside the consumer's, which has one block on a
 * multiprocessor with a vocabulary, and else two. */
static void
leave_room(struct measure *m, const char *name, uint32_t others)
{
	if (m->a.workers == TOKG_WORKERS_DEFAULT && strncmp(name, "cuda:", 5) == 0)
		m->a.workers =
			produce_cuda_workers(atoi(name + 5), m->a.vocab == NULL ? 2 : 1, others);
}

static void
measure_scan(struct measure *m)
{
	const struct timespec nap = {0, LOOK_NS};
	const struct tokg_scan_times *t;
	uint64_t until, heartbeat, ticks;

	start(m);
	until = monotonic_ns() + SCAN_NS;
	while (monotonic_ns() < until) {
		nanosleep(&nap, NULL);
		if (m->d->ops->read(m->d, offsetof(struct tokg_ctl, heartbeat), &heartbeat, 8) < 0)
			post_fail("the region cannot be read");
	}
	stop(m);
	t = m->d->scan_times;
	ticks = t->tick[1] - t->tick[0];
	if (t->n < 1000 || ticks == 0)
		post_fail("%" PRIu64 " looks at the ring were timed, too few", t->n);
	begin(m, "scan");
	printf("\"looks\": %" PRIu64 ", \"series\": [", t->n);
	series(m, "look", is_cpu(m) ? "CLOCK_MONOTONIC" : "clock64 of the scanner's multiprocessor",
		(double)(t->ns[1] - t->ns[0]) / (double)ticks, t->scan,
		t->n < TOKG_SCAN_TIMES ? t->n : TOKG_SCAN_TIMES);
	printf("]}\n");
}

/* The stamps of a request's entry, as differences. Some consumer's clock may seem to go back. */
struct stamps {
	uint64_t *visible_embedded;
	uint64_t backward;
#ifdef TOKG_STAGES
	uint64_t *stage[4];
#endif
};

static struct stamps
stamps_make(uint64_t n)
{
	struct stamps s = {.visible_embedded = calloc(n + 1, 8)};

#ifdef TOKG_STAGES
	for (int i = 0; i < 4; i++)
		s.stage[i] = calloc(n + 1, 8);
#endif
	return s;
}

static uint64_t
since(struct stamps *s, uint64_t from, uint64_t to)
{
	s->backward += to < from;
	return to < from ? 0 : to - from;
}

static void
stamp(struct stamps *s, uint64_t i, const struct tokg_out_entry *e)
{
	s->visible_embedded[i] = since(s, e->visible, e->embedded);
#ifdef TOKG_STAGES
	s->stage[0][i] = since(s, e->visible, e->reserved[0]);
	s->stage[1][i] = since(s, e->reserved[0], e->reserved[1]);
	s->stage[2][i] = since(s, e->reserved[1], e->reserved[2]);
	s->stage[3][i] = since(s, e->reserved[2], e->embedded);
#endif
}

static void
say_stamps(struct measure *m, const struct stamps *s, uint64_t n)
{
	const char *const own = is_cpu(m) ? "CLOCK_MONOTONIC" : "globaltimer";

	series(m, "seen to embedded", own, 1, s->visible_embedded, n);
#ifdef TOKG_STAGES
	series(m, "stage: seen to check word right", own, 1, s->stage[0], n);
	series(m, "stage: check word right to handed out", own, 1, s->stage[1], n);
	series(m, "stage: handed out to taken by the last worker", own, 1, s->stage[2], n);
	series(m, "stage: taken by the last worker to embedded", own, 1, s->stage[3], n);
#endif
}

static void
measure_requests(struct measure *m)
{
	const uint64_t n = m->a.n;
	const uint32_t slots = m->a.slots;
	uint64_t *const round = calloc(n, 8);
	uint32_t *const ids = calloc(1, m->a.slot_bytes);
	struct stamps s = stamps_make(n);
	uint64_t seed = m->a.seed * 2 + 1;

	if (m->d->region == NULL)
		post_fail("requests: this host cannot store into a ring in GPU memory: "
			  "TOKD_GPU_RING=host");
	if (m->a.batch != 0 || 4 * m->a.tokens > m->a.slot_bytes)
		post_fail("requests: batch must be 0, and %u ids fit into a slot",
			m->a.slot_bytes / 4);
	start(m);
	for (uint64_t i = 0; i < n; i++) {
		const uint32_t slot = (uint32_t)(i % slots);
		struct tokg_hdr h = {.kind = (uint16_t)m->a.kind, .epoch = POST_EPOCH};
		uint64_t from;

		h.tokens = m->a.tokens;
		h.bytes = 4 * m->a.tokens;
		h.out_off = slot * tokg_out_bytes(m->a.tokens, m->d->geometry.row_bytes);
		for (uint32_t k = 0; k < m->a.tokens; k++)
			ids[k] = (uint32_t)((random64(&seed) >> 32) * m->a.n_ids >> 32);
		from = monotonic_ns();
		post_slot(m->d, 0, slot, &h, 1 + i / slots, ids);
		if (post_wait(m->d, 0, slot, 1 + i / slots) != TOKG_OK)
			post_fail("request %" PRIu64 " was not embedded", i);
		round[i] = monotonic_ns() - from;
		stamp(&s, i, post_entry(m->d, i));
	}
	stop(m);
	begin(m, "requests");
	printf("\"backward_stamps\": %" PRIu64 ", \"series\": [", s.backward);
	series(m, "posted to done read", "CLOCK_MONOTONIC", 1, round, n);
	say_stamps(m, &s, n);
	printf("]}\n");
}

/*
 * Until all have ended. The consumer must hear of its owner meanwhile; graphs must show that they
 * need no host, and end before that.
 */
static void
producers_wait(struct measure *m, struct produce *p)
{
	const struct timespec nap = {0, LOOK_NS};
	const uint64_t begun_by = monotonic_ns() + 10000000000ull;
	const uint64_t ended_by = begun_by + m->a.limit_s * 1000000000ull;
	const uint64_t owner = m->d->outbox->owner;
	uint64_t heartbeat;
	uint32_t ended = 0, begun = 0;

	while (ended < p->producers) {
		nanosleep(&nap, NULL);
		if (!m->c.graphs && m->d->ops->read(m->d, offsetof(struct tokg_ctl, heartbeat),
					    &heartbeat, 8) < 0)
			post_fail("the region cannot be read");
		ended = begun = 0;
		for (uint32_t i = 0; i < p->producers; i++) {
			const uint64_t state = __atomic_load_n(&p->said[i].state, __ATOMIC_ACQUIRE);

			begun += state != PRODUCE_WAITS;
			ended += state >= PRODUCE_ENDED;
		}
		if (begun < p->producers && monotonic_ns() > begun_by)
			post_fail(
				"%u of %u producers do not begin beside the consumer: the kernels "
				"are not run at once: %s",
				p->producers - begun, p->producers, post_why(m->d));
		if (ended < p->producers && monotonic_ns() > ended_by)
			post_fail("%u of %u producers do not end: %s", p->producers - ended,
				p->producers, post_why(m->d));
	}
	m->host_operations = m->d->outbox->owner - owner;
}

/* Stamps of the last entries that the consumer wrote, as many as `n` and the outbox keep. */
static uint64_t
last_stamps(struct measure *m, struct stamps *s, uint64_t n)
{
	uint64_t taken = 0, kept = 0;

	if (m->d->ops->taken(m->d, &taken) < 0)
		post_fail("the device does not say how many entries there are");
	n = taken < n ? taken : n;
	n = m->d->outbox->n < n ? m->d->outbox->n : n;
	for (uint64_t i = taken - n; i < taken; i++) {
		const struct tokg_out_entry *const e = tokg_outbox_entry(m->d->outbox, i);

		if (e->seq == i + 1 && e->status == TOKG_OK)
			stamp(s, kept++, e);
	}
	return kept;
}

static void
say_produced(struct measure *m, const struct produce *p)
{
	struct stamps s = stamps_make(p->kept);
	struct produce_said all = {0};
	uint64_t first = UINT64_MAX, last = 0, late = 0, n = 0, *flat;
	double ns = 0, ticks = 0;

	for (uint32_t i = 0; i < p->producers; i++) {
		const struct produce_said *const one = &p->said[i];

		all.done += one->done;
		all.not_ok += one->not_ok;
		all.compared += one->compared;
		all.wrong += one->wrong;
		late += one->state == PRODUCE_LATE;
		first = one->ns[0] < first ? one->ns[0] : first;
		last = one->ns[1] > last ? one->ns[1] : last;
		ns += (double)(one->ns[1] - one->ns[0]);
		ticks += (double)(one->tick[1] - one->tick[0]);
	}
	flat = calloc(2ull * p->producers * p->kept + 1, sizeof(*flat));
	if (flat == NULL)
		post_fail("no memory for the samples");
	begin(m, "produce");
	printf("\"done\": %" PRIu64 ", \"not_ok\": %" PRIu64 ", \"compared\": %" PRIu64
	       ", \"wrong\": %" PRIu64 ", \"out_of_time\": %" PRIu64 ", \"ns\": %" PRIu64
	       ", \"launches\": %" PRIu64 ", \"executions\": %" PRIu64
	       ", \"host_operations\": %" PRIu64 ", \"tokens_per_slot\": %u, \"series\": [",
		all.done, all.not_ok, all.compared, all.wrong, late, last - first, m->d->launches,
		m->d->executions, m->host_operations,
		m->a.vocab ? 0 : m->a.tokens * (m->a.batch ? m->a.batch : 1));
	for (uint32_t which = 0; which < 2; which++) {
		n = 0;
		for (uint32_t i = 0; i < p->producers; i++) {
			const uint64_t had = p->said[i].done < p->kept ? p->said[i].done : p->kept;

			memcpy(flat + n, p->samples + (2ull * i + which) * p->kept,
				had * sizeof(*flat));
			n += had;
		}
		series(m, which == 0 ? "first store to done read" : "ticket's store to done read",
			is_cpu(m) ? "CLOCK_MONOTONIC" : "clock64 of the producer's multiprocessor",
			ticks > 0 ? ns / ticks : 1, flat, n);
	}
	say_stamps(m, &s, last_stamps(m, &s, p->kept));
	printf("], ");
	if (m->a.vocab != NULL)
		printf("\"texts_compared\": %u, \"text_bytes\": %" PRIu64 ", ",
			measure_texts_compare(&m->texts, m->d, p->said, m->c.tables.word),
			measure_texts_bytes(&m->texts, &m->d->geometry, p->said));
	printf("\"backward_stamps\": %" PRIu64 "}\n", s.backward);
	free(flat);
	fflush(stdout);
	if (all.not_ok > 0 || all.wrong > 0)
		post_fail("%" PRIu64 " slots not OK, %" PRIu64
			  " words of rows wrong (last: post %" PRIu64 " of its producer)",
			all.not_ok, all.wrong, p->said[0].last_wrong);
	if (all.done == 0)
		post_fail("no slot was done");
}

static void
measure_produce(struct measure *m)
{
	struct tokg_error err = {{0}};
	const struct produce_config c = {
		.seed = m->a.seed,
		.posts = m->a.n,
		.limit_ns = m->a.limit_s * 1000000000ull,
		.tokens = m->a.tokens,
		.batch = m->a.batch,
		.in_flight = m->a.in_flight,
		.check_every = m->a.check_every,
		.epoch = POST_EPOCH,
		.kept = (uint32_t)(m->a.kept < m->a.n ? m->a.kept : m->a.n),
		.texts = m->texts.posted,
	};
	struct produce *const p = (is_cpu(m) ? produce_cpu_open : produce_cuda_open)(
		m->d, &c, m->c.tables.word, &err);

	if (p == NULL)
		post_fail("%s", err.text);
	start(m);
	if (!p->ops->start(p, &err))
		post_fail("%s", err.text);
	producers_wait(m, p);
	stop(m);
	if (!p->ops->collect(p, &err))
		post_fail("%s", err.text);
	say_produced(m, p);
	p->ops->close(p);
}

static struct host_engine *
engine_open(const char *device, const struct host_engine_place *p)
{
	struct tokg_error err = {{0}};
	struct host_engine *const e =
		(strcmp(device, "cpu") == 0 ? host_engine_cpu : host_engine_cuda)(p, &err);

	if (e == NULL)
		post_fail("%s", err.text);
	return e;
}

/* Where the engine of the device finds its memory; `shared`: in another process. */
static struct host_engine_place
engine_place(const struct measure *m, bool shared)
{
	struct host_engine_place p = {.area = tokg_engine_area_plan(&m->d->geometry),
		.n_ids = m->d->geometry.n_ids,
		.ids_most = m->d->geometry.slot_bytes / 4,
		.outputs_fd = m->d->outputs_fd,
		.made_fd = m->d->made_fd,
		.index = m->c.index,
		.outputs = m->d->outputs};

	if (shared) {
		p.outputs = NULL;
		memcpy(p.ipc, m->d->ipc, sizeof(p.ipc));
		if (is_cpu(m)) {
			p.outputs_fd = dup(p.outputs_fd); /* open in a program that is executed */
			p.made_fd = dup(p.made_fd);
		}
	}
	return p;
}

/* Returns a socket to its standard input, when it is ready. */
static int
engine_process(const struct measure *m, const char *device, pid_t *pid)
{
	char *const words[] = {(char[]){"gpu_measure"}, (char[]){"engine"}, strdup(device), NULL};
	const struct host_engine_place p = engine_place(m, true);
	posix_spawn_file_actions_t actions;
	int ends[2];
	char ready;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0 ||
		posix_spawn_file_actions_init(&actions) != 0 ||
		posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO) != 0 ||
		posix_spawn(pid, "/proc/self/exe", &actions, NULL, words, environ) != 0)
		post_fail("the engine's process cannot be started");
	posix_spawn_file_actions_destroy(&actions);
	close(ends[1]);
	free(words[2]);
	if (send(ends[0], &p, sizeof(p), MSG_NOSIGNAL) != sizeof(p) ||
		read(ends[0], &ready, 1) != 1)
		post_fail("the engine's process has ended");
	return ends[0];
}

/* The engine as a process: its place comes by the standard input, then prompts, until it ends. */
static void
engine_main(const char *device)
{
	struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
	const char *const limit = getenv("TOKD_GPU_LIMIT_S");
	struct engine_prompt prompt;
	struct host_engine_place p;
	struct host_engine *own;
	struct engine_loop *loop;
	ssize_t n = sizeof(prompt);

	alarm(limit != NULL ? (unsigned)atoi(limit) : 300);
	if (read(in.fd, &p, sizeof(p)) != sizeof(p))
		post_fail("engine: its place must come by the standard input");
	own = engine_open(device, &p);
	loop = engine_loop_open(own, p.area.lanes, p.n_ids, p.ids_most);
	if (write(in.fd, "", 1) != 1)
		post_fail("engine: nobody waits for it");
	while (n == sizeof(prompt)) {
		while (poll(&in, 1, 0) > 0 &&
			(n = read(in.fd, &prompt, sizeof(prompt))) == sizeof(prompt))
			engine_loop_take(loop, &prompt);
		engine_loop_pass(loop);
	}
	engine_loop_close(loop);
	own->ops->close(own);
}

static void
measure_generate(struct measure *m)
{
	struct measure_generate g = {.d = m->d,
		.process = -1,
		.seed = m->a.seed,
		.n = m->a.n,
		.limit_ns = m->a.limit_s * 1000000000ull,
		.tokens = m->a.tokens,
		.made = m->a.made};
	struct measure_generate_said said;
	struct host_engine_place place;
	char device[16];
	pid_t pid;

	if (m->d->region == NULL || m->a.lanes == 0 || m->a.external > 2)
		post_fail("generate: needs TOKD_GPU_RING=host, lanes=N, and external=0, 1 or 2");
	snprintf(device, sizeof(device), is_cpu(m) ? "cpu" : "cuda:%d", m->c.index);
	if (m->a.external == 1) {
		place = engine_place(m, false);
		g.own = engine_open(device, &place);
	} else if (m->a.external == 2) {
		g.process = engine_process(m, device, &pid);
	}
	start(m);
	said = measure_generate_run(&g);
	stop(m);
	begin(m, "generate");
	printf("\"answers\": %" PRIu64 ", \"whole\": %" PRIu64 ", \"ids\": %" PRIu64
	       ", \"ns\": %" PRIu64 ", \"series\": [",
		said.n, said.whole, said.ids, said.ns);
	series(m, "posted to first id read", "CLOCK_MONOTONIC", 1, said.first, said.n);
	series(m, "posted to answered", "CLOCK_MONOTONIC", 1, said.all, said.whole);
	printf("]}\n");
	if (g.own != NULL)
		g.own->ops->close(g.own);
	if (g.process >= 0) {
		close(g.process);
		waitpid(pid, NULL, 0);
	}
	free(said.first);
	free(said.all);
}

/* Tells the consumer to end when all is done, again and again: its start says the opposite. */
static void *
tell_to_drain(void *argument)
{
	const struct timespec nap = {0, 200000};
	struct measure *const m = argument;
	uint32_t *const stop =
		(uint32_t *)((uint8_t *)m->d->region + offsetof(struct tokg_ctl, stop));

	while (!__atomic_load_n(&m->drained, __ATOMIC_ACQUIRE)) {
		__atomic_store_n(stop, TOKG_STOP_DRAIN, __ATOMIC_RELEASE);
		nanosleep(&nap, NULL);
	}
	return NULL;
}

static void
measure_drain(struct measure *m)
{
	uint32_t *const ids = calloc(1, m->a.slot_bytes);
	uint64_t seed = m->a.seed * 2 + 1;
	struct tokg_error err = {{0}};
	pthread_t teller;

	if (m->d->region == NULL || m->a.batch != 0 || 4 * m->a.tokens > m->a.slot_bytes)
		post_fail("drain: needs TOKD_GPU_RING=host, batch=0, and ids that fit into a slot");
	post_grant(m->d);
	for (uint32_t i = 0; i < m->a.slots; i++) {
		struct tokg_hdr h = {.kind = (uint16_t)m->a.kind,
			.epoch = POST_EPOCH,
			.bytes = 4 * m->a.tokens,
			.tokens = m->a.tokens};

		h.out_off = i * tokg_out_bytes(m->a.tokens, m->d->geometry.row_bytes);
		for (uint32_t k = 0; k < m->a.tokens; k++)
			ids[k] = (uint32_t)((random64(&seed) >> 32) * m->a.n_ids >> 32);
		post_slot(m->d, 0, i, &h, 1, ids);
	}
	if (pthread_create(&teller, NULL, tell_to_drain, m) != 0)
		post_fail("drain: no thread");
	if (m->d->ops->start(m->d, 1, &err) < 0)
		post_fail("%s", err.text);
	for (uint32_t i = 0; i < m->a.slots; i++)
		if (post_wait(m->d, 0, i, 1) != TOKG_OK)
			post_fail("slot %u was not embedded", i);
	__atomic_store_n(&m->drained, true, __ATOMIC_RELEASE);
	pthread_join(teller, NULL);
	if (m->d->ops->stop(m->d, TOKG_STOP_DRAIN, 10000, &err) < 0)
		post_fail("%s", err.text);
	begin(m, "drain");
	printf("\"done\": %u, \"series\": []}\n", m->a.slots);
}

/* As a process that fell over: nobody stops the consumer. */
static void
measure_leave(struct measure *m)
{
	static uint32_t ids[TOKG_LINE];
	struct tokg_hdr h = {
		.kind = (uint16_t)m->a.kind, .epoch = POST_EPOCH, .bytes = 4, .tokens = 1};

	start(m);
	post_slot(m->d, 0, 0, &h, 1, ids);
	if (post_wait(m->d, 0, 0, 1) != TOKG_OK)
		post_fail("the slot was not embedded");
	begin(m, "leave");
	printf("\"series\": []}\n");
	exit(0);
}

int
main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(struct measure *m);
	} modes[] = {{"scan", measure_scan}, {"requests", measure_requests},
		{"produce", measure_produce}, {"generate", measure_generate},
		{"drain", measure_drain}, {"leave", measure_leave}};
	static struct measure m = {.a = {.seed = 1,
					   .n = 2000,
					   .kept = 1u << 20,
					   .limit_s = 20,
					   .kind = TOKG_KIND_WORD,
					   .dtype = TOKG_F32,
					   .dim = 768,
					   .n_ids = 50257,
					   .producers = 1,
					   .slots = 64,
					   .slot_bytes = TOKG_SLOT_BYTES,
					   .workers = TOKG_WORKERS_DEFAULT,
					   .tokens = 2048,
					   .in_flight = 1,
					   .bytes = 8192,
					   .made = 8}};

	for (int i = 3; i < argc; i++) {
		if (strncmp(argv[i], "out=", 4) == 0) {
			m.out = fopen(argv[i] + 4, "wb");
			if (m.out == NULL)
				post_fail("%s cannot be written", argv[i] + 4);
		} else if (strncmp(argv[i], "vocab=", 6) == 0) {
			m.a.vocab = argv[i] + 6;
		} else if (strncmp(argv[i], "text=", 5) == 0) {
			m.a.text = argv[i] + 5;
		} else {
			argument(&m.a, argv[i]);
		}
	}
	if (argc == 3 && strcmp(argv[1], "engine") == 0) {
		engine_main(argv[2]);
		return 0;
	}
	for (size_t i = 0; argc >= 3 && i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (strcmp(argv[1], modes[i].name) != 0)
			continue;
		if (modes[i].run == measure_produce)
			leave_room(&m, argv[2], m.a.producers);
		else if (modes[i].run == measure_generate) /* the same for every engine */
			leave_room(&m, argv[2], ENGINE_BLOCKS);
		else if (modes[i].run == measure_leave)
			m.c.owner_limit_ms = LEFT_MS;
		open_device(&m, argv[2], modes[i].run == measure_scan);
		modes[i].run(&m);
		if (m.out != NULL && fclose(m.out) != 0)
			post_fail("the samples cannot be written");
		m.d->ops->close(m.d);
		return 0;
	}
	post_fail(
		"usage: gpu_measure scan|requests|produce|generate|drain|leave DEVICE [NAME=NUMBER]... [out=FILE]");
}
