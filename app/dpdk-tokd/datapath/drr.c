/* SPDX-License-Identifier: BSD-3-Clause */
#include <stddef.h>

#include "drr.h"

#define SLICES 8		      /* of a turn, if there are several sources */
#define QUANTA 2		      /* of a slice */
#define OWN 4			      /* times that a source's own packets count as delay */
#define OFFERED 2		      /* times what can be served, that refused texts offer again */
#define TICKS_MAX (UINT64_C(1) << 40) /* sums of quanta do not overflow */

void
tokd_drr_init(struct tokd_drr *d)
{
	*d = (struct tokd_drr){.period = 1};
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

void
tokd_drr_turn(struct tokd_drr *d, uint64_t feed_ticks, uint64_t now, uint64_t period)
{
	uint32_t n;

	d->now = now;
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
	d->held[f->state] -= f->held;
	f->state = (uint8_t)state;
	d->held[f->state] += f->held;
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

/* Own packets count more: so sources that are refused alike have about as many texts in there. */
uint64_t
tokd_drr_delay(const struct tokd_drr *d, struct tokd_flow *f)
{
	const uint64_t light = d->held[TOKD_FLOW_LIGHT], heavy = d->held[TOKD_FLOW_HEAVY];

	tokd_drr_refresh(d, f);
	if (tokd_drr_is_rested(d, f))
		return 0;
	if (f->heavy)
		return (light + heavy + OWN * f->held) * d->ticks;
	return (light + RTE_MIN(light, heavy)) * d->ticks;
}

uint64_t
tokd_drr_retry(struct tokd_drr *d, struct tokd_flow *f, uint64_t most)
{
	const uint64_t begin = RTE_MAX(d->now + tokd_drr_delay(d, f), f->t_retry);

	tokd_drr_at_work(d, f);
	f->t_retry = RTE_MIN(begin + f->ticks * d->n_sources / OFFERED, d->now + most);
	return RTE_MIN(begin - d->now, most);
}
