/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include "datapath/worker.h"

/*
 * Process n (at most TOKD_BURST) frames, which the worker then owns; replies go to w->tx. The
 * caller has set w->t_burst and w->stopping.
 */
void tokd_worker_burst(struct tokd_worker *w, struct rte_mbuf **m, uint16_t n);
