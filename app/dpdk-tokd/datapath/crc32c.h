/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Incremental CRC32C (Castagnoli, RFC 3720 appendix B.4): begin with TOKD_CRC32C_INIT, add pieces,
 * invert at the end.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <rte_common.h>
#include <rte_hash_crc.h>

#define TOKD_CRC32C_INIT 0xffffffffu

static inline uint32_t
tokd_crc32c_add(uint32_t crc, const void *data, size_t n)
{
	const uint8_t *p = data;

	/* rte_hash_crc() reads words; text begins at any byte of a frame. */
	while (n > 0 && !rte_is_aligned(p, 8)) {
		crc = rte_hash_crc_1byte(*p++, crc);
		n--;
	}
	return rte_hash_crc(p, (uint32_t)n, crc);
}

static inline uint32_t
tokd_crc32c_end(uint32_t crc)
{
	return ~crc;
}
