/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whose text is fed next: deficit round robin over sources (Shreedhar and Varghese, SIGCOMM 1995),
 * new ones first (RFC 8290, 4.2). What is shared are the tokenizer's TSC ticks: bytes of one text
 * may cost many times those of another.
 *
 * In each round a source may take a quantum of ticks. Within it, its packets are fed as they come.
 * What is beyond it is held: the source's streams wait in a queue of their own, a flow. Flows that
 * wait are served in turn. When each has had its quantum, the next round begins.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>

struct tokd_stream; /* stream.h */
TAILQ_HEAD(tokd_stream_list, tokd_stream);

enum tokd_flow_state {
	TOKD_FLOW_IDLE = 0, /* nothing waits */
	TOKD_FLOW_LIGHT,    /* it has taken little: served before the others while that is so */
	TOKD_FLOW_HEAVY,
};

#define TOKD_DRR_KEPT 4		/* quanta that a source may keep */
#define TOKD_DRR_FORGIVEN 1024u /* quanta that it may owe, at most */

/* What a source may take, and what of it waits. Zeroed: idle. */
struct tokd_flow {
	int64_t credit; /* ticks left in `round`; negative: it took more than it had */
	uint64_t round;
	uint8_t state;	  /* enum tokd_flow_state */
	uint32_t held;	  /* mbufs of its streams */
	uint64_t ticks;	  /* that a packet of its queue took, averaged */
	uint64_t t_retry; /* TSC: when the last text that was refused may come again; 0: none */
	uint64_t refused; /* the id of that text */
	TAILQ_ENTRY(tokd_flow) link;
	struct tokd_stream_list queue; /* streams whose next packet is held for a later turn */
};
TAILQ_HEAD(tokd_flow_list, tokd_flow);

/* Of a worker. */
struct tokd_drr {
	int64_t quantum; /* ticks of a source in a round */
	uint64_t slice;	 /* ticks between two polls of the RX queue */
	uint64_t round;
	uint32_t n, n_light;	  /* flows that wait; of them light ones */
	struct tokd_flow *last;	  /* the round ends when it has had its quantum; NULL */
	bool shared;		  /* several sources are at work */
	struct tokd_flow *served; /* its queue is being fed; NULL */
	struct tokd_flow *latest; /* to be charged */
	uint64_t t_other;	  /* TSC when `latest` changed */
	struct tokd_flow_list light, heavy;
	int64_t ahead;	/* ticks that light flows took while others waited, less the heavy ones' */
	uint64_t ticks; /* that a held packet took, averaged: for flows that never had one */
};

void tokd_drr_init(struct tokd_drr *d);

/*
 * A turn begins. `feed_ticks`: of a turn for a source that is alone. With several sources at work
 * within the last `memory` ticks, the RX queue is polled more often.
 */
void tokd_drr_turn(struct tokd_drr *d, uint64_t feed_ticks, uint64_t now, uint64_t memory);

/* A stream of the flow begins to wait. */
void tokd_drr_wait(struct tokd_drr *d, struct tokd_flow *f);

/* The flow's queue is empty. Not while it is served. */
void tokd_drr_leave(struct tokd_drr *d, struct tokd_flow *f);

/* The flow to serve: it waits and has credit. NULL: none waits. */
struct tokd_flow *tokd_drr_next(struct tokd_drr *d);

static inline bool
tokd_drr_waits(const struct tokd_drr *d)
{
	return d->n > 0;
}

/* A quantum for each round that has begun since; at most TOKD_DRR_KEPT are kept. */
static inline void
tokd_drr_refresh(const struct tokd_drr *d, struct tokd_flow *f)
{
	const uint64_t rounds = d->round - f->round;

	if (rounds == 0)
		return;
	f->round = d->round;
	f->credit += (int64_t)RTE_MIN(rounds, TOKD_DRR_FORGIVEN) * d->quantum;
	f->credit = RTE_MIN(f->credit, TOKD_DRR_KEPT * d->quantum);
}

/* Has it taken less than its share lately? */
static inline bool
tokd_drr_is_light(const struct tokd_drr *d, const struct tokd_flow *f)
{
	return f->credit > TOKD_DRR_KEPT / 2 * d->quantum;
}

/* Has it taken nothing for some rounds? So has each new source. */
static inline bool
tokd_drr_is_rested(const struct tokd_drr *d, const struct tokd_flow *f)
{
	return f->credit >= TOKD_DRR_KEPT * d->quantum;
}

/*
 * Light flows go first, but after a piece of theirs a heavy one has its quantum: there may be so
 * many of them that a text of a heavy one would wait for ms. Only rested ones are always first.
 */
static inline bool
tokd_drr_light_first(const struct tokd_drr *d)
{
	return d->ahead <= d->quantum || TAILQ_EMPTY(&d->heavy);
}

/* May the flow's text be fed now? */
static inline bool
tokd_drr_may_take(struct tokd_drr *d, struct tokd_flow *f)
{
	if (unlikely(f->state != TOKD_FLOW_IDLE))
		return f == d->served && f->credit > 0;
	tokd_drr_refresh(d, f);
	if (likely(d->n == 0))
		return f->credit > 0;
	if (tokd_drr_is_rested(d, f))
		return true;
	return tokd_drr_is_light(d, f) && TAILQ_EMPTY(&d->light) && tokd_drr_light_first(d);
}

/* The tokenizer took `ticks` for the flow. A pause of the whole machine is not all its debt. */
static inline void
tokd_drr_charge(struct tokd_drr *d, struct tokd_flow *f, uint64_t ticks, uint64_t now)
{
	f->credit = RTE_MAX(f->credit - (int64_t)ticks, -(int64_t)TOKD_DRR_FORGIVEN * d->quantum);
	if (unlikely(d->n > 0)) {
		d->ahead += f->state == TOKD_FLOW_HEAVY ? -(int64_t)ticks : (int64_t)ticks;
		d->ahead = RTE_MIN(d->ahead, 2 * d->quantum);
		d->ahead = RTE_MAX(d->ahead, 0);
	}
	if (unlikely(f != d->latest)) {
		d->t_other = d->latest != NULL ? now : d->t_other;
		d->latest = f;
	}
}

static inline uint64_t
tokd_drr_average(uint64_t average, uint64_t ticks)
{
	return average == 0 ? ticks : (7 * average + ticks) / 8;
}

/* A packet of the flow's queue took `ticks`. */
static inline void
tokd_drr_took(struct tokd_drr *d, struct tokd_flow *f, uint64_t ticks)
{
	/* A pause of the machine says nothing of the text. */
	ticks = RTE_MIN(ticks, (uint64_t)TOKD_DRR_KEPT * (uint64_t)d->quantum);
	f->ticks = tokd_drr_average(f->ticks, ticks);
	d->ticks = tokd_drr_average(d->ticks, ticks);
}

/* About how long one more packet of a flow would wait, in ticks. */
static inline uint64_t
tokd_drr_delay(const struct tokd_drr *d, struct tokd_flow *f)
{
	const uint64_t ticks = f->ticks != 0 ? f->ticks : d->ticks;

	if (f->state == TOKD_FLOW_IDLE)
		tokd_drr_refresh(d, f);
	return (f->held + 1) * ticks * (tokd_drr_is_light(d, f) ? 2 * d->n_light : d->n);
}

/*
 * In how many ticks a text that is refused may come again: behind what waits, and behind those that
 * were refused before. So they come one by one, as fast as the source is served.
 */
static inline uint64_t
tokd_drr_retry(const struct tokd_drr *d, struct tokd_flow *f, uint64_t now, uint64_t most)
{
	const uint64_t begin = RTE_MAX(now + tokd_drr_delay(d, f), f->t_retry);
	const uint64_t end = begin + f->ticks * RTE_MAX(d->n, 1u);

	f->t_retry = RTE_MIN(end, now + most);
	return f->t_retry - now;
}
