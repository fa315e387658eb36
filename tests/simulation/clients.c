/* SPDX-License-Identifier: BSD-3-Clause */
/* Client processes: libtokd-client with a socket of the simulation, and requests one by one. */
#include <stdlib.h>
#include <string.h>

#include "seams.h"
#include "sim.h"

#define WAKE_NS (5 * US) /* of a process that sleeps in ppoll() */
#define RX_MOST 2048	 /* datagrams in the socket's buffer */
#define FULL_PAUSE MS
#define DONE_MOST 32
#define GUARD UINT32_C(0xdeadbeef) /* behind the ids' room */

static void
wake_by(struct world *w, uint32_t i, uint64_t at)
{
	struct client *c = &w->client[i];

	if (at >= c->wake_at)
		return;
	c->wake_at = at;
	world_put(w, at, CLIENT, i, NULL);
}

void
client_start(struct world *w, uint32_t i)
{
	struct client *c = &w->client[i];
	struct tokd_client_options options = {
		.requests = IN_FLIGHT, .no_resend = w->plan.no_resend};
	char error[TOKD_ERROR_MAX];

	c->first_id = 1 + dice_throw(&w->dice) % (UINT64_C(1) << 48);
	options.first_stream_id = c->first_id;
	c->port = (uint16_t)(20000 + i + CLIENTS_MAX * world_dice(w, 150)); /* no other's */
	c->wake_at = NEVER;
	memset(c->ask, 0, sizeof(c->ask));
	seams_client(i);
	c->c = tokd_client_open("simulated", TOKD_WIRE_PORT, &options, error);
	if (c->c == NULL) {
		fprintf(stderr, "%s\n", error);
		abort();
	}
	world_trace(w, "client up", i, c->port, c->first_id);
}

static void
let_go(struct world *w, struct ask *k)
{
	free(k->r.ids);
	k->r.ids = NULL;
	answer_free(k);
	k->ended = w->now;
	w->n_pending--;
}

void
client_crash(struct world *w, uint32_t i)
{
	struct client *c = &w->client[i];

	world_trace(w, "client down", i, 0, 0);
	for (uint32_t s = 0; s < IN_FLIGHT; s++) {
		if (c->ask[s] == NULL)
			continue;
		c->ask[s]->gone = true;
		w->check.gone++;
		let_go(w, c->ask[s]);
	}
	c->killed = world_dice(w, 2) == 0; /* else it is closed, and its answers are cancelled */
	tokd_client_close(c->c);
	c->killed = false;
	queue_empty(w, &c->rx);
	client_start(w, i);
}

void
client_takes(struct world *w, uint32_t i, struct packet *p)
{
	struct client *c = &w->client[i];

	if (c->rx.n >= RX_MOST) {
		packet_drop(w, p);
		return;
	}
	queue_put(&c->rx, p);
	wake_by(w, i, RTE_MAX(w->now + WAKE_NS, c->stalled_until));
}

/* Bytes of `out`. */
static uint32_t
room_of(const struct world *w, const struct ask *k)
{
	if (k->r.flags & TOKD_REQUEST_GENERATE)
		return k->r.max_ids;
	return check_want(w, k).each * k->r.max_ids;
}

/* It has ended, or was cancelled. */
void
client_forgets(struct world *w, struct client *c, struct ask *k)
{
	const uint32_t guard = GUARD;

	if (k->r.ids != NULL && memcmp(k->r.out + room_of(w, k), &guard, sizeof(guard)) != 0)
		check_fault(w, "ids were written past their room");
	c->ask[k->r.slot] = NULL;
	let_go(w, k);
}

static void
ended(struct world *w, struct client *c, struct ask *k)
{
	if (k->r.flags & TOKD_REQUEST_GENERATE) {
		answer_take(w, c, k);
		answer_ended(w, k);
	}
	check_ended(w, k);
	client_forgets(w, c, k);
}

/* Of answers, what is there; also by callers that were not woken for it, but for the time. */
static void
take_answers(struct world *w, struct client *c, uint32_t i)
{
	for (uint32_t s = 0; w->plan.lanes > 0 && s < IN_FLIGHT; s++) {
		struct ask *k = c->ask[s];
		uint64_t next;

		if (k == NULL || !(k->r.flags & TOKD_REQUEST_GENERATE))
			continue;
		next = answer_take(w, c, k);
		if (next != NEVER)
			wake_by(w, i, RTE_MAX(next, w->now + US));
	}
}

void
client_wakes(struct world *w, uint32_t i)
{
	struct client *c = &w->client[i];
	struct tokd_request *done[DONE_MOST];
	uint64_t next;
	uint32_t n;

	if (c->wake_at != w->now)
		return; /* it woke before */
	c->wake_at = NEVER;
	if (w->now < c->stalled_until) {
		wake_by(w, i, c->stalled_until);
		return;
	}
	seams_client(i);
	do {
		n = tokd_client_poll(c->c, done, DONE_MOST);
		for (uint32_t d = 0; d < n; d++) {
			if (done[d]->status != TOKD_PENDING)
				ended(w, c, done[d]->user);
		}
	} while (n == DONE_MOST || c->rx.n > 0);
	take_answers(w, c, i);
	next = tokd_client_next_ns(c->c);
	if (next != UINT64_MAX)
		wake_by(w, i, w->now + RTE_MAX(next, US));
	if (tokd_client_wants_write(c->c))
		wake_by(w, i, w->now + 50 * US);
}

static bool
is_greedy(const struct world *w, uint32_t i)
{
	return (w->plan.attack == GREEDY || w->plan.attack == GREEDY_BESIDE) && i > 0;
}

/* A text, at random: with ids or for the ring alone, early ids or not. */
static void
submit(struct world *w, struct client *c, uint32_t i)
{
	struct ask *k = &w->check.ask[w->check.n_asks++];
	const uint32_t guard = GUARD;
	const struct text *t;
	struct want want;
	uint32_t room;
	bool generate;

	k->text = world_dice(w, w->plan.attack == SIM_ATTACKS ? TEXTS : SMALL_TEXTS);
	k->text += is_greedy(w, i) ? SMALL_TEXTS : 0;
	k->client = i;
	k->begun = w->now;
	t = &w->check.text[k->text];
	k->r = (struct tokd_request){.text = t->bytes, .len = t->len, .user = k};
	if (w->plan.attack == SIM_ATTACKS && world_dice(w, 4) == 0) {
		k->r.flags = TOKD_REQUEST_DECODE;
		k->r.text = t->ids;
		k->r.len = t->n_ids * sizeof(*t->ids);
	}
	want = check_want(w, k);
	k->r.max_ids = want.n + world_dice(w, 8);
	generate = w->plan.lanes > 0 && k->r.flags == 0 && world_dice(w, 2) == 0;
	if (generate)
		answer_ask(w, k);
	if (generate || w->plan.attack != SIM_ATTACKS || world_dice(w, 4) != 0) {
		room = room_of(w, k);
		k->r.out = malloc(room + sizeof(guard));
		if (k->r.out == NULL)
			abort();
		memcpy(k->r.out + room, &guard, sizeof(guard));
	}
	if (w->plan.attack == SIM_ATTACKS && world_dice(w, 4) == 0)
		k->r.flags |= TOKD_REQUEST_STREAM;
	seams_client(i);
	if (tokd_client_submit(c->c, &k->r) != TOKD_PENDING)
		check_fault(w, "a client with room did not take a request");
	c->ask[k->r.slot] = k;
	c->left--;
	world_trace(w, "request", i, k->text, k->r.len);
	wake_by(w, i, w->now);
}

void
client_submits(struct world *w, uint32_t i)
{
	struct client *c = &w->client[i];
	const bool open_loop = w->now < w->plan.open_loop_until;
	const uint64_t pause = is_greedy(w, i) ? US : w->plan.pause;
	const uint32_t most = w->plan.in_flight > 0 ? w->plan.in_flight : IN_FLIGHT;
	uint64_t wait;
	uint32_t n = 0;

	if (w->plan.open_loop_until != 0 && !open_loop) {
		w->n_pending -= c->left;
		c->left = 0;
	}
	if (c->left == 0)
		return;
	for (uint32_t s = 0; s < IN_FLIGHT; s++)
		n += c->ask[s] != NULL;
	if (n < most && w->now >= c->stalled_until)
		submit(w, c, i);
	else
		w->not_sent++;
	if (open_loop) /* of many clients together: nearly a Poisson process */
		wait = dice_throw(&w->dice) % (2 * pause);
	else
		wait = n < most ? world_wait(w, pause) : FULL_PAUSE;
	if (c->left > 0)
		world_put(w, w->now + wait, SUBMIT, i, NULL);
}
