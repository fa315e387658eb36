/* SPDX-License-Identifier: BSD-3-Clause */
/* --allow: packets of other sources are dropped before anything else is done with them. */
#pragma once

#include "datapath/worker.h"

struct rte_acl_ctx;

/* Which sources may send: shared by all workers, which only read it. NULL: none of that family. */
struct tokd_allow {
	struct rte_acl_ctx *v4, *v6;
};

/* Drops those of n frames, at most TOKD_BURST, that may not be sent; returns how many are left. */
uint16_t tokd_net_allow(struct tokd_worker *w, struct rte_mbuf **m, uint16_t n);
