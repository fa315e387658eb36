/* SPDX-License-Identifier: BSD-3-Clause */
/* Set-up of a worker. */
#pragma once

#include "datapath/worker.h"

/*
 * The caller sets port, queue, pool, ring, terms, ip, ip6, vlan, udp_port, text_port, mac,
 * offloads, opt, stop, index, lcore and node, and zero elsewhere. Creates streams, the side store
 * and the fragment table on `node`. Returns 0, or -errno with a message logged; free it in either
 * case.
 */
int tokd_worker_init(struct tokd_worker *w);
/*
 * Sets held_max: the mbufs of the pool beyond those that RX and TX rings, a burst, a TX batch and
 * waiting fragments need. With more, held packets could starve the RX ring of the packet that they
 * wait for. Call it again after the port has started: only then the driver's use is known. tx_desc:
 * of the TX queue, which may be more than --txd. Returns 0, or -EINVAL with a message logged.
 */
int tokd_worker_bound_held(struct tokd_worker *w, uint32_t tx_desc);
void tokd_worker_free(struct tokd_worker *w);
