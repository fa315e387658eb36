/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Time-outs. All requests share one estimate of the round trip, as they take the same path; each
 * doubles its own time-out. Deadlines are in a binary heap. A deadline that moves later stays in
 * place until its old time, so a reply does not need a heap operation.
 */
#include "engine.h"

/* Nothing to send: all text has arrived, or there is no credit. */
static bool
is_idle(const struct slot *s)
{
	return s->ack == s->n || s->limit <= s->ack;
}

/*
 * The time without a reply after which a packet is declared lost, or credit is requested. Only what
 * is sent for the first time measures the round trip: the rest does not wait until it can.
 */
static uint64_t
silence(const struct tokd_engine *e, const struct slot *s)
{
	const bool timed = s->order > s->untimed && s->backed_off == 0 && !is_idle(s);
	const uint64_t known = timed ? e->rto : e->measured;
	/* What the caller has not taken would come again before what is missing. */
	const bool untaken = s->backed_off > 0 && s->r->taken < s->whole;
	const bool model =
		generates(s->r) && s->ack == s->n && (untaken || engine_missing_end(s) == 0);
	uint64_t most = model ? MODEL_MOST : is_idle(s) ? PROBE_MOST : AGAIN_MOST;
	uint64_t least = model && known < MODEL_FIRST ? MODEL_FIRST : known;
	uint64_t backed_off = s->backed_off < most ? s->backed_off : most;

	return backed_off > least ? backed_off : least;
}

void
engine_time_wait(struct tokd_engine *e, struct slot *s, uint64_t now)
{
	uint64_t at = s->moved_at + e->config.timeout_ns;

	s->waits = silence(e, s);
	if (now + s->waits < at)
		at = now + s->waits;
	if (s->gap_at != 0 && s->gap_at < at)
		at = s->gap_at;
	engine_time_set(e, s, at);
}

/* The time-out has shrunk: deadlines that were set with the old one come closer. */
static void
wait_less(struct tokd_engine *e, uint64_t now)
{
	for (uint32_t i = 0; i < e->pending; i++) { /* a slot that moves goes to a lower place */
		struct slot *s = &e->slot[e->heap[i]];

		if (s->r == NULL || !s->started || s->pausing || s->held_at != 0)
			continue;
		if (s->deadline > now + silence(e, s))
			engine_time_wait(e, s, now);
	}
}

/* RFC 6298, section 2. */
void
engine_time_sample(struct tokd_engine *e, uint64_t rtt, uint64_t now)
{
	const uint64_t before = e->rto;
	uint64_t spread;

	if (e->srtt == 0 && rtt > e->measured)
		engine_window_undo(e); /* each time-out was too early */
	else if (now - rtt >= e->reduced_at)
		e->undo = 0; /* the path is well again: what they have found stays */
	if (e->srtt == 0 || rtt < e->least_rtt)
		e->least_rtt = rtt;
	if (e->srtt == 0) {
		e->srtt = rtt;
		e->rttvar = rtt / 2;
	} else {
		uint64_t off = e->srtt > rtt ? e->srtt - rtt : rtt - e->srtt;

		e->rttvar = (3 * e->rttvar + off) / 4;
		e->srtt = (7 * e->srtt + rtt) / 8;
	}
	spread = 4 * e->rttvar > TICK ? 4 * e->rttvar : TICK;
	e->rto = e->srtt + spread;
	if (e->rto < e->config.rto_least_ns)
		e->rto = e->config.rto_least_ns;
	e->measured = e->rto;
	if (before > 2 * e->rto)
		wait_less(e, now);
}

static uint64_t
key_at(const struct tokd_engine *e, uint32_t i)
{
	return e->slot[e->heap[i]].key;
}

static void
put(struct tokd_engine *e, uint32_t i, uint32_t slot)
{
	e->heap[i] = slot;
	e->slot[slot].heap_at = i;
}

static void
sift_up(struct tokd_engine *e, uint32_t i)
{
	uint32_t slot = e->heap[i];

	while (i > 0 && key_at(e, (i - 1) / 2) > e->slot[slot].key) {
		put(e, i, e->heap[(i - 1) / 2]);
		i = (i - 1) / 2;
	}
	put(e, i, slot);
}

static void
sift_down(struct tokd_engine *e, uint32_t i, uint32_t n)
{
	uint32_t slot = e->heap[i];

	for (uint32_t child; (child = 2 * i + 1) < n; i = child) {
		if (child + 1 < n && key_at(e, child + 1) < key_at(e, child))
			child++;
		if (e->slot[slot].key <= key_at(e, child))
			break;
		put(e, i, e->heap[child]);
	}
	put(e, i, slot);
}

/* The heap has the `pending` slots in use, including this one. */
void
engine_time_add(struct tokd_engine *e, struct slot *s)
{
	s->key = s->deadline;
	put(e, e->pending - 1, slot_index(e, s));
	sift_up(e, e->pending - 1);
}

void
engine_time_remove(struct tokd_engine *e, struct slot *s)
{
	uint32_t i = s->heap_at, last = e->heap[e->pending - 1];

	if (i == e->pending - 1)
		return;
	put(e, i, last);
	sift_up(e, i);
	sift_down(e, e->slot[last].heap_at, e->pending - 1);
}

void
engine_time_set(struct tokd_engine *e, struct slot *s, uint64_t deadline)
{
	s->deadline = deadline;
	if (deadline < s->key) {
		s->key = deadline;
		sift_up(e, s->heap_at);
	}
}

uint64_t
tokd_engine_next(const struct tokd_engine *e)
{
	return e->pending == 0 ? UINT64_MAX : key_at(e, 0);
}

/*
 * RFC 6298, section 5.5 to 5.7: the doubled time-out applies to what all requests send first, until
 * an answer can be timed again. Otherwise, after the round trip has become longer than the
 * time-out, each packet would be sent twice, and no answer could ever be timed. So it may become
 * longer than a request waits to send again, and leaves some tries within the time limit. Text that
 * waits for credit does not show the round trip. Doubled, but for an eighth more or less at random:
 * texts that were late together would meet the same full queue again.
 */
static void
back_off(struct tokd_engine *e, struct slot *s, uint64_t now)
{
	const uint64_t quarter = e->config.timeout_ns / 4;
	const uint64_t most = quarter < RTO_MOST ? quarter : RTO_MOST;
	uint64_t all;

	s->backed_off = s->waits * 7 / 4 + (s->waits / 2 * (at_random(s, now) >> 16) >> 16);
	all = s->backed_off < most ? s->backed_off : most;
	if (!is_idle(s) && e->rto < all)
		e->rto = all;
}

/*
 * A full queue lengthens the round trip. If that is short and a time-out came all the same, the
 * appliance rather had no CPU; a smaller window would not help.
 */
static bool
shows_a_queue(const struct tokd_engine *e)
{
	return e->srtt == 0 || e->measured < 64 * e->srtt;
}

/*
 * Send the first packets that have not arrived again, followed by a POLL. What was held may have
 * been dropped since: no reply shows it, as replies may overtake each other, and have no `sack`
 * where all wait. An appliance that has restarted may have begun a stream with these, and wait for
 * those before: then from the start.
 */
static void
time_out(struct tokd_engine *e, struct slot *s, uint64_t now)
{
	uint64_t missing;

	if (s->behind && s->backed_off > 0 && !e->config.no_resend && !has_begun(s->r)) {
		engine_cut_again(e, s, now);
		return;
	}
	e->flight -= in_flight(s);
	if (s->sacked & 1)
		s->sacked = 0; /* it was held and is missing: others may be as well (RFC 2018, 8) */
	missing = low_bits(s->next - s->ack) & ~s->sacked;
	for (uint64_t m = missing & ~s->lost; m != 0 && shows_a_queue(e); m &= m - 1)
		engine_window_lost(
			e, sent_of(s, s->ack + (uint32_t)__builtin_ctzll(m))->at, true, now);
	s->lost = missing;
	e->flight += in_flight(s);
	for (uint32_t i = 1; i < AGAIN_BURST; i++)
		missing &= missing - 1;
	if (missing != 0 && s->ack + (uint32_t)__builtin_ctzll(missing) < s->limit)
		s->limit = s->ack + (uint32_t)__builtin_ctzll(missing) + 1;
	back_off(e, s, now);
	engine_queue_text(e, s);
	engine_queue_poll(e, s, POLL_ASK);
	engine_time_none(s); /* the answer may be that to the POLL */
	engine_time_wait(e, s, now);
}

/* Nobody has confirmed that the stream ended. */
static void
cancel_again(struct tokd_engine *e, struct slot *s, uint64_t now)
{
	const uint64_t waits = e->rto << (s->cancels - 1);

	if (s->cancels > CANCELS_MAX) {
		engine_let_go(e, s);
		return;
	}
	if (s->cancels++ > 1) /* the first was queued when it was cancelled */
		engine_queue_poll(e, s, POLL_ASK);
	engine_time_set(e, s, now + (waits < AGAIN_MOST ? waits : AGAIN_MOST));
}

/* The time limit is for the appliance: while the caller has items to take, it is not to blame. */
static void
wait_for_caller(struct slot *s, uint64_t now)
{
	if (s->took || (generates(s->r) && s->r->taken < s->r->n_ids))
		s->moved_at = now;
	s->took = false;
}

/* What the window holds back ends then, if nothing moves. */
static uint64_t
held_until(const struct tokd_engine *e, const struct slot *s)
{
	const uint64_t from = s->begun_at > e->moved_at ? s->begun_at : e->moved_at;

	return from + e->config.timeout_ns;
}

/* Else each would have its turn, and time out, one after the other. */
static void
give_up_if_late(struct tokd_engine *e, uint64_t now)
{
	uint32_t next;

	if (now < e->moved_at + e->config.timeout_ns)
		return;
	for (uint32_t i = e->queue[TEXT].head; i != NOBODY; i = next) {
		next = e->slot[i].link[TEXT].next;
		if (is_held_back(e, &e->slot[i]) && now >= held_until(e, &e->slot[i]))
			engine_finish(e, &e->slot[i], TOKD_E_TIMEOUT);
	}
}

uint32_t
tokd_engine_tick(struct tokd_engine *e, uint64_t now)
{
	uint32_t time_outs = 0;

	e->now = now;
	while (e->pending > 0 && key_at(e, 0) <= now) {
		struct slot *s = &e->slot[e->heap[0]];

		if (s->deadline > now) {
			s->key = s->deadline;
			sift_down(e, 0, e->pending);
			continue;
		}
		if (s->cancels > 0) {
			cancel_again(e, s, now);
			continue;
		}
		wait_for_caller(s, now);
		if (s->pausing) {
			s->moved_at = now;
			engine_begin(e, s);
			s->limit = 1; /* a refused text costs the appliance one packet */
			engine_time_wait(e, s, now);
		} else if (is_held_back(e, s)) {
			if (s->held_at == 0)
				s->held_at = now;
			engine_time_set(e, s, held_until(e, s));
			give_up_if_late(e, now);
		} else if (now >= s->moved_at + e->config.timeout_ns) {
			engine_finish(e, s, TOKD_E_TIMEOUT);
			give_up_if_late(e, now);
		} else if (s->gap_at != 0 && now >= s->gap_at) {
			engine_text_gap(e, s, now);
			engine_queue_text(e, s);
			engine_time_wait(e, s, now);
		} else if (time_outs++ < TIME_OUTS_A_TICK) {
			time_out(e, s, now);
		} else {
			engine_time_set(e, s, now + e->config.rto_least_ns);
		}
	}
	return time_outs;
}
