/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Words to ids: the trie with failure links against longest match by its definition, on small
 * random vocabularies; every split; when ids come; bounds that hold.
 */

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test.h"
#include "small_vocab.h"
#include "encode/wordpiece.h"

#define TOKENS_MAX 64
#define TEXT_MAX 600
#define LONG_MAX 6000 /* words of several blocks */
#define MAX_CHARS 12

struct small_pieces {
	uint32_t n;
	enum tok_pretok pretok;
	char text[TOKENS_MAX][40];
	struct tok_vocab *v;
};

/* Token 0 is the unknown one. */
static void
build(struct small_pieces *sp, uint32_t max_chars)
{
	struct tok_model_token token[TOKENS_MAX] = {0};
	uint8_t bytes[TOKENS_MAX * 40];
	struct tok_model m = {.format = "test",
		.kind = TOK_KIND_WORDPIECE,
		.pretok = sp->pretok,
		.n_tokens = sp->n,
		.token = token,
		.bytes = bytes,
		.bert = {true, true, true, true, true, max_chars, 0}};
	struct tok_error err;

	for (uint32_t i = 0; i < sp->n; i++) {
		token[i].off = (uint32_t)m.n_bytes;
		token[i].len = (uint32_t)strlen(sp->text[i]);
		memcpy(bytes + m.n_bytes, sp->text[i], token[i].len);
		m.n_bytes += token[i].len;
	}
	sp->v = tok_vocab_build(&m, "small", "none", NULL, &err);
	if (sp->v == NULL)
		fail_msg("%s", err.text);
}

static uint32_t
find(const struct small_pieces *sp, const char *text)
{
	for (uint32_t i = 1; i < sp->n; i++) {
		if (strcmp(sp->text[i], text) == 0)
			return i;
	}
	return 0;
}

static void
make_random(struct small_pieces *sp, uint64_t *seed, uint32_t count, const char *letters)
{
	memset(sp, 0, sizeof(*sp));
	sp->pretok = *letters == '#' ? TOK_PRETOK_WHITE : TOK_PRETOK_BERT;
	strcpy(sp->text[sp->n++], "[UNK]");
	for (uint32_t i = 0; i < count; i++) {
		char text[40] = "##";
		uint32_t n = small_random(seed, 2) * 2, len = n + 1 + small_random(seed, 7);

		while (n < len)
			text[n++] = letters[small_random(seed, 3)];
		text[n] = '\0';
		if (find(sp, text) == 0)
			strcpy(sp->text[sp->n++], text);
	}
	build(sp, MAX_CHARS);
}

/* The definition: the longest token that fits, and again behind it. Returns the number of ids. */
static uint32_t
match_word(const struct small_pieces *sp, const char *word, uint32_t n, uint32_t *ids)
{
	uint32_t at = 0, found = 0;

	while (at < n && n <= MAX_CHARS) {
		uint32_t end = n, id = 0;
		char text[64];

		for (; end > at; end--) {
			snprintf(text, sizeof(text), "%s%.*s", at > 0 ? "##" : "", (int)(end - at),
				word + at);
			id = find(sp, text);
			if (id != 0)
				break;
		}
		if (id == 0)
			break;
		ids[found++] = id;
		at = end;
	}
	if (at == n)
		return found;
	ids[0] = 0;
	return 1;
}

static uint32_t
match_text(const struct small_pieces *sp, const char *text, uint32_t *ids)
{
	uint32_t n = 0;

	while (*text != '\0') {
		uint32_t len = (uint32_t)strcspn(text, " ");

		if (len > 0)
			n += match_word(sp, text, len, ids + n);
		text += len + (text[len] == ' ');
	}
	return n;
}

TEST(the_trie_equals_longest_match)
{
	uint64_t seed = 21;

	for (int round = 0; round < 200; round++) {
		/* With '#' a word may begin as a token that continues one is spelled. */
		const char *letters = round % 2 ? "#ab" : "abc";
		struct small_pieces sp;
		struct tok_cache *cache;

		make_random(&sp, &seed, 1 + small_random(&seed, 40), letters);
		cache = tok_cache_create(sp.v, 64, NULL);
		assert_non_null(cache);
		for (int i = 0; i < 300; i++) {
			char text[LONG_MAX];
			uint32_t want[LONG_MAX], got[3 * LONG_MAX], wants;
			uint32_t n = small_random(&seed, i % 100 > 1 ? 60 : LONG_MAX - 1);
			struct tok_result r;

			for (uint32_t k = 0; k < n; k++)
				text[k] = small_random(&seed, 11) == 0
						  ? ' '
						  : letters[small_random(&seed, 3)];
			text[n] = '\0';
			/* A letter that no token has, also in the middle of a word. */
			for (uint32_t k = 1; k < n; k += 2 + small_random(&seed, 100))
				memcpy(text + k - 1, "\xc9\x90", 2);
			wants = match_text(&sp, text, want);
			r = tok_encode(sp.v, i % 2 ? cache : NULL, text, n, 0, got, 3 * LONG_MAX);
			assert_int_equal(r.status, TOK_OK);
			if (r.produced != wants || memcmp(want, got, wants * sizeof(*got)) != 0)
				fail_msg("round %d: \"%s\"", round, text);
		}
		tok_cache_free(cache);
		tok_vocab_free(sp.v);
	}
}

static uint32_t
feed(struct tok_stream *s, const char *text, size_t n, bool last, uint32_t *ids)
{
	/* As little room as is promised to be enough, guarded by the sanitizers. */
	size_t room = tok_stream_bound(s, n);
	uint32_t *to = malloc((room + 1) * sizeof(*to));
	struct tok_result r;

	assert_non_null(to);
	r = tok_stream_feed(s, text, n, last, to, room);
	assert_int_equal(r.status, TOK_OK);
	assert_int_equal(r.consumed, n);
	assert_in_range(r.produced, 0, room);
	memcpy(ids, to, r.produced * sizeof(*ids));
	free(to);
	assert_in_range(tok_stream_bound(s, 1), 0, TOK_CARRY_MAX + 20);
	return (uint32_t)r.produced;
}

static const char *const marked[] = {"a", "b", "C", "\xc3\x89", " ", ".", "\xe4\xb8\xad",
	"\xea\xb0\x81", "\xed\x95\x9c", "\xcc\x81", "\xcd\x8f", "\xf0\x9d\x85\xa5", "\xe1\xad\x84",
	"\xe3\x80\xae", "\xe3\x80\x80", "\x01", "\xff", "\xe4\xb8", "\xef\xbf\xbd", "\xc4\xb0",
	"\xf0\x9d\x85\x9e", "\xe2\x89\xa0"};

static void
make_marked(struct small_pieces *sp)
{
	static const char *const text[] = {"[UNK]", "a", "##a", "b", "##b", "ab", "e", "##e", ".",
		"##c", "c", "=", "i", "\xe4\xb8\xad", "##\xf0\x9d\x85\xa5", "##\xe1\xad\x84",
		"##\xe1\xad\x84\xf0\x9d\x85\xa5", "##\xe3\x80\xae", "\xe1\x84\x80",
		"##\xe1\x85\xa1", "##\xe1\x86\xa8", "##\xe1\x84\x92\xe1\x85\xa1\xe1\x86\xab",
		"\xf0\x9d\x85\x97"};

	memset(sp, 0, sizeof(*sp));
	sp->pretok = TOK_PRETOK_BERT;
	for (; sp->n < sizeof(text) / sizeof(text[0]); sp->n++)
		strcpy(sp->text[sp->n], text[sp->n]);
}

TEST(every_split_gives_the_same_ids)
{
	uint64_t seed = 22;
	struct small_pieces sp;

	make_marked(&sp);
	build(&sp, 7);
	for (int round = 0; round < 4000; round++) {
		char text[128] = "";
		uint32_t want[400], got[400], n, wants;
		struct tok_stream s;

		for (uint32_t i = small_random(&seed, 14); i > 0; i--)
			strcat(text,
				marked[small_random(&seed, sizeof(marked) / sizeof(marked[0]))]);
		n = (uint32_t)strlen(text);
		wants = (uint32_t)tok_encode(sp.v, NULL, text, n, 0, want, 400).produced;
		for (uint32_t cut = 0; cut <= n; cut++) {
			uint32_t gots;

			tok_stream_init(&s, sp.v, NULL, 0);
			gots = feed(&s, text, cut, false, got);
			gots += feed(&s, text + cut, n - cut, true, got + gots);
			assert_int_equal(gots, wants);
			assert_memory_equal(got, want, wants * sizeof(*want));
		}
		tok_stream_init(&s, sp.v, NULL, 0);
		wants = 0;
		for (uint32_t i = 0; i < n; i++)
			wants += feed(&s, text + i, 1, false, got + wants);
		wants += feed(&s, NULL, 0, true, got + wants);
		assert_memory_equal(got, want, wants * sizeof(*want));
		assert_int_equal(tok_stream_waiting(&s), 0);
	}
	tok_vocab_free(sp.v);
}

/* The open word goes with a large packet, or is continued by a small one: as if it came byte by
 * byte, also when its ids come. */
TEST(words_cut_by_packets_are_as_if_fed_byte_by_byte)
{
	static const char *const some[] = {"a", "b", "a", "b", "C", " ", ".", "z", "\x01"};
	uint64_t seed = 24;
	struct small_pieces sp;
	struct tok_cache *cache;

	make_marked(&sp);
	build(&sp, 40);
	cache = tok_cache_create(sp.v, 64, NULL);
	assert_non_null(cache);
	for (int round = 0; round < 4000; round++) {
		char text[LONG_MAX] = "";
		uint32_t want[TEXT_MAX * 3], got[TEXT_MAX * 3], wants = 0, gots = 0, n, at = 0;
		const uint32_t most = 1 + small_random(&seed, 200);
		struct tok_stream bytes, packets;

		for (uint32_t i = small_random(&seed, TEXT_MAX); i > 0; i--) {
			const bool plain = small_random(&seed, 30) > 0;

			strcat(text, plain ? some[small_random(&seed, round % 2 ? 4 : 9)]
					   : marked[small_random(&seed, 22)]);
		}
		n = (uint32_t)strnlen(text, TEXT_MAX - 1);
		tok_stream_init(&bytes, sp.v, NULL, 0);
		tok_stream_init(&packets, sp.v, round % 3 ? cache : NULL, 0);
		do {
			uint32_t some_bytes = 1 + small_random(&seed, most);

			some_bytes = some_bytes < n - at ? some_bytes : n - at;
			for (uint32_t i = at; i < at + some_bytes; i++)
				wants += feed(&bytes, text + i, 1, false, want + wants);
			if (at + some_bytes == n)
				wants += feed(&bytes, NULL, 0, true, want + wants);
			gots += feed(
				&packets, text + at, some_bytes, at + some_bytes == n, got + gots);
			at += some_bytes;
			assert_int_equal(gots, wants);
			assert_int_equal(tok_stream_waiting(&packets), tok_stream_waiting(&bytes));
		} while (at < n);
		assert_memory_equal(got, want, wants * sizeof(*want));
	}
	tok_cache_free(cache);
	tok_vocab_free(sp.v);
}

TEST(marks_are_ordered_before_they_are_matched)
{
	/* U+1D165 (class 216) before U+1B44 (9): the other way round it is one token. */
	static const char text[] =
		"a\xf0\x9d\x85\xa5\xe1\xad\x84 a\xf0\x9d\x85\xa5\xcd\x8f\xe1\xad\x84";
	struct small_pieces sp;
	uint32_t got[64], n;

	make_marked(&sp);
	build(&sp, 100);
	n = (uint32_t)tok_encode(sp.v, NULL, text, sizeof(text) - 1, 0, got, 64).produced;
	assert_int_equal(n, 5);
	assert_int_equal(got[1], find(&sp, "##\xe1\xad\x84\xf0\x9d\x85\xa5"));
	/* U+034F is a starter, removed only afterwards: they do not pass it. */
	assert_int_equal(got[3], find(&sp, "##\xf0\x9d\x85\xa5"));
	assert_int_equal(got[4], find(&sp, "##\xe1\xad\x84"));
	tok_vocab_free(sp.v);
}

TEST(ids_come_when_their_word_is_certain)
{
	struct small_pieces sp;
	struct tok_stream s;
	uint32_t ids[64], i;

	make_marked(&sp);
	build(&sp, 7);
	tok_stream_init(&s, sp.v, NULL, 0);
	assert_int_equal(feed(&s, "aba", 3, false, ids), 0);
	assert_int_equal(tok_stream_waiting(&s), 3);
	assert_int_equal(feed(&s, " ", 1, false, ids), 2); /* the word has ended */
	assert_int_equal(tok_stream_waiting(&s), 0);
	assert_int_equal(feed(&s, ".", 1, false, ids), 1); /* a word by itself */
	assert_int_equal(feed(&s, "\xe4\xb8\xad", 3, false, ids), 1);
	assert_int_equal(feed(&s, "abz", 3, false, ids), 1); /* no token goes on with z */
	assert_int_equal(ids[0], 0);
	assert_int_equal(feed(&s, "ab ", 3, false, ids), 0);
	for (i = 0; i < 7; i++)
		assert_int_equal(feed(&s, "a", 1, false, ids), 0);
	assert_int_equal(feed(&s, "a", 1, false, ids), 1); /* longer than may be */
	assert_int_equal(ids[0], 0);
	assert_int_equal(tok_stream_waiting(&s), 0);
	for (i = 0; i < 1000; i++)
		assert_int_equal(feed(&s, "a\xf0\x9d\x85\xa5", 5, false, ids), 0);
	assert_int_equal(feed(&s, NULL, 0, true, ids), 0);
	tok_vocab_free(sp.v);
}

TEST(nothing_grows_with_hostile_text)
{
	static const char *const unit[] = {"a", "\xf0\x9d\x85\xa5", "\xcc\x81", "a\xcc\x81", "z",
		"\xea\xb0\x81", "\xe1\xad\x84\xf0\x9d\x85\xa5"};
	struct small_pieces sp;
	struct tok_stream s;
	uint32_t ids[4096];

	make_marked(&sp);
	build(&sp, TOK_WORD_MAX);
	for (size_t u = 0; u < sizeof(unit) / sizeof(unit[0]); u++) {
		tok_stream_init(&s, sp.v, NULL, 0);
		for (int i = 0; i < 20000; i++) {
			feed(&s, unit[u], strlen(unit[u]), false, ids);
			assert_in_range(tok_stream_waiting(&s), 0, TOK_CARRY_MAX);
		}
		feed(&s, NULL, 0, true, ids);
	}
	tok_vocab_free(sp.v);
}

TEST(nothing_beyond_the_piece_is_read)
{
	uint64_t seed = 23;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *map =
		mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct small_pieces sp;
	uint32_t ids[400];

	assert_true(map != MAP_FAILED);
	assert_int_equal(mprotect(map + page, page, PROT_NONE), 0);
	make_marked(&sp);
	build(&sp, 7);
	for (int round = 0; round < 4000; round++) {
		char text[128] = "";
		struct tok_stream s;
		size_t n;

		for (uint32_t i = small_random(&seed, 14); i > 0; i--)
			strcat(text,
				marked[small_random(&seed, sizeof(marked) / sizeof(marked[0]))]);
		n = strlen(text);
		memcpy(map + page - n, text, n);
		tok_stream_init(&s, sp.v, NULL, 0);
		feed(&s, map + page - n, n, round % 2, ids);
	}
	munmap(map, 2 * page);
	tok_vocab_free(sp.v);
}
