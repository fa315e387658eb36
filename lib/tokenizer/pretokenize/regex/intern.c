/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "inside.h"

#define WORK_MAX (1ull << 28)  /* steps of a nanosecond or a few */
#define BYTES_MAX (256u << 20) /* most of them are never touched */

struct rx_chunk {
	struct rx_chunk *next;
	_Alignas(16) uint8_t bytes[];
};

void *
rx_alloc(struct rx *rx, size_t n, size_t size)
{
	struct rx_chunk *chunk = NULL;

	if (n > BYTES_MAX || n * size > BYTES_MAX - rx->bytes) {
		rx_too_much(rx);
		return NULL;
	}
	rx->bytes += n * size;
	chunk = calloc(1, sizeof(*chunk) + n * size);
	if (chunk == NULL) {
		tok_fail(rx->err, "%s: out of memory for a regular expression", rx->where);
		return NULL;
	}
	chunk->next = rx->chunks;
	rx->chunks = chunk;
	return chunk->bytes;
}

bool
rx_work(struct rx *rx, uint64_t n)
{
	rx->work += n;
	return rx->work <= WORK_MAX || rx_too_much(rx);
}

bool
rx_too_much(struct rx *rx)
{
	return tok_fail(rx->err,
		"%s: the regular expressions are too complex: use fewer or shorter ones",
		rx->where);
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

/* Twice as many. */
static bool
grow(struct rx *rx, struct rx_keys *keys)
{
	const uint32_t room = keys->room == 0 ? 64 : 2 * keys->room;
	struct rx_key *entry = rx_alloc(rx, room, sizeof(*entry));
	uint16_t *slot = rx_alloc(rx, 4 * (size_t)room, sizeof(*slot));

	if (entry == NULL || slot == NULL)
		return false;
	if (keys->n > 0)
		memcpy(entry, keys->entry, keys->n * sizeof(*entry));
	keys->entry = entry;
	keys->slot = slot;
	keys->room = room;
	for (uint32_t i = 0; i < keys->n; i++) {
		uint32_t at = entry[i].hash % (4 * room);

		while (slot[at] != 0)
			at = (at + 1) % (4 * room);
		slot[at] = (uint16_t)(i + 1);
	}
	return true;
}

uint32_t
rx_number(struct rx *rx, struct rx_keys *keys, const uint16_t *key, uint32_t len)
{
	uint32_t hash = len, at, slots;
	uint16_t *copy;

	if (keys->n == keys->room && keys->n < RX_STATES_MAX && !grow(rx, keys))
		return RX_NO_NUMBER;
	slots = 4 * keys->room;
	for (uint32_t i = 0; i < len; i++)
		hash = (hash ^ key[i]) * 0x9e3779b1u ^ hash >> 15;
	for (at = hash % slots; keys->slot[at] != 0; at = (at + 1) % slots) {
		const struct rx_key *e = &keys->entry[keys->slot[at] - 1u];

		if (e->hash == hash && e->len == len &&
			memcmp(e->key, key, len * sizeof(*key)) == 0)
			return keys->slot[at] - 1u;
	}
	if (keys->n == RX_STATES_MAX) {
		tok_fail(rx->err, "%s: the regular expressions need more than %u states", rx->where,
			RX_STATES_MAX);
		return RX_NO_NUMBER;
	}
	copy = rx_alloc(rx, len, sizeof(*copy));
	if (copy == NULL)
		return RX_NO_NUMBER;
	memcpy(copy, key, len * sizeof(*copy));
	keys->entry[keys->n] = (struct rx_key){copy, len, hash};
	keys->slot[at] = (uint16_t)++keys->n;
	return keys->n - 1;
}
