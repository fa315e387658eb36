/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of sources: look-up, counts, ranks. Nothing is allocated; each call is bounded. */
#include <rte_branch_prediction.h>

#include <mix.h>

#include "source.h"
#include "datapath/worker.h"

/* Sources in one bucket. More than chance gives: then someone knows the secret. */
#define BUCKET_MAX 16

static struct tokd_addr
source_addr(const struct tokd_addr *addr)
{
	struct tokd_addr a = *addr;

	if (!tokd_addr_is_v4(addr))
		a.half[1] = 0;
	return a;
}

static struct tokd_source_bucket *
bucket_of(const struct tokd_sources *t, const struct tokd_addr *a)
{
	const uint64_t hash = rte_be_to_cpu_64(a->half[0]) * t->secret[0] +
			      rte_be_to_cpu_64(a->half[1]) * t->secret[1];

	return &t->by_addr[tokd_mix(hash) >> t->shift];
}

/* In a bucket that is full, the addresses that do not fit share a source. */
static struct tokd_source *
find(const struct tokd_source_bucket *bucket, const struct tokd_addr *a)
{
	struct tokd_source *s;
	uint32_t n = 0;

	LIST_FOREACH(s, bucket, keyed)
	{
		if (tokd_addr_is_same(&s->addr, a) || unlikely(++n == BUCKET_MAX))
			break;
	}
	return s;
}

struct tokd_source *
tokd_source_find(const struct tokd_worker *w, const struct tokd_addr *addr)
{
	const struct tokd_addr a = source_addr(addr);

	return find(bucket_of(w->sources, &a), &a);
}

/* There is one: sources are more than streams. */
static struct tokd_source *
longest_idle(const struct tokd_sources *t)
{
	struct tokd_source *s = TAILQ_FIRST(&t->idle[false]);

	return s != NULL ? s : TAILQ_FIRST(&t->idle[true]);
}

/* Move it to the end of the list where it belongs; 0: to no list. */
static inline void
move(struct tokd_rank *r, struct tokd_source *s, enum tokd_kind kind, uint32_t to)
{
	const uint32_t from = s->ranked[kind];

	if ((from | to) == 0)
		return;
	if (from > 0)
		TAILQ_REMOVE(&r->with[from], s, rank[kind]);
	if (to > 0)
		TAILQ_INSERT_TAIL(&r->with[to], s, rank[kind]);
	s->ranked[kind] = to;
	if (r->most < to)
		r->most = to;
	while (r->most > 0 && TAILQ_EMPTY(&r->with[r->most]))
		r->most--;
}

void
tokd_source_settle_one(struct tokd_sources *t)
{
	struct tokd_source *s = STAILQ_FIRST(&t->touched);
	struct tokd_rank *r = t->rank[s->validated];

	STAILQ_REMOVE_HEAD(&t->touched, link);
	t->n_touched--;
	s->touched = false;
	move(&r[TOKD_KIND_OPEN], s, TOKD_KIND_OPEN, s->n[TOKD_KIND_OPEN]);
	if (s->ranked[TOKD_KIND_FINISHED] != s->n[TOKD_KIND_FINISHED])
		move(&r[TOKD_KIND_FINISHED], s, TOKD_KIND_FINISHED, s->n[TOKD_KIND_FINISHED]);
}

static void
rank_touched(struct tokd_sources *t)
{
	while (t->n_touched > 0)
		tokd_source_settle_one(t);
}

struct tokd_source *
tokd_source_of(struct tokd_worker *w, const struct tokd_addr *addr)
{
	struct tokd_sources *t = w->sources;
	const struct tokd_addr a = source_addr(addr);
	struct tokd_source_bucket *bucket = bucket_of(t, &a);
	struct tokd_source *s = find(bucket, &a);

	if (likely(s != NULL)) {
		__builtin_prefetch(&s->open, 1);
		__builtin_prefetch(&s->flow, 1);
		return s;
	}
	s = longest_idle(t);
	if (s->touched)
		rank_touched(t);
	TAILQ_REMOVE(&t->idle[s->validated], s, idle);
	if (s->keyed.le_prev != NULL)
		LIST_REMOVE(s, keyed);
	memset(s, 0, sizeof(*s));
	s->addr = a;
	TAILQ_INIT(&s->open);
	TAILQ_INIT(&s->finished);
	TAILQ_INIT(&s->awaited);
	LIST_INSERT_HEAD(bucket, s, keyed);
	TAILQ_INSERT_TAIL(&t->idle[false], s, idle);
	return s;
}

void
tokd_source_validate(struct tokd_worker *w, struct tokd_source *s)
{
	struct tokd_sources *t = w->sources;

	if (s->validated)
		return;
	for (uint32_t kind = 0; kind < TOKD_KINDS; kind++) {
		move(&t->rank[false][kind], s, kind, 0);
		move(&t->rank[true][kind], s, kind, s->n[kind]);
	}
	if (s->n_streams == 0) {
		TAILQ_REMOVE(&t->idle[false], s, idle);
		TAILQ_INSERT_TAIL(&t->idle[true], s, idle);
	}
	s->validated = true;
}

struct tokd_source *
tokd_source_greediest(struct tokd_worker *w, enum tokd_kind kind)
{
	rank_touched(w->sources);
	for (uint32_t validated = 0; validated < 2; validated++) {
		const struct tokd_rank *r = &w->sources->rank[validated][kind];

		if (r->most > 0)
			return TAILQ_FIRST(&r->with[r->most]);
	}
	return NULL;
}
