/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bytes and characters: pieces that end against an inaccessible page, decoding that never releases
 * part of a character.
 */

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test.h"
#include "pretokenize/pretok.h"
#include "small_vocab.h"
#include "unicode/utf8.h"

#define TEXT_MAX 400

static const char *const pieces[] = {"'", "'s", "'re", "'l", "'ll", "'v", "'ve", "v", "r", "e", "l",
	"s", " ", "  ", "\n", "\t", "\r\n", "\xe3\x80\x80", "\xc2\xa0", "\xc2\x85", "a", "bc",
	" the", "1", "23", "\xc2\xb2", "\xc3\xa9", "\xe4\xb8\xad\xe6\x96\x87", "\xf0\x9f\x98\x80",
	"!", "...", "_", "\xe2\x80\xa8", "\x01", "Z", "'S"};
#define N_PIECES (sizeof(pieces) / sizeof(pieces[0]))

static uint32_t
random_pieces(uint64_t *seed, uint8_t *text, uint32_t max)
{
	uint32_t n = 0, count = small_random(seed, 60);

	for (uint32_t i = 0; i < count; i++) {
		const char *piece = pieces[small_random(seed, N_PIECES)];
		uint32_t len = (uint32_t)strlen(piece);

		if (n + len > max)
			break;
		memcpy(text + n, piece, len);
		n += len;
	}
	return n;
}

TEST(nothing_beyond_the_piece_is_read)
{
	uint64_t seed = 6;
	struct small_vocab sv;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *map =
		mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct tok_cache *cache;

	assert_true(map != MAP_FAILED);
	assert_int_equal(mprotect(map + page, page, PROT_NONE), 0);
	small_vocab_make(&sv, &seed, "abc", 40);
	cache = tok_cache_create(sv.v, 64, NULL);
	assert_non_null(cache);
	for (int round = 0; round < 4000; round++) {
		uint8_t text[TEXT_MAX];
		uint32_t n = random_pieces(&seed, text, TEXT_MAX), at = 0, given = 0;
		uint32_t want[3 * TEXT_MAX], got[3 * TEXT_MAX];
		struct tok_stream s;
		struct tok_result r;

		if (round % 3 == 0 && n > 0)
			text[small_random(&seed, n)] = (uint8_t)small_random(&seed, 256);
		memcpy(map + page - n, text, n);
		r = tok_encode(sv.v, cache, map + page - n, n, 0, want, 3 * TEXT_MAX);
		assert_int_equal(r.status, TOK_OK);
		tok_stream_init(&s, sv.v, cache, 0);
		while (at < n) {
			uint32_t piece = 1 + small_random(&seed, round % 2 ? 3 : 90);
			struct tok_result f;

			piece = piece < n - at ? piece : n - at;
			memcpy(map + page - piece, text + at, piece);
			f = tok_stream_feed(&s, map + page - piece, piece, false, got + given,
				3 * TEXT_MAX - given);
			assert_int_equal(f.status, TOK_OK);
			given += (uint32_t)f.produced;
			at += piece;
		}
		given += (uint32_t)tok_stream_feed(
			&s, NULL, 0, true, got + given, 3 * TEXT_MAX - given)
				 .produced;
		assert_int_equal(given, r.produced);
		assert_memory_equal(got, want, given * sizeof(*got));
	}
	tok_cache_free(cache);
	small_vocab_free(&sv);
	munmap(map, 2 * page);
}

TEST(strict_refuses_what_is_not_utf8)
{
	static const char *const bad[] = {"\x80", "a\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80",
		"\xe4\xb8", "\xff", "ab\xe4\xb8 c", "ab\xe4\xb8"};
	uint64_t seed = 7;
	struct small_vocab sv;
	uint32_t ids[64];

	small_vocab_make(&sv, &seed, "abc", 10);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct tok_result r =
			tok_encode(sv.v, NULL, bad[i], strlen(bad[i]), TOK_STRICT_UTF8, ids, 64);

		assert_int_equal(r.status, TOK_BAD);
		assert_int_equal(r.error, TOK_ERROR_UTF8);
		assert_int_equal(r.consumed, strspn(bad[i], "ab")); /* where it begins */
		r = tok_encode(sv.v, NULL, bad[i], strlen(bad[i]), 0, ids, 64);
		assert_int_equal(r.status, TOK_OK);
	}
	small_vocab_free(&sv);
}

/* Feed a text in pieces of `piece` bytes, into `room` ids a call, until it is rejected. Returns
 * where the invalid character begins. */
static size_t
rejected_at(const struct tok_vocab *v, const uint8_t *text, size_t n, size_t piece, size_t room)
{
	uint32_t ids[2 * TEXT_MAX];
	struct tok_stream s;
	struct tok_result r;
	size_t at = 0;

	tok_stream_init(&s, v, NULL, TOK_STRICT_UTF8);
	for (;;) {
		const size_t some = piece < n - at ? piece : n - at;

		r = tok_stream_feed(&s, text + at, some, at + some == n, ids, room);
		if (r.status == TOK_BAD)
			break;
		assert_true(r.consumed + r.produced > 0);
		at += r.consumed;
	}
	assert_int_equal(r.error, TOK_ERROR_UTF8);
	assert_true(r.begun <= at);
	return at + r.consumed - r.begun;
}

TEST(an_invalid_character_is_found_where_it_begins_wherever_the_text_is_cut)
{
	static const char *const bad[] = {"\xff", "\xe4\xb8 c", "\xe4\xb8", "\xf0\x9f\x98",
		"\xf0\x9f\x98\xe4\xb8\xad", "\xe4\xb8\xad\xe4\xb8"};
	uint64_t seed = 10;
	struct small_vocab sv;

	small_vocab_make(&sv, &seed, "abc", 10);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		const size_t len = strlen(bad[i]), want = 40 + (i == 5 ? 3 : 0);

		for (size_t behind = 0; behind <= 40; behind += 40) {
			const size_t n = 40 + len + behind;
			uint8_t text[TEXT_MAX];

			for (size_t k = 0; k < n; k++)
				text[k] = k % 2 == 0 ? 'b' : ' ';
			memcpy(text + 40, bad[i], len);
			for (size_t piece = 1; piece <= n; piece++)
				assert_int_equal(
					rejected_at(sv.v, text, n, piece, 2 * TEXT_MAX), want);
			for (size_t room = 16; room <= n; room++)
				assert_int_equal(rejected_at(sv.v, text, n, n, room), want);
		}
	}
	small_vocab_free(&sv);
}

/* Bytes at the end of p that begin a character without completing it, straight from the definition.
 */
static bool
ends_inside_character(const uint8_t *p, size_t n)
{
	struct tok_utf8_span span;
	size_t at = 0;

	do {
		span = tok_utf8_scan(p + at, n - at);
		at += span.valid + (span.end == TOK_UTF8_BROKEN ? span.rest : 0);
	} while (span.end == TOK_UTF8_BROKEN);
	return span.end == TOK_UTF8_SHORT;
}

TEST(decode_gives_whole_characters)
{
	uint64_t seed = 8;
	struct small_vocab sv;

	small_vocab_make(&sv, &seed, "\xe4\xb8\xad\xf0\x9f", 30);
	for (int round = 0; round < 4000; round++) {
		uint8_t text[TEXT_MAX], out[TEXT_MAX + 64], whole[TEXT_MAX + 64];
		uint32_t n = random_pieces(&seed, text, TEXT_MAX), ids[3 * TEXT_MAX], at = 0;
		struct tok_decode_stream d;
		struct tok_result r;
		size_t given = 0, n_ids;

		r = tok_encode(sv.v, NULL, text, n, 0, ids, 3 * TEXT_MAX);
		n_ids = r.produced;
		r = tok_decode(sv.v, ids, n_ids, whole, sizeof(whole));
		assert_int_equal(r.status, TOK_OK);
		assert_int_equal(r.produced, n);
		assert_memory_equal(whole, text, n);
		tok_decode_stream_init(&d, sv.v);
		for (; at <= n_ids; at++) {
			bool last = at == n_ids;

			r = tok_decode_stream_feed(
				&d, ids + at, last ? 0 : 1, last, out + given, sizeof(out) - given);
			assert_int_equal(r.status, TOK_OK);
			given += r.produced;
			assert_false(ends_inside_character(out, given) && !last);
		}
		assert_int_equal(given, n);
		assert_memory_equal(out, text, n);
	}
	small_vocab_free(&sv);
}

TEST(decode_refuses_an_unknown_id)
{
	uint64_t seed = 9;
	struct small_vocab sv;
	uint32_t ids[2] = {65, 0};
	uint8_t out[8];
	struct tok_result r;

	small_vocab_make(&sv, &seed, "ab", 5);
	ids[1] = sv.n;
	r = tok_decode(sv.v, ids, 2, out, sizeof(out));
	assert_int_equal(r.status, TOK_BAD);
	assert_int_equal(r.error, TOK_ERROR_ID);
	assert_int_equal(r.consumed, 1);
	assert_int_equal(r.produced, 1);
	small_vocab_free(&sv);
}
