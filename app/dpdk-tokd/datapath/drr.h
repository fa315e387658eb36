/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whose text is fed next, and whose is refused. What sources share are the tokenizer's TSC ticks:
 * bytes of one text may cost many times those of another.
 *
 * While nothing waits, packets are fed as they come. What a slice has no time for is held: the
 * source's streams wait in a queue of their own, a flow. Flows are served by deficit round robin
 * (Shreedhar and Varghese, SIGCOMM 1995), those of light sources before those of heavy ones.
 *
 * A source is light if it takes less than half of its fair share of `given`: the ticks of the
 * tokenizer and those in which the worker is idle; ticks of frames do not count. A token bucket
 * measures it: each source has an allowance of ticks, which fills at that rate. A source is heavy
 * once its allowance is used up, until it is full again. A new source has a quantum.
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
	TOKD_FLOW_LIGHT,    /* of a source that was light when it began to wait */
	TOKD_FLOW_HEAVY,
	TOKD_FLOW_STATES,
};

#define TOKD_DRR_OWED 64 /* quanta that a flow may owe for one piece, at most */

/* A source's budget of time, and its packets that wait. Zeroed: idle, new. */
struct tokd_flow {
	uint64_t saved;	   /* ticks left of its allowance, at `at_saved` */
	uint64_t at_saved; /* of `given`; 0: new */
	uint32_t period;   /* when it was last at work */
	uint32_t held;	   /* mbufs of its streams */
	uint32_t waiting;  /* packets of its streams that wait only for the tokenizer */
	uint8_t state;	   /* enum tokd_flow_state */
	bool heavy;
	int64_t credit;	  /* ticks left of its quantum, while it waits; negative: it took more */
	uint64_t ticks;	  /* that a text of its queue took, averaged */
	uint64_t t_retry; /* TSC: when the last text that was refused may come again */
	TAILQ_ENTRY(tokd_flow) link;
	struct tokd_stream_list queue; /* streams whose next packet is held for a later turn */
};
TAILQ_HEAD(tokd_flow_list, tokd_flow);

/* Of a worker. */
struct tokd_drr {
	uint64_t now;	 /* TSC of the turn */
	uint64_t took;	 /* ticks of the tokenizer, ever */
	uint64_t given;	 /* that it gave or could give, by the begin of the turn */
	uint64_t slice;	 /* ticks between two polls of the RX queue */
	int64_t quantum; /* ticks of a flow in a round */
	/* Sources at work in the last period, in this one; those that share: the larger number. */
	uint32_t n_last, n_now, n_sources;
	uint32_t period;
	uint64_t t_period;
	bool shared; /* several sources are at work */
	uint64_t allowance;
	uint64_t fill;	/* of `given`, in which an allowance fills */
	uint64_t share; /* that it gets of them, in 2^-32 */
	uint32_t n;	/* flows that wait */
	uint32_t waiting[TOKD_FLOW_STATES];
	struct tokd_flow_list light, heavy;
	struct tokd_flow *served; /* its queue is being fed; NULL */
	int64_t ahead;	/* ticks that light flows took while others waited, less the heavy ones' */
	uint64_t ticks; /* of the tokenizer that a held packet took, averaged */
	/* Ticks of a busy worker for one of the tokenizer, in 2^-8. Frames take the rest. */
	uint64_t times;
	uint64_t busy_before, took_before; /* when that was measured */
};

void tokd_drr_init(struct tokd_drr *d);

/* A turn begins. `feed_ticks`: of a turn for a source that is alone; `idle`: of the worker, ever.
 */
void tokd_drr_turn(
	struct tokd_drr *d, uint64_t feed_ticks, uint64_t now, uint64_t idle, uint64_t period);

/* A stream of the flow begins to wait. */
void tokd_drr_wait(struct tokd_drr *d, struct tokd_flow *f);

/* The flow's queue is empty. Not while it is served. */
void tokd_drr_leave(struct tokd_drr *d, struct tokd_flow *f);

/* The flow to serve: it waits and has credit. NULL: none waits. */
struct tokd_flow *tokd_drr_next(struct tokd_drr *d);

/* About how long one more text of a flow would wait, in ticks. */
uint64_t tokd_drr_delay(const struct tokd_drr *d, struct tokd_flow *f);

/*
 * In how many ticks, at most `most`, a refused text may come again. Texts of one source come one by
 * one, those of all sources together twice as fast as they can be served.
 */
uint64_t tokd_drr_retry(struct tokd_drr *d, struct tokd_flow *f, uint64_t most);

static inline bool
tokd_drr_waits(const struct tokd_drr *d)
{
	return d->n > 0;
}

/* Adds to the packets of the flow's streams that wait; `packets` may be negative. */
static inline void
tokd_drr_count(struct tokd_drr *d, struct tokd_flow *f, int packets)
{
	f->waiting += (uint32_t)packets;
	d->waiting[f->state] += (uint32_t)packets;
}

static inline void
tokd_drr_at_work(struct tokd_drr *d, struct tokd_flow *f)
{
	if (likely(f->period == d->period))
		return;
	f->period = d->period;
	d->n_now++;
}

/* What it saved since. */
static inline void
tokd_drr_refresh(const struct tokd_drr *d, struct tokd_flow *f)
{
	const uint64_t ticks = d->given - f->at_saved;

	if (ticks == 0)
		return;
	if (unlikely(f->at_saved == 0))
		f->saved = (uint64_t)d->quantum;
	else if (ticks >= d->fill)
		f->saved = d->allowance;
	else
		f->saved = RTE_MIN(f->saved + (ticks * d->share >> 32), d->allowance);
	f->heavy &= f->saved < d->allowance;
	f->at_saved = d->given;
}

/* It has hardly taken anything lately: it is fed before all others. */
static inline bool
tokd_drr_is_rested(const struct tokd_drr *d, const struct tokd_flow *f)
{
	return f->saved >= d->allowance - d->allowance / 8;
}

/* Light flows go first, but after a piece of theirs a heavy one has its quantum. */
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
	if (likely(d->n == 0))
		return true;
	tokd_drr_refresh(d, f);
	if (tokd_drr_is_rested(d, f))
		return true;
	return !f->heavy && TAILQ_EMPTY(&d->light) && tokd_drr_light_first(d);
}

/* The tokenizer took `ticks` for the flow. */
static inline void
tokd_drr_charge(struct tokd_drr *d, struct tokd_flow *f, uint64_t ticks)
{
	tokd_drr_at_work(d, f);
	d->took += ticks;
	if (likely(!d->shared))
		return;
	tokd_drr_refresh(d, f);
	f->heavy |= ticks >= f->saved;
	f->saved -= RTE_MIN(ticks, f->saved);
	if (unlikely(d->n > 0)) {
		/* A pause of the whole machine is not all its debt. */
		f->credit -= RTE_MIN((int64_t)ticks, TOKD_DRR_OWED * d->quantum);
		d->ahead += f->state == TOKD_FLOW_HEAVY ? -(int64_t)ticks : (int64_t)ticks;
		d->ahead = RTE_MIN(d->ahead, 2 * d->quantum);
		d->ahead = RTE_MAX(d->ahead, 0);
	}
}

static inline uint64_t
tokd_drr_average(uint64_t average, uint64_t ticks)
{
	return average == 0 ? ticks : (7 * average + ticks) / 8;
}

/* A held packet took `ticks`. A pause of the machine says nothing of the text. */
static inline void
tokd_drr_took(struct tokd_drr *d, uint64_t ticks)
{
	d->ticks = tokd_drr_average(d->ticks, RTE_MIN(ticks, 4 * (uint64_t)d->quantum));
}
