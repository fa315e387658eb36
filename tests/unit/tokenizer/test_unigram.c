/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Unigram: ids against the best way by its definition, on small random vocabularies with ties;
 * which of them are released when; what waits, and the limits of it; offsets.
 */

#include <stdio.h>
#include <stdlib.h>

#include "test.h"
#include "small_vocab.h"

#define PIECES_MAX 64
#define TEXT_MAX 200
#define IDS_MAX (13 * TEXT_MAX)

struct pieces {
	uint32_t n;
	char text[PIECES_MAX][16];
	const char *list[PIECES_MAX];
	double score[PIECES_MAX];
	double least;
	struct tok_vocab *v;
};

static const struct tok_model_unigram whole_text = {.blanks = true};

static void
make(struct pieces *p, uint64_t *seed, const char *alphabet, uint32_t n)
{
	static const double scores[] = {-1, -2, -3, -0.5, -0.1, -0.3, -1.7};

	memset(p, 0, sizeof(*p));
	strcpy(p->text[0], "<unk>");
	for (p->n = 1; p->n < n;) {
		const uint32_t len = 1 + small_random(seed, 6);
		bool fresh = true;

		for (uint32_t i = 0; i < len; i++)
			p->text[p->n][i] = alphabet[small_random(seed, (uint32_t)strlen(alphabet))];
		p->text[p->n][len] = '\0';
		for (uint32_t i = 0; i < p->n; i++)
			fresh = fresh && strcmp(p->text[i], p->text[p->n]) != 0;
		p->score[p->n] = scores[small_random(seed, 7)];
		p->n += fresh;
	}
	for (uint32_t i = 0; i < p->n; i++) {
		p->list[i] = p->text[i];
		p->least = p->score[i] < p->least ? p->score[i] : p->least;
	}
	p->v = small_unigram(p->list, p->score, p->n, &whole_text, false);
}

/* The best way of each beginning of a text, as the reference finds it: from each place on. */
struct ways {
	uint32_t from[TEXT_MAX + 1], piece[TEXT_MAX + 1]; /* of the last piece; 0: unknown */
	double score[TEXT_MAX + 1];
	bool there[TEXT_MAX + 1];
};

static void
find_ways(const struct pieces *p, const char *text, uint32_t n, struct ways *w)
{
	memset(w, 0, sizeof(*w));
	for (uint32_t at = 0; at < n; at++) {
		bool single = false;

		for (uint32_t len = 1; len <= n - at; len++) {
			for (uint32_t i = 0; i < p->n; i++) {
				const double score = w->score[at] + p->score[i];

				if (strlen(p->text[i]) != len ||
					memcmp(p->text[i], text + at, len) != 0)
					continue;
				single |= len == 1;
				if (w->there[at + len] && score <= w->score[at + len])
					continue;
				w->there[at + len] = true;
				w->score[at + len] = score;
				w->from[at + len] = at;
				w->piece[at + len] = i;
			}
		}
		if (!single) {
			const double score = w->score[at] + (p->least - 10.0);

			if (!w->there[at + 1] || score > w->score[at + 1]) {
				w->there[at + 1] = true;
				w->score[at + 1] = score;
				w->from[at + 1] = at;
				w->piece[at + 1] = 0;
			}
		}
	}
}

/* Ids of the best way up to `end`; what is unknown in a row is one. */
static uint32_t
ids_up_to(const struct ways *w, uint32_t end, uint32_t *ids)
{
	uint32_t back[TEXT_MAX], n = 0, out = 0;

	for (; end > 0; end = w->from[end])
		back[n++] = w->piece[end];
	while (n-- > 0) {
		if (back[n] != 0 || out == 0 || ids[out - 1] != 0)
			ids[out++] = back[n];
	}
	return out;
}

/* Where the ways from all places meet from which a piece may go on behind the end. */
static uint32_t
certain_up_to(const struct pieces *p, const struct ways *w, const char *text, uint32_t n)
{
	uint32_t meet = n;

	for (uint32_t at = 0; at < n; at++) {
		bool live = false;
		uint32_t from = at;

		for (uint32_t i = 0; i < p->n; i++)
			live |= strlen(p->text[i]) > n - at &&
				memcmp(p->text[i], text + at, n - at) == 0;
		while (live && from != meet)
			*(from > meet ? &from : &meet) = w->from[from > meet ? from : meet];
	}
	return meet;
}

static void
check_text(const struct pieces *p, const char *text, uint32_t n)
{
	static struct ways w;
	uint32_t want[TEXT_MAX], ids[IDS_MAX], n_want, n_ids = 0;
	struct tok_stream s;
	struct tok_result r;

	find_ways(p, text, n, &w);
	tok_stream_init(&s, p->v, NULL, 0);
	for (uint32_t i = 0; i < n; i++) {
		/* Where the ways meet moves on, and never back: what was unknown is still one id.
		 */
		r = tok_stream_feed(&s, text + i, 1, false, ids + n_ids, IDS_MAX - n_ids);
		assert_int_equal(r.status, TOK_OK);
		n_ids += (uint32_t)r.produced;
		n_want = ids_up_to(&w, certain_up_to(p, &w, text, i + 1), want);
		assert_int_equal(n_ids, n_want);
		assert_memory_equal(ids, want, n_want * sizeof(*ids));
		assert_true(tok_stream_bound(&s, 1) <= TOK_STREAM_HELD_MAX);
	}
	r = tok_stream_feed(&s, "", 0, true, ids + n_ids, IDS_MAX - n_ids);
	assert_int_equal(r.status, TOK_OK);
	n_ids += (uint32_t)r.produced;
	n_want = ids_up_to(&w, n, want);
	assert_int_equal(n_ids, n_want);
	assert_memory_equal(ids, want, n_want * sizeof(*ids));
}

TEST(ids_are_given_out_where_all_ways_meet)
{
	static const char *const alphabet[] = {"ab", "abc", "abcd ", "a"};
	static struct pieces p;
	uint64_t seed = 1;
	char text[TEXT_MAX];

	for (uint32_t round = 0; round < 400; round++) {
		const char *letters = alphabet[round % 4];

		make(&p, &seed, letters,
			round % 4 == 3 ? 2 + small_random(&seed, 5) : 2 + small_random(&seed, 40));
		for (uint32_t k = 0; k < 6; k++) {
			const uint32_t n = 1 + small_random(&seed, k < 3 ? 20 : TEXT_MAX - 1);

			for (uint32_t i = 0; i < n; i++)
				text[i] = small_random(&seed, 12) == 0
						  ? 'x'
						  : letters[small_random(
							    &seed, (uint32_t)strlen(letters))];
			check_text(&p, text, n);
		}
		tok_vocab_free(p.v);
	}
}

/* Scores are kept in a ring: one piece as long as that can have, behind texts of all lengths. */
TEST(the_longest_piece_is_found_anywhere)
{
	enum { LONG = TOK_UNIGRAM_SCORES - 1 };
	char piece[LONG + 1], text[1500];
	const char *list[] = {"<unk>", "a", "b", piece};
	const double score[] = {0, -1, -1, -2};
	struct tok_vocab *v;
	uint32_t ids[1500];

	memset(piece, 'b', LONG);
	piece[LONG] = '\0';
	v = small_unigram(list, score, 4, &whole_text, false);
	for (uint32_t before = 0; before < 600; before += 7) {
		struct tok_result r;

		memset(text, 'a', before);
		memset(text + before, 'b', LONG);
		text[before + LONG] = 'a';
		r = tok_encode(v, NULL, text, before + LONG + 1, 0, ids,
			tok_encode_bound(v, before + LONG + 1, 0) <= 1500 * 3 ? 1500 * 3 : 0);
		assert_int_equal(r.produced, before + 2);
		assert_int_equal(ids[before], 3);
	}
	tok_vocab_free(v);
}

/* With "a" and "aa" a run of a is spelled as its length says, from its beginning on. */
TEST(what_stays_uncertain_ends_the_stream)
{
	const char *list[] = {"<unk>", "a", "aa", "b"};
	const double score[] = {0, -10, -1, -1};
	struct tok_vocab *v = small_unigram(list, score, 4, &whole_text, false);
	static char text[TOK_CARRY_MAX + 1];
	static uint32_t ids[3 * sizeof(text) + 8];
	struct tok_stream s;
	struct tok_result r;

	memset(text, 'a', sizeof(text));
	for (uint32_t n = TOK_CARRY_MAX - 1; n <= TOK_CARRY_MAX + 1; n++) {
		tok_stream_init(&s, v, NULL, 0);
		r = tok_stream_feed(&s, text, n, false, ids, sizeof(ids) / sizeof(*ids));
		assert_int_equal(r.produced, 0);
		assert_int_equal(r.error, n > TOK_CARRY_MAX ? TOK_ERROR_CARRY : TOK_ERROR_NONE);
		if (n > TOK_CARRY_MAX)
			continue;
		assert_int_equal(tok_stream_waiting(&s), n);
		r = tok_stream_feed(
			&s, "b", n < TOK_CARRY_MAX, true, ids, sizeof(ids) / sizeof(*ids));
		assert_int_equal(r.status, TOK_OK);
		assert_int_equal(r.produced, n / 2 + n % 2 + (n < TOK_CARRY_MAX));
		assert_int_equal(ids[0], n % 2 ? 1 : 2);
	}
	tok_vocab_free(v);
}

/* Ids that come for each byte of a text, one digit each, and at its end. */
static void
check_waiting(const struct tok_vocab *v, const char *text, const char *want)
{
	uint32_t ids[64];
	struct tok_stream s;

	tok_stream_init(&s, v, NULL, 0);
	for (size_t i = 0; i <= strlen(text); i++) {
		const bool last = text[i] == '\0';
		struct tok_result r = tok_stream_feed(&s, text + i, !last, last, ids, 64);

		assert_int_equal(r.status, TOK_OK);
		if (r.produced != (size_t)(want[i] - '0'))
			fail_msg("\"%s\", byte %zu: %zu ids, not %c", text, i, r.produced, want[i]);
	}
}

TEST(words_end_with_the_blank_behind_them)
{
	const char *list[] = {"<unk>", " a", " ", "a", "aa", "b"};
	const double score[] = {0, -1, -3, -4, -1, -1};
	struct tok_model_unigram o = {.blanks = true, .split = true, .prefix = TOK_PREFIX_EACH};
	struct tok_vocab *v = small_unigram(list, score, 6, &o, false);

	/* Behind the blank "aa" may come, till the next one. */
	check_waiting(v, "a a b", "010120");
	check_waiting(v, "b", "20");
	tok_vocab_free(v);
	/* White space at the end is left out: it waits, and its word does not. */
	o.strip_right = true;
	v = small_unigram(list, score, 6, &o, false);
	check_waiting(v, "a  b   ", "01030000");
	tok_vocab_free(v);
	o.squeeze = true;
	v = small_unigram(list, score, 6, &o, false);
	check_waiting(v, "a  b   ", "01020000");
	tok_vocab_free(v);
}

TEST(white_space_that_waits_has_a_limit)
{
	const char *list[] = {"<unk>", " ", "a"};
	const double score[] = {0, -1, -1};
	struct tok_model_unigram o = {.blanks = true, .split = true, .strip_right = true};
	struct tok_vocab *v = small_unigram(list, score, 3, &o, false);
	static char text[TOK_SPM_WHITE_MAX + 3];
	static uint32_t ids[3 * sizeof(text) + 8];

	for (uint32_t squeezed = 0; squeezed < 2; squeezed++) {
		for (uint32_t n = TOK_SPM_WHITE_MAX; n <= TOK_SPM_WHITE_MAX + 1; n++) {
			struct tok_result r;

			memset(text, ' ', sizeof(text));
			text[0] = 'a';
			r = tok_encode(v, NULL, text, n + 1, 0, ids, sizeof(ids) / sizeof(*ids));
			assert_int_equal(r.error, n > TOK_SPM_WHITE_MAX && !squeezed
							  ? TOK_ERROR_WHITE
							  : TOK_ERROR_NONE);
			text[n + 1] = 'a';
			r = tok_encode(v, NULL, text, n + 2, 0, ids, sizeof(ids) / sizeof(*ids));
			assert_int_equal(r.error, n > TOK_SPM_WHITE_MAX && !squeezed
							  ? TOK_ERROR_WHITE
							  : TOK_ERROR_NONE);
			if (r.error == TOK_ERROR_NONE)
				assert_int_equal(r.produced, squeezed ? 3 : n + 2);
		}
		tok_vocab_free(v);
		o.squeeze = true;
		v = small_unigram(list, score, 3, &o, false);
	}
	tok_vocab_free(v);
}

/* The map of small_vocab.c: "e" waits for U+0301, and what no key begins with for nothing. */
TEST(only_what_may_be_a_key_waits)
{
	const char *list[] = {"<unk>", "a", "b", "c", "e", "\xc3\xa9"};
	const double score[] = {0, -1, -1, -1, -1, -1};
	struct tok_model_unigram o = {.blanks = true, .charsmap_bytes = 1};
	struct tok_vocab *v = small_unigram(list, score, 6, &o, false);

	check_waiting(v, "cac", "1110");
	check_waiting(v, "cec", "1020");
	check_waiting(v, "e\xcc\x81", "0001");
	check_waiting(v,
		"e\xcc\x81"
		"c",
		"00020");
	check_waiting(v, "AB", "012");
	check_waiting(v, "Aa", "020");
	tok_vocab_free(v);
}

TEST(offsets_are_told_of_the_text_s_own_ids_alone)
{
	const char *list[] = {"<unk>", " ", "a", " a", "b", "\xc3\xa9"};
	const double score[] = {0, -3, -2, -1, -1, -1};
	const struct tok_model_unigram o = {.blanks = true,
		.split = true,
		.prefix = TOK_PREFIX_EACH,
		.squeeze = true,
		.charsmap_bytes = 1};
	struct tok_vocab *v = small_unigram(list, score, 6, &o, false);
	/* " a", " b", what is unknown in a row, e and U+0301 as one, of which the e is counted. */
	static const char text[] = "a   b??e\xcc\x81";
	static const size_t begin[] = {0, 3, 4, 5, 7}, end[] = {1, 4, 5, 7, 8};
	struct tok_range range[IDS_MAX];
	uint32_t ids[IDS_MAX];
	struct tok_result r = tok_encode(v, NULL, text, sizeof(text) - 1, 0, ids, IDS_MAX);

	assert_int_equal(r.produced, 5);
	assert_true(tok_offsets(v, text, sizeof(text) - 1, 0, ids, 5, range, NULL));
	for (uint32_t i = 0; i < 5; i++) {
		assert_int_equal(range[i].begin, begin[i]);
		assert_int_equal(range[i].end, end[i]);
	}
	assert_false(tok_offsets(v, text, sizeof(text) - 1, 0, ids, 4, range, NULL));
	assert_false(tok_offsets(v, text, sizeof(text) - 3, 0, ids, 5, range, NULL));
	assert_false(tok_offsets(v, text, sizeof(text) - 2, 0, ids, 5, range, NULL)); /* no UTF-8 */
	for (uint32_t i = 0; i < 5; i++) {
		ids[i]++;
		assert_false(tok_offsets(v, text, sizeof(text) - 1, 0, ids, 5, range, NULL));
		ids[i]--;
	}
	tok_vocab_free(v);
}
