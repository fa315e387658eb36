/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Addresses of both families in one form: 16 bytes in network order, IPv4 as ::ffff:a.b.c.d (RFC
 * 4291 2.5.5.2), which no IPv6 packet may carry.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_ether.h>

struct tokd_addr {
	union {
		uint8_t byte[16];
		uint32_t word[4];
		uint64_t half[2];
	};
};

/* Source of a datagram and destination of its reply; our_port is the local port. Network order. */
struct tokd_peer {
	struct tokd_addr addr;
	struct rte_ether_addr mac;
	uint16_t port, our_port;
};

static inline struct tokd_addr
tokd_addr_v4(rte_be32_t ip)
{
	return (struct tokd_addr){.word = {0, 0, RTE_BE32(0xffff), ip}};
}

static inline struct tokd_addr
tokd_addr_v6(const void *ip)
{
	struct tokd_addr a;

	memcpy(a.byte, ip, sizeof(a.byte));
	return a;
}

static inline bool
tokd_addr_is_v4(const struct tokd_addr *a)
{
	return a->half[0] == 0 && a->word[2] == RTE_BE32(0xffff);
}

static inline bool
tokd_addr_is_same(const struct tokd_addr *a, const struct tokd_addr *b)
{
	return a->half[0] == b->half[0] && a->half[1] == b->half[1];
}

/* ::, which also means: no address of this family. */
static inline bool
tokd_addr_is_none(const struct tokd_addr *a)
{
	return a->half[0] == 0 && a->half[1] == 0;
}

/* RFC 4291 2.5 and 2.7: not ::, ::1, ff00::/8, or an IPv4-mapped address. */
static inline bool
tokd_addr_is_v6_host(const struct tokd_addr *a)
{
	if (a->half[0] == 0 && (a->word[2] == 0 || a->word[2] == RTE_BE32(0xffff)))
		return false;
	return a->byte[0] != 0xff;
}

/* RFC 4291 2.7.1: the solicited-node group ff02::1:ffXX:XXXX of `a`. */
static inline struct tokd_addr
tokd_addr_solicited(const struct tokd_addr *a)
{
	return (struct tokd_addr){
		.word = {RTE_BE32(0xff020000), 0, RTE_BE32(1), a->word[3] | RTE_BE32(0xff000000)}};
}

/* RFC 2464 7: the Ethernet address of an IPv6 multicast group. */
static inline struct rte_ether_addr
tokd_addr_group_mac(const struct tokd_addr *group)
{
	const uint8_t *b = group->byte;

	return (struct rte_ether_addr){{0x33, 0x33, b[12], b[13], b[14], b[15]}};
}
