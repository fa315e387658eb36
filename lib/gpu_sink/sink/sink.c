/* SPDX-License-Identifier: BSD-3-Clause */
/* Hot: polling the sink. */
#include "sink_inside.h"

void
tokg_sink_fail(struct tokg_sink *s, uint64_t serial, enum tokg_status status)
{
	uint64_t *known = &s->failed_known[serial % TOKG_FAILED_KNOWN];

	/* Several slots of a text may fail. */
	if (*known == serial + 1)
		return;
	*known = serial + 1;
	tokg_sink_lane_failed(s, serial);
	s->counter[TOKG_C_FAILED]++;
	if (s->failed != NULL)
		s->failed(s->owner, serial, status);
}

void
tokg_sink_text(struct tokg_sink *s, uint64_t pos, enum tokg_status status)
{
	s->counter[TOKG_C_TEXTS_CPU] += status == TOKG_CPU;
	s->text(s->owner, tokg_sink_rec(s, pos), status);
}

/* Move the cursor past all leading pieces that are done. */
static void
move_cursor(struct tokg_sink *s)
{
	uint64_t cursor;

	while (s->piece_tail != s->piece_head) {
		const struct tokg_sink_piece *p = &s->piece[s->piece_tail & s->piece_mask];

		if (p->n_out != 0 || p->at != p->end)
			break;
		s->finished += p->records;
		if (__builtin_expect(p->generate != 0, 0))
			tokg_sink_lane_whole(s, p->generate);
		s->piece_tail++;
	}
	cursor = s->piece_tail == s->piece_head ? s->next
						: s->piece[s->piece_tail & s->piece_mask].start;
	/* Release: after the consumer's use of these records, which `done` has shown. */
	if (cursor != atomic_load_explicit(&s->cursor, memory_order_relaxed))
		atomic_store_explicit(&s->cursor, cursor, memory_order_release);
}

static uint64_t
shortest_interval(const struct tokg_sink *s)
{
	return s->lanes_used > 0 ? s->read_ticks_lanes : s->read_ticks;
}

static bool
post_all(struct tokg_sink *s, uint64_t head, uint64_t now, bool idle)
{
	const uint32_t n_out = s->n_out;
	int rc = 1;

	s->poll_posts = 0;
	s->no_slot = s->no_output = false;
	if (__builtin_expect(s->n_lost != 0, 0))
		rc = tokg_sink_post_lost(s);
	if (rc == 1 && __builtin_expect(s->n_again != 0, 0))
		rc = tokg_sink_post_again(s, now);
	if (rc == 1)
		rc = tokg_sink_post_fresh(s, head, now, idle);
	if (__builtin_expect(s->asks_due != 0, 0) && s->broken == TOKG_INTACT &&
		tokg_sink_ask_all(s) < 0)
		tokg_sink_break(s, TOKG_CONNECTION);
	s->counter[TOKG_C_NO_SLOT] += s->no_slot;
	s->counter[TOKG_C_NO_OUTPUT] += s->no_output;
	if (s->broken != TOKG_INTACT)
		return false;
	if (s->poll_posts == 0)
		return true;
	s->interval = shortest_interval(s);
	s->t_post = now;
	/* After a pause, an immediate read would be too early for what was just posted. */
	if (n_out == 0 && s->n_out > 0 && !s->reading)
		s->t_read = now;
	return s->t->ops->flush(s->t) >= 0 || tokg_sink_break(s, TOKG_CONNECTION);
}

/* Read more often while reads show something, and when something was posted. */
static void
adapt_interval(struct tokg_sink *s, uint64_t now)
{
	const uint64_t longer = s->interval + s->interval / 2 + 1, shortest = shortest_interval(s);

	if (s->news)
		s->interval /= 2;
	else if (now - s->t_post >= s->read_ticks_most)
		s->interval = longer < s->read_ticks_most ? longer : s->read_ticks_most;
	if (s->interval < shortest)
		s->interval = shortest;
	s->news = false;
}

/* Reads credits at once if they are short, else at intervals while something may come back. */
static bool
read_when_due(struct tokg_sink *s, uint64_t now)
{
	const bool is_short = s->no_slot || s->no_output;
	int rc;

	if (s->n_out == 0 && !s->no_output && s->lanes_used == s->lanes_taken) {
		s->watching = false;
		return true;
	}
	if (!s->watching) {
		s->watching = true;
		s->t_alive = now;
	}
	if (s->reading) {
		/* poll() came before: the read is late, not this thread. */
		if (now > s->t_read && now - s->t_read > s->dead_ticks)
			return tokg_sink_break(s, TOKG_SILENT);
		return true;
	}
	if (!is_short && now < s->t_read + s->interval)
		return true;
	s->t->read_bytes = tokg_sink_read_bytes(s);
	rc = s->t->ops->read_back(s->t);
	if (rc < 0)
		return tokg_sink_break(s, TOKG_CONNECTION);
	if (rc > 0) {
		s->reading = true;
		s->t_read = now;
	}
	return true;
}

/* The first poll of a transport: does its agent know of all that was shed? */
static bool
begin(struct tokg_sink *s)
{
	if (s->broken != TOKG_ATTACHED)
		return false;
	s->broken = s->skip_below == tokg_sink_shed_below(s) ? TOKG_INTACT : TOKG_FULL;
	if (s->broken == TOKG_INTACT)
		tokg_sink_lanes_begin(s);
	return s->broken == TOKG_INTACT;
}

bool
tokg_sink_poll(struct tokg_sink *s, uint64_t head, uint64_t now, bool idle)
{
	bool intact = true;

	if (__builtin_expect(s->broken != TOKG_INTACT, 0) && !begin(s))
		return false;
	if (__builtin_expect(s->resumed, 0))
		tokg_sink_lanes_resume(s);
	/* Also if nothing is posted: notice the agent's end before the next text. */
	if (s->t->ops->poll(s->t) < 0)
		return tokg_sink_break(s, TOKG_CONNECTION);
	if (s->t->n_reads != s->n_reads) {
		intact = tokg_sink_take_back(s, now);
		adapt_interval(s, now);
	}
	intact = intact && post_all(s, head, now, idle) && read_when_due(s, now);
	move_cursor(s);
	return intact;
}

_Atomic uint64_t *
tokg_sink_cursor(struct tokg_sink *s)
{
	return &s->cursor;
}

bool
tokg_sink_is_idle(const struct tokg_sink *s, uint64_t head)
{
	return atomic_load_explicit(&s->cursor, memory_order_relaxed) == head;
}

const uint64_t *
tokg_sink_counters(const struct tokg_sink *s)
{
	return s->counter;
}

void
tokg_sink_give_up(struct tokg_sink *s)
{
	tokg_sink_break(s, TOKG_FULL);
}

void
tokg_sink_shed(struct tokg_sink *s, uint64_t head, uint64_t records, uint64_t serial)
{
	s->counter[TOKG_C_SHED] += records - s->finished;
	s->finished = records;
	tokg_sink_cut(s);
	atomic_store_explicit(&s->cursor, head, memory_order_relaxed);
	/* Release: who sees the serial sees the cursor. */
	atomic_store_explicit(&s->shed_below, serial, memory_order_release);
}

uint64_t
tokg_sink_shed_below(const struct tokg_sink *s)
{
	return atomic_load_explicit(&s->shed_below, memory_order_acquire);
}
