/* SPDX-License-Identifier: BSD-3-Clause */
/* Build the tables that only vocabularies of SentencePiece pieces have. Set-up only. */
#include <stdlib.h>
#include <string.h>

#include "model_make.h"
#include "unicode/pages.h"
#include "pieces.h"
#include "unicode/utf8.h"
#include "vocab_table.h"

/*
 * Mark the code points that occur in tokens, and set the bits of `joins`. Both must be zeroed.
 */
static void
mark(const struct tok_vocab *v, uint32_t join_shift, uint8_t *known, uint64_t *joins)
{
	for (uint32_t i = 0; i < v->n_ranks + v->n_unmerged; i++) {
		const uint32_t id = i < v->n_ranks ? v->ext[i] : v->unmerged[i - v->n_ranks];
		const struct tok_span span = v->span[id];
		const uint8_t *p = v->bytes + span.off, *end = p + span.len;

		if (id >= v->info.n_ids || (span.len == 1 && *p >= 0x80))
			continue; /* part of a character */
		for (uint32_t left = UINT32_MAX; p < end;) {
			const uint32_t len = tok_utf8_length(*p), right = tok_utf8_decode(p, len);

			known[right] = 1;
			if (left != UINT32_MAX) {
				const uint32_t bit = tok_join_bit(join_shift, left, right);

				joins[bit / 64] |= 1ull << bit % 64;
			}
			left = right;
			p += len;
		}
	}
}

/* Bits for each pair that is not ASCII: so few of the other pairs share their bit with one. */
#define JOIN_SHARE 32u
#define MOST_BITS (1u << 24)
#define FEWEST_BITS (1u << 12)

/* Make v->joins: of the size that the number of pairs asks for. `known` and v->cat are not there
 * yet. */
static bool
build_joins(struct tok_vocab *v, uint8_t *known)
{
	const uint32_t most = (TOK_JOINS_ASCII + MOST_BITS) / 64;
	uint64_t *joins = calloc(most, sizeof(*joins));
	uint32_t pairs = 0, bits = FEWEST_BITS;

	if (joins == NULL)
		return false;
	mark(v, 64 - (uint32_t)__builtin_ctz(MOST_BITS / 64), known, joins);
	for (uint32_t i = TOK_JOINS_ASCII / 64; i < most; i++)
		pairs += (uint32_t)__builtin_popcountll(joins[i]);
	free(joins);
	while (bits < MOST_BITS && bits / JOIN_SHARE < pairs)
		bits *= 2;
	if (!tok_vocab_table_make(v, TOK_TABLE_JOINS, (TOK_JOINS_ASCII + bits) / 64))
		return false;
	tok_vocab_shifts(v);
	mark(v, v->join_shift, known, v->joins);
	return true;
}

/* ---- cuts ---- */

/*
 * Each bit of the cuts is a rectangle: characters `left` that join none of the characters `right`.
 * Of the pairs that do not join, more are covered with each.
 */
#define RECTANGLES 8
#define SEEDS 8 /* tried for each rectangle */

typedef struct {
	uint64_t half[2];
} ascii_set;

struct rectangle {
	bool left[128];
	ascii_set right;
	uint32_t covers;
};

static ascii_set
both(ascii_set a, ascii_set b)
{
	return (ascii_set){{a.half[0] & b.half[0], a.half[1] & b.half[1]}};
}

static uint32_t
count(ascii_set a)
{
	return (uint32_t)(__builtin_popcountll(a.half[0]) + __builtin_popcountll(a.half[1]));
}

static uint32_t
count_covered(const struct rectangle *r, ascii_set right, const ascii_set rest[128])
{
	uint32_t n = 0;

	for (uint32_t c = 0; c < 128; c++)
		n += r->left[c] ? count(both(rest[c], right)) : 0;
	return n;
}

/* The rectangle of one character, widened by each further one with which it covers no less. */
static struct rectangle
grow(uint32_t seed, const ascii_set apart[128], const ascii_set rest[128])
{
	struct rectangle r = {.right = apart[seed], .covers = count(rest[seed])};

	r.left[seed] = true;
	for (uint32_t c = 0; c < 128; c++) {
		const ascii_set right = both(r.right, apart[c]);
		uint32_t covers;

		if (r.left[c])
			continue;
		covers = count_covered(&r, right, rest) + count(both(rest[c], right));
		if (covers >= r.covers) {
			r.left[c] = true;
			r.right = right;
			r.covers = covers;
		}
	}
	return r;
}

/* The character that is apart from most others in ways not covered, and not tried. */
static uint32_t
choose_seed(const ascii_set rest[128], const bool tried[128])
{
	uint32_t best = 0;

	for (uint32_t c = 1; c < 128; c++) {
		if (!tried[c] && (tried[best] || count(rest[c]) > count(rest[best])))
			best = c;
	}
	return best;
}

static void
put_rectangle(
	struct tok_pieces_cuts *cuts, uint8_t bit, const struct rectangle *r, ascii_set rest[128])
{
	for (uint32_t c = 0; c < 128; c++) {
		if (r->left[c]) {
			cuts->left[c] |= bit;
			rest[c].half[0] &= ~r->right.half[0];
			rest[c].half[1] &= ~r->right.half[1];
		}
		if (r->right.half[c / 64] >> c % 64 & 1)
			cuts->right[c] |= bit;
	}
}

/* All pairs with a character that is in no token. Returns the number of rectangles. */
static uint32_t
cut_unknown(struct tok_pieces_cuts *cuts, const uint8_t *known, ascii_set rest[128])
{
	struct rectangle from = {.right = {{~0ull, ~0ull}}}, to = {.right = {{0}}};
	bool some = false;

	for (uint32_t c = 0; c < 128; c++) {
		from.left[c] = !known[c];
		to.left[c] = true;
		to.right.half[c / 64] |= (uint64_t)!known[c] << c % 64;
		some |= !known[c];
	}
	if (!some)
		return 0;
	put_rectangle(cuts, 1, &from, rest);
	put_rectangle(cuts, 2, &to, rest);
	return 2;
}

static bool
build_cuts(struct tok_vocab *v, const uint8_t *known)
{
	ascii_set apart[128], rest[128];
	uint32_t k;

	if (!tok_vocab_table_make(v, TOK_TABLE_CUTS, 1))
		return false;
	memset(v->cuts, 0, sizeof(*v->cuts));
	for (uint32_t c = 0; c < 128; c++) {
		apart[c].half[0] = ~v->joins[2 * c];
		apart[c].half[1] = ~v->joins[2 * c + 1];
	}
	memcpy(rest, apart, sizeof(rest));
	for (k = cut_unknown(v->cuts, known, rest); k < RECTANGLES; k++) {
		struct rectangle best = {.covers = 0};
		bool tried[128] = {false};

		for (uint32_t i = 0; i < SEEDS; i++) {
			const uint32_t seed = choose_seed(rest, tried);
			const struct rectangle r = grow(seed, apart, rest);

			tried[seed] = true;
			best = r.covers > best.covers ? r : best;
		}
		put_rectangle(v->cuts, (uint8_t)(1u << k), &best, rest);
	}
	return true;
}

/* Parts of characters are never released. A real id in their place makes `ext` easy to check. */
static void
drop_parts(struct tok_vocab *v)
{
	for (uint32_t r = TOK_BYTES; r < v->n_ranks; r++) {
		if (v->ext[r] >= v->info.n_ids)
			v->ext[r] = v->ext[v->split[r].left];
	}
}

bool
tok_pieces_build(struct tok_vocab *v, struct tok_error *err)
{
	uint8_t *known = calloc(TOK_CODE_POINTS, 1);
	struct tok_page_set set = {.page = known, .bytes = TOK_PAGE};

	if (known != NULL && build_joins(v, known) && build_cuts(v, known) &&
		tok_vocab_table_make(v, TOK_TABLE_CAT_PAGE, TOK_PAGES)) {
		for (uint32_t i = 0; i < TOK_PAGES; i++) /* in place: pages only move down */
			v->cat_page[i] = tok_page_put(&set, known + (size_t)i * TOK_PAGE);
		if (tok_vocab_table_make(v, TOK_TABLE_CAT, set.n * TOK_PAGE))
			memcpy(v->cat, set.page, set.n * TOK_PAGE);
	}
	free(known);
	drop_parts(v);
	return v->cat != NULL || tok_fail(err, "out of memory for the characters of pieces");
}
