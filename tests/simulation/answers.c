/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Texts with GENERATE: their callers, of whom some are slow and some cancel, and what must hold.
 * The ids of an answer follow the rule of the engine from the prompt's ids on, each once; it ends
 * as asked; its texts together are tok_decode's of all its ids. Of one that failed, what came is
 * right. Then no lane is used.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <kernel/engine_rule.h>

#include "control/gpu_sink_control.h"
#include "datapath/stream/stream.h"
#include "sim.h"

#define ROOM_LEAST 256
#define SLOW_PAUSE 20 /* ms, the most */
#define CANCEL_AFTER (20 * MS)
#define OVER_LIMIT (30 * SECOND) /* after the last request has ended */

void
answer_ask(struct world *w, struct ask *k)
{
	const bool calm = w->calm_at != NEVER;

	k->r.flags |= TOKD_REQUEST_GENERATE;
	k->r.limit = 1 + world_dice(w, w->plan.limit_most);
	k->r.max_ids = ROOM_LEAST << world_dice(w, 5);
	k->slow = !calm && world_dice(w, 4) == 0;
	k->cancel_at = world_dice(w, 8) == 0 ? w->now + world_wait(w, CANCEL_AFTER) : NEVER;
	if (w->plan.skip_special && world_dice(w, 2) == 0)
		k->r.flags |= TOKD_REQUEST_SKIP_SPECIAL;
	k->made = malloc(k->r.limit * sizeof(*k->made));
	if (k->made == NULL)
		abort();
}

void
answer_free(struct ask *k)
{
	free(k->made);
	free(k->said);
	k->made = NULL;
	k->said = NULL;
}

/* ---- the rule ---- */

static uint32_t
next_of(const struct answer *a)
{
	return tokg_engine_next(a->last, a->before, a->prompt, tok_vocab_info(sim_vocab).n_ids);
}

/* The engine begins at 0 if the last ids of a prompt were published before its last bytes came. */
static void
begin_at(struct answer *a, const struct text *t, bool with_last)
{
	*a = (struct answer){.begun = true,
		.prompt = t->n_ids,
		.last = with_last && t->n_ids > 0 ? t->ids[t->n_ids - 1] : 0};
}

static void
add(const struct world *w, struct answer *a, const struct tokd_made *made, const struct ask *k)
{
	const uint32_t next = next_of(a);

	if (a->end != 0) {
		a->wrong = true;
	} else if (made->end == TOKD_MADE_MORE) {
		a->wrong = a->wrong || made->id != next || next == w->plan.stop_id ||
			   a->n == k->r.limit;
		a->before = a->last;
		a->last = made->id;
		a->n++;
	} else {
		a->end = (uint8_t)made->end;
		a->wrong = a->wrong || made->id != TOKD_MADE_END ||
			   (made->end == TOKD_MADE_STOP && next != w->plan.stop_id) ||
			   (made->end == TOKD_MADE_LENGTH && a->n != k->r.limit) ||
			   (made->end == TOKD_MADE_CANCELLED && !k->cancelled && !k->gone &&
				   k->r.status >= TOKD_OK);
	}
}

/* ---- at its client ---- */

static void
take(struct world *w, struct ask *k, const struct tokd_made *made, const char *text)
{
	struct answer *a = &k->answer;
	const struct text *t = &w->check.text[k->text];

	if (!a->begun)
		begin_at(a, t, true);
	if (a->n == 0 && made->end == TOKD_MADE_MORE && made->id != next_of(a))
		begin_at(a, t, false);
	if (a->n < k->r.limit && made->end == TOKD_MADE_MORE)
		k->made[a->n] = made->id;
	add(w, a, made, k);
	if (k->n_said + made->text > k->said_room) {
		k->said_room = 2 * (k->n_said + made->text);
		k->said = realloc(k->said, k->said_room);
		if (k->said == NULL)
			abort();
	}
	if (made->text > 0)
		memcpy(k->said + k->n_said, text, made->text);
	k->n_said += made->text;
	w->check.tokens += made->end == TOKD_MADE_MORE;
	/* What was spoilt on its way may come, but an answer does not end well with it. */
	if (a->wrong && w->plan.network.spoil == 0)
		check_fault(w, "item %u of an answer at client %u is wrong: id %u, end %u", a->n,
			k->client, made->id, made->end);
}

uint64_t
answer_take(struct world *w, struct client *c, struct ask *k)
{
	const bool ended = k->r.status != TOKD_PENDING;
	uint32_t most = UINT32_MAX;
	struct tokd_made made;
	const char *text;

	if (!ended && w->now >= k->cancel_at) {
		world_fault(w, CANCELS);
		k->cancelled = true;
		tokd_client_cancel(c->c, &k->r);
		world_trace(w, "cancels", k->client, k->answer.n, k->r.limit);
		client_forgets(w, c, k);
		return NEVER;
	}
	if (k->slow && !ended) {
		if (w->now < k->take_at)
			return RTE_MIN(k->take_at, k->cancel_at);
		most = world_dice(w, 4);
		k->take_at = w->now + world_dice(w, SLOW_PAUSE) * MS + US;
		world_fault(w, SLOW_CALLERS);
	}
	for (; most > 0 && tokd_client_made(c->c, &k->r, &made, &text); most--)
		take(w, k, &made, text);
	if (ended)
		return NEVER;
	return k->slow ? RTE_MIN(k->take_at, k->cancel_at) : k->cancel_at;
}

static bool
is_special(uint32_t id)
{
	uint32_t n;
	const uint32_t *special = tok_vocab_specials(sim_vocab, &n);

	while (n > 0 && special[n - 1] != id)
		n--;
	return n > 0;
}

/* Its special tokens have no text: how many ids are left. */
static uint32_t
skip_specials(struct world *w, const struct ask *k)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < k->answer.n; i++) {
		if (is_special(k->made[i]))
			world_fault(w, SKIPPED);
		else
			k->made[n++] = k->made[i];
	}
	return n;
}

/* What came of its text; of a whole answer, all. */
static void
check_text(struct world *w, const struct ask *k)
{
	const bool skips = k->r.flags & TOKD_REQUEST_SKIP_SPECIAL;
	const uint32_t n = skips ? skip_specials(w, k) : k->answer.n;
	const size_t room = k->n_said + 64 * ((size_t)k->answer.n + 1);
	uint8_t *want = malloc(room);
	struct tok_result r;

	if (want == NULL)
		abort();
	r = tok_decode(sim_vocab, k->made, n, want, room);
	if (r.status != TOK_OK || r.produced < k->n_said ||
		(k->answer.end != 0 && r.produced != k->n_said) ||
		memcmp(want, k->said, k->n_said) != 0)
		check_fault(w, "wrong text of %u ids at client %u", k->answer.n, k->client);
	free(want);
}

void
answer_ended(struct world *w, struct ask *k)
{
	const struct answer *a = &k->answer;

	if (k->r.status != TOKD_OK)
		w->check.cut++;
	else if (a->end == 0 || a->wrong || a->n != k->r.made)
		check_fault(
			w, "a wrong answer at client %u: %u ids, end %u", k->client, a->n, a->end);
	if (w->plan.network.spoil == 0 || k->r.status == TOKD_OK)
		check_text(w, k);
}

/* ---- in the ring ---- */

bool
answer_record(struct world *w, struct serial *s, struct ask *k, const struct tokd_rec *rec,
	const uint8_t *items)
{
	struct answer *a = &s->answer;
	const bool first = rec->first == 0;
	uint32_t at = 0;

	if (k == NULL || !(k->r.flags & TOKD_REQUEST_GENERATE))
		return false;
	if (rec->flags & TOKD_REC_LAST)
		begin_at(a, &w->check.text[k->text], rec->count > 0);
	if (rec->kind != TOKD_REC_TEXT)
		return false;
	if (first)
		s->n = 0;
	if (!a->begun || rec->first != s->n || rec->flags != 0)
		check_fault(
			w, "an answer's record of serial %" PRIu64 " is out of order", rec->serial);
	while (at + sizeof(struct tokd_made) <= rec->count) {
		struct tokd_made made;

		memcpy(&made, items + at, sizeof(made));
		at += (uint32_t)sizeof(made) + made.text;
		add(w, a, &made, k);
		w->check.tokens_in_ring += made.end == TOKD_MADE_MORE;
	}
	s->n += rec->count;
	if (a->wrong || at != rec->count)
		check_fault(w, "a wrong answer in the ring: serial %" PRIu64 ", item %u, of %u",
			rec->serial, a->n, k->r.limit);
	if (a->end != 0 && a->end <= TOKD_MADE_CANCELLED)
		w->check.answers[a->end]++;
	k->answered = k->answered || a->end != 0;
	return true;
}

/* ---- at the end ---- */

void
answers_shut_down(struct world *w)
{
	const struct tokd_worker *worker = &w->a.w;
	bool left = worker->answers != NULL && !TAILQ_EMPTY(&worker->answers->ready);

	for (uint32_t i = 0; i <= worker->streams->n; i++)
		left = left || worker->streams->stream[i].lane != 0;
	if (left)
		check_fault(w, "the appliance has ended, and a text is still continued");
}

bool
answers_are_over(struct world *w)
{
	const struct tokd_worker *worker = &w->a.w;
	uint32_t lanes = 0;

	if (w->plan.lanes == 0)
		return true;
	for (uint32_t i = 0; i <= worker->streams->n; i++) {
		const struct tokd_stream *s = &worker->streams->stream[i];

		lanes += s->state == TOKD_STREAM_OPEN && (s->flags & TOKD_F_GENERATE);
	}
	if (lanes == 0 && generator_is_idle(w) && TAILQ_EMPTY(&worker->answers->ready)) {
		w->over_at = 0;
		return true;
	}
	if (w->over_at == 0)
		w->over_at = w->now;
	/* A packet that comes late begins a text, until its time limit. */
	if (w->now > RTE_MAX(w->over_at, w->calm_at + w->plan.network.twice_by) + OVER_LIMIT)
		check_fault(w, "%u texts are continued for nobody, %u lanes are used", lanes,
			tokg_sink_lanes_used(worker->sink->sink));
	return w->check.faults > 0;
}
