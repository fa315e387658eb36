/* SPDX-License-Identifier: BSD-3-Clause */
#include "../../../../lib/gpu_sink/kernel/device_cpu.cpp"

#include <stdarg.h>

#include <mix.h>
#include "../fibers/graph_rules.h"
#include "external.h"
#include "simulate.h"

extern "C" {
#include "ring/check.h"
}

#define PRODUCERS 3
#define SLOTS 8
#define ALL (PRODUCERS * SLOTS)
#define LANES 2
#define LOG 16
#define SLOT_BYTES 4096
#define DIM 2
#define IDS 4096
#define FEW_ROWS 8
#define RECORDS_MAX 4
#define TOKENS_MAX 60
#define EPOCH 5
#define BLOCKS 3 /* of a kernel of a child */
#define STILL 10000000
#define LATE 20000  /* a step of the relay */
#define PHASE 32768 /* steps of the world with an external engine */
#define GRANT 3	    /* the most tokens of a text: two lanes of them fit the log */

namespace
{

/* In a quiet phase only what waits already goes on: nothing else may help it. */
enum phase { BUSY, QUIET, BUSY_AGAIN, QUIET_WITHOUT_ENGINE, PHASES };
enum stage { NONE, LAUNCHED, CHECKED, WORKED };

/* What is posted in a slot, and how many of its entries have come. */
struct posted {
	uint64_t ticket;
	uint64_t request[RECORDS_MAX];
	uint32_t tokens[RECORDS_MAX], records, came;
	bool out;  /* posted, and `done` not read */
	bool late; /* posted after the stop */
	uint32_t lane, turn;
};

struct lane {
	uint32_t turn, granted, taken;
	uint64_t changes; /* of the world, when it was used */
	bool used;
};

struct world {
	const simulate_how *how;
	simulated *said;
	cpu_device *c;
	graph_rules rules;
	enum stage stage[TOKG_GRAPHS][TOKG_LAUNCHES];
	posted slot[ALL];
	uint32_t next[PRODUCERS]; /* slot */
	lane lanes[PRODUCERS][LANES];
	external engine;
	uint64_t log_at[PRODUCERS];
	uint64_t changes; /* incarnations; engines that came and went */
	uint64_t reasons; /* for the next step of the relay, since the last one */
	uint64_t late;	  /* steps of the world since the first of them */
	uint64_t turns;	  /* steps of the world */
	uint64_t dice, request, entries;
	uint64_t limit;	 /* of launches: then the stop word is written */
	uint64_t before; /* launches, of the incarnations before */
	uint64_t still;	 /* steps since the last launch */
	uint64_t heartbeat;
	bool inside; /* the scheduler runs, and not what goes on around it */
	bool stops;
	enum tokg_stop how_it_stops;
} w;

void
wrong(const char *format, ...)
{
	va_list list;

	if (w.said->wrong[0] != '\0')
		return;
	va_start(list, format);
	vsnprintf(w.said->wrong, sizeof(w.said->wrong), format, list);
	va_end(list);
	if (w.c != NULL)
		stop_write(w.c, TOKG_STOP_NOW);
}

uint32_t
below(uint32_t n)
{
	return (uint32_t)((dice_throw(&w.dice) >> 32) * n >> 32);
}

uint32_t
id_of(uint64_t request, uint32_t i)
{
	return (uint32_t)((request * 0x9e3779b97f4a7c15ull + i * 0xbf58476d1ce4e5b9ull) >> 40) %
	       IDS;
}

uint64_t
out_off_of(uint32_t slot)
{
	return (slot % SLOTS) * RECORDS_MAX * tokg_out_bytes(TOKENS_MAX, DIM * 4);
}

void
ids_put(uint8_t *to, uint64_t request, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		((uint32_t *)to)[i] = id_of(request, i);
}

/* Records of a BATCH; bytes. */
uint32_t
records_put(uint8_t *to, const posted *p)
{
	uint32_t bytes = 0;

	for (uint32_t i = 0; i < p->records; i++) {
		tokd_rec r = {};

		r.kind = TOKD_REC_TOKENS;
		r.flags = TOKD_REC_FIRST | TOKD_REC_LAST;
		r.serial = p->request[i];
		r.count = p->tokens[i];
		r.bytes = (uint32_t)tokg_align(sizeof(r) + 4 * p->tokens[i], TOKD_RING_ALIGN);
		memcpy(to + bytes, &r, sizeof(r));
		ids_put(to + bytes + sizeof(r), p->request[i], p->tokens[i]);
		bytes += r.bytes;
	}
	return bytes;
}

/* Asks for tokens in a free lane, if there is one. */
void
lane_take(uint32_t producer, posted *p, tokg_hdr *h)
{
	const uint32_t i = below(LANES);
	lane *const l = &w.lanes[producer][i];

	if (l->used)
		return;
	l->used = true;
	l->granted = l->taken = 0;
	l->changes = w.changes;
	l->turn = l->turn % TOKG_TURN_MAX + 1;
	p->lane = i;
	p->turn = l->turn;
	h->flags |= TOKG_GENERATE_FLAGS(i, l->turn);
}

void
post(uint32_t producer)
{
	const struct tokg_geometry *const g = &w.c->d.geometry;
	const uint32_t at = producer * SLOTS + w.next[producer];
	uint8_t *const region = w.c->consumer.region;
	uint8_t *const payload = region + g->payload_off + (uint64_t)SLOT_BYTES * at;
	uint8_t *const hdr = region + g->hdr_off + sizeof(tokg_hdr) * at;
	posted *const p = &w.slot[at];
	tokg_hdr h = {};

	if (p->out)
		return;
	w.next[producer] = (w.next[producer] + 1) % SLOTS;
	p->ticket++;
	p->came = p->turn = 0;
	p->out = true;
	p->late = w.stops;
	p->records = below(4) == 0 ? 1 + below(RECORDS_MAX) : 1;
	memset(payload, 0, SLOT_BYTES);
	for (uint32_t i = 0; i < p->records; i++) {
		p->request[i] = ++w.request;
		p->tokens[i] = below(2) == 0 ? below(FEW_ROWS + 1) : below(TOKENS_MAX + 1);
		h.tokens += p->tokens[i];
	}
	h.kind = TOKG_KIND_WORD;
	h.epoch = EPOCH;
	h.out_off = out_off_of(at);
	h.ticket = p->ticket;
	if (p->records > 1) {
		h.flags = TOKG_BATCH;
		h.bytes = records_put(payload, p);
	} else {
		h.flags = TOKG_FIRST | TOKG_LAST;
		h.request = p->request[0];
		h.bytes = 4 * h.tokens;
		ids_put(payload, h.request, h.tokens);
		lane_take(producer, p, &h);
	}
	h.check = tokg_check_of(&h, payload);
	memcpy(hdr, &h, offsetof(tokg_hdr, ticket));
	__atomic_store_n(
		(uint64_t *)(hdr + offsetof(tokg_hdr, ticket)), h.ticket, __ATOMIC_RELEASE);
	w.said->posted++;
}

/* Of a text: is each row that of its id? */
bool
rows_right(const struct tokg_out_entry *e)
{
	const float *const rows =
		(const float *)((const uint8_t *)w.c->d.outputs +
				e->producer * w.c->d.geometry.out_bytes + e->out_off);

	for (uint32_t i = 0; i < e->tokens; i++)
		for (uint32_t k = 0; k < DIM; k++)
			if (rows[i * DIM + k] != (float)(id_of(e->request, i) * DIM + k))
				return false;
	return true;
}

bool
ids_right(const struct tokg_out_entry *e)
{
	const uint32_t *const ids = w.engine.ids_of(e);

	for (uint32_t i = 0; i < e->tokens; i++)
		if (ids[i] != id_of(e->request, i))
			return false;
	return true;
}

void
entries_read()
{
	for (;; w.entries++) {
		const struct tokg_out_entry *const e = tokg_outbox_entry(w.c->d.outbox, w.entries);
		const uint32_t at = e->producer * SLOTS + e->slot;
		posted *const p = &w.slot[at];

		if (__atomic_load_n(&e->seq, __ATOMIC_ACQUIRE) != w.entries + 1)
			return;
		if (e->status != TOKG_OK || (e->redo && w.how->launch_fails == 0) || at >= ALL ||
			e->part >= p->records || e->ticket != p->ticket || e->parts != p->records ||
			e->request != p->request[e->part] || e->tokens != p->tokens[e->part])
			wrong("entry of producer %u, slot %u, ticket %llu, status %u: not as posted",
				e->producer, e->slot, (unsigned long long)e->ticket, e->status);
		else if (p->came & 1u << e->part)
			wrong("slot %u, ticket %llu, part %u: twice", at,
				(unsigned long long)e->ticket, e->part);
		else if (!rows_right(e))
			wrong("slot %u, ticket %llu: a row is wrong", at,
				(unsigned long long)e->ticket);
		else if (w.how->external && !ids_right(e))
			wrong("slot %u, ticket %llu: an id beside the rows is wrong", at,
				(unsigned long long)e->ticket);
		if (w.engine.here && (e->flags & TOKG_GENERATE))
			w.engine.offer(e, p->turn);
		p->came |= 1u << e->part;
		w.said->entries++;
	}
}

uint64_t
word(uint64_t offset)
{
	return __atomic_load_n((const uint64_t *)(w.c->consumer.region + offset), __ATOMIC_ACQUIRE);
}

/* What is done: all its entries must have come. */
void
done_read(uint32_t at)
{
	posted *const p = &w.slot[at];
	const uint64_t done = word(tokg_done_at(&w.c->d.geometry, at / SLOTS, at % SLOTS));

	if (!p->out || done >> 8 != p->ticket)
		return;
	entries_read();
	if ((done & 255) != TOKG_OK || p->came != (1u << p->records) - 1)
		wrong("slot %u, ticket %llu: status %u, entries %x of %u", at,
			(unsigned long long)p->ticket, (uint32_t)(done & 255), p->came, p->records);
	p->out = false;
}

bool
is_open(uint32_t producer, uint32_t i)
{
	return TOKG_BEGUN_TURN(w.c->consumer.lanes[producer * LANES + i].begun) !=
	       TOKG_LANE_TURN(word(tokg_ended_at(&w.c->d.geometry, producer, i)));
}

uint32_t
lanes_open()
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < PRODUCERS * LANES; i++)
		n += is_open(i / LANES, i % LANES);
	return n;
}

/* Texts that had a lane so far. */
uint64_t
lanes_begun()
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < PRODUCERS * LANES; i++)
		n += w.c->consumer.lanes[i].use;
	return n;
}

/* Ids of an external engine, which are its own, in order. */
void
log_read(uint32_t producer)
{
	const struct tokg_geometry *const g = &w.c->d.geometry;

	for (;; w.log_at[producer]++) {
		const uint64_t at = w.log_at[producer];
		const uint64_t token = word(tokg_log_at(g, producer, at));
		const uint32_t i = TOKG_TOKEN_LANE(token);
		lane *const l = &w.lanes[producer][i];

		if (TOKG_TOKEN_LAP(token) != tokg_lap_of(g, at))
			return;
		if (i >= LANES || !l->used || TOKG_TOKEN_TURN(token) != l->turn ||
			l->taken >= l->granted ||
			TOKG_TOKEN_ID(token) !=
				external::id(producer * LANES + i, l->turn, l->taken, IDS))
			wrong("producer %u: word %llu of the log is not the next of lane %u",
				producer, (unsigned long long)at, i);
		l->taken++;
		w.said->made++;
	}
}

enum phase
phase()
{
	return (enum phase)(w.turns / PHASE % PHASES);
}

bool
engine_changes()
{
	switch (phase()) {
	case QUIET:
		return !w.engine.here;
	case QUIET_WITHOUT_ENGINE:
		return w.engine.here;
	default:
		return below(w.engine.here ? 2000 : 20) == 0;
	}
}

/* An engine comes, works on some lane, or goes. */
void
engine_step()
{
	const uint32_t lane = below(PRODUCERS * LANES);

	if (!engine_changes()) {
		if (w.engine.here)
			w.reasons += phase() == QUIET
					     ? w.engine.work(lane, below(2) == 0, GRANT - 1)
					     : w.engine.work(lane, below(8) == 0, ANY);
		return;
	}
	if (w.engine.here)
		w.engine.go();
	else if (!w.engine.come())
		wrong("no memory for an engine");
	w.said->engines = w.engine.engines;
	w.changes++;
	w.reasons += lanes_open();
}

/* May the lane have ended so? */
bool
end_right(const lane *l, uint64_t ended)
{
	const uint32_t n = TOKG_LANE_N(ended);

	if (w.how->external && n != l->taken)
		return false;
	switch (TOKG_LANE_BITS(ended)) {
	case TOKG_END_LENGTH:
		return n == GRANT;
	case TOKG_END_STOP:
		return w.how->external;
	case TOKG_END_CUT:
		return w.changes != l->changes || (w.how->external && !w.engine.here);
	default:
		return false;
	}
}

/* Grants tokens, and reads how the lane has ended. */
void
lane_serve(uint32_t producer, uint32_t i)
{
	const struct tokg_geometry *const g = &w.c->d.geometry;
	lane *const l = &w.lanes[producer][i];
	const uint64_t ended = word(tokg_ended_at(g, producer, i));
	bool final;

	if (!l->used)
		return;
	if (w.how->external)
		log_read(producer);
	if (TOKG_LANE_TURN(ended) == l->turn) {
		if (!end_right(l, ended))
			wrong("lane %u of producer %u ended as %u after %u of %u, %u read", i,
				producer, TOKG_LANE_BITS(ended), TOKG_LANE_N(ended), l->granted,
				l->taken);
		l->used = false;
		w.said->ended++;
		return;
	}
	if (l->granted == GRANT || below(2) == 0)
		return;
	final = ++l->granted == GRANT;
	w.reasons += is_open(producer, i);
	__atomic_store_n((uint64_t *)(w.c->consumer.region + tokg_ask_at(g, producer, i)),
		TOKG_ASK(l->granted, EPOCH, l->turn, final ? TOKG_ASK_FINAL : 0), __ATOMIC_RELEASE);
}

/* Blocks of a kernel in any order: from any one on, up or down. */
void
kernel_run(enum tokg_graph kind, uint32_t number, enum stage stage)
{
	struct tokg_child *const child = &w.c->schedule->child[number];
	const uint32_t from = below(BLOCKS), step = 1 + below(BLOCKS - 1);
	const uint64_t begun = lanes_begun();

	for (uint32_t i = 0; i < BLOCKS; i++) {
		struct tokg_hand hand = {};
		struct tokg_block b = {};
		const uint32_t block = (from + i * step) % BLOCKS;

		b.n = b.lanes = b.teams = 1;
		if (kind == TOKG_GRAPH_STEP) {
			tokg_step(&w.c->consumer, &b, w.c->schedule);
			w.reasons = w.late = 0;
			return;
		}
		if (stage == LAUNCHED)
			tokg_child_check(&w.c->consumer, &b, child, &hand, block, BLOCKS);
		else
			tokg_child_rows(&w.c->consumer, &b, child, &hand, block, BLOCKS);
	}
	w.reasons += lanes_begun() - begun;
}

void
child_goes_on(enum tokg_graph kind, uint32_t number)
{
	enum stage *const stage = &w.stage[kind][number];

	switch (*stage) {
	case NONE:
		return;
	case LAUNCHED:
		kernel_run(kind, number, *stage);
		*stage = kind == TOKG_GRAPH_STEP ? WORKED : CHECKED;
		return;
	case CHECKED:
		kernel_run(kind, number, *stage);
		*stage = WORKED;
		return;
	case WORKED:
		*stage = NONE;
		w.rules.ended(kind, number);
	}
}

/* A child of any: of a window most are launched late or not at all, so the lower ones first. */
void
some_child()
{
	const enum tokg_graph kind = below(4) == 0 ? TOKG_GRAPH_STEP : TOKG_GRAPH_EMBED;
	const uint32_t n = w.rules.launched;

	if (n > 0)
		child_goes_on(kind, below(n));
}

void
around()
{
	const struct tokg_schedule *const g = w.c->schedule;
	const bool quiet = phase() == QUIET || phase() == QUIET_WITHOUT_ENGINE;

	switch (below(6)) {
	case 0:
		if (!quiet && (!w.how->rarely || below(500) == 0))
			post(below(PRODUCERS));
		break;
	case 1:
		done_read(below(ALL));
		break;
	case 2:
		lane_serve(below(PRODUCERS), below(LANES));
		if (w.how->external)
			engine_step();
		break;
	default:
		some_child();
	}
	w.turns += w.how->external;
	tokg_owner_lives(&w.c->d);
	if (w.how->external && !w.stops && w.reasons > 0 && ++w.late > LATE)
		wrong("no step of the relay, with %llu reasons", (unsigned long long)w.reasons);
	if (++w.still > STILL)
		wrong("no launch in %u steps", STILL);
	if (word(offsetof(struct tokg_ctl, heartbeat)) < w.heartbeat)
		wrong("the heartbeat went back");
	w.heartbeat = word(offsetof(struct tokg_ctl, heartbeat));
	if (!w.stops && g->launches[0] + g->launches[1] >= w.limit) {
		stop_write(w.c, w.how_it_stops);
		w.stops = true;
	}
}

/* Until the environment of an execution is complete. */
void
all_children()
{
	while (w.rules.running > 0) {
		for (uint32_t i = 0; i < TOKG_GRAPHS * TOKG_LAUNCHES; i++)
			if (below(2) == 0)
				child_goes_on(
					(enum tokg_graph)(i / TOKG_LAUNCHES), i % TOKG_LAUNCHES);
		around();
	}
}

void
count_execution()
{
	w.said->executions++;
	if (w.rules.launched > w.said->most)
		w.said->most = w.rules.launched;
	w.said->early += w.rules.again && w.rules.launched < TOKG_LAUNCHES - 1;
}

/* All executions of an incarnation. */
void
thread_run(const thread *t)
{
	static struct tokg_scheduler s;
	struct tokg_block b = {};

	if (t->index > 0)
		return;
	b.n = b.lanes = b.teams = 1;
	do {
		if (!w.rules.begin())
			wrong("children of the last execution run on");
		/* Nothing may be left in the memory of a block. */
		memset(&s, 0xa5, sizeof(s));
		w.inside = true;
		tokg_schedule_run(&w.c->consumer, &b, w.c->schedule, &s, NULL);
		w.inside = false;
		count_execution();
		all_children();
	} while (w.rules.again && w.said->wrong[0] == '\0');
}

bool
device_open(const simulate_how *how)
{
	static float table[IDS * DIM];
	struct tokg_device_config k = {};
	struct tokg_error err = {};

	for (uint32_t i = 0; i < IDS * DIM; i++)
		table[i] = (float)i;
	k.geometry.producers = PRODUCERS;
	k.geometry.slots = SLOTS;
	k.geometry.slot_bytes = SLOT_BYTES;
	k.geometry.flags = TOKG_CHECKED;
	k.geometry.kind = k.tables.kind = TOKG_KIND_WORD;
	k.geometry.dtype = k.tables.dtype = TOKG_F32;
	k.geometry.dim = k.tables.dim = DIM;
	k.geometry.n_ids = k.tables.n_ids = IDS;
	k.geometry.lanes = LANES;
	k.geometry.log = LOG;
	k.geometry.out_bytes = 1 << 17; /* room for out_off_of() */
	k.tables.word = table;
	k.ring_epoch = 1;
	k.workers = 1;
	k.rows_of_job = FEW_ROWS;
	k.first_cpu = -1;
	k.stop_id = UINT32_MAX;
	k.heads = how->heads;
	k.graphs = true;
	k.external_engine = how->external;
	if (!tokg_geometry_fill(&k.geometry, &err) ||
		(w.c = (cpu_device *)tokg_device_cpu(&k, &err)) == NULL) {
		wrong("%s", err.text);
		return false;
	}
	w.engine.open(w.c);
	for (uint32_t p = 0; p < PRODUCERS; p++)
		__atomic_store_n(
			(uint32_t *)(w.c->consumer.region + tokg_back_at(&w.c->d.geometry, p) +
				     offsetof(struct tokg_back, epoch)),
			EPOCH, __ATOMIC_RELEASE);
	return true;
}

/* When the consumer has ended: what was claimed is done, and after DRAIN all that was posted. */
void
stopped_right(bool drained)
{
	for (uint32_t i = 0; i < ALL; i++) {
		const uint64_t claim = w.c->consumer.claim[i] & TOKG_TICKET_MAX;

		done_read(i);
		if (w.slot[i].out && (claim == w.slot[i].ticket || (drained && !w.slot[i].late)))
			wrong("slot %u, ticket %llu: not done after stop %u", i,
				(unsigned long long)w.slot[i].ticket, (uint32_t)w.how_it_stops);
	}
}

void
incarnation_run(uint32_t number)
{
	struct tokg_schedule *const g = w.c->schedule;
	struct tokg_error err = {};

	w.stops = false;
	w.still = w.heartbeat = 0;
	*tokg_word(&w.c->consumer, offsetof(struct tokg_ctl, heartbeat)) = 0;
	w.how_it_stops = below(2) == 0 ? TOKG_STOP_DRAIN : TOKG_STOP_NOW;
	w.limit = below(w.how->most_in_one + 1);
	w.said->incarnations++;
	w.changes++;
	w.reasons = lanes_open();
	w.late = 0;
	w.before = w.said->launches;
	if (w.c->d.ops->start(&w.c->d, number, &err) < 0) {
		wrong("%s", err.text);
		return;
	}
	/* It ends by itself: the stop word is written by what goes on around it. */
	pthread_join(w.c->threads[0].id, NULL);
	for (uint32_t i = 1; i < w.c->running; i++)
		pthread_join(w.c->threads[i].id, NULL);
	w.c->running = 0;
	w.said->launches += g->launches[0] + g->launches[1];
	w.said->steps += g->launches[TOKG_GRAPH_STEP];
	w.said->failed += g->failed != 0;
}

} // namespace

/* Before each access to what is shared, of the scheduler and its children. */
extern "C" void
tokg_inject_step(const char *, const void *)
{
	if (!w.inside || w.said->wrong[0] != '\0')
		return;
	w.inside = false;
	if (below(3) == 0)
		around();
	w.inside = true;
}

extern "C" uint32_t
tokg_graph_launch(void *const *, enum tokg_graph kind, uint32_t number)
{
	const struct tokg_schedule *const g = w.c->schedule;
	uint32_t error;

	if (w.how->launch_fails > 0 && w.said->failed == 0 &&
		w.before + g->launches[0] + g->launches[1] + 1 == w.how->launch_fails)
		return GRAPH_TOO_MANY;
	error = w.rules.launch(kind, number);
	if (kind == TOKG_GRAPH_STEP && w.how->external && w.reasons == 0)
		wrong("a step of the relay without a reason");
	if (error != GRAPH_FINE)
		wrong("launch of graph %u, number %u: error %u", kind, number, error);
	else
		w.stage[kind][number] = LAUNCHED;
	for (uint32_t i = 0; kind == TOKG_GRAPH_STEP && i < TOKG_LAUNCHES; i++)
		if (i != number && w.stage[kind][i] == LAUNCHED)
			wrong("steps %u and %u at the same time", i, number);
	w.still = 0;
	return error;
}

extern "C" uint32_t
tokg_graph_relaunch(void)
{
	const uint32_t error = w.rules.relaunch();

	if (error != GRAPH_FINE)
		wrong("tail launch: error %u", error);
	return error;
}

void
simulate(const struct simulate_how *how, struct simulated *said)
{
	memset(said, 0, sizeof(*said));
	memset(&w, 0, sizeof(w));
	w.how = how;
	w.said = said;
	w.dice = how->seed;
	if (!device_open(how))
		return;
	for (uint32_t i = 1; said->launches < how->launches && said->wrong[0] == '\0'; i++) {
		incarnation_run(i);
		if (said->wrong[0] == '\0' && w.c->schedule->failed == 0)
			stopped_right(w.how_it_stops == TOKG_STOP_DRAIN);
	}
	w.c->d.ops->close(&w.c->d);
}
