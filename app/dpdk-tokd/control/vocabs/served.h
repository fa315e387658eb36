/* SPDX-License-Identifier: BSD-3-Clause */
/* What a reload replaces as one: the vocabularies on each NUMA node, and each worker's terms. */
#pragma once

#include "datapath/token_ring.h"
#include "terms.h"

struct tokd_served {
	struct tokd_vocabs vocabs[RTE_MAX_NUMA_NODES]; /* a copy per node in use */
	uint32_t n_nodes;
	struct tokd_terms *terms[TOKD_RINGS_MAX];
	uint32_t n_workers;
};

/*
 * For `n` workers, worker i on node[i]. Logs the vocabularies. Returns 0, or with a reason in *err
 * -EINVAL: a vocabulary does not load; -ENOMEM: there is no memory for them.
 */
int tokd_served_load(struct tokd_served **served, const struct tokd_options *opt, const int *node,
	uint32_t n, struct tok_error *err);
/* NULL is allowed. */
void tokd_served_free(struct tokd_served *s);
