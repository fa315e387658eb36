/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A tokd-gpu with lanes, in plain memory: behind the product's sink and control thread, in place of
 * a transport. It works when the worker polls, at random: writes land late, slots are done out of
 * order, a READ sees an older log, and an engine continues texts by engine_rule.h. It is killed and
 * comes back, its consumer is restarted, its connection breaks, and the engine makes ids that are
 * none, or that were not granted.
 */
#include <stdlib.h>
#include <string.h>

#include <kernel/engine_rule.h>
#include <ring/geometry.h>

#include "control/gpu_sink_control.h"
#include "sim.h"

#define SLOTS_MAX 64
#define LOG_MAX 1024
#define FLIGHT 128     /* writes that have not landed */
#define OUT_OF_ORDER 4 /* slots that are in work at the same time */
#define PASSES 8       /* of the engine, the most between two polls */
#define BADSUM_OF 100  /* of 10,000 slots */
#define SPARE_IDS 64   /* of the table, that the vocabulary has not: with bad ids */
#define READ_MOST (5 * MS)
#define DOWN (100 * MS) /* mean */

/* A write: a slot, or a lane's ask. */
struct post {
	bool is_ask;
	uint32_t at; /* slot or lane */
	uint64_t ask;
	struct tokg_hdr hdr;
	const uint8_t *payload;
};

struct lane {
	uint32_t turn, incarnation; /* turn 0: none has begun */
	uint32_t prompt, last, before, made;
	uint64_t ask;
};

struct back {
	struct tokg_back head;
	uint64_t word[SLOTS_MAX + LANES_SIM_MAX + LOG_MAX]; /* done, ended, log */
};

static struct generator {
	bool alive, broken, reading, fresh;
	struct tokg_transport t;
	struct back back, copy;
	uint64_t early[LOG_MAX]; /* the log as it was when the READ began */
	bool sees_early;
	uint64_t read_at;
	struct post flight[FLIGHT];
	uint32_t first, n_flight;
	struct tokg_hdr hdr[SLOTS_MAX];
	uint32_t last_id[SLOTS_MAX];
	uint64_t landed, oldest; /* posts of this epoch */
	struct lane lane[LANES_SIM_MAX];
	uint64_t log_head;
} gpu;

static uint64_t *
ended_of(uint32_t lane)
{
	return &gpu.back.word[gpu.t.geometry.slots + lane];
}

static uint64_t *
log_of(struct back *b)
{
	return &b->word[gpu.t.geometry.slots + gpu.t.geometry.lanes];
}

static bool
is_done(uint32_t slot)
{
	return gpu.back.word[slot] >> 8 == gpu.hdr[slot].ticket;
}

/* ---- the consumer ---- */

static void
land(void)
{
	const struct post *p = &gpu.flight[gpu.first];
	uint32_t n = p->hdr.tokens;

	gpu.first = (gpu.first + 1) % FLIGHT;
	gpu.n_flight--;
	if (p->is_ask) {
		gpu.lane[p->at].ask = p->ask;
		return;
	}
	gpu.hdr[p->at] = p->hdr;
	gpu.last_id[p->at] = 0;
	if (n > 0 && !(p->hdr.flags & TOKG_BATCH))
		memcpy(&gpu.last_id[p->at], p->payload + 4 * (n - 1), 4);
	gpu.landed++;
}

static void
finish(uint32_t slot)
{
	const struct tokg_hdr *h = &gpu.hdr[slot];
	const bool bad = !(h->flags & TOKG_STRICT) && world_chance(sim, BADSUM_OF);

	if (is_done(slot))
		return;
	if (!bad && (h->flags & TOKG_GENERATE)) {
		struct lane *l = &gpu.lane[TOKG_FLAGS_LANE(h->flags)];

		*l = (struct lane){.turn = TOKG_FLAGS_TURN(h->flags),
			.incarnation = gpu.back.head.incarnation,
			.prompt = h->first + h->tokens,
			.last = gpu.last_id[slot],
			.ask = l->ask};
	}
	gpu.back.word[slot] = TOKG_DONE(h->ticket, bad ? TOKG_BADSUM : TOKG_OK);
	while (gpu.oldest < gpu.landed && is_done(gpu.oldest % gpu.t.geometry.slots))
		gpu.back.head.released = ++gpu.oldest;
}

/* ---- the engine ---- */

static void
put(uint32_t lane, uint32_t id)
{
	const struct tokg_geometry *g = &gpu.t.geometry;

	log_of(&gpu.back)[gpu.log_head % g->log] =
		TOKG_TOKEN(id, lane, gpu.lane[lane].turn, tokg_lap_of(g, gpu.log_head));
	gpu.log_head++;
}

static uint32_t
next_of(const struct lane *l)
{
	return tokg_engine_next(l->last, l->before, l->prompt, tok_vocab_info(sim_vocab).n_ids);
}

static void
make(uint32_t i)
{
	struct lane *l = &gpu.lane[i];
	const uint32_t next = next_of(l);

	put(i, next);
	l->made++;
	l->before = l->last;
	l->last = next;
}

static bool
is_bad(enum sim_fault fault, uint32_t of)
{
	if (sim->calm_at != NEVER || !world_chance(sim, of))
		return false;
	world_fault(sim, fault);
	return true;
}

/* One of the table that the vocabulary has not, or the first that is not in the table. */
static void
make_bad(uint32_t i)
{
	put(i, tok_vocab_info(sim_vocab).n_ids + world_dice(sim, SPARE_IDS + 1));
	gpu.lane[i].made++;
}

static void
step(uint32_t i)
{
	struct lane *l = &gpu.lane[i];
	const uint32_t next = next_of(l);
	const uint32_t bits = TOKG_LANE_TURN(l->ask) == l->turn ? TOKG_LANE_BITS(l->ask) : 0;
	const uint32_t granted = TOKG_LANE_TURN(l->ask) == l->turn ? TOKG_LANE_N(l->ask) : 0;
	enum tokg_end end = 0;

	if (l->turn == TOKG_LANE_TURN(*ended_of(i)))
		return;
	if (granted > l->made + gpu.t.geometry.log)
		check_fault(sim, "a lane was granted %u of %u, more than the log has", granted,
			l->made);
	if (l->incarnation != gpu.back.head.incarnation) {
		end = TOKG_END_CUT;
		if (granted > l->made && world_dice(sim, 2) != 0)
			put(i, next); /* what it had made, and not noted */
	} else if (bits & TOKG_ASK_CANCEL) {
		end = TOKG_END_CANCELLED;
	} else if (granted > l->made && next == sim->plan.stop_id) {
		end = TOKG_END_STOP;
	} else if (granted > l->made && is_bad(BAD_IDS, sim->plan.bad_ids)) {
		make_bad(i);
	} else if (granted > l->made) {
		make(i);
		if (granted == l->made && is_bad(BAD_GRANTS, 10 * sim->plan.bad_ids))
			make(i);
	} else if (bits & TOKG_ASK_FINAL) {
		end = TOKG_END_LENGTH;
	}
	if (end != 0)
		*ended_of(i) = TOKG_LANE_WORD(l->made, l->turn, end);
}

/* ---- the transport ---- */

static void
read_ends(void)
{
	const size_t up_to_log = (size_t)((uint8_t *)log_of(&gpu.back) - (uint8_t *)&gpu.back);

	while (gpu.n_flight > 0) /* before the READ */
		land();
	memcpy(&gpu.copy, &gpu.back, gpu.t.read_bytes);
	if (gpu.sees_early && gpu.t.read_bytes > up_to_log)
		memcpy(log_of(&gpu.copy), gpu.early, gpu.t.read_bytes - up_to_log);
	gpu.reading = gpu.fresh = false;
	gpu.t.n_reads++;
}

static int
poll_all(struct tokg_transport *t)
{
	const uint32_t slots = t->geometry.slots;

	if (gpu.broken)
		return -1;
	for (uint32_t n = world_dice(sim, FLIGHT); n > 0 && gpu.n_flight > 0; n--)
		land();
	for (uint32_t n = world_dice(sim, slots); n > 0 && gpu.oldest < gpu.landed; n--) {
		const uint64_t most = RTE_MIN(gpu.landed - gpu.oldest, (uint64_t)OUT_OF_ORDER);

		finish((uint32_t)((gpu.oldest + world_dice(sim, (uint32_t)most)) % slots));
	}
	for (uint32_t n = world_dice(sim, PASSES); n > 0; n--) {
		for (uint32_t i = 0; i < t->geometry.lanes; i++)
			step(i);
	}
	gpu.back.head.heartbeat++;
	if (gpu.reading && (gpu.fresh || sim->now > gpu.read_at + READ_MOST || world_dice(sim, 2)))
		read_ends();
	return 0;
}

static int
send_off(const struct post *p)
{
	if (gpu.broken)
		return -1;
	if (gpu.n_flight == FLIGHT)
		return 0;
	gpu.flight[(gpu.first + gpu.n_flight++) % FLIGHT] = *p;
	return 1;
}

static int
post(struct tokg_transport *t, uint32_t slot, const void *payload, uint32_t bytes,
	const struct tokg_hdr *hdr, enum tokg_order order)
{
	return send_off(&(struct post){.at = slot, .hdr = *hdr, .payload = payload});
}

static int
ask(struct tokg_transport *t, uint32_t lane, uint64_t word)
{
	return send_off(&(struct post){.is_ask = true, .at = lane, .ask = word});
}

static int
flush(struct tokg_transport *t)
{
	return gpu.broken ? -1 : 0;
}

static int
read_back(struct tokg_transport *t)
{
	if (gpu.broken)
		return -1;
	gpu.reading = true;
	gpu.read_at = sim->now;
	gpu.sees_early = !gpu.fresh && world_dice(sim, 2) != 0;
	if (gpu.sees_early)
		memcpy(gpu.early, log_of(&gpu.back), sizeof(uint64_t) * t->geometry.log);
	return 1;
}

static int
reconnect(struct tokg_transport *t, uint64_t *tickets, struct tokg_error *err)
{
	if (!gpu.alive || t->epoch == 0) {
		snprintf(err->text, sizeof(err->text), "it was killed");
		return -1;
	}
	if (world_dice(sim, 2) != 0)
		return 0;
	for (uint32_t i = 0; i < t->geometry.slots; i++)
		tickets[i] = gpu.hdr[i].ticket;
	gpu.broken = gpu.reading = false;
	gpu.n_flight = 0;
	return 1;
}

/* What it points to may go. */
static void
end(struct tokg_transport *t)
{
	gpu.n_flight = 0;
	gpu.reading = false;
}

static const struct tokg_transport_ops ops = {.name = "simulated",
	.post = post,
	.ask = ask,
	.flush = flush,
	.poll = poll_all,
	.read_back = read_back,
	.reconnect = reconnect,
	.close = end};

/* ---- the agent ---- */

/* With memory of its own, and other sizes. */
static void
start(struct world *w)
{
	struct tokg_geometry *g = &gpu.t.geometry;
	struct tokg_error err;

	memset(&gpu, 0, sizeof(gpu));
	*g = (struct tokg_geometry){.producers = 1,
		.slots = 2 + world_dice(w, SLOTS_MAX - 1),
		.slot_bytes = TOKG_SLOT_BYTES_MIN << world_dice(w, 5),
		.kind = TOKG_KIND_WORD,
		.dtype = TOKG_F32,
		.dim = 8,
		.n_ids = tok_vocab_info(sim_vocab).n_ids + (w->plan.bad_ids > 0 ? SPARE_IDS : 0),
		.lanes = 1 + world_dice(w, w->plan.lanes),
		.log = 64u << world_dice(w, 5),
		.out_bytes = UINT64_C(1) << (19 + world_dice(w, 4))};
	if (!tokg_geometry_fill(g, &err))
		abort();
	gpu.t.ops = &ops;
	gpu.t.back = &gpu.copy.head;
	gpu.t.done = gpu.copy.word;
	gpu.t.link = -1;
	gpu.back.head.incarnation = 1;
	gpu.alive = true;
	gpu.broken = true; /* for a sink of the one before */
}

/* An epoch: all that its predecessor had posted is done, and all that was opened has ended. */
static struct tokg_transport *
grant(void)
{
	for (uint32_t i = 0; i < gpu.t.geometry.slots; i++) {
		if (!is_done(i))
			gpu.back.word[i] = TOKG_DONE(gpu.hdr[i].ticket, TOKG_STALE);
	}
	for (uint32_t i = 0; i < gpu.t.geometry.lanes; i++) {
		struct lane *l = &gpu.lane[i];

		if (l->turn != TOKG_LANE_TURN(*ended_of(i)))
			*ended_of(i) = TOKG_LANE_WORD(l->made, l->turn, TOKG_END_STALE);
		l->ask = 0;
	}
	gpu.broken = gpu.reading = gpu.t.gone = false;
	gpu.fresh = true;
	gpu.landed = gpu.oldest = gpu.back.head.released = 0;
	gpu.t.epoch = ++gpu.back.head.epoch;
	gpu.t.read_bytes = tokg_back_bytes(&gpu.t.geometry, true);
	return &gpu.t;
}

void
generator_make(struct world *w)
{
	struct appliance *a = &w->a;
	struct tokg_error err;

	if (a->instance == 1)
		start(w);
	a->opt.sink_full = w->plan.shed ? TOKD_SINK_SHED : TOKD_SINK_WAIT;
	/* It has one when it starts, or it would not. */
	if (!gpu.alive)
		start(w);
	if (!tokg_target_parse(&a->opt.sink_target, "shm:simulated", &err) ||
		!tokd_sink_make(&a->w, grant(), &err))
		abort();
}

struct tokg_transport *__wrap_tokg_transport_open(const struct tokg_target *target,
	const struct tokg_source *source, uint32_t timeout_ms, char path[256],
	struct tokg_error *err);
struct tokg_transport *
__wrap_tokg_transport_open(const struct tokg_target *target, const struct tokg_source *source,
	uint32_t timeout_ms, char path[256], struct tokg_error *err)
{
	if (sim->plan.lanes == 0 || !gpu.alive) {
		snprintf(err->text, sizeof(err->text), "nobody answers");
		return NULL;
	}
	grant();
	gpu.t.shed_below = source->shed_below;
	return &gpu.t;
}

uint64_t
generator_fault(struct world *w, bool again)
{
	if (again) {
		if (!gpu.alive)
			start(w);
		return 0;
	}
	switch (world_dice(w, 3)) {
	case 0:
		world_fault(w, GENERATOR_KILLS);
		gpu.alive = false;
		gpu.broken = true;
		return w->now + world_wait(w, DOWN);
	case 1:
		world_fault(w, GENERATOR_RESTARTS);
		gpu.back.head.incarnation++;
		return 0;
	default:
		world_fault(w, GENERATOR_BREAKS);
		gpu.broken = true;
		return 0;
	}
}

bool
generator_is_idle(const struct world *w)
{
	const struct tokd_worker *worker = &w->a.w;

	return atomic_load(&worker->sink->state) == TOKD_SINK_RUNNING &&
	       tokg_sink_lanes_used(worker->sink->sink) == 0 &&
	       tokg_sink_is_idle(worker->sink->sink, worker->ring.head);
}
