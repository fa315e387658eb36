/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The third phase of exact byte-level BPE: pretokens to ids. Most are one token, which one thread
 * finds. The others are merged, each by a team.
 */
#pragma once

#include "pretokens.cuh"

/*
 * The key of a part of a word: the rank id that it and the next part merge to, above its place. The
 * least is the next merge; of equal ones the leftmost, as in the reference.
 */
#define TOKG_PLACE_BITS 10
#define TOKG_NO_MERGE UINT32_MAX
static_assert(TOKG_WORD_MAX <= 1u << TOKG_PLACE_BITS, "a place fits its bits");
static_assert((uint64_t)TOK_MAX_IDS << TOKG_PLACE_BITS <= TOKG_NO_MERGE, "and a rank id the rest");

/* The first 8 bytes of a word of len bytes, as tok_word_find takes them. */
TOKG_DEV uint64_t
tokg_word_key(const uint8_t *p, uint32_t len)
{
	uint64_t key = 0;

	for (uint32_t i = 0; i < len; i++)
		key |= (uint64_t)p[i] << 8 * i;
	return key;
}

/* Outside id of a pretoken that no merge makes, or TOK_NO_TOKEN. */
TOKG_DEV uint32_t
tokg_unmerged(const struct tok_vocab *v, const uint8_t *p, uint32_t len)
{
	if (v->word == NULL)
		return TOK_NO_TOKEN;
	if (len <= TOK_KEY_BYTES) {
		const uint64_t key = tokg_word_key(p, len);

		return tok_word_find(v, tok_word_slot(v, key, len), key, len);
	}
	if (v->long_word == NULL || len > v->info.max_token_bytes)
		return TOK_NO_TOKEN;
	return tok_long_find(v, tok_long_slot(v, p, len), p, len);
}

/*
 * Outside id of a token with exactly these bytes, or TOK_NO_TOKEN. Tokens that are not what BPE
 * makes of their own bytes are dropped when a vocabulary is built (build/live_merges.c).
 */
TOKG_DEV uint32_t
tokg_token(const struct tok_vocab *v, const uint8_t *p, uint32_t len)
{
	const struct tok_node *node = &v->node[1 + p[0]]; /* the root has a child for every byte */

	for (uint32_t i = 1; i < len; i++) {
		if (!tok_has_child(node, p[i]))
			return TOK_NO_TOKEN;
		node = &v->node[tok_child(node, p[i])];
	}
	return node->token == TOK_NO_TOKEN ? TOK_NO_TOKEN : v->ext[node->token];
}

/*
 * A word of up to TOKG_ALONE bytes is merged by one thread. Each look-up waits for the one before:
 * a thread for each of many words is faster than many threads for one word.
 */
#define TOKG_ALONE 32u

/* One thread: the pretoken at `at`. If it is not one token, list it: short ones from the front of
 * word[] on, long ones from its back. */
TOKG_DEV void
tokg_look_up(const struct tok_vocab *v, const struct tokg_text *t, const struct tokg_arrays *a,
	uint32_t at)
{
	const uint32_t len = tokg_next_border(t, a, at) - at;
	const uint8_t *const p = t->bytes + at;
	uint32_t id = tokg_unmerged(v, p, len);

	if (id == TOK_NO_TOKEN)
		id = tokg_token(v, p, len);
	a->id[at] = id;
	if (id != TOK_NO_TOKEN)
		return;
	if (len <= TOKG_ALONE)
		a->word[tokg_count(&a->n_words[0])] = {at, len};
	else
		a->word[a->most_words - 1 - tokg_count(&a->n_words[1])] = {at, len};
}

/* A word that is merged: its parts by place. token[]: TOK_NO_TOKEN where no part begins. */
struct tokg_parts {
	uint32_t n;
	uint32_t *token, *key;
	uint16_t *after, *before; /* n: none */
};

/* Of those who merge a word: a team, or one thread (lanes 1). */
TOKG_DEV void
tokg_parts_sync(tokg_block *b)
{
	if (b->lanes > 1)
		tokg_team_sync(b);
}

TOKG_DEV uint32_t
tokg_parts_min(tokg_block *b, uint32_t v)
{
	return b->lanes > 1 ? tokg_team_min(v) : v;
}

TOKG_DEV uint32_t
tokg_merge_key(uint32_t merged, uint32_t place)
{
	return merged == TOK_NO_TOKEN ? TOKG_NO_MERGE : merged << TOKG_PLACE_BITS | place;
}

TOKG_DEV const struct tok_byte_pair *
tokg_byte_pair(const struct tok_vocab *v, const uint8_t *p)
{
	return &v->byte_pair[(uint32_t)p[0] << 8 | p[1]];
}

/* Is the merge of byte i and the next certain (encode/merge/bpe_merge.h)? Then what they become. */
TOKG_DEV uint32_t
tokg_certain(const struct tok_vocab *v, const uint8_t *p, uint32_t n, uint32_t i)
{
	uint32_t merge, limit = UINT16_MAX;

	if (i + 1 >= n)
		return TOK_NO_TOKEN;
	merge = tokg_byte_pair(v, p + i)->merge;
	if (i > 0 && tokg_byte_pair(v, p + i - 1)->as_right < limit)
		limit = tokg_byte_pair(v, p + i - 1)->as_right;
	if (i + 2 < n && tokg_byte_pair(v, p + i + 1)->as_left < limit)
		limit = tokg_byte_pair(v, p + i + 1)->as_left;
	return merge < limit ? merge : TOK_NO_TOKEN;
}

/* The key of a part: what it and the part at `next` merge to. */
TOKG_DEV uint32_t
tokg_key_with(const struct tok_vocab *v, const struct tokg_parts *x, uint32_t place, uint32_t token,
	uint32_t next)
{
	if (next == x->n)
		return TOKG_NO_MERGE;
	return tokg_merge_key(tok_pair(v, token, x->token[next]), place);
}

/* The parts of the bytes at p, after all merges that are certain: of two such, none overlap. */
TOKG_DEV void
tokg_open_parts(
	tokg_block *b, const struct tok_vocab *v, const struct tokg_parts *x, const uint8_t *p)
{
	for (uint32_t i = b->lane; i < x->n; i += b->lanes)
		x->key[i] = tokg_certain(v, p, x->n, i);
	tokg_parts_sync(b);
	for (uint32_t i = b->lane; i < x->n; i += b->lanes) {
		const bool gone = i > 0 && x->key[i - 1] != TOK_NO_TOKEN;
		const bool pair = x->key[i] != TOK_NO_TOKEN;
		const bool behind = i > 1 && x->key[i - 2] != TOK_NO_TOKEN;

		x->token[i] = gone ? TOK_NO_TOKEN : pair ? x->key[i] : p[i];
		x->after[i] = (uint16_t)(pair ? i + 2 : i + 1);
		x->before[i] = (uint16_t)(i == 0 ? x->n : behind ? i - 2 : i - 1);
	}
	tokg_parts_sync(b);
	for (uint32_t i = b->lane; i < x->n; i += b->lanes)
		x->key[i] = x->token[i] == TOK_NO_TOKEN
				    ? TOKG_NO_MERGE
				    : tokg_key_with(v, x, i, x->token[i], x->after[i]);
	tokg_parts_sync(b);
}

/* Apply the merge with this key. */
TOKG_DEV void
tokg_merge(tokg_block *b, const struct tok_vocab *v, const struct tokg_parts *x, uint32_t key)
{
	const uint32_t at = key & ((1u << TOKG_PLACE_BITS) - 1), token = key >> TOKG_PLACE_BITS;
	const uint32_t gone = x->after[at], next = x->after[gone], before = x->before[at];

	/* Two threads, which do not read what the other writes: their look-ups are at once. */
	if (b->lane == 0) {
		x->key[at] = tokg_key_with(v, x, at, token, next);
		x->key[gone] = TOKG_NO_MERGE;
		x->token[at] = token;
		x->token[gone] = TOK_NO_TOKEN;
		x->after[at] = (uint16_t)next;
		if (next < x->n)
			x->before[next] = (uint16_t)at;
	}
	if (b->lane == b->lanes - 1 && before < x->n)
		x->key[before] = tokg_merge_key(tok_pair(v, x->token[before], token), before);
	tokg_parts_sync(b);
}

/* Merge a word, and write its ids. */
TOKG_DEV void
tokg_merge_word(tokg_block *b, const struct tok_vocab *v, const struct tokg_text *t,
	const struct tokg_arrays *a, struct tokg_merge_job w)
{
	const struct tokg_parts x = {
		w.len, a->id + w.at, a->key + w.at, a->after + w.at, a->before + w.at};

	tokg_open_parts(b, v, &x, t->bytes + w.at);
	for (;;) {
		uint32_t least = TOKG_NO_MERGE;

		for (uint32_t i = b->lane; i < x.n; i += b->lanes)
			least = x.key[i] < least ? x.key[i] : least;
		least = tokg_parts_min(b, least);
		if (least == TOKG_NO_MERGE)
			break;
		tokg_merge(b, v, &x, least);
	}
	for (uint32_t i = b->lane; i < x.n; i += b->lanes) {
		if (x.token[i] != TOK_NO_TOKEN)
			x.token[i] = v->ext[x.token[i]];
	}
}

/* All pretokens, whose borders are found. */
TOKG_DEV void
tokg_bpe_words(tokg_block *b, const struct tok_vocab *v, const struct tokg_text *t,
	const struct tokg_arrays *a)
{
	tokg_block alone = *b;

	alone.lane = 0;
	alone.lanes = 1;
	for (uint32_t c = b->tid; c < a->n_chunks; c += b->n) {
		for (uint32_t bits = a->border[c]; bits != 0; bits &= bits - 1)
			tokg_look_up(v, t, a, c * TOKG_CHUNK + tokg_lowest(bits));
	}
	tokg_sync(b);
	for (uint32_t i = b->tid; i < a->n_words[0]; i += b->n)
		tokg_merge_word(&alone, v, t, a, a->word[i]);
	for (uint32_t i = b->team; i < a->n_words[1]; i += b->teams)
		tokg_merge_word(b, v, t, a, a->word[a->most_words - 1 - i]);
	tokg_sync(b);
}
