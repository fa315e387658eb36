/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Text into the tokenizer, with each family's pretokenizer, with form C and without, with added
 * tokens under every flag, with WordPiece under some options, and with Unigram, however it is cut
 * and however little room there is for ids: always the ids of the whole text, with a cache and
 * without; those are the bytes again when decoded, and have offsets. A text without a pretoken
 * border is compared with merging by the definition.
 */
#include <string.h>

#include "test.h"
#include "fuzz.h"
#include "small_vocab.h"
#include "unicode/utf8.h"

#define ALPHABETS 4
#define FAMILIES TOK_PRETOK_LAST /* from 1 */
/* As it is; with form C, and whole tokens first; greedy; with form C and added tokens. */
#define WAYS 4
#define BPE (ALPHABETS * FAMILIES * WAYS)
#define WORDPIECES 8
#define UNIGRAMS 14
#define OTHERS (WORDPIECES + UNIGRAMS)
#define VOCABS (BPE + OTHERS)
#define TEXT_MAX 300
#define IDS_MAX (12 * TEXT_MAX + 64)

static struct small_vocab vocab[BPE];
static const struct tok_vocab *other[OTHERS]; /* WordPiece, then Unigram */
static struct tok_cache *cache[VOCABS];

/* With and without each step of the normalizer; words of 100 characters, or of 6. */
static void
make_wordpieces(void)
{
	static const char *const token[] = {"[UNK]", "h", "he", "hello", "##e", "##l", "##lo",
		"##o", "wor", "w", "##or", "##ld", "##d", "a", "ab", "abcab", "##b", "##bc", "##a",
		"##cab", "A", "##B", "1", "12", "##3", "##2", ",", "'", "s", "re", "\xe4\xb8\xad",
		"\xc3\xa9", "##\xc3\xa9", "e", "##e\xcc\x81", "i\xcc\x87", "##\xcc\x81", "/"};
	const uint32_t n = sizeof(token) / sizeof(token[0]);

	for (uint32_t i = 0; i < WORDPIECES; i++) {
		const bool cased = i & 1, bare = i & 2;
		const struct tok_model_bert options = {.clean_text = !bare,
			.handle_chinese_chars = !bare,
			.strip_accents = cased == bare,
			.lowercase = !cased,
			.cleanup = i & 1,
			.max_chars = i & 4 ? 6 : 100};

		other[i] = small_wordpiece(token, n, &options);
	}
}

/* With and without each step before the words; words, and texts as a whole. */
static void
make_unigrams(void)
{
	static const char *const piece[] = {"<unk>", "a", "b", "ab", "ba", "aa", "aba", "abab", " ",
		" a", " ab", "  ", "c", "ca", "e", "l", "lo", "hel", "\xc3\xa9", "\xe4\xb8\xad",
		"a b", "<a", "<unk>b", "aaaa", "\n", " \xe4\xb8\xad", "bb", "bbb"};
	enum { N = sizeof(piece) / sizeof(piece[0]) };
	double score[N];

	for (uint32_t i = 0; i < UNIGRAMS; i++) {
		const bool bare = i == 7, map = i & 1, model = i >= 8; /* as in a .model */
		const struct tok_model_unigram options = {.charsmap_bytes = map,
			.strip_left = i % 3 == 1,
			.strip_right = i % 3 > 0,
			.squeeze = i & 2,
			.squeeze_to_mark = i == 2 || i == 6,
			.words = i == 3 || i == 4 || bare,
			.blanks = !bare,
			.prefix = i == 3 || i == 4 ? TOK_PREFIX_EACH
				  : bare	   ? TOK_PREFIX_NONE
						   : (enum tok_prefix)(i % 3),
			.split = !bare && i != 5 && i != 6,
			.decode_strips = i & 1};

		const struct tok_model_unigram sentencepiece = {.charsmap_bytes = map,
			.strip_left = i < 12,
			.strip_right = i < 12,
			.squeeze = i < 12,
			.sentencepiece = true,
			.dummy = (enum tok_dummy)(i % 3),
			.blanks = true,
			.decode_strips = i & 2};

		/* Equal ones, so that ways are equal as well. */
		for (uint32_t k = 0; k < N; k++)
			score[k] = (i == 13 ? 30000.0 : 1.0) * (-1.0 - (k * (i + 3)) % 5);
		other[WORDPIECES + i] =
			small_unigram(piece, score, N, model ? &sentencepiece : &options,
				i == 0 || i == 6 || (model && i % 4 == 1));
	}
}

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const char *const alphabet[ALPHABETS] = {
		"ab", "abc '\n", "heLO wrd", "\xc3\xa9\xe4\xb8\xad a\xcc\x81"};
	uint64_t seed = 1;

	make_wordpieces();
	make_unigrams();
	for (uint32_t i = 0; i < BPE; i++) {
		static const enum small_flags flags[WAYS] = {
			0, SMALL_NFC | SMALL_WHOLE, SMALL_GREEDY, SMALL_NFC | SMALL_ADDED};

		small_vocab_of(&vocab[i], &seed, alphabet[i % ALPHABETS], SMALL_MERGES_MAX,
			(enum tok_pretok)(1 + i / ALPHABETS % FAMILIES),
			flags[i / (ALPHABETS * FAMILIES)]);
	}
	for (uint32_t i = 0; i < VOCABS; i++) {
		cache[i] = tok_cache_create(i < BPE ? vocab[i].v : other[i - BPE], 64, NULL);
		MUST(cache[i] != NULL);
	}
	return 0;
}

/* In memory of its own, for AddressSanitizer to guard. */
static void *
copy_of(const void *bytes, size_t n)
{
	void *copy = malloc(n > 0 ? n : 1);

	MUST(copy != NULL);
	if (n > 0)
		memcpy(copy, bytes, n);
	return copy;
}

/* In pieces as `cuts` says: 0 to 31 bytes each, or seven times as many where bit 5 is set, with as
 * little room as may be where bit 7 is set. */
static struct tok_result
stream_all(const struct tok_vocab *v, struct tok_cache *c, struct input cuts, const uint8_t *text,
	size_t n, uint32_t flags, uint32_t *ids)
{
	static struct tok_stream s;
	struct tok_result all = {0};
	size_t at = 0;

	tok_stream_init(&s, v, c, flags);
	for (;;) {
		const uint8_t cut = input_more(&cuts) ? (uint8_t)input_take(&cuts, 1) : 31;
		const size_t left = n - at, want = cut % 32u * (cut & 0x20 ? 7 : 1);
		const size_t piece = want < left ? want : left;
		const bool last = piece == left && !(cut & 0x40);
		const size_t bound = tok_stream_bound(&s, piece);
		const size_t room = cut & 0x80 ? tok_stream_bound(&s, 1) : bound;
		uint8_t *copy = copy_of(text + at, piece);
		uint32_t *to = malloc(room * sizeof(*to) + 1);
		const struct tok_result one = tok_stream_feed(&s, copy, piece, last, to, room);

		MUST(to != NULL && one.consumed <= piece && one.produced <= room);
		MUST(one.status != TOK_MORE || room < bound);
		MUST(all.produced + one.produced <= IDS_MAX);
		memcpy(ids + all.produced, to, one.produced * sizeof(*ids));
		free(copy);
		free(to);
		at += one.consumed;
		all.produced += one.produced;
		all.consumed = at;
		all.status = one.status;
		all.error = one.error;
		if (one.status == TOK_BAD || (one.status == TOK_OK && last))
			return all;
		MUST(one.status != TOK_MORE || one.consumed > 0 || one.produced > 0 || piece == 0 ||
			room < tok_stream_bound(&s, 1));
	}
}

static void
check_decoded(
	const struct tok_vocab *v, const uint32_t *ids, size_t n, const uint8_t *text, size_t bytes)
{
	static uint8_t out[IDS_MAX * 64], piece[IDS_MAX * 64];
	struct tok_decode_stream d;
	struct tok_result r = tok_decode(v, ids, n, out, sizeof(out)), part;
	size_t at = 0;

	MUST(r.status == TOK_OK && r.consumed == n);
	if (text != NULL)
		MUST(r.produced == bytes && memcmp(out, text, bytes) == 0);
	tok_decode_stream_init(&d, v);
	for (size_t i = 0; i <= n; i++) {
		part = tok_decode_stream_feed(&d, ids + i, i < n, i == n, piece, sizeof(piece));
		MUST(part.status == TOK_OK && at + part.produced <= r.produced);
		MUST(memcmp(out + at, piece, part.produced) == 0);
		at += part.produced;
	}
	MUST(at == r.produced);
}

/* Of a text in UTF-8 every id has a place, in order. */
static void
check_offsets(const struct tok_vocab *v, const uint8_t *text, size_t n, uint32_t flags,
	const uint32_t *ids, size_t n_ids)
{
	static struct tok_range range[IDS_MAX];
	size_t before = 0;

	if (!tok_offsets(v, text, n, flags, ids, n_ids, range, NULL)) {
		MUST(!tok_has_offsets(v) || tok_utf8_scan(text, n).valid != n);
		return;
	}
	for (size_t i = 0; i < n_ids; i++) {
		MUST(range[i].begin <= range[i].end && range[i].end <= n);
		MUST(range[i].begin >= before || range[i].end == 0);
		before = range[i].begin;
	}
}

/* Letters only: one pretoken. */
static bool
is_one_pretoken(const uint8_t *text, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (text[i] < 'a' || text[i] > 'z')
			return false;
	}
	return n > 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint32_t whole[IDS_MAX], ids[IDS_MAX], defined[IDS_MAX];
	struct input in = {data, data + size};
	const uint8_t how = (uint8_t)input_take(&in, 1);
	const uint32_t which = (uint32_t)input_take(&in, 1) % VOCABS;
	const struct small_vocab *sv = which < BPE ? &vocab[which] : NULL;
	const struct tok_vocab *v = sv != NULL ? sv->v : other[which - BPE];
	const uint32_t way = which / (ALPHABETS * FAMILIES);
	const bool same_text = sv != NULL && way % 2 == 0, defined_ids = sv != NULL && way == 0;
	const uint32_t flags =
		how & (TOK_STRICT_UTF8 | TOK_TEMPLATE | TOK_ADDED_AS_TEXT | TOK_SPECIAL);
	const uint8_t *bytes;
	struct input cuts;
	struct tok_result want, got;
	uint8_t *text;
	uint32_t n;

	cuts.at = in.at;
	cuts.end = in.at + input_bytes(&in, how >> 4, &bytes);
	n = input_bytes(&in, TEXT_MAX, &bytes);
	text = copy_of(bytes, n);
	want = tok_encode(v, NULL, text, n, flags, whole, IDS_MAX);
	MUST(want.status != TOK_MORE);
	for (int with_cache = 0; with_cache < 2; with_cache++) {
		got = stream_all(v, with_cache ? cache[which] : NULL, cuts, text, n, flags, ids);
		if (got.error == TOK_ERROR_MARKS)
			continue; /* a limit of streams */
		MUST(got.status == want.status && got.error == want.error);
		if (want.status != TOK_OK)
			continue; /* how many come before the fault depends on the cuts */
		MUST(got.consumed == n && got.produced == want.produced);
		MUST(memcmp(ids, whole, want.produced * sizeof(*ids)) == 0);
	}
	if (want.status == TOK_OK) {
		check_decoded(v, whole, want.produced,
			(flags & TOK_STRICT_UTF8) && same_text ? text : NULL, n);
		check_offsets(v, text, n, flags, whole, want.produced);
	}
	if (defined_ids && is_one_pretoken(text, n)) {
		MUST(want.status == TOK_OK && small_encode(sv, text, n, defined) == want.produced);
		MUST(memcmp(defined, whole, want.produced * sizeof(*whole)) == 0);
	}
	free(text);
	return 0;
}
