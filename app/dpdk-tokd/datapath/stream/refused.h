/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Texts that were refused with BUSY or VALIDATE. Their later packets are dropped by one look at the
 * header, before the checksum is computed: in overload most frames are such packets. This ends when
 * the client may try again, when it sends another cookie, or when another text takes the entry:
 * then a packet begins the text, or is refused itself.
 */
#pragma once

#include <string.h>

#include <rte_mbuf.h>

#include <mix.h>
#include <tokd/wire.h>

#include "datapath/net.h"
#include "datapath/source/source.h"

/*
 * Keyed, so that nobody else can make packets that look like those of a refused text. Each field is
 * mixed before the next one: a plain sum could be the same for other values of several fields.
 */
static inline uint64_t
tokd_refused_name(
	const struct tokd_worker *w, const struct tokd_req *req, const struct tokd_peer *peer)
{
	const uint64_t *secret = w->sources->secret;
	const uint64_t from = peer->addr.half[0] * secret[0] + peer->addr.half[1] * secret[1];
	uint64_t port = peer->port, h;

	memcpy(RTE_PTR_ADD(&port, sizeof(peer->port)), &peer->mac, sizeof(peer->mac));
	h = tokd_mix(tokd_mix(from) ^ req->stream_id);
	h = tokd_mix(tokd_mix(h ^ port) ^ ((uint64_t)req->epoch << 32 | req->vocab));
	return tokd_mix(h ^ req->cookie);
}

/* Is another text's time not over yet? */
static inline bool
tokd_refused_other(const struct tokd_worker *w, uint64_t name)
{
	const struct tokd_refused *r = &w->refused[name % RTE_DIM(w->refused)];

	return r->name != name && r->until > w->t_burst;
}

/* The text may come again at `until`. */
static inline void
tokd_refused_put(struct tokd_worker *w, uint64_t name, uint64_t until)
{
	w->refused[name % RTE_DIM(w->refused)] =
		(struct tokd_refused){.name = name, .until = until};
	w->refused_until = RTE_MAX(w->refused_until, until);
}

static inline bool
tokd_refused_have(const struct tokd_worker *w, uint64_t name)
{
	const struct tokd_refused *r = &w->refused[name % RTE_DIM(w->refused)];

	return r->name == name && r->until > w->t_burst;
}

/* The text was accepted before its time. */
static inline void
tokd_refused_forget(struct tokd_worker *w, const struct tokd_req *req, const struct tokd_peer *peer)
{
	uint64_t name;

	if (likely(w->refused_until <= w->t_burst))
		return;
	name = tokd_refused_name(w, req, peer);
	if (tokd_refused_have(w, name))
		tokd_refused_put(w, name, 0);
}

/* In stream_rx.c. If the first packet still waits, it is handled before. */
bool tokd_refused_follows_now(struct tokd_worker *w, const struct rte_mbuf *m, uint32_t off,
	const struct tokd_peer *peer);

/* Does a datagram, whose payload is at `off` of m, follow the first packet of a refused text? */
static inline bool
tokd_refused_follows(
	struct tokd_worker *w, const struct rte_mbuf *m, uint32_t off, const struct tokd_peer *peer)
{
	return unlikely(w->refused_until > w->t_burst) && tokd_refused_follows_now(w, m, off, peer);
}
