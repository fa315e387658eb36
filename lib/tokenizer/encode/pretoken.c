/* SPDX-License-Identifier: BSD-3-Clause */
/* See pretoken.h. Hot path. */
#include "pretoken.h"
#include "block.h"
#include "greedy.h"

/*
 * The machine of bpe_stream.c says which ids of the open pretoken are certain. It is slow, so it
 * takes the kept bytes only when the cache does not have its answer. Answers and pretokens share
 * the cache: the key of an answer begins with CERTAIN, which is in no UTF-8. Its value is the
 * number of bytes that are certain, then their ids. If of "unrelia" only "un" is certain, the key
 * is ff "unrelia", and the value 2 and the id of "un".
 */
#define CERTAIN 0xff

/* Keep the bytes of the pretoken, which is empty. */
static void
keep(struct tok_stream *s)
{
	s->keeps = true;
	s->n_kept = s->n_machine = s->n_followed = s->kept_given = s->ids_given = 0;
	s->followed = 0;
}

void
tok_pretoken_open(struct tok_stream *s)
{
	if (s->vocab->longest.node != NULL) {
		s->keeps = false;
		tok_greedy_open(s);
		return;
	}
	s->kept[0] = CERTAIN;
	keep(s);
	tok_bpe_open(s);
}

/* The machine takes the bytes that it has not seen, and drops those whose ids were released. */
static void
catch_up(struct tok_stream *s)
{
	uint32_t dropped = s->n_machine - s->n_pos, *none = NULL;

	/* Too few for it to release ids, or to be full. */
	tok_bpe_push(s, s->kept + 1 + s->n_machine, s->n_kept - s->n_machine, &none);
	s->n_machine = s->n_kept;
	tok_bpe_drop(s, s->kept_given - dropped);
}

bool
tok_pretoken_push(struct tok_stream *s, const uint8_t *p, size_t n, uint32_t **ids)
{
	if (s->vocab->longest.node != NULL) {
		*ids = tok_greedy_push(s, p, n, *ids);
		return true;
	}
	if (s->keeps) {
		if (n + s->n_kept <= TOK_KEPT_MAX) {
			memcpy(s->kept + 1 + s->n_kept, p, n);
			s->n_kept = (uint8_t)(s->n_kept + n);
			return true;
		}
		catch_up(s);
		s->keeps = false;
	}
	return tok_bpe_push(s, p, n, ids);
}

/*
 * Release what an answer has more than was released before: at most an id for each byte that
 * became certain. Only with tables that contradict each other (compiled/check_bpe.c) there are
 * more.
 */
static uint32_t *
give_answer(struct tok_stream *s, struct tok_cache_ids answer, uint32_t *ids)
{
	const uint32_t n = answer.n - 1;

	if (n <= s->ids_given || s->kept_given + (n - s->ids_given) > answer.from[0])
		return ids;
	memcpy(ids, answer.from + 1 + s->ids_given, (n - s->ids_given) * sizeof(*ids));
	ids += n - s->ids_given;
	s->ids_given = (uint8_t)n;
	s->kept_given = (uint8_t)answer.from[0];
	return ids;
}

/*
 * Do longer tokens begin with the kept bytes? Then nothing of a pretoken that begins with them is
 * certain, as with most pretokens that a cut leaves open. The machine would say the same, much
 * later.
 */
static bool
begin_tokens(struct tok_stream *s)
{
	const struct tok_node *nodes = s->vocab->node;

	for (; s->n_followed < s->n_kept; s->n_followed++) {
		const uint8_t byte = s->kept[1 + s->n_followed];

		if (!tok_has_child(&nodes[s->followed], byte))
			return false;
		s->followed = tok_child(&nodes[s->followed], byte);
	}
	return nodes[s->followed].extends;
}

uint32_t *
tok_pretoken_release(struct tok_stream *s, uint32_t *ids)
{
	uint32_t answer[1 + TOK_KEPT_MAX], *end;
	const uint32_t len = 1u + s->n_kept;

	if (s->vocab->longest.node != NULL)
		return tok_greedy_release(s, ids);
	if (!s->keeps)
		return tok_bpe_release(s, ids);
	if (s->n_kept == 0 || begin_tokens(s))
		return ids;
	if (s->cache != NULL) {
		const struct tok_cache_ids known = tok_cache_word(s->cache, s->kept, len);

		if (known.from != NULL)
			return give_answer(s, known, ids);
	}
	catch_up(s);
	end = tok_bpe_release(s, answer + 1);
	if (s->cache != NULL && s->ids_given == 0) {
		answer[0] = s->n_kept - s->n_pos;
		tok_cache_learn_word(s->cache, s->kept, len, answer, (uint32_t)(end - answer));
	}
	s->kept_given = (uint8_t)(s->n_kept - s->n_pos);
	s->ids_given = (uint8_t)(s->ids_given + (end - answer - 1));
	memcpy(ids, answer + 1, (size_t)(end - answer - 1) * sizeof(*ids));
	return ids + (end - answer - 1);
}

void
tok_pretoken_rewind(struct tok_stream *s)
{
	tok_bpe_open(s);
	s->n_machine = 0;
}

uint32_t *
tok_pretoken_close(struct tok_stream *s, uint32_t *ids)
{
	uint32_t whole[TOK_KEPT_MAX], given = s->ids_given, n;
	const uint32_t most = given + s->n_kept - s->kept_given; /* as in give_answer() */
	struct tok_block b;

	if (s->vocab->longest.node != NULL)
		return tok_greedy_close(s, ids);
	if (!s->keeps) {
		keep(s);
		return tok_bpe_close(s, ids);
	}
	b.start[0] = 0;
	b.start[1] = s->n_kept;
	b.end = b.start + 1;
	keep(s);
	if (b.start[1] == 0)
		return ids;
	tok_bpe_open(s);
	n = (uint32_t)(tok_block_encode(s, &b, 1, s->kept + 1, s->kept + 1 + b.start[1], whole) -
		       whole);
	n = n < given ? given : n > most ? most : n;
	memcpy(ids, whole + given, (n - given) * sizeof(*ids));
	return ids + (n - given);
}
