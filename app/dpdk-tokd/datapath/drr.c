/* SPDX-License-Identifier: BSD-3-Clause */
#include <stddef.h>

#include "drr.h"

#define SLICES 8		      /* of a turn, if there are several sources */
#define QUANTA 2		      /* of a slice */
#define TICKS_MAX (UINT64_C(1) << 48) /* quanta do not overflow */

void
tokd_drr_init(struct tokd_drr *d)
{
	*d = (struct tokd_drr){.round = TOKD_DRR_KEPT};
	TAILQ_INIT(&d->light);
	TAILQ_INIT(&d->heavy);
}

void
tokd_drr_turn(struct tokd_drr *d, uint64_t feed_ticks, uint64_t now, uint64_t memory)
{
	d->shared = d->n > 1 || now - d->t_other < memory;
	d->slice = d->shared ? feed_ticks / SLICES + (feed_ticks % SLICES > 0) : feed_ticks;
	d->quantum = (int64_t)RTE_MIN(d->slice, TICKS_MAX);
	if (d->shared)
		d->quantum = RTE_MAX(d->quantum / QUANTA, 1);
	if (d->n == 0) {
		d->round++;
		d->ahead = 0;
	}
}

static struct tokd_flow_list *
list_of(struct tokd_drr *d, const struct tokd_flow *f)
{
	return f->state == TOKD_FLOW_LIGHT ? &d->light : &d->heavy;
}

void
tokd_drr_wait(struct tokd_drr *d, struct tokd_flow *f)
{
	if (f->state != TOKD_FLOW_IDLE)
		return;
	tokd_drr_refresh(d, f);
	f->state = tokd_drr_is_light(d, f) ? TOKD_FLOW_LIGHT : TOKD_FLOW_HEAVY;
	TAILQ_INIT(&f->queue);
	if (f->state == TOKD_FLOW_LIGHT && tokd_drr_is_rested(d, f))
		TAILQ_INSERT_HEAD(&d->light, f, link);
	else
		TAILQ_INSERT_TAIL(list_of(d, f), f, link);
	d->n_light += f->state == TOKD_FLOW_LIGHT;
	d->n++;
}

void
tokd_drr_leave(struct tokd_drr *d, struct tokd_flow *f)
{
	TAILQ_REMOVE(list_of(d, f), f, link);
	d->n_light -= f->state == TOKD_FLOW_LIGHT;
	f->state = TOKD_FLOW_IDLE;
	d->n--;
	if (f == d->last) {
		d->last = TAILQ_LAST(&d->heavy, tokd_flow_list);
		d->round++;
	}
}

static void
to_the_end(struct tokd_drr *d, struct tokd_flow *f)
{
	TAILQ_REMOVE(list_of(d, f), f, link);
	d->n_light -= f->state == TOKD_FLOW_LIGHT;
	f->state = TOKD_FLOW_HEAVY;
	TAILQ_INSERT_TAIL(&d->heavy, f, link);
}

/* A flow that is alone owes nothing. */
static void
give_quantum(struct tokd_drr *d, struct tokd_flow *f)
{
	f->credit = d->n == 1 ? d->quantum : f->credit + d->quantum;
	if (d->last == NULL || d->last == f) {
		d->last = f;
		d->round++;
	}
	f->round = d->round;
}

struct tokd_flow *
tokd_drr_next(struct tokd_drr *d)
{
	struct tokd_flow *f;

	while ((f = TAILQ_FIRST(&d->light)) != NULL &&
		(tokd_drr_is_rested(d, f) || tokd_drr_light_first(d))) {
		if (tokd_drr_is_light(d, f))
			return f;
		to_the_end(d, f);
	}
	while ((f = TAILQ_FIRST(&d->heavy)) != NULL && f->credit <= 0) {
		to_the_end(d, f);
		give_quantum(d, f);
	}
	return f;
}
