/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The plain-text port: each datagram is a text, the answer is its ids in decimal. For a person with
 * `nc -u`, and for programs that do not mind losing one: no order, no acknowledgement, no CRC.
 */
#ifndef TOKD_TEXT_PORT_H
#define TOKD_TEXT_PORT_H

#include "datapath/net.h"

/* m begins with the UDP payload and holds nothing else. */
void tokd_text_rx(struct tokd_worker *w, struct rte_mbuf *m, const struct tokd_peer *peer);

#endif
