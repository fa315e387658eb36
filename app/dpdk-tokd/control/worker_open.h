/* SPDX-License-Identifier: BSD-3-Clause */
/* Set-up of a worker. */
#pragma once

#include "datapath/worker.h"

struct tokd_port;

/*
 * The caller sets port, queue, pool, ring, terms, ip, ip6, vlan, udp_port, text_port, mac,
 * offloads, opt, stop, index, lcore and node, and zero elsewhere. Creates streams, the side store
 * and the fragment table on `node`. Returns 0, or -errno with a message logged; free it in either
 * case.
 */
int tokd_worker_init(struct tokd_worker *w, const struct tokd_port *p);
/*
 * Sets held_max: the mbufs beyond tokd_mbufs_taken(). With more, held packets could starve the RX
 * ring of the packet that they wait for. Call it again after the port has started: only then is
 * it known how many the driver uses. Returns 0, or -EINVAL with a message logged.
 */
int tokd_worker_bound_held(struct tokd_worker *w, const struct tokd_port *p);
void tokd_worker_free(struct tokd_worker *w);
