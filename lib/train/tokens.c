/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "tokens.h"

#define SLOTS_FIRST (1u << 12)

bool
train_tokens_init(struct train_tokens *t, struct tok_error *err)
{
	*t = (struct train_tokens){.mask = SLOTS_FIRST - 1};
	t->slot = calloc(SLOTS_FIRST, sizeof(*t->slot));
	return (t->slot != NULL || tok_fail(err, "out of memory for tokens")) &&
	       train_seed(t->seed, err);
}

void
train_tokens_free(struct train_tokens *t)
{
	free(t->token);
	free(t->text);
	free(t->slot);
	*t = (struct train_tokens){0};
}

static uint32_t
hash_of(const struct train_tokens *t, const uint8_t *text, uint32_t len)
{
	uint64_t h = t->seed[0] ^ len, part;

	for (; len > 0; text += len < 8 ? len : 8, len -= len < 8 ? len : 8) {
		part = 0;
		memcpy(&part, text, len < 8 ? len : 8);
		h = train_mix(h ^ part, t->seed[1] | 1);
	}
	return (uint32_t)(h >> 32);
}

/* The slot of a text, or the free slot where it would be inserted. */
static uint32_t
place_of(const struct train_tokens *t, const uint8_t *text, uint32_t len, uint32_t hash)
{
	uint32_t i = hash & t->mask;

	for (; t->slot[i] != 0; i = (i + 1) & t->mask) {
		const struct train_token *token = &t->token[(uint32_t)t->slot[i] - 1];

		if (t->slot[i] >> 32 == hash && token->len == len &&
			memcmp(t->text + token->off, text, len) == 0)
			break;
	}
	return i;
}

uint32_t
train_tokens_find(const struct train_tokens *t, const uint8_t *text, uint32_t len)
{
	const uint64_t slot = t->slot[place_of(t, text, len, hash_of(t, text, len))];

	return slot == 0 ? TOK_NO_TOKEN : (uint32_t)slot - 1;
}

static bool
more_slots(struct train_tokens *t)
{
	const uint32_t mask = 2 * t->mask + 1;
	uint64_t *slot = calloc((size_t)mask + 1, sizeof(*slot));

	if (slot == NULL)
		return false;
	for (uint32_t i = 0; i <= t->mask; i++) {
		uint32_t at = (uint32_t)(t->slot[i] >> 32) & mask;

		if (t->slot[i] == 0)
			continue;
		while (slot[at] != 0)
			at = (at + 1) & mask;
		slot[at] = t->slot[i];
	}
	free(t->slot);
	t->slot = slot;
	t->mask = mask;
	return true;
}

uint32_t
train_tokens_add(struct train_tokens *t, const uint8_t *text, uint32_t len)
{
	const uint32_t hash = hash_of(t, text, len), at = place_of(t, text, len, hash);
	uint64_t room = t->room;
	struct train_token *token;
	uint8_t *all;

	if (t->slot[at] != 0)
		return (uint32_t)t->slot[at] - 1;
	token = train_grow(t->token, &room, t->n + 1ull, sizeof(*token));
	if (token == NULL)
		return TOK_NO_TOKEN;
	t->token = token;
	t->room = (uint32_t)room;
	all = train_grow(t->text, &t->room_text, t->n_text + len, 1);
	if (all == NULL)
		return TOK_NO_TOKEN;
	t->text = all;
	memcpy(all + t->n_text, text, len);
	token[t->n] = (struct train_token){t->n_text, len, 0};
	t->n_text += len;
	t->n++;
	t->slot[at] = (uint64_t)hash << 32 | t->n;
	return t->n <= t->mask / 2 || more_slots(t) ? t->n - 1 : TOK_NO_TOKEN;
}
