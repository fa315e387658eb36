/* SPDX-License-Identifier: BSD-3-Clause */
/* Events in order of time; equal times in order of making. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

#define EVENTS_MOST UINT64_C(10000000) /* a world that makes no progress */
#define CALM_LIMIT (120 * SECOND)      /* after the faults all requests end within this */
#define LAST_REQUESTS 4		       /* of each client, in the calm */
#define JUMP_MOST (2 * SECOND)

struct world *sim;
struct tok_vocab *sim_vocab;

uint32_t
world_dice(struct world *w, uint32_t below)
{
	return (uint32_t)(dice_throw(&w->dice) % below);
}

bool
world_chance(struct world *w, uint32_t of)
{
	return of > 0 && world_dice(w, 10000) < of;
}

/* No logarithm, whose last bit may differ between libraries: mean / 8, doubled by coin. */
uint64_t
world_wait(struct world *w, uint64_t mean)
{
	uint64_t step = mean / 4 + 1;

	while (world_dice(w, 2) != 0 && step < 16 * mean)
		step *= 2;
	return step / 2 + dice_throw(&w->dice) % step;
}

struct packet *
packet_take(struct world *w)
{
	struct packet *p = w->spare;

	if (p == NULL)
		p = malloc(sizeof(*p));
	else
		w->spare = p->next;
	if (p == NULL)
		abort();
	p->len = 0;
	return p;
}

void
packet_drop(struct world *w, struct packet *p)
{
	p->next = w->spare;
	w->spare = p;
}

const char *const sim_fault_name[SIM_FAULTS] = {[FRAMES_LOST] = "frames-lost",
	[FRAMES_TWICE] = "frames-twice",
	[FRAMES_LATE] = "frames-late",
	[FRAMES_FLIPPED] = "frames-flipped",
	[FRAMES_SPOILT] = "frames-spoilt",
	[FRAMES_CUT] = "frames-cut",
	[FRAMES_NO_RX] = "frames-no-rx",
	[FRAMES_NO_TX] = "frames-no-tx",
	[PARTITIONS] = "partitions",
	[KILLS] = "kills",
	[DRAINS] = "drains",
	[CLIENT_KILLS] = "client-kills",
	[STALLS] = "stalls",
	[CLOCK_JUMPS] = "clock-jumps",
	[SLOW_READS] = "slow-reads",
	[READER_DROPS] = "reader-drops",
	[FORGERIES] = "forgeries",
	[CHANGED_FORGERIES] = "changed-forgeries",
	[GENERATOR_KILLS] = "generator-kills",
	[GENERATOR_RESTARTS] = "generator-restarts",
	[GENERATOR_BREAKS] = "generator-breaks",
	[BAD_IDS] = "bad-ids",
	[BAD_GRANTS] = "bad-grants",
	[CANCELS] = "cancels",
	[SKIPPED] = "skipped",
	[SLOW_CALLERS] = "slow-callers"};

void
world_fault(struct world *w, enum sim_fault fault)
{
	w->count[fault]++;
}

void
queue_put(struct queue *q, struct packet *p)
{
	p->next = NULL;
	if (q->n++ == 0)
		q->first = p;
	else
		*q->end = p;
	q->end = &p->next;
}

struct packet *
queue_get(struct queue *q)
{
	struct packet *p = q->first;

	if (q->n == 0)
		return NULL;
	q->first = p->next;
	q->n--;
	return p;
}

void
queue_empty(struct world *w, struct queue *q)
{
	struct packet *p;

	while ((p = queue_get(q)) != NULL)
		packet_drop(w, p);
}

/* ---- events ---- */

static bool
before(const struct event *a, const struct event *b)
{
	return a->at != b->at ? a->at < b->at : a->order < b->order;
}

void
world_put(struct world *w, uint64_t at, enum event_kind kind, uint32_t who, struct packet *p)
{
	const struct event e = {at, w->order++, kind, who, p};
	uint32_t i = w->n_heap++;

	if (w->n_heap > w->heap_room) {
		w->heap_room = w->heap_room == 0 ? 1024 : 2 * w->heap_room;
		w->heap = realloc(w->heap, w->heap_room * sizeof(*w->heap));
		if (w->heap == NULL)
			abort();
	}
	for (; i > 0 && before(&e, &w->heap[(i - 1) / 2]); i = (i - 1) / 2)
		w->heap[i] = w->heap[(i - 1) / 2];
	w->heap[i] = e;
}

static struct event
take_event(struct world *w)
{
	const struct event first = w->heap[0], last = w->heap[--w->n_heap];
	uint32_t i = 0;

	for (uint32_t child; (child = 2 * i + 1) < w->n_heap; i = child) {
		if (child + 1 < w->n_heap && before(&w->heap[child + 1], &w->heap[child]))
			child++;
		if (!before(&w->heap[child], &last))
			break;
		w->heap[i] = w->heap[child];
	}
	w->heap[i] = last;
	return first;
}

/* Every event goes into the hash: two runs of a seed are the same if it is. */
void
world_trace(struct world *w, const char *what, uint64_t a, uint64_t b, uint64_t c)
{
	const uint64_t part[] = {w->now, a, b, c};

	for (const char *s = what; *s != '\0'; s++)
		w->trace_hash = (w->trace_hash ^ (uint8_t)*s) * UINT64_C(0x100000001b3);
	for (uint32_t i = 0; i < RTE_DIM(part); i++)
		w->trace_hash = (w->trace_hash ^ part[i]) * UINT64_C(0x9e3779b97f4a7c15) +
				(w->trace_hash >> 29);
	if (w->plan.trace)
		printf("%12" PRIu64 ".%03u us  %-14s %10" PRIu64 " %10" PRIu64 " %10" PRIu64 "\n",
			w->now / US, (unsigned int)(w->now % US), what, a, b, c);
}

/* ---- faults ---- */

static void
again(struct world *w, enum event_kind kind, uint64_t mean)
{
	if (mean != NEVER && w->calm_at == NEVER)
		world_put(w, w->now + world_wait(w, mean), kind, 0, NULL);
}

static void
partition(struct world *w)
{
	if (w->calm_at != NEVER)
		return;
	w->cut_until = w->now + world_wait(w, 300 * MS);
	world_fault(w, PARTITIONS);
	world_trace(w, "partition", w->cut_until, 0, 0);
	again(w, PARTITION, w->plan.fault.partition);
}

/* The appliance dies, or drains and ends; or starts again. */
static void
crash(struct world *w, uint32_t start)
{
	bool drain;

	if (start) {
		appliance_start(w);
		again(w, CRASH, w->plan.fault.crash);
		return;
	}
	if (w->calm_at != NEVER)
		return;
	drain = world_dice(w, 2);
	world_fault(w, drain ? DRAINS : KILLS);
	appliance_stop(w, drain);
	w->a.up_again_at = w->now + world_wait(w, 50 * MS);
	world_put(w, w->a.up_again_at, CRASH, 1, NULL);
}

static void
stall(struct world *w)
{
	const uint64_t until = w->now + world_wait(w, 100 * MS);
	const uint32_t who = world_dice(w, w->plan.clients + 1);

	if (w->calm_at != NEVER)
		return;
	world_fault(w, STALLS);
	world_trace(w, "stall", who, until, 0);
	if (who == w->plan.clients)
		w->a.stalled_until = until;
	else
		w->client[who].stalled_until = until;
	again(w, STALL, w->plan.fault.stall);
}

static void
clock_jump(struct world *w)
{
	const uint64_t by = JUMP_MOST - dice_throw(&w->dice) % JUMP_MOST;
	const uint32_t who = world_dice(w, w->plan.clients + 1);

	if (w->calm_at != NEVER)
		return;
	world_trace(w, "clock jump", who, by, 0);
	if (who == w->plan.clients)
		w->a.tsc_ahead += by;
	else
		w->client[who].ahead += by;
	world_fault(w, CLOCK_JUMPS);
	again(w, CLOCK_JUMP, w->plan.fault.clock_jump);
}

static void
fault_of_generator(struct world *w, bool back)
{
	uint64_t back_at = 0;

	if (back || w->calm_at == NEVER)
		back_at = generator_fault(w, back);
	world_trace(w, "tokd-gpu", back, back_at, 0);
	if (back_at != 0)
		world_put(w, back_at, GENERATOR, 1, NULL);
	else
		again(w, GENERATOR, w->plan.fault.generator);
}

static void
crash_client(struct world *w)
{
	const uint32_t who = world_dice(w, w->plan.clients);

	if (w->calm_at != NEVER)
		return;
	world_fault(w, CLIENT_KILLS);
	client_crash(w, who);
	again(w, CLIENT_CRASH, w->plan.fault.client_crash);
}

/* ---- the run ---- */

/* All requests were made: faults end, and each client makes its last ones. */
static void
calm(struct world *w)
{
	w->calm_at = w->now;
	w->cut_until = 0;
	w->a.stalled_until = 0;
	for (uint32_t i = 0; i < w->plan.clients; i++)
		w->client[i].stalled_until = 0;
	world_trace(w, "calm", 0, 0, 0);
}

static void
last_requests(struct world *w)
{
	w->last_ones = true;
	for (uint32_t i = 0; i < w->plan.clients; i++) {
		w->client[i].left = LAST_REQUESTS;
		w->n_pending += LAST_REQUESTS;
		world_put(w, w->now + world_wait(w, w->plan.pause), SUBMIT, i, NULL);
	}
}

/* Of a client; of the good one, the first, after those that attack. */
static uint64_t
begin_of(const struct plan *p, uint32_t i)
{
	if (i > 0 && p->attack == GREEDY)
		return i * MS;
	return i > 0 && p->readers > 0 ? 0 : p->begin;
}

static void
start(struct world *w)
{
	const struct plan *p = &w->plan;

	check_start(w);
	appliance_boot(w);
	for (uint32_t i = 0; i < p->clients; i++) {
		w->client[i].left = p->requests;
		w->n_pending += p->requests;
		w->client[i].ip = p->six && i % 2 != 0 ? SIX_IP + 2 + i
				  : p->one_address     ? SERVER_IP + 1
						       : SERVER_IP + 1 + i;
		client_start(w, i);
		world_put(w, begin_of(p, i) + world_wait(w, p->pause), SUBMIT, i, NULL);
	}
	for (uint32_t i = 0; i < p->readers; i++) {
		w->reader[i].way = i >= p->slow_readers	       ? READS_ALL
				   : p->attack == READER_AGAIN ? HOLDS
				   : p->attack != SIM_ATTACKS  ? READS_SLOWLY
							       : READS_SLOWLY + world_dice(w, 2);
		world_put(w, world_dice(w, 1000) * US, READER, i, NULL);
	}
	if (p->attack == GREEDY || p->attack == GREEDY_BESIDE)
		w->client[0].left = GOOD_REQUESTS_BESIDE_GREEDY;
	world_put(w, MS, CONTROL, 0, NULL);
	again(w, PARTITION, p->fault.partition);
	again(w, CRASH, p->fault.crash);
	again(w, CLIENT_CRASH, p->fault.client_crash);
	again(w, STALL, p->fault.stall);
	again(w, CLOCK_JUMP, p->fault.clock_jump);
	again(w, GENERATOR, p->fault.generator);
	if (p->hostile_hz > 0)
		world_put(w, MS, HOSTILE, 0, NULL);
}

static void
happen(struct world *w, const struct event *e)
{
	switch (e->kind) {
	case TO_APPLIANCE:
		appliance_takes(w, e->p);
		break;
	case TO_CLIENT:
		client_takes(w, e->who, e->p);
		break;
	case TURN:
		appliance_turn(w);
		break;
	case CONTROL:
		appliance_control(w);
		break;
	case CLIENT:
		client_wakes(w, e->who);
		break;
	case SUBMIT:
		client_submits(w, e->who);
		break;
	case READER:
		reader_turn(w, e->who);
		break;
	case HOSTILE:
		hostile_turn(w);
		break;
	case PARTITION:
		partition(w);
		break;
	case CRASH:
		crash(w, e->who);
		break;
	case CLIENT_CRASH:
		crash_client(w);
		break;
	case STALL:
		stall(w);
		break;
	case CLOCK_JUMP:
		clock_jump(w);
		break;
	case GENERATOR:
		fault_of_generator(w, e->who);
		break;
	default:
		abort();
	}
}

/* Of the good client, beside an attack. */
static bool
is_done(const struct client *c)
{
	for (uint32_t i = 0; i < IN_FLIGHT; i++) {
		if (c->ask[i] != NULL)
			return false;
	}
	return c->left == 0;
}

/* True: all has ended. */
static bool
is_over(struct world *w)
{
	if (w->n_events++ > EVENTS_MOST) {
		check_fault(w, "no end after %" PRIu64 " events", w->n_events);
		return true;
	}
	if (w->calm_at != NEVER && w->now > w->calm_at + CALM_LIMIT) {
		check_fault(w, "%u requests never ended", w->n_pending);
		return true;
	}
	if (w->plan.attack == OVERLOAD)
		return w->n_pending == 0;
	if (w->plan.attack != SIM_ATTACKS)
		return w->client[0].left == 0 && is_done(&w->client[0]);
	if (w->n_pending > 0 || !w->a.up)
		return false;
	if (w->last_ones)
		return answers_are_over(w);
	if (w->calm_at == NEVER)
		calm(w);
	else if (answers_are_over(w) &&
		 w->now > w->calm_at + w->plan.network.late_by + w->plan.network.twice_by + SECOND)
		last_requests(w);
	return false;
}

struct world *
world_run(const struct plan *plan)
{
	struct world *w = calloc(1, sizeof(*w));

	if (w == NULL)
		abort();
	sim = w;
	w->plan = *plan;
	w->dice = plan->seed;
	w->calm_at = NEVER;
	start(w);
	while (w->check.faults == 0 && !is_over(w)) {
		const struct event e = take_event(w);

		w->now = e.at;
		happen(w, &e);
	}
	for (uint32_t i = 0; i < plan->readers; i++)
		reader_turn(w, i); /* what is left */
	check_end(w);
	return w;
}

void
world_free(struct world *w)
{
	for (uint32_t i = 0; i < w->plan.readers; i++)
		reader_detach(w, i);
	for (uint32_t i = 0; i < w->plan.clients; i++) {
		w->client[i].killed = true; /* the world is over */
		tokd_client_close(w->client[i].c);
		queue_empty(w, &w->client[i].rx);
	}
	if (w->a.up)
		appliance_stop(w, false);
	for (uint32_t i = 0; i < w->n_heap; i++)
		free(w->heap[i].p);
	while (w->spare != NULL) {
		struct packet *p = w->spare;

		w->spare = p->next;
		free(p);
	}
	check_free(w);
	free(w->heap);
	free(w);
	sim = NULL;
}
