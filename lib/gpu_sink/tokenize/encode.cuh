/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A text to its ids, by a block of threads (text.h). The phases: classes of characters, pretokens,
 * words, ids. Longest match has no words, and WordPiece no pretokens.
 */
#pragma once

#include "bpe.cuh"
#include "classes.cuh"
#include "greedy.cuh"
#include "wordpiece.cuh"

/* Before the first phase, whose end is a barrier. */
TOKG_DEV void
tokg_clear(tokg_block *b, const struct tokg_text *t, const struct tokg_arrays *a)
{
	for (uint32_t i = b->tid; i < t->n; i += b->n)
		a->id[i] = TOK_NO_TOKEN;
	if (b->tid == 0)
		a->n_words[0] = a->n_words[1] = 0;
}

TOKG_DEV uint32_t
tokg_chunk_end(const struct tokg_text *t, uint32_t chunk)
{
	const uint32_t from = chunk * TOKG_CHUNK;

	return t->n - from < TOKG_CHUNK ? t->n : from + TOKG_CHUNK;
}

TOKG_DEV uint32_t
tokg_ids_in(const struct tokg_text *t, const struct tokg_arrays *a, uint32_t chunk)
{
	uint32_t n = 0;

	for (uint32_t i = chunk * TOKG_CHUNK; i < tokg_chunk_end(t, chunk); i++)
		n += a->id[i] != TOK_NO_TOKEN;
	return n;
}

/* The last phase: the ids without gaps, as far as there is room. Returns their number. */
TOKG_DEV uint32_t
tokg_close_up(tokg_block *b, const struct tokg_text *t, const struct tokg_arrays *a)
{
	uint32_t n = 0;

	for (uint32_t first = 0; first < a->n_chunks; first += b->n) {
		const uint32_t chunk = first + b->tid;
		const bool any = chunk < a->n_chunks;
		uint32_t total, to = n + tokg_prefix(b, any ? tokg_ids_in(t, a, chunk) : 0, &total);

		for (uint32_t i = chunk * TOKG_CHUNK; any && i < tokg_chunk_end(t, chunk); i++) {
			if (a->id[i] == TOK_NO_TOKEN)
				continue;
			if (to < t->room)
				t->ids[to] = a->id[i];
			to++;
		}
		n += total;
	}
	return n;
}

/* Pretokens or words, and their ids, as the vocabulary's model has them. */
TOKG_DEV enum tokg_text_status
tokg_words_to_ids(tokg_block *b, const struct tok_vocab *v, const struct tokg_text *t,
	const struct tokg_arrays *a)
{
	if (v->kind == TOK_KIND_WORDPIECE)
		return tokg_wordpiece_words(b, v, t, a) ? TOKG_TEXT_OK : TOKG_TEXT_NOT_PLAIN;
	if (!tokg_pretokens(b, v, t, a))
		return TOKG_TEXT_TOO_LONG;
	if (v->longest.node != NULL)
		tokg_greedy_words(b, v, t, a);
	else
		tokg_bpe_words(b, v, t, a);
	return TOKG_TEXT_OK;
}

/*
 * All threads of the block: the ids of a text, and their number. With another status than
 * TOKG_TEXT_OK the ids are of no use.
 */
TOKG_DEV enum tokg_text_status
tokg_encode(tokg_block *b, const struct tokg_view *view, const struct tokg_text *t, uint32_t *n_ids)
{
	enum tokg_text_status status;
	struct tokg_arrays a;

	*n_ids = 0;
	if (t->n > TOKG_TEXT_MAX)
		return TOKG_TEXT_TOO_LONG;
	a = tokg_arrays_of(t);
	tokg_clear(b, t, &a);
	if (!tokg_classify(b, view, t, &a))
		return TOKG_TEXT_NOT_PLAIN;
	status = tokg_words_to_ids(b, view->v, t, &a);
	if (status != TOKG_TEXT_OK)
		return status;
	*n_ids = tokg_close_up(b, t, &a);
	return *n_ids <= t->room ? TOKG_TEXT_OK : TOKG_TEXT_ROOM;
}
