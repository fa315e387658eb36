/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inline, because each text changes its source's counts four times. Ranks are updated when the
 * greediest source is asked for: by then most texts of a few sources have come and gone. With many
 * sources at work, one is ranked whenever another changes, so that the greediest is found in
 * bounded time.
 */
#pragma once

#include <rte_branch_prediction.h>

#include "source.h"
#include "datapath/worker.h"

/* Its ranks may be wrong now: of its open streams, one came, went or made progress. */
static inline void
tokd_source_touch(struct tokd_worker *w, struct tokd_source *s)
{
	if (s->touched)
		return;
	s->touched = true;
	STAILQ_INSERT_TAIL(&w->sources->touched, s, link);
	if (++w->sources->n_touched > TOKD_TOUCHED_MAX)
		tokd_source_settle_one(w->sources);
}

/* One of its streams became of a kind. */
static inline void
tokd_source_add(struct tokd_worker *w, struct tokd_source *s, enum tokd_kind kind)
{
	s->n[kind]++;
	tokd_source_touch(w, s);
}

/* One of its streams ceased to be of a kind. */
static inline void
tokd_source_sub(struct tokd_worker *w, struct tokd_source *s, enum tokd_kind kind)
{
	s->n[kind]--;
	tokd_source_touch(w, s);
}

/* It has a stream more. */
static inline void
tokd_source_take(struct tokd_worker *w, struct tokd_source *s)
{
	if (unlikely(s->n_streams++ == 0))
		TAILQ_REMOVE(&w->sources->idle[s->validated], s, idle);
}

/* It has one less. */
static inline void
tokd_source_drop(struct tokd_worker *w, struct tokd_source *s)
{
	if (unlikely(--s->n_streams == 0))
		TAILQ_INSERT_TAIL(&w->sources->idle[s->validated], s, idle);
}
