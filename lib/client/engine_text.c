/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handles a reply's information about the text. A missing packet is declared lost when one has
 * arrived that was sent as the third after it or later, or a quarter of a round trip after any sent
 * later (RFC 9002, section 6.1, has both, and RFC 8985 the quarter). Without the time a lost packet
 * of a short text would be found by its time-out only.
 */
#include <crc32c.h>
#include "engine.h"

/* The highest send order of the arrived packets: all sent before it should have arrived too. */
static uint32_t
newest_of(struct slot *s, uint64_t arrived)
{
	uint32_t newest = 0;

	for (; arrived != 0; arrived &= arrived - 1) {
		uint32_t order = sent_of(s, s->ack + (uint32_t)__builtin_ctzll(arrived))->order;

		if (order > newest)
			newest = order;
	}
	return newest;
}

/*
 * Its time-out was too early: it was given up and not sent again, or so shortly before that this
 * answers what was sent first (RFC 5682 and RFC 8985 ask the same). Where the round trip has grown
 * to twice the least a queue fills, and the time-out counts.
 */
static bool
was_too_early(const struct tokd_engine *e, const struct slot *s, uint32_t packet, uint64_t since)
{
	const bool lost = s->lost >> (packet - s->ack) & 1;

	return (lost || since < e->least_rtt / 4) && e->srtt + 4 * e->rttvar < 2 * e->least_rtt;
}

/* `packet` has arrived. */
static void
sample(struct tokd_engine *e, struct slot *s, uint32_t packet, uint64_t now)
{
	const struct sent *sent = sent_of(s, packet);

	if (sent->order > s->untimed)
		engine_time_sample(e, now - sent->at, now);
	else if (was_too_early(e, s, packet, now - sent->at))
		engine_window_undo(e);
}

/* Of the missing packets that `newest` has overtaken: which are lost, and when the others are. */
static void
find_lost(struct tokd_engine *e, struct slot *s, uint32_t newest, uint64_t now)
{
	const bool due = s->gap_at != 0 && now >= s->gap_at;
	bool waits = false;
	uint64_t holes = 0;

	if (s->sacked != 0)
		holes = low_bits(64 - (uint32_t)__builtin_clzll(s->sacked)) & ~s->sacked & ~s->lost;
	for (; holes != 0; holes &= holes - 1) {
		const struct sent *sent = sent_of(s, s->ack + (uint32_t)__builtin_ctzll(holes));

		if (sent->order + REORDERED <= newest || (due && sent->order < s->gap_order)) {
			s->lost |= holes & -holes;
			if (sent->order + REORDERED <= newest) /* else it may only be late */
				engine_window_lost(e, sent->at, false, now);
		} else if (sent->order < newest) {
			waits = true;
		}
	}
	if (due || !waits)
		s->gap_at = 0;
	if (waits && s->gap_at == 0) {
		s->gap_at = now + e->srtt / 4;
		s->gap_order = newest;
	}
	if (waits || s->lost != 0)
		engine_time_none(s); /* held packets are acknowledged when the gap is filled */
}

/* `held`: bit i: packet ack + i has arrived. True if this is news. */
static bool
take_held(struct tokd_engine *e, struct slot *s, uint64_t held, uint32_t newest, uint64_t now)
{
	const uint64_t before = s->sacked;

	s->sacked |= held & low_bits(s->next - s->ack);
	s->lost &= ~s->sacked;
	find_lost(e, s, newest, now);
	return s->sacked != before;
}

void
engine_text_gap(struct tokd_engine *e, struct slot *s, uint64_t now)
{
	e->flight -= in_flight(s);
	find_lost(e, s, newest_of(s, s->sacked), now);
	e->flight += in_flight(s);
}

/* The appliance has taken packets from before a BUSY: they are not sent again. */
static void
pass_over(struct tokd_engine *e, struct slot *s, uint32_t end)
{
	e->flight -= in_flight(s);
	for (; s->next < end; s->next++) {
		const size_t at = (size_t)s->next * s->payload;
		const size_t left = s->r->len - at;

		s->text_crc = tokd_crc32c(s->text_crc, (const uint8_t *)s->r->text + at,
			left < s->payload ? left : s->payload);
		*sent_of(s, s->next) = (struct sent){0}; /* measures no round trip */
	}
	e->flight += in_flight(s);
}

static uint32_t
not_arrived(const struct slot *s)
{
	return (uint32_t)__builtin_popcountll(low_bits(s->next - s->ack) & ~s->sacked);
}

bool
engine_text_heard(struct tokd_engine *e, struct slot *s, const struct tokd_rep *rep, uint64_t now)
{
	const uint32_t by = rep->ack - s->ack;
	uint32_t newest = 0;
	/*
	 * Held packets, relative to the new ack and to the old one. Packet ack + 64 cannot have
	 * been sent.
	 */
	uint64_t held = rep->sack << 1, held_before = shift_up(held, by);
	bool moved = by > 0;
	uint32_t missing;

	if (rep->ack > s->next && rep->ack <= s->before)
		pass_over(e, s, rep->ack);
	if (rep->ack < s->ack || rep->ack > s->next)
		return false; /* overtaken by a later reply, or of an earlier stream */
	if (rep->credit == 0 && rep->ack < s->n) {
		s->stopped = true;
		engine_time_none(s); /* they wait in the appliance, not on the way */
	}
	e->flight -= in_flight(s);
	missing = not_arrived(s);
	if (held != 0)
		newest = newest_of(s, (low_bits(by) | held_before) & low_bits(s->next - s->ack));
	if (by > 0) {
		sample(e, s, rep->ack - 1, now);
		s->sacked = shift_down(s->sacked, by);
		s->lost = shift_down(s->lost, by);
		s->ack = s->r->arrived = rep->ack;
	}
	if (held != 0)
		moved |= take_held(e, s, held, newest, now);
	else
		s->gap_at = 0;
	engine_window_arrived(e, missing - not_arrived(s));
	/*
	 * A stopped appliance dropped packets: send them again when it continues. They are not in
	 * flight meanwhile, so that other texts go on.
	 */
	if (s->stopped)
		s->lost = low_bits(s->next - s->ack) & ~s->sacked;
	s->stopped &= rep->credit == 0;
	s->limit = rep->ack + rep->credit;
	e->flight += in_flight(s);
	return moved;
}
