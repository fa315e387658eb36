/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who gives way when streams are short: doc/reference/protection.md, "Shares". Decided by source,
 * in constant time. While less than half of the table is used, only lanes are limited here.
 */
#include "reply.h"
#include "stream.h"

/*
 * While more than half of the streams are open, or no lane is free, a text must make so much
 * progress a second, in bytes fed, packets fed and ids acknowledged: the pace of speech.
 */
#define PROGRESS_LEAST 16

/* Retry times. */
#define RETRY_LEAST_MS 5
#define RETRY_MOST_MS 1000

static uint32_t
n_open(const struct tokd_streams *t)
{
	return atomic_load_explicit(&t->n_open, memory_order_relaxed);
}

/*
 * A source may let as many texts die as there are streams; then half as many in --stream-timeout.
 * So what one source leaves open never fills the half of the table that is above this limit.
 */
static uint64_t
debt_each(const struct tokd_streams *t)
{
	return 2 * t->open_ticks / t->n;
}

static uint64_t
over_debt(const struct tokd_worker *w, const struct tokd_source *source)
{
	const uint64_t limit = w->t_burst + 2 * w->streams->open_ticks;

	return source->debt_end > limit ? source->debt_end - limit : 0;
}

void
tokd_share_died(struct tokd_worker *w, struct tokd_source *source)
{
	source->debt_end = RTE_MAX(source->debt_end, w->t_burst) + debt_each(w->streams);
}

/*
 * A source may take an open stream of another if that makes their numbers more equal; it may always
 * have one.
 */
static bool
may_take_from(const struct tokd_source *taker, const struct tokd_source *from)
{
	const uint32_t has = taker->n[TOKD_KIND_OPEN];

	if (taker->validated != from->validated)
		return taker->validated;
	return has == 0 || has + 1 < from->n[TOKD_KIND_OPEN];
}

bool
tokd_share_admits(struct tokd_worker *w, const struct tokd_source *source)
{
	const struct tokd_streams *t = w->streams;

	if (over_debt(w, source) > 0) {
		w->counter[C_DROP_OPENS]++;
		return false;
	}
	if (n_open(t) < t->n || may_take_from(source, tokd_source_greediest(w, TOKD_KIND_OPEN)))
		return true;
	w->counter[C_DROP_TABLE_FULL]++;
	return false;
}

void
tokd_share_evict(struct tokd_worker *w)
{
	struct tokd_stream *s;

	if (n_open(w->streams) < w->streams->n)
		return;
	s = TAILQ_FIRST(&tokd_source_greediest(w, TOKD_KIND_OPEN)->open);
	w->counter[C_STREAMS_EVICTED]++;
	tokd_stream_fail(w, s, TOKD_R_SHARE);
	tokd_reply_now(w, s);
}

/*
 * If a stream is forgotten, its client must send its text again to get the ids. So those whose ids
 * were acknowledged go first; but the others get at most half of what the source has.
 */
struct tokd_stream *
tokd_share_evictable(struct tokd_worker *w)
{
	const struct tokd_source *from = tokd_source_greediest(w, TOKD_KIND_FINISHED);
	struct tokd_stream *s;

	if (from == NULL)
		return NULL;
	s = TAILQ_FIRST(&from->finished);
	return s == NULL || from->n_awaited > from->n[TOKD_KIND_FINISHED] / 2
		       ? TAILQ_FIRST(&from->awaited)
		       : s;
}

bool
tokd_share_is_slow(const struct tokd_worker *w, const struct tokd_stream *s)
{
	/* A client that has all of an answer so far waits for the GPU. */
	if (tokd_stream_answers(s) && s->ids_ack == s->total)
		return false;
	return tokd_stream_progress(s) < (w->t_burst - s->t_open) / (w->tsc_hz / PROGRESS_LEAST);
}

/* Until its debt is paid; else the time that a text is open, in which most streams change. */
uint32_t
tokd_share_retry_ms(const struct tokd_worker *w, const struct tokd_source *source)
{
	const uint64_t ticks = RTE_MAX(over_debt(w, source), w->streams->mean_open);
	const uint64_t ms = ticks / (w->tsc_hz / 1000) + 1;

	if (ms < RETRY_LEAST_MS)
		return RETRY_LEAST_MS;
	return ms < RETRY_MOST_MS ? (uint32_t)ms : RETRY_MOST_MS;
}
