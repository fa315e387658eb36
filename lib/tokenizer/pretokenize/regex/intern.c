/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "inside.h"

struct rx_chunk {
	struct rx_chunk *next;
	_Alignas(16) uint8_t bytes[];
};

void *
rx_alloc(struct rx *rx, size_t n, size_t size)
{
	struct rx_chunk *chunk = calloc(1, sizeof(*chunk) + n * size);

	if (chunk == NULL) {
		tok_fail(rx->err, "%s: out of memory for a regular expression", rx->where);
		return NULL;
	}
	chunk->next = rx->chunks;
	rx->chunks = chunk;
	return chunk->bytes;
}

void
rx_free(struct rx *rx)
{
	while (rx->chunks != NULL) {
		struct rx_chunk *chunk = rx->chunks;

		rx->chunks = chunk->next;
		free(chunk);
	}
}

uint32_t
rx_number(struct rx *rx, struct rx_keys *keys, const uint16_t *key, uint32_t len)
{
	const uint32_t slots = sizeof(keys->slot) / sizeof(keys->slot[0]);
	uint32_t hash = len, at;
	uint16_t *copy;

	for (uint32_t i = 0; i < len; i++)
		hash = (hash ^ key[i]) * 0x9e3779b1u ^ hash >> 15;
	for (at = hash % slots; keys->slot[at] != 0; at = (at + 1) % slots) {
		const uint32_t i = keys->slot[at] - 1u;

		if (keys->entry[i].hash == hash && keys->entry[i].len == len &&
			memcmp(keys->entry[i].key, key, len * sizeof(*key)) == 0)
			return i;
	}
	if (keys->n == TOK_REGEX_STATES_MAX) {
		tok_fail(rx->err, "%s: the regular expressions need more than %u states", rx->where,
			TOK_REGEX_STATES_MAX);
		return RX_NO_NUMBER;
	}
	copy = rx_alloc(rx, len, sizeof(*copy));
	if (copy == NULL)
		return RX_NO_NUMBER;
	memcpy(copy, key, len * sizeof(*copy));
	keys->entry[keys->n].key = copy;
	keys->entry[keys->n].len = len;
	keys->entry[keys->n].hash = hash;
	keys->slot[at] = (uint16_t)++keys->n;
	return keys->n - 1;
}
