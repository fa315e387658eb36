/* SPDX-License-Identifier: BSD-3-Clause */
#include "verbs_rank.h"

#include <string.h>

bool
tokg_gid_is_ipv4(const uint8_t raw[16])
{
	static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};

	return memcmp(raw, prefix, sizeof(prefix)) == 0;
}

bool
tokg_gid_is_link_local(const uint8_t raw[16])
{
	return raw[0] == 0xfe && (raw[1] & 0xc0) == 0x80;
}

enum tokg_gid_rank
tokg_gid_rank(enum tokg_gid_type type, uint32_t index, const uint8_t raw[16])
{
	switch (type) {
	case TOKG_GID_IB: /* the others are aliases, of virtual functions as a rule */
		return index == 0 ? TOKG_RANK_INFINIBAND : TOKG_RANK_NONE;
	case TOKG_GID_ROCE_V1:
		return TOKG_RANK_ROCE_V1;
	case TOKG_GID_ROCE_V2:
		if (tokg_gid_is_ipv4(raw))
			return TOKG_RANK_IPV4;
		return tokg_gid_is_link_local(raw) ? TOKG_RANK_LINK_LOCAL : TOKG_RANK_IPV6;
	case TOKG_GID_OTHER:
		break;
	}
	return TOKG_RANK_NONE;
}
