/* SPDX-License-Identifier: BSD-3-Clause */
/* Canonical CBOR (RFC 7049, section 3.9: the shortest heads, definite lengths) of what is hashed.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "cbor_ids() stores a head and its number as one little-endian word"
#endif

/* Major types, in the three upper bits of a head. */
enum cbor_type {
	CBOR_NUMBER = 0u << 5,
	CBOR_BYTES = 2u << 5,
	CBOR_TEXT = 3u << 5,
	CBOR_ARRAY = 4u << 5,
};

#define CBOR_NULL 0xf6
#define CBOR_HEAD_MAX 9u
#define CBOR_ID_MAX 5u
#define CBOR_IDS_OVER 3u /* bytes that cbor_ids() may write after its result */

/* Bytes of a head. */
static inline uint32_t
cbor_head_bytes(uint64_t value)
{
	return value < 24	     ? 1
	       : value <= UINT8_MAX  ? 2
	       : value <= UINT16_MAX ? 3
	       : value <= UINT32_MAX ? 5
				     : 9;
}

/* Returns the end. */
static inline uint8_t *
cbor_head(uint8_t *p, enum cbor_type type, uint64_t value)
{
	const uint32_t bytes = cbor_head_bytes(value);

	if (bytes == 1) {
		*p = (uint8_t)(type | value);
		return p + 1;
	}
	/* 24, 25, 26 and 27 stand for 1, 2, 4 and 8 bytes. */
	*p = (uint8_t)(type | (24u + (uint32_t)__builtin_ctz(bytes - 1)));
	for (uint32_t i = 1; i < bytes; i++)
		p[i] = (uint8_t)(value >> (8 * (bytes - 1 - i)));
	return p + bytes;
}

static inline uint8_t *
cbor_string(uint8_t *p, enum cbor_type type, const void *bytes, size_t n)
{
	p = cbor_head(p, type, n);
	if (n != 0)
		memcpy(p, bytes, n);
	return p + n;
}

/*
 * Ids, without a branch on their size, which no CPU could predict: each is a word of up to five
 * bytes, stored as eight. Returns the end.
 */
static inline uint8_t *
cbor_ids(uint8_t *p, const uint32_t *ids, size_t n)
{
	static const uint8_t bytes_of[4] = {1, 2, 3, 5}, shift_of[4] = {32, 24, 16, 0};

	for (size_t i = 0; i < n; i++) {
		const uint32_t id = ids[i];
		const uint32_t size = (id > 23) + (id > UINT8_MAX) + (id > UINT16_MAX);
		const uint64_t number = (uint64_t)__builtin_bswap32(id) >> shift_of[size];
		const uint64_t word = number << 8 | (size == 0 ? id : 23 + size);

		memcpy(p, &word, sizeof(word));
		p += bytes_of[size];
	}
	return p;
}
