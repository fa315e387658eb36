/* SPDX-License-Identifier: BSD-3-Clause */
/* The plain-text port: a datagram is a text, its answer is its ids in decimal. */
#pragma once

#include "stream.h"

/* Is it a sender to the text port? */
static inline bool
tokd_text_peer(const struct tokd_worker *w, const struct tokd_peer *peer)
{
	return peer->our_port == w->text_port;
}

/* m: the UDP payload, any number of segments. */
void tokd_text_rx(struct tokd_worker *w, struct rte_mbuf *m, const struct tokd_peer *peer);

/* The answer that the stream of a text owes, if it does. */
void tokd_text_reply(struct tokd_worker *w, struct tokd_stream *s);

/* An answer without a stream, to a text of `received` bytes. */
void tokd_text_refuse(struct tokd_worker *w, const struct tokd_peer *peer, enum tokd_reason reason,
	uint32_t received);
