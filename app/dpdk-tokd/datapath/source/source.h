/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sources: who sends. A source is an IPv4 address, or the /64 of an IPv6 address, whose holder has
 * all addresses in it (RFC 6177 2). All that streams share is shared equally by sources.
 *
 * There are more sources than streams, so every stream finds one. A source without streams is idle:
 * it is known until its place is needed, the longest idle first.
 */
#pragma once

#include <sys/queue.h>

#include <rte_common.h>

#include "datapath/net_addr.h"
#include "datapath/drr.h"

struct tokd_worker;
TAILQ_HEAD(tokd_source_list, tokd_source);
STAILQ_HEAD(tokd_source_queue, tokd_source);
LIST_HEAD(tokd_source_bucket, tokd_source);

/* What sources are ranked by: how many streams of a kind each has. */
enum tokd_kind { TOKD_KIND_OPEN, TOKD_KIND_FINISHED, TOKD_KINDS };

struct tokd_source {
	/* Three lines that each text needs: to the first fields of `flow`. */
	struct tokd_addr addr;	       /* of IPv6 the first half */
	LIST_ENTRY(tokd_source) keyed; /* in a bucket of by_addr; le_prev NULL: not in use yet */
	uint32_t n_streams;	       /* not FREE; 0: in a list of idle ones */
	uint32_t n[TOKD_KINDS];
	uint32_t n_awaited;	      /* of the finished */
	uint32_t names, names_since;  /* texts that ended, since then: done_names.h */
	bool validated;		      /* it has shown that it receives what is sent to it */
	bool touched;		      /* its ranks may be wrong */
	struct tokd_stream_list open; /* the one with the least recent progress first */
	struct tokd_stream_list finished, awaited; /* as in struct tokd_streams; oldest first */
	STAILQ_ENTRY(tokd_source) link;		   /* while touched */
	uint32_t ranked[TOKD_KINDS];		   /* where it stands; 0: nowhere */
	TAILQ_ENTRY(tokd_source) rank[TOKD_KINDS]; /* among those with as many streams */
	struct tokd_flow flow;			   /* what it may take, and what of it waits */
	TAILQ_ENTRY(tokd_source) idle;
	uint32_t n_gpu_texts; /* buffers that its open streams have: gpu_text.h */
	uint32_t n_lanes;     /* that they have: generate.h */
	uint64_t debt_end;    /* TSC: the texts that it let die are paid for */
} __rte_cache_aligned;

/* Sources by number of streams of a kind: the greediest is found at once. */
struct tokd_rank {
	struct tokd_source_list *with; /* by number; those longest without progress first */
	uint32_t most;		       /* 0: nobody has any */
};

struct tokd_sources {
	/* Hashed with a secret: anybody can forge addresses. */
	struct tokd_source_bucket *by_addr;
	uint64_t secret[2];
	uint32_t shift;
	/* By `validated`: those that are not lose their place, and their streams, first. */
	struct tokd_source_list idle[2];
	struct tokd_rank rank[2][TOKD_KINDS];
	struct tokd_source_queue touched;
	uint32_t n_touched; /* at most TOKD_TOUCHED_MAX */
	uint32_t n;
	struct tokd_source *source;
};

/* Their ranks are corrected in one go. */
#define TOKD_TOUCHED_MAX 64

/* The source of an address; NULL: unknown. */
struct tokd_source *tokd_source_find(const struct tokd_worker *w, const struct tokd_addr *addr);
/* The same, made if it is unknown: never NULL. It may be idle, and is kept by the next call only if
 * it gets a stream first. */
struct tokd_source *tokd_source_of(struct tokd_worker *w, const struct tokd_addr *addr);
/* Corrects the ranks of the source that was touched first; there is one. */
void tokd_source_settle_one(struct tokd_sources *t);
/* Marks it validated. */
void tokd_source_validate(struct tokd_worker *w, struct tokd_source *s);
/* The source with the most streams of a kind, one that is not validated before all others. NULL:
 * there are no such streams. */
struct tokd_source *tokd_source_greediest(struct tokd_worker *w, enum tokd_kind kind);

/*
 * Of `n` things, `n_free` are free, and a source has `has`. Is that its share? A quarter of all; or
 * one, if less than a quarter is free for others.
 */
static inline bool
tokd_source_has_share(uint32_t has, uint32_t n_free, uint32_t n)
{
	const uint32_t most = n_free < n / 4 ? 1 : n / 4;

	return has >= RTE_MAX(most, 1u);
}
