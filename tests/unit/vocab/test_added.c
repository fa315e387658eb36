/* SPDX-License-Identifier: BSD-3-Clause */
/* Added tokens in text: which are recognised, what they take with them, and what waits for them. */
#include <stdio.h>
#include <string.h>

#include "fixture.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))
#define ROOM 16384

/* The small vocabulary with added tokens, a JSON list without brackets, behind its own (260). */
static struct tok_vocab *
load(void **state, const char *added)
{
	static char list[4096];
	json_t *document = small_tokenizer_json();
	struct tok_error err;
	struct tok_vocab *v;

	snprintf(list, sizeof(list), "[{\"id\":260,\"content\":\"%s\",\"special\":true},%s]",
		SMALL_SPECIAL, added);
	set_at(document, "added_tokens", list);
	v = tok_vocab_load(put_json(state, "tokenizer.json", document), NULL, &err);
	if (v == NULL)
		fail_msg("%s", err.text);
	return v;
}

/* Ids as text: "[261]" for those above the small vocabulary's, else their bytes. */
static const char *
shown(const struct tok_vocab *v, const uint32_t *ids, size_t n)
{
	static char text[4 * ROOM];
	char *p = text;
	uint32_t len;

	for (size_t i = 0; i < n; i++) {
		const uint8_t *bytes = tok_vocab_token(v, ids[i], &len);

		p += ids[i] >= SMALL_RANKS ? sprintf(p, "[%u]", ids[i])
					   : sprintf(p, "%.*s", (int)len, (const char *)bytes);
	}
	return text;
}

static const char *
encoded(const struct tok_vocab *v, const char *text, uint32_t flags)
{
	static uint32_t ids[ROOM];
	struct tok_result r = tok_encode(v, NULL, text, strlen(text), flags, ids, ROOM);

	assert_int_equal(r.status, TOK_OK);
	return shown(v, ids, r.produced);
}

/* In three pieces, cut at a and b. */
static const char *
in_pieces(const struct tok_vocab *v, const char *text, size_t a, size_t b, uint32_t flags)
{
	const size_t n = strlen(text), cut[] = {0, a, b, n};
	static uint32_t ids[ROOM];
	struct tok_stream s;
	size_t got = 0;

	tok_stream_init(&s, v, NULL, flags);
	for (int i = 0; i < 3; i++) {
		const size_t bound = tok_stream_bound(&s, cut[i + 1] - cut[i]);
		struct tok_result r = tok_stream_feed(
			&s, text + cut[i], cut[i + 1] - cut[i], i == 2, ids + got, ROOM - got);

		assert_int_equal(r.status, TOK_OK);
		assert_true(r.produced <= bound);
		got += r.produced;
	}
	assert_int_equal(tok_stream_waiting(&s), 0);
	return shown(v, ids, got);
}

/* The text has these ids, whole and however it is cut in three. */
static void
assert_encoded(const struct tok_vocab *v, const char *text, uint32_t flags, const char *want)
{
	const size_t n = strlen(text);

	assert_string_equal(encoded(v, text, flags), want);
	for (size_t a = 0; a <= n; a++) {
		for (size_t b = a; b <= n; b++)
			assert_string_equal(in_pieces(v, text, a, b, flags), want);
	}
}

/* Of a text in two pieces, with a cache that knows it: as much room as is asked for, and what is
 * behind it. */
FOLDER_TEST(nothing_is_written_behind_the_room)
{
	static const char *const texts[] = {"qz ", "qz fo", "hell qz ", "abcde q", "qz foo hell"};
	struct tok_vocab *v = load(state,
		"{\"id\":261,\"content\":\"qz foo\",\"special\":false,\"normalized\":true},"
		"{\"id\":262,\"content\":\"abcde q \",\"special\":false,\"normalized\":true}");
	struct tok_cache *cache = tok_cache_create(v, 0, NULL);
	static uint32_t ids[ROOM];

	assert_non_null(cache);
	for (uint32_t i = 0; i < 2 * N(texts); i++) { /* learned, then known */
		const char *text = texts[i % N(texts)];
		const size_t n = strlen(text);

		tok_encode(v, cache, text, n, TOK_ADDED_AS_TEXT, ids, ROOM);
		for (size_t cut = 0; cut <= n; cut++) {
			const size_t parts[] = {cut, n - cut};
			struct tok_stream s;

			tok_stream_init(&s, v, cache, 0);
			for (int k = 0; k < 2; k++) {
				const size_t room = tok_stream_bound(&s, parts[k]);
				struct tok_result r;

				memset(ids, 0xa5, (room + 16) * sizeof(*ids));
				r = tok_stream_feed(
					&s, text + (k > 0 ? cut : 0), parts[k], k == 1, ids, room);
				assert_int_equal(r.status, TOK_OK);
				for (size_t at = room; at < room + 16; at++)
					assert_int_equal(ids[at], 0xa5a5a5a5);
			}
		}
	}
	tok_cache_free(cache);
	tok_vocab_free(v);
}

FOLDER_TEST(what_is_recognised_is_a_choice)
{
	struct tok_vocab *v = load(state, "{\"id\":261,\"content\":\"<t>\",\"special\":false}");
	struct tok_vocab_info i = tok_vocab_info(v);

	assert_int_equal(i.n_special, 1);
	assert_int_equal(i.n_added, 1);
	assert_encoded(v, "a<t>b" SMALL_SPECIAL "<t", 0, "a[261]b" SMALL_SPECIAL "<t");
	assert_encoded(v, "a<t>b" SMALL_SPECIAL "<t", TOK_SPECIAL, "a[261]b[260]<t");
	assert_encoded(
		v, "a<t>b" SMALL_SPECIAL "<t", TOK_ADDED_AS_TEXT, "a<t>b" SMALL_SPECIAL "<t");
	assert_encoded(
		v, "a<t>" SMALL_SPECIAL, TOK_ADDED_AS_TEXT | TOK_SPECIAL, "a<t>" SMALL_SPECIAL);
	tok_vocab_free(v);
}

struct row {
	const char *flags; /* of the token "ab", id 261 */
	const char *text, *want;
};

FOLDER_TEST(flags_are_the_references)
{
	static const struct row rows[] = {
		{"", "xab ab", "x[261] [261]"},
		{"\"lstrip\":true,", "x \t ab", "x[261]"},
		{"\"lstrip\":true,", " ab \n", "[261] \n"},
		{"\"lstrip\":true,",
			"x \xc2\xa0\xe3\x80\x80"
			"ab",
			"x[261]"},
		{"\"rstrip\":true,", "ab \t x", "[261]x"},
		{"\"rstrip\":true,", "ab ab \n", "[261][261]"},
		{"\"rstrip\":true,\"lstrip\":true,", " ab  ab \nx", "[261][261]x"},
		{"\"single_word\":true,", "xab ab abx ab", "xab [261] abx [261]"},
		{"\"single_word\":true,", "abab ab-ab", "abab [261]-[261]"},
		{"\"single_word\":true,",
			"ab_ ab\xcc\x81 \xc3\xa9"
			"ab",
			"ab_ ab\xcc\x81 \xc3\xa9"
			"ab"},
		{"\"single_word\":true,\"lstrip\":true,", "x ab y", "x[261] y"},
		{"\"normalized\":true,", "xab", "x[261]"},
	};

	for (size_t i = 0; i < N(rows); i++) {
		char added[200];
		struct tok_vocab *v;

		snprintf(added, sizeof(added),
			"{\"id\":261,\"content\":\"ab\",%s\"special\":false}", rows[i].flags);
		v = load(state, added);
		assert_encoded(v, rows[i].text, 0, rows[i].want);
		tok_vocab_free(v);
	}
}

static size_t
waiting_after(const struct tok_vocab *v, const char *text, uint32_t flags)
{
	static uint32_t ids[ROOM];
	struct tok_stream s;

	tok_stream_init(&s, v, NULL, flags);
	assert_int_equal(tok_stream_feed(&s, text, strlen(text), false, ids, ROOM).status, TOK_OK);
	return tok_stream_waiting(&s);
}

FOLDER_TEST(only_what_may_become_a_token_waits)
{
	struct tok_vocab *v =
		load(state, "{\"id\":261,\"content\":\"<tool>\",\"special\":false},"
			    "{\"id\":262,\"content\":\"<mask>\",\"special\":true,\"lstrip\":true}");

	assert_int_equal(waiting_after(v, "1<too", 0), 4);
	assert_int_equal(waiting_after(v, "1<tool>", 0), 0);
	assert_int_equal(
		waiting_after(v, "1<tooth", TOK_ADDED_AS_TEXT), waiting_after(v, "1<tooth", 0));
	/* A blank may be the mask's, where special tokens are recognised. */
	assert_int_equal(waiting_after(v, "1  <ma", TOK_SPECIAL), 5);
	assert_int_equal(waiting_after(v, "1  <mas<", TOK_SPECIAL), 1);
	tok_vocab_free(v);
}

FOLDER_TEST(white_space_that_waits_has_a_limit)
{
	struct tok_vocab *v =
		load(state, "{\"id\":261,\"content\":\"<t>\",\"special\":false,\"lstrip\":true}");
	static char text[ROOM];
	static uint32_t ids[ROOM];
	struct tok_stream s;

	memset(text, ' ', 4000);
	memcpy(text + 4000, "<t>", 3);
	assert_string_equal(encoded(v, text, 0), "[261]"); /* whole, nothing waits */
	for (int over = 0; over < 2; over++) {
		struct tok_result r;

		tok_stream_init(&s, v, NULL, 0);
		r = tok_stream_feed(&s, text, TOK_ADDED_HELD_MAX + (size_t)over, false, ids, ROOM);
		assert_int_equal(r.status, over ? TOK_BAD : TOK_OK);
		assert_int_equal(r.error, over ? TOK_ERROR_ADDED : TOK_ERROR_NONE);
	}
	tok_vocab_free(v);
}

/* Fed by tens: no fault, and the ids of the whole text. */
static void
assert_by_tens(const struct tok_vocab *v, const char *text, uint32_t flags, const char *want)
{
	const size_t n = strlen(text);
	static uint32_t ids[ROOM];
	struct tok_stream s;
	size_t got = 0;

	assert_string_equal(encoded(v, text, flags), want);
	tok_stream_init(&s, v, NULL, flags);
	for (size_t at = 0; at < n; at += 10) {
		const size_t piece = n - at < 10 ? n - at : 10;
		struct tok_result r = tok_stream_feed(
			&s, text + at, piece, at + piece == n, ids + got, ROOM - got);

		assert_int_equal(r.error, TOK_ERROR_NONE);
		got += r.produced;
	}
	assert_string_equal(shown(v, ids, got), want);
}

/* By a token that is not recognised, or behind one that has taken it already. */
FOLDER_TEST(white_space_that_no_token_can_take_does_not_wait)
{
	struct tok_vocab *v =
		load(state, "{\"id\":261,\"content\":\"<p>\",\"special\":false,\"rstrip\":true},"
			    "{\"id\":262,\"content\":\"<m>\",\"special\":true,\"lstrip\":true}");
	static char blanks[1500], text[2000], want[2000];

	memset(blanks, ' ', sizeof(blanks) - 1);
	snprintf(text, sizeof(text), "x%s<", blanks);
	assert_by_tens(v, text, 0, text);
	snprintf(text, sizeof(text), "<p>%sy<m>%s<m>", blanks, "  ");
	snprintf(want, sizeof(want), "[261]y[262][262]");
	assert_by_tens(v, text, TOK_SPECIAL, want);
	tok_vocab_free(v);
}

/* Tokens that no merge makes but that are in the vocabulary are text like any other as well. */
FOLDER_TEST(a_token_of_the_model_may_be_added)
{
	struct tok_vocab *v = load(state, "{\"id\":258,\"content\":\"hell\",\"special\":false}");

	assert_encoded(v, "hhello", 0, "hhello");
	assert_encoded(v, "hhello", TOK_ADDED_AS_TEXT, "hhello");
	tok_vocab_free(v);
}

FOLDER_TEST(checksums_differ_by_what_is_recognised)
{
	static const char *const added[] = {
		"{\"id\":261,\"content\":\"<t>\",\"special\":true}",
		"{\"id\":261,\"content\":\"<t>\",\"special\":false}",
		"{\"id\":261,\"content\":\"<t>\",\"special\":false,\"lstrip\":true}",
		"{\"id\":261,\"content\":\"<t>\",\"special\":true,\"lstrip\":true}",
	};
	uint32_t sum[N(added)];

	for (size_t i = 0; i < N(added); i++) {
		struct tok_vocab *v = load(state, added[i]);

		sum[i] = tok_vocab_info(v).checksum;
		tok_vocab_free(v);
		for (size_t k = 0; k < i; k++)
			assert_int_not_equal(sum[i], sum[k]);
	}
}

struct refusal {
	const char *added;
	bool nfc;
	const char *says;
};

FOLDER_TEST(lists_that_mean_nothing_are_refused)
{
	static char long_one[1200];
	const struct refusal rows[] = {
		{"{\"id\":261,\"content\":\"\xe1\xba\xb9\",\"special\":false,\"normalized\":true},"
		 "{\"id\":262,\"content\":\"e\xcc\xa3\",\"special\":false,\"normalized\":true}",
			true, "two tokens have the same text \"\xe1\xba\xb9\": remove one"},
		{long_one, false, "added token 261 has 513 bytes, expected 1 to 512"},
		{"{\"id\":261,\"content\":\"\",\"special\":false}", false,
			"added token 261 has 0 bytes, expected 1 to 512"},
		{"{\"id\":261,\"content\":\"x\",\"special\":1}", false, "added_tokens[1].special"},
		{"{\"id\":261,\"content\":\"x\",\"special\":true,\"strip\":1}", false,
			"added_tokens[1].strip is not implemented"},
	};

	snprintf(long_one, sizeof(long_one), "{\"id\":261,\"content\":\"%0513d\",\"special\":true}",
		1);
	for (size_t i = 0; i < N(rows); i++) {
		json_t *document = small_tokenizer_json();
		char list[2048];

		snprintf(list, sizeof(list),
			"[{\"id\":260,\"content\":\"%s\",\"special\":true},%s]", SMALL_SPECIAL,
			rows[i].added);
		set_at(document, "added_tokens", list);
		set_at(document, "normalizer", rows[i].nfc ? "{\"type\":\"NFC\"}" : "null");
		assert_refused(put_json(state, "tokenizer.json", document), rows[i].says);
	}
}
