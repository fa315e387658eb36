/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames of IPv6. */
#pragma once

#include "fixture.h"

#define HEADERS6 (14u + 40u)

extern const struct tokd_addr client_ip6;

/* The frame of a request, from client_ip6. */
struct rte_mbuf *frame6(struct request r);
/* n bytes after an IPv6 header; `cksum_at` is where their checksum goes, computed here. */
struct rte_mbuf *packet6(const struct tokd_addr *src, const struct tokd_addr *dst, uint8_t proto,
	uint8_t hop_limit, const void *bytes, uint32_t n, uint32_t cksum_at);
/* The part [from, to) of what follows the IPv6 header of frame m, as a fragment. */
struct rte_mbuf *fragment6(
	const struct rte_mbuf *m, uint32_t from, uint32_t to, uint32_t id, bool more);
/* A packet that says it is a fragment and ends within the fragment header. */
struct rte_mbuf *frame6_short_fragment(void);
