/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rule for choosing a GID automatically. tokd-diag (python/dpdk_tokd/ops/diag/gids.py) has it
 * in Python; a test compares the two.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum tokg_gid_type { TOKG_GID_OTHER = 0, TOKG_GID_IB, TOKG_GID_ROCE_V1, TOKG_GID_ROCE_V2 };

/* From unusable to best. Of equal ones the first is chosen. */
enum tokg_gid_rank {
	TOKG_RANK_NONE = 0,
	TOKG_RANK_ROCE_V1,    /* no IP header: not routable */
	TOKG_RANK_LINK_LOCAL, /* from here on RoCE v2; fe80::/10: one link only */
	TOKG_RANK_IPV6,
	TOKG_RANK_IPV4,
	TOKG_RANK_INFINIBAND,
	TOKG_RANK_CHOSEN, /* the address towards the peer, or the configured index */
};

/* Of the GID at `index` of an active port. */
enum tokg_gid_rank tokg_gid_rank(enum tokg_gid_type type, uint32_t index, const uint8_t raw[16]);
/* ::ffff:a.b.c.d */
bool tokg_gid_is_ipv4(const uint8_t raw[16]);
bool tokg_gid_is_link_local(const uint8_t raw[16]);
