/* SPDX-License-Identifier: BSD-3-Clause */
/* Set-up of zero-copy replies. */
#pragma once

struct tokd_port;
struct tokd_worker;

/*
 * After the ring is created. Does nothing if the port does not support it, or with --zero-copy 0.
 * Returns 0, or -errno with a message logged.
 */
int tokd_zero_copy_open(struct tokd_worker *w, const struct tokd_port *p);
/*
 * After the port is started. Switches to copies if rte_eth_tx_done_cleanup is not supported by the
 * way to send that the driver has chosen: it would keep a full ring until it sends other packets.
 */
void tokd_zero_copy_check(struct tokd_worker *w, const struct tokd_port *p);
/* After the port is closed, which frees its mbufs, and before the ring is freed. */
void tokd_zero_copy_close(struct tokd_worker *w);
