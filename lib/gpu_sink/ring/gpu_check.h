/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The check word of a slot: over the header (with `check` as zero; ticket and epoch included) and
 * then the zero-padded payload, as 32-bit words w[0], w[1], ...:
 *
 *     sum of (w[2i] + k(2i)) * (w[2i+1] + k(2i+1)) mod 2^64      (NH, as in UMAC, RFC 4418)
 *
 * with k a fixed sequence, folded to 32 bits. A sum, so that threads can share the work in any
 * order. It detects writes that are not visible yet and old bytes under a new header. It does not
 * protect against an attacker who can write into the ring: he can compute it.
 */
#pragma once

#include "gpu_ring.h"

/* Key of word i: a Weyl sequence of the golden ratio, mixed so that neighbours differ in many bits.
 */
TOKG_FN uint32_t
tokg_check_key(uint32_t i)
{
	uint32_t k = (i + 1) * 0x9e3779b1u;

	k ^= k >> 15;
	return k * 0x85ebca77u;
}

/* The term of words 2i and 2i + 1. */
TOKG_FN uint64_t
tokg_check_pair(uint32_t i, uint32_t even, uint32_t odd)
{
	return (uint64_t)(even + tokg_check_key(2 * i)) * (odd + tokg_check_key(2 * i + 1));
}

TOKG_FN uint32_t
tokg_check_fold(uint64_t sum)
{
	sum ^= sum >> 29;
	sum *= 0x9e3779b97f4a7c15ull;
	return (uint32_t)(sum >> 32);
}

/* Pairs of the header and of a payload of `bytes`: the payload's pairs follow the header's. */
#define TOKG_CHECK_HDR_PAIRS ((uint32_t)(sizeof(struct tokg_hdr) / 8))

TOKG_FN uint32_t
tokg_check_pairs(uint32_t bytes)
{
	return TOKG_CHECK_HDR_PAIRS + (uint32_t)(tokg_align(bytes, TOKG_LINE) / 8);
}
