/* SPDX-License-Identifier: BSD-3-Clause */
/* The sink's set-up, and recovery on the control thread. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_malloc.h>

#include <monotonic.h>

#include "app.h"
#include "gpu_sink_control.h"
#include "log.h"
#include "tables/tables.h"

#define OPEN_MS 1000	  /* for the agent's answer, at start */
#define OPEN_AGAIN_MS 200 /* later, while readers wait for the control thread */
#define TRY_MS 1000	  /* between attempts to connect */
#define POLL_MS 5	  /* between polls of the sinks */
#define LOG_MS 1000	  /* between log lines about failed texts */
#define READ_US 2	  /* between reads of the back area, if each shows something ... */
#define READ_LANES_US 1	  /* ... or if ids come back, too ... */
#define READ_MOST_US 50	  /* ... and if none does */
#define DEAD_MS 1000	  /* without a heartbeat the agent is dead */

static const char *
status_name(uint32_t status)
{
	static const char *const names[] = {
		[TOKG_BADSUM] = "BADSUM, wrong check word twice",
		[TOKG_STALE] = "STALE, its epoch had ended",
		[TOKG_BADHDR] = "BADHDR, contradictory header",
		[TOKG_BADID] =
			"BADID, an id beyond tokd-gpu's table, or a vocabulary without a table",
		[TOKG_BADPOS] = "BADPOS, a text longer than tokd-gpu's position table",
	};

	return status < RTE_DIM(names) && names[status] != NULL ? names[status] : "unknown";
}

const char *
tokd_sink_state_name(uint32_t state)
{
	static const char *const names[] = {
		[TOKD_SINK_RUNNING] = "running",
		[TOKD_SINK_BROKEN] = "reconnecting",
		[TOKD_SINK_LOST] = "no agent",
	};

	return names[state];
}

static struct tokg_transport *
connect_to_agent(const struct tokd_worker *w, uint64_t instance, uint32_t timeout_ms,
	char path[256], struct tokg_error *err)
{
	const struct tokd_terms *terms = atomic_load_explicit(&w->next_terms, memory_order_relaxed);
	uint32_t checksum[TOKD_VOCABS_MAX], n_ids[TOKD_VOCABS_MAX];
	const struct tokg_source source = {
		.base = w->ring.hdr,
		.bytes = w->ring.map_bytes,
		.fd = w->ring.fd,
		.worker = w->index,
		.instance = instance,
		.n_vocabs = terms->n_vocabs,
		.vocab = checksum,
		.n_ids = n_ids,
		.text_vocab = w->opt->pipeline == TOKD_PIPELINE_GPU ? terms->vocab[0].checksum : 0,
		.text_flags = terms->tok_flags,
		.shed_below = w->sink != NULL ? tokg_sink_shed_below(w->sink->sink) : 0,
		.node = w->node,
	};

	for (uint32_t i = 0; i < terms->n_vocabs; i++) {
		checksum[i] = terms->vocab[i].checksum;
		n_ids[i] = tok_vocab_info(terms->vocab[i].tok).n_ids;
	}
	return tokg_transport_open(&w->opt->sink_target, &source, timeout_ms, path, err);
}

/* For telemetry and the log. */
static void
show(struct tokd_worker *w, const char path[256])
{
	struct tokd_sink *s = w->sink;
	const struct tokg_transport *t = s->transport;

	pthread_mutex_lock(&s->lock);
	memcpy(s->path, path, sizeof(s->path));
	s->kind = t->ops->name;
	s->producer = t->producer;
	s->epoch = t->epoch;
	s->slots = t->geometry.slots;
	s->slot_bytes = t->geometry.slot_bytes;
	s->out_bytes = t->geometry.out_bytes;
	pthread_mutex_unlock(&s->lock);
	TOKD_LOG(control, NOTICE, "worker %u: GPU sink: %s, epoch %u\n", w->index, path, t->epoch);
}

/* A reader of the ring without a connection; it is waited for, or shed. */
static void
become_reader(struct tokd_worker *w)
{
	struct tokd_reader *rd = &w->ring.reader[TOKD_READER_SINK];

	rd->cursor = tokg_sink_cursor(w->sink->sink);
	rd->start = rd->seen = w->ring.head;
	atomic_store(&rd->state, TOKD_READER_ACTIVE);
	w->ring.n_active++;
	if (w->opt->sink_full == TOKD_SINK_SHED)
		w->ring.shed = tokd_sink_shed;
}

static struct tokg_sink *
make_sink(struct tokd_worker *w, struct tokg_transport *t, struct tokg_error *err)
{
	const struct tokd_terms *terms = w->terms; /* it does not run yet */
	uint32_t checksum[TOKD_VOCABS_MAX];
	const struct tokg_sink_config config = {
		.transport = t,
		.data = w->ring.data,
		.mask = w->ring.mask,
		.start = w->ring.head,
		.start_records = w->counter[C_RECORDS],
		.n_vocabs = terms->n_vocabs,
		.vocab = checksum,
		.wipe = w->wipe,
		.batch_ticks = w->tsc_hz / 1000000 * w->opt->sink_batch_us,
		.read_ticks = w->tsc_hz / 1000000 * READ_US,
		.read_ticks_lanes = w->tsc_hz / 1000000 * READ_LANES_US,
		.read_ticks_most = w->tsc_hz / 1000000 * READ_MOST_US,
		.dead_ticks = w->tsc_hz / 1000 * DEAD_MS,
		.node = w->node,
		.failed = tokd_sink_failed,
		.done = tokd_sink_done,
		.text = tokd_gpu_text_done,
		.token = tokd_generate_token,
		.ended = tokd_generate_ended,
		.owner = w,
	};

	for (uint32_t i = 0; i < terms->n_vocabs; i++)
		checksum[i] = terms->vocab[i].checksum;
	return tokg_sink_create(&config, err);
}

bool
tokd_sink_make(struct tokd_worker *w, struct tokg_transport *t, struct tokg_error *err)
{
	struct tokd_sink *s =
		rte_zmalloc_socket("tokd_sink", sizeof(*s), RTE_CACHE_LINE_SIZE, w->node);

	if (s == NULL) {
		snprintf(err->text, sizeof(err->text),
			"cannot allocate %zu bytes of EAL memory on node %d", sizeof(*s), w->node);
		return false;
	}
	pthread_mutex_init(&s->lock, NULL);
	TAILQ_INIT(&s->answers.ready);
	s->transport = t;
	s->kind = t->ops->name;
	s->sink = make_sink(w, t, err);
	if (s->sink == NULL) {
		pthread_mutex_destroy(&s->lock);
		rte_free(s);
		return false;
	}
	s->answers.sink = s->sink;
	w->sink = s;
	w->answers = &s->answers;
	become_reader(w);
	return true;
}

int
tokd_sinks_resolve(struct tokd_app *app)
{
	struct tokg_error err = {""};

	if (app->opt.sink == NULL || tokg_target_resolve(&app->opt.sink_target, &err))
		return 0;
	TOKD_LOG(main, ERR, "--sink %s: %s\n", app->opt.sink, err.text);
	return -EIO;
}

int
tokd_sink_open(struct tokd_worker *w, uint64_t instance)
{
	struct tokg_error err = {""};
	char path[sizeof(w->sink->path)] = "";
	struct tokg_transport *t = connect_to_agent(w, instance, OPEN_MS, path, &err);

	if (t == NULL || !tokd_sink_make(w, t, &err)) {
		TOKD_LOG(main, ERR, "worker %u: --sink %s: %s\n", w->index, w->opt->sink, err.text);
		if (t != NULL)
			t->ops->close(t);
		return -EIO;
	}
	show(w, path);
	return w->opt->pipeline == TOKD_PIPELINE_GPU ? tokd_gpu_texts_open(w, &t->geometry) : 0;
}

void
tokd_sink_close(struct tokd_worker *w)
{
	struct tokd_sink *s = w->sink;

	if (s == NULL)
		return;
	tokd_gpu_texts_close(w);
	/* First: the sink owns the cursor. */
	atomic_store(&w->ring.reader[TOKD_READER_SINK].state, TOKD_READER_FREE);
	w->ring.n_active--;
	w->ring.shed = NULL;
	tokg_sink_free(s->sink);
	if (s->transport != NULL)
		s->transport->ops->close(s->transport);
	pthread_mutex_destroy(&s->lock);
	rte_free(s);
	w->sink = NULL;
	w->answers = NULL;
}

static void
run_again(struct tokd_sink *s)
{
	s->logged = false;
	/* The worker that sees RUNNING sees the recovered sink. */
	atomic_store_explicit(&s->state, TOKD_SINK_RUNNING, memory_order_release);
}

static void
recover(struct tokd_worker *w)
{
	struct tokd_sink *s = w->sink;
	struct tokg_error err = {""};
	int rc;

	if (tokd_sink_is_overdue(w, rte_rdtsc()))
		tokg_sink_give_up(s->sink);
	rc = tokg_sink_recover(s->sink, &err);
	if (rc > 0) {
		TOKD_LOG(control, NOTICE, "worker %u: GPU sink: connected again\n", w->index);
		run_again(s);
	} else if (rc < 0) {
		TOKD_LOG(control, WARNING,
			"worker %u: GPU sink: %s; ids that are not embedded stay in the token "
			"ring%s, and are posted again to the next agent\n",
			w->index, err.text, w->ring.shed != NULL ? " until it is full" : "");
		s->transport->ops->close(s->transport);
		s->transport = NULL;
		s->logged = false;
		s->next_try_ms = 0;
		/* Release: the worker that sees LOST may reuse what the transport was reading. */
		atomic_store_explicit(&s->state, TOKD_SINK_LOST, memory_order_release);
	} else if (!s->logged) {
		TOKD_LOG(control, WARNING, "worker %u: GPU sink: connection lost: reconnecting\n",
			w->index);
		s->logged = true;
	}
}

/* True: it tried, which took time. */
static bool
find_agent(struct tokd_worker *w, uint64_t instance)
{
	struct tokd_sink *s = w->sink;
	struct tokg_error err = {""};
	char path[sizeof(s->path)] = "";
	struct tokg_transport *t;

	if (monotonic_ms() < s->next_try_ms)
		return false;
	t = connect_to_agent(w, instance, OPEN_AGAIN_MS, path, &err);
	if (t != NULL && tokg_sink_attach(s->sink, t, &err)) {
		s->transport = t;
		show(w, path);
		run_again(s);
		return true;
	}
	if (!s->logged || strcmp(s->why, err.text) != 0)
		TOKD_LOG(control, WARNING,
			"worker %u: GPU sink: no agent: %s; retrying every %d ms\n", w->index,
			err.text, TRY_MS);
	s->logged = true;
	snprintf(s->why, sizeof(s->why), "%s", err.text);
	if (t != NULL)
		t->ops->close(t);
	/* From the end of this attempt, so that other sinks get a turn. */
	s->next_try_ms = monotonic_ms() + TRY_MS;
	return true;
}

static void
log_shed(const struct tokd_worker *w)
{
	struct tokd_sink *s = w->sink;
	uint64_t n = __atomic_load_n(&tokg_sink_counters(s->sink)[TOKG_C_SHED], __ATOMIC_RELAXED);

	if (n == s->n_shed || monotonic_ms() < s->next_shed_log_ms)
		return;
	TOKD_LOG(control, WARNING,
		"worker %u: GPU sink: the token ring was full: %" PRIu64
		" records shed; texts below serial %" PRIu64
		" are not embedded, unless they already are%s\n",
		w->index, n - s->n_shed, tokg_sink_shed_below(s->sink),
		w->gpu_texts == NULL ? "; their clients get their ids"
				     : "; those posted as bytes have no ids");
	s->n_shed = n;
	s->next_shed_log_ms = monotonic_ms() + LOG_MS;
}

static void
log_failed(const struct tokd_worker *w)
{
	struct tokd_sink *s = w->sink;
	uint64_t n = __atomic_load_n(&tokg_sink_counters(s->sink)[TOKG_C_FAILED], __ATOMIC_RELAXED);

	if (n == s->n_failed || monotonic_ms() < s->next_log_ms)
		return;
	TOKD_LOG(control, WARNING,
		"worker %u: GPU sink: %" PRIu64 " texts not embedded; the last: %s\n", w->index,
		n - s->n_failed, status_name(atomic_load(&s->last_status)));
	s->n_failed = n;
	s->next_log_ms = monotonic_ms() + LOG_MS;
}

void
tokd_sinks_poll(struct tokd_app *app)
{
	const uint32_t first = app->next_sink;
	bool tried = false;

	for (uint32_t i = 0; i < app->n_workers; i++) {
		const uint32_t index = (first + i) % app->n_workers;
		struct tokd_worker *w = app->worker[index];

		if (w->sink == NULL)
			return; /* all workers have a sink, or none has */
		log_failed(w);
		log_shed(w);
		switch (atomic_load_explicit(&w->sink->state, memory_order_acquire)) {
		case TOKD_SINK_RUNNING:
			/* Detects the end of the connection at once; the worker's poll reports it.
			 */
			tokg_transport_check(w->sink->transport);
			break;
		case TOKD_SINK_BROKEN:
			recover(w);
			break;
		case TOKD_SINK_LOST:
			/* One attempt per poll, round robin. */
			if (!tried && find_agent(w, app->instance)) {
				tried = true;
				app->next_sink = (index + 1) % app->n_workers;
			}
			break;
		}
	}
}

int
tokd_sinks_wait_ms(const struct tokd_app *app)
{
	return app->worker[0]->sink != NULL ? POLL_MS : -1;
}

static bool
is_idle(const struct tokd_worker *w)
{
	return tokg_sink_is_idle(
		w->sink->sink, __atomic_load_n(&w->ring.hdr->head, __ATOMIC_ACQUIRE));
}

/* Texts may come back meanwhile: `ended` is read first, and what has ended has its ids there. */
static bool
is_busy(const struct tokd_worker *w)
{
	const struct tokd_gpu_texts *t = w->gpu_texts;
	uint32_t ended;

	if (t == NULL)
		return !is_idle(w);
	ended = atomic_load_explicit(&t->ended, memory_order_acquire);
	if (!is_idle(w))
		return true;
	atomic_thread_fence(memory_order_acquire);
	return atomic_load_explicit(&t->came_back, memory_order_relaxed) != ended;
}

uint32_t
tokd_sinks_busy(const struct tokd_app *app)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < app->n_workers; i++) {
		const struct tokd_worker *w = app->worker[i];

		n += w->sink != NULL && is_busy(w);
	}
	return n;
}
