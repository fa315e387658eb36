/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOKD_BURST_H
#define TOKD_BURST_H

#include "datapath/worker.h"

/*
 * Take n (at most TOKD_BURST) frames, which belong to the worker from then on, and gather what is
 * to be sent in w->tx. w->t_burst and w->stopping have been set.
 */
void tokd_worker_burst(struct tokd_worker *w, struct rte_mbuf **m, uint16_t n);

#endif
