/* SPDX-License-Identifier: BSD-3-Clause */
#include <stddef.h>

#include "drr.h"

#define SLICES 8		      /* of a turn, if there are several sources */
#define QUANTA 2		      /* of a slice */
#define OWN 4			      /* weight of a source's own packets in its delay */
#define OFFERED 2		      /* times the capacity: how fast refused texts come again */
#define TICKS_MAX (UINT64_C(1) << 40) /* sums of quanta do not overflow */
#define ONE 256u		      /* of `times` */
#define TIMES_MAX 8u		      /* a pause of the machine says nothing of frames */

void
tokd_drr_init(struct tokd_drr *d)
{
	*d = (struct tokd_drr){.period = 1, .took = 1, .times = ONE};
	TAILQ_INIT(&d->light);
	TAILQ_INIT(&d->heavy);
}

/* n sources are at work. */
static void
share(struct tokd_drr *d, uint32_t n, uint64_t feed_ticks)
{
	d->n_sources = n;
	d->shared = n > 1;
	d->slice = d->shared ? RTE_MAX(feed_ticks / SLICES, 1u) : feed_ticks;
	d->quantum = (int64_t)RTE_MAX(d->slice / (d->shared ? QUANTA : 1), 1u);
	d->allowance = feed_ticks;
	d->fill = 2 * n * d->allowance;
	d->share = (UINT64_C(1) << 31) / n;
}

/*
 * `busy`: ticks in which the worker was not idle. Measured each time that the tokenizer has taken
 * more than an allowance.
 */
static void
measure(struct tokd_drr *d, uint64_t busy)
{
	const uint64_t took = d->took - d->took_before;
	uint64_t times;

	if (likely(took <= d->allowance))
		return;
	if (likely(d->busy_before != 0)) {
		times = (busy - d->busy_before) * ONE / took;
		d->times = tokd_drr_average(d->times, RTE_MIN(times, TIMES_MAX * ONE));
	}
	d->took_before = d->took;
	d->busy_before = busy;
}

void
tokd_drr_turn(struct tokd_drr *d, uint64_t feed_ticks, uint64_t now, uint64_t idle, uint64_t period)
{
	uint32_t n;

	d->now = now;
	d->given = d->took + idle;
	if (unlikely(now - d->t_period >= period)) {
		d->t_period = now;
		d->period++;
		d->n_last = d->n_now;
		d->n_now = 0;
	}
	n = RTE_MAX(d->n_last, d->n_now);
	n = RTE_MAX(n, 1u);
	feed_ticks = RTE_MIN(feed_ticks, TICKS_MAX);
	if (unlikely(n != d->n_sources || feed_ticks != d->allowance))
		share(d, n, feed_ticks);
	measure(d, now - idle);
	if (d->n == 0)
		d->ahead = 0;
}

static struct tokd_flow_list *
list_of(struct tokd_drr *d, const struct tokd_flow *f)
{
	return f->state == TOKD_FLOW_LIGHT ? &d->light : &d->heavy;
}

static void
become(struct tokd_drr *d, struct tokd_flow *f, enum tokd_flow_state state)
{
	d->waiting[f->state] -= f->waiting;
	f->state = (uint8_t)state;
	d->waiting[f->state] += f->waiting;
}

void
tokd_drr_wait(struct tokd_drr *d, struct tokd_flow *f)
{
	if (f->state != TOKD_FLOW_IDLE)
		return;
	tokd_drr_at_work(d, f);
	tokd_drr_refresh(d, f);
	become(d, f, f->heavy ? TOKD_FLOW_HEAVY : TOKD_FLOW_LIGHT);
	f->credit = f->heavy ? 0 : d->quantum;
	TAILQ_INIT(&f->queue);
	if (!f->heavy && tokd_drr_is_rested(d, f))
		TAILQ_INSERT_HEAD(&d->light, f, link);
	else
		TAILQ_INSERT_TAIL(list_of(d, f), f, link);
	d->n++;
}

void
tokd_drr_leave(struct tokd_drr *d, struct tokd_flow *f)
{
	TAILQ_REMOVE(list_of(d, f), f, link);
	become(d, f, TOKD_FLOW_IDLE);
	d->n--;
}

static void
to_the_end(struct tokd_drr *d, struct tokd_flow *f)
{
	TAILQ_REMOVE(list_of(d, f), f, link);
	become(d, f, TOKD_FLOW_HEAVY);
	TAILQ_INSERT_TAIL(&d->heavy, f, link);
}

struct tokd_flow *
tokd_drr_next(struct tokd_drr *d)
{
	struct tokd_flow *f;

	while ((f = TAILQ_FIRST(&d->light)) != NULL &&
		(tokd_drr_is_rested(d, f) || tokd_drr_light_first(d))) {
		if (f->credit <= 0 && !f->heavy)
			f->credit = d->quantum;
		if (f->credit > 0)
			return f;
		to_the_end(d, f);
	}
	/* A flow that is alone owes nothing. */
	while ((f = TAILQ_FIRST(&d->heavy)) != NULL && f->credit <= 0) {
		to_the_end(d, f);
		f->credit = d->n == 1 ? d->quantum : f->credit + d->quantum;
	}
	return f;
}

/*
 * Packets that are fed before one more of the flow. Its own count more, so that sources that are
 * refused alike have about equally many texts waiting. A rested flow is fed before the others and
 * delays texts that were accepted, so it is refused last: when twice as much of light flows waits.
 */
static uint64_t
before(const struct tokd_drr *d, const struct tokd_flow *f)
{
	const uint64_t light = d->waiting[TOKD_FLOW_LIGHT], heavy = d->waiting[TOKD_FLOW_HEAVY];

	if (f->heavy)
		return light + heavy + OWN * f->waiting;
	return tokd_drr_is_rested(d, f) ? light / 2 : light + RTE_MIN(light, heavy);
}

uint64_t
tokd_drr_delay(const struct tokd_drr *d, struct tokd_flow *f)
{
	tokd_drr_refresh(d, f);
	return before(d, f) * d->ticks * d->times / ONE;
}

uint64_t
tokd_drr_retry(struct tokd_drr *d, struct tokd_flow *f, uint64_t most)
{
	const uint64_t begin = RTE_MAX(d->now + tokd_drr_delay(d, f), f->t_retry);

	tokd_drr_at_work(d, f);
	f->t_retry =
		RTE_MIN(begin + f->ticks * d->times / ONE * d->n_sources / OFFERED, d->now + most);
	return RTE_MIN(begin - d->now, most);
}
