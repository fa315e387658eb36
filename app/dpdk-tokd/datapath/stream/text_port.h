/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The plain-text port: each datagram is a text, answered by its ids in decimal. For `nc -u` and
 * programs that tolerate loss: no order, no acknowledgement, no CRC.
 */
#pragma once

#include "datapath/net.h"

/* m is the UDP payload. */
void tokd_text_rx(struct tokd_worker *w, struct rte_mbuf *m, const struct tokd_peer *peer);
