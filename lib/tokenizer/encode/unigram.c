/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The best segmentation of a word, incrementally. doc/internals/streaming.md has the proofs; in
 * short:
 *
 * For each position p between characters of the open word, let last(p) be the last piece of the
 * best segmentation of the bytes before p. That segmentation is last(p) preceded by the best one
 * for p - |last(p)|, so the positions form a tree. The automaton's state and its links enumerate
 * the pieces that end at p, longest first.
 *
 * A later byte can only bring a piece that begins at the end, or at a position from which the bytes
 * up to the end spell a proper prefix of a piece. The best segmentation of every continuation
 * passes through one of these positions, hence through their lowest common ancestor in the tree:
 * what lies before it is certain.
 *
 * Sums are not restarted when ids are released, because rounding depends on the whole sum.
 */
#include <math.h>

#include "unigram_words.h"
#include "unigram.h"

/* pos[] is tried for release each time it has grown by this much. */
#define RELEASE_EVERY 256

void
tok_unigram_open(struct tok_stream *s)
{
	s->node = 0;
	s->n_pos = 0;
	s->unigram.origin = 0;
	s->unigram.run = TOK_RUN_NONE;
	s->unigram.since = TOK_UNIGRAM_SCORES;
	if (s->vocab->unigram.norm.sentencepiece)
		s->single.score[0] = 0;
	else
		s->score[0] = 0;
}

/* ---- sums ---- */

static inline uint32_t
place_of(const struct tok_stream *s, uint32_t position)
{
	return (s->unigram.origin + position) % TOK_UNIGRAM_SCORES;
}

/* Score of the best segmentation up to a position, plus that of the piece after it. */
static inline double
sum_behind(const struct tok_stream *s, bool single, uint32_t position, double score)
{
	const uint32_t at = place_of(s, position);

	return single ? (float)score + s->single.score[at] : score + s->score[at];
}

/*
 * sentencepiece avoids large sums. When it reaches a position whose sum is large, it subtracts this
 * sum from the position, and from every segmentation whose last piece begins before the position
 * and ends after it.
 */
#define LARGE 100000.0f

/* The sum of a segmentation whose last piece begins at `from`, after all positions up to `to` have
 * been reached. */
static float
less_taken(const struct tok_stream *s, float sum, uint32_t from, uint32_t to)
{
	while (from++ < to)
		sum -= s->single.taken[place_of(s, from)];
	return sum;
}

static inline void
set_sum(struct tok_stream *s, bool single, uint32_t end, uint32_t len, double sum)
{
	const uint32_t at = place_of(s, end);

	if (!single) {
		s->score[at] = sum;
		return;
	}
	for (uint32_t k = 1; k < len; k++) /* no piece ends within a character */
		s->single.taken[place_of(s, end - k)] = 0;
	if (fabsf((float)sum) > LARGE) {
		s->single.taken[at] = (float)sum;
		s->single.score[at] = 0;
		s->unigram.since = 0;
		return;
	}
	s->single.taken[at] = 0;
	s->single.score[at] = (float)sum;
	if (s->unigram.since < TOK_UNIGRAM_SCORES)
		s->unigram.since = (uint16_t)(s->unigram.since + len);
}

/* ---- the best segmentation ---- */

/*
 * Append a character of len bytes. Pieces consist of whole characters. Of segmentations with equal
 * scores the first is kept: that with the longest last piece.
 */
static inline __attribute__((always_inline)) void
take_char(struct tok_stream *s, const uint8_t *p, uint32_t len, bool single)
{
	const struct tok_vocab *v = s->vocab;
	const uint32_t end = s->n_pos + len;
	const bool taken = single && s->unigram.since < TOK_UNIGRAM_SCORES;
	uint32_t at = s->node, shortest = 0, token = TOK_NO_TOKEN, from = end;
	double best = 0;

	for (uint32_t k = 0; k < len; k++)
		at = tok_next_node(v, at, p[k], false);
	s->node = at;
	if (v->node[at].token == TOK_NO_TOKEN)
		at = v->node[at].dict;
	for (; at != 0; at = v->node[at].dict) {
		const struct tok_node *node = &v->node[at];
		double score;

		shortest = node->depth;
		if (shortest > end)
			continue; /* begins before pos[0]: its ids were already released */
		if (taken && token != TOK_NO_TOKEN)
			best = less_taken(s, (float)best, from, end - shortest);
		from = end - shortest;
		score = sum_behind(s, single, from, node->score);
		if (token == TOK_NO_TOKEN || score > best) {
			best = score;
			token = node->token;
		}
	}
	if (shortest != len) {
		const double score = sum_behind(s, single, s->n_pos, v->node[0].score);

		if (taken && token != TOK_NO_TOKEN)
			best = less_taken(s, (float)best, from, s->n_pos);
		if (token == TOK_NO_TOKEN || score > best) {
			best = score;
			token = TOK_UNKNOWN_CHAR | tok_utf8_decode(p, len);
		}
	}
	s->pos[end - 1] = token;
	set_sum(s, single, end, len, best);
	s->n_pos = end;
}

void
tok_unigram_take(struct tok_stream *s, const uint8_t *p, uint32_t len)
{
	take_char(s, p, len, false);
}

static uint32_t *release(struct tok_stream *s, uint32_t meet, uint32_t *ids);

static inline __attribute__((always_inline)) bool
push(struct tok_stream *s, const uint8_t *p, size_t n, uint32_t **ids, bool single)
{
	const uint8_t *end = p + n;

	while (p < end) {
		const uint32_t len = tok_utf8_length(*p), before = s->n_pos;

		if (before + len > TOK_CARRY_MAX)
			return false;
		take_char(s, p, len, single);
		p += len;
		if (s->n_pos / RELEASE_EVERY != before / RELEASE_EVERY)
			*ids = release(s, tok_unigram_certain(s), *ids);
	}
	return true;
}

bool
tok_unigram_push(struct tok_stream *s, const uint8_t *p, size_t n, uint32_t **ids)
{
	return s->vocab->unigram.norm.sentencepiece ? push(s, p, n, ids, true)
						    : push(s, p, n, ids, false);
}

/* ---- ids ---- */

/* Append the ids of bytes. A blank stands for U+2581. */
static uint32_t *
put_bytes(const struct tok_vocab *v, const uint8_t *p, uint32_t n, uint32_t *ids)
{
	for (uint32_t i = 0; i < n; i++)
		*ids++ = v->ext[p[i]];
	return ids;
}

/* End the run of unknown characters. */
static inline uint32_t *
end_run(struct tok_stream *s, uint32_t *ids)
{
	if (s->unigram.run == TOK_RUN_LITERAL)
		*ids++ = s->vocab->unigram.unk;
	s->unigram.run = TOK_RUN_NONE;
	return ids;
}

/*
 * Append the ids of an unknown character or of the unknown piece's own text. A run of these has one
 * id. With byte_fallback they have the ids of their bytes, except when the piece's own text is
 * alone.
 */
static uint32_t *
put_unknown(struct tok_stream *s, uint32_t token, uint32_t *ids)
{
	const struct tok_vocab *v = s->vocab;
	const struct tok_span *unk = &v->span[v->unigram.unk];
	const uint8_t run = s->unigram.run;
	uint8_t utf8[4];

	s->unigram.run = TOK_RUN_OPEN;
	if (!v->unigram.byte_fallback) {
		if (run == TOK_RUN_NONE)
			*ids++ = v->unigram.unk;
		return ids;
	}
	if (run == TOK_RUN_NONE && !(token & TOK_UNKNOWN_CHAR)) {
		s->unigram.run = TOK_RUN_LITERAL;
		return ids;
	}
	if (run == TOK_RUN_LITERAL)
		ids = put_bytes(v, v->bytes + unk->off, unk->len, ids);
	if (!(token & TOK_UNKNOWN_CHAR))
		return put_bytes(v, v->bytes + unk->off, unk->len, ids);
	return put_bytes(v, utf8, tok_utf8_encode(token & ~TOK_UNKNOWN_CHAR, utf8), ids);
}

void
tok_unigram_turn(struct tok_stream *s, uint32_t end)
{
	for (uint32_t at = end; at > 0;) {
		const uint32_t token = s->pos[at - 1];

		at -= tok_unigram_bytes(s->vocab, token);
		s->pos[at] = token;
	}
}

/* Append the ids of the best segmentation up to position `end`. */
static uint32_t *
give_out(struct tok_stream *s, uint32_t end, uint32_t *ids)
{
	const struct tok_vocab *v = s->vocab;

	tok_unigram_turn(s, end);
	for (uint32_t at = 0; at < end;) {
		const uint32_t token = s->pos[at];

		if ((token & TOK_UNKNOWN_CHAR) || token == v->unigram.unk) {
			ids = put_unknown(s, token, ids);
		} else {
			ids = end_run(s, ids);
			*ids++ = token;
		}
		at += tok_unigram_bytes(v, token);
	}
	return ids;
}

/*
 * Steps back from piece to piece that the end of a feed may take. With too few nothing is certain
 * yet; each RELEASE_EVERY bytes take as many as there are pieces, so that a byte takes few.
 */
#define FEED_STEPS 64u

/* As tok_unigram_certain, or 0 if that takes more than `steps`. */
static uint32_t
certain_within(const struct tok_stream *s, uint32_t steps)
{
	const struct tok_vocab *v = s->vocab;
	uint32_t meet = s->n_pos;

	/* Meet of the end and of every position from which a piece may still be growing. */
	for (uint32_t at = s->node; at != 0 && meet > 0; at = v->node[at].fail) {
		uint32_t from;

		if (!v->node[at].extends || v->node[at].depth > s->n_pos)
			continue;
		from = s->n_pos - v->node[at].depth;
		while (meet != from) {
			uint32_t *later = meet > from ? &meet : &from;

			if (steps-- == 0)
				return 0;
			*later -= tok_unigram_bytes(v, s->pos[*later - 1]);
		}
	}
	return meet;
}

uint32_t
tok_unigram_certain(const struct tok_stream *s)
{
	return certain_within(s, UINT32_MAX);
}

void
tok_unigram_drop(struct tok_stream *s, uint32_t n)
{
	s->unigram.origin = (uint8_t)(s->unigram.origin + n);
	s->n_pos -= n;
	memmove(s->pos, s->pos + n, s->n_pos * sizeof(s->pos[0]));
}

static uint32_t *
release(struct tok_stream *s, uint32_t meet, uint32_t *ids)
{
	if (meet == 0)
		return ids;
	ids = give_out(s, meet, ids);
	tok_unigram_drop(s, meet);
	return ids;
}

uint32_t *
tok_unigram_release(struct tok_stream *s, uint32_t *ids)
{
	return release(s, certain_within(s, FEED_STEPS), ids);
}

uint32_t *
tok_unigram_close(struct tok_stream *s, uint32_t *ids)
{
	ids = end_run(s, give_out(s, s->n_pos, ids));
	tok_unigram_open(s);
	return ids;
}
