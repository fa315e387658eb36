/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Merges against their definition, on thousands of small random vocabularies: whole pretokens,
 * every prefix of a stream, and the release rule of doc/internals/streaming.md computed by brute
 * force. TOK_BPE_ROUNDS is the number of vocabularies for whole pretokens, 300 texts each.
 */

#include <stdlib.h>

#include "test.h"
#include "encode/bpe.h"
#include "build/model_make.h"
#include "build/vocab_table.h"
#include "small_vocab.h"

#define TEXT_MAX 200

static const char *const alphabets[] = {"a", "ab", "abc", "abcdef"};

static void
random_text(uint64_t *seed, const char *alphabet, uint8_t *text, uint32_t n)
{
	uint32_t letters = (uint32_t)strlen(alphabet), period = 1 + small_random(seed, 7);
	bool periodic = small_random(seed, 3) == 0;

	for (uint32_t i = 0; i < n; i++)
		text[i] = periodic && i >= period ? text[i - period]
						  : (uint8_t)alphabet[small_random(seed, letters)];
}

static void
assert_same(const uint32_t *got, uint32_t n_got, const uint32_t *want, uint32_t n_want,
	const uint8_t *text, uint32_t n, const char *what)
{
	if (n_got == n_want && memcmp(got, want, n_got * sizeof(*got)) == 0)
		return;
	fail_msg("%s: \"%.*s\": %u ids, expected %u", what, (int)n, (const char *)text, n_got,
		n_want);
}

/* Words that are merged together, each with ids that are its own alone. */
#define TEXTS 300 /* more than are merged at once, or sorted */
struct merged {
	uint8_t text[TEXTS][TEXT_MAX];
	uint32_t want[TEXTS][TOK_MERGE_MAX], n_want[TEXTS];
	uint32_t out[TEXTS][TOK_BPE_WORD_HEAD + TOK_MERGE_MAX + 1];
	struct tok_bpe_word word[TEXTS];
	uint32_t n;
};

static void
add_word(struct merged *m, const uint8_t *text, uint32_t n, const uint32_t *want, uint32_t n_want)
{
	memcpy(m->want[m->n], want, n_want * sizeof(*want));
	m->n_want[m->n] = n_want;
	m->word[m->n] = (struct tok_bpe_word){text, n, m->out[m->n] + TOK_BPE_WORD_HEAD};
	m->n++;
}

static const struct tok_kernels *kernels[4]; /* those that this CPU has */
static uint32_t n_kernels;

static void
find_kernels(void)
{
	static const char *const sets[] = {"portable", "avx2", "avx512", "neon"};
	struct tok_error err;

	for (uint32_t i = 0; i < 4; i++) {
		setenv("TOK_ISA", sets[i], 1);
		kernels[n_kernels] = tok_kernels_choose(&err);
		if (kernels[n_kernels] != NULL)
			n_kernels++;
		else
			print_message("# not tested: %s\n", err.text);
	}
	unsetenv("TOK_ISA");
}

static void
assert_merged(const struct small_vocab *sv, struct merged *m)
{
	for (uint32_t kernel = 0; kernel < n_kernels; kernel++) {
		kernels[kernel]->merge(sv->v, m->word, m->n);
		for (uint32_t i = 0; i < m->n; i++) {
			const struct tok_bpe_word *w = &m->word[i];

			assert_same(w->out, tok_cache_count(w->out), m->want[i], m->n_want[i], w->p,
				w->n, kernels[kernel]->isa);
		}
	}
}

TEST(whole_equals_definition)
{
	const char *given = getenv("TOK_BPE_ROUNDS");
	const long rounds = given != NULL ? atol(given) : 200;
	uint64_t seed = given != NULL ? (uint64_t)rounds : 1;

	find_kernels();
	for (long round = 0; round < rounds; round++) {
		const char *alphabet = alphabets[round % 4];
		struct small_vocab sv;
		struct tok_cache *cache;
		struct merged merged = {0};

		small_vocab_make(&sv, &seed, alphabet, 1 + small_random(&seed, 60));
		cache = tok_cache_create(sv.v, 64, NULL);
		assert_non_null(cache);
		for (int k = 0; k < TEXTS; k++) {
			uint8_t *text = merged.text[k];
			uint32_t n = 1 + small_random(&seed, k % 4 ? 30 : TEXT_MAX - 1);
			uint32_t want[TEXT_MAX], got[3 * TEXT_MAX], n_want;
			struct tok_result r;

			random_text(&seed, alphabet, text, n);
			n_want = small_encode(&sv, text, n, want);
			for (int twice = 0; twice < 2;
				twice++) { /* the second time from the cache */
				r = tok_encode(sv.v, cache, text, n, 0, got, 3 * TEXT_MAX);
				assert_int_equal(r.status, TOK_OK);
				assert_same(
					got, (uint32_t)r.produced, want, n_want, text, n, "whole");
			}
			if (n <= TOK_MERGE_MAX)
				add_word(&merged, text, n, want, n_want);
		}
		assert_merged(&sv, &merged);
		tok_cache_free(cache);
		small_vocab_free(&sv);
	}
}

/* A text of few words, most of which a block has several times. */
TEST(words_that_come_again_equal_the_first)
{
	enum { BYTES = 8000 };
	uint64_t seed = 3;

	for (int round = 0; round < 200; round++) {
		struct small_vocab sv;
		uint8_t text[BYTES];
		uint32_t *want = malloc(2 * sizeof(*want) * 3 * BYTES), *got = want + 3 * BYTES;
		struct tok_cache *cache;
		struct tok_result alone, r;

		assert_non_null(want);
		small_vocab_of(&sv, &seed, "ab", 1 + small_random(&seed, 60), TOK_PRETOK_GPT2, 0);
		cache = tok_cache_create(sv.v, 64, NULL);
		assert_non_null(cache);
		for (uint32_t i = 0; i < BYTES; i++)
			text[i] = "ab "[small_random(&seed, 9) % (2 + i % 2)];
		alone = tok_encode(sv.v, NULL, text, BYTES, 0, want, 3 * BYTES);
		r = tok_encode(sv.v, cache, text, BYTES, 0, got, 3 * BYTES);
		assert_int_equal(r.status, TOK_OK);
		assert_same(got, (uint32_t)r.produced, want, (uint32_t)alone.produced, text, BYTES,
			"with a cache");
		tok_cache_free(cache);
		small_vocab_free(&sv);
		free(want);
	}
}

/*
 * Is there a continuation of text[0 .. n) whose encoding has a token that begins at p and goes on
 * beyond n? By the definition alone: some token goes on from text[p .. n), and the encoding of
 * the text before p followed by it ends with it. The coarser rule asks for the former alone.
 */
static bool
grows(const struct small_vocab *sv, const uint8_t *text, uint32_t p, uint32_t n, bool coarse)
{
	uint8_t with[TEXT_MAX + SMALL_BYTES_MAX];
	uint32_t before[TEXT_MAX], out[TEXT_MAX + SMALL_BYTES_MAX];
	uint32_t n_before = small_encode(sv, text, p, before);

	memcpy(with, text, p);
	for (uint32_t i = 0; i < sv->n; i++) {
		uint32_t n_out;

		if (sv->len[i] <= n - p || memcmp(sv->bytes[i], text + p, n - p) != 0)
			continue;
		if (coarse)
			return true;
		memcpy(with + p, sv->bytes[i], sv->len[i]);
		n_out = small_encode(sv, with, p + sv->len[i], out);
		if (n_out == n_before + 1 && memcmp(out, before, n_before * sizeof(*out)) == 0)
			return true;
	}
	return false;
}

/* What no continuation can change: ids common to the encodings up to all places it may go on from.
 */
static uint32_t
certain_ids(const struct small_vocab *sv, const uint8_t *text, uint32_t n, bool coarse)
{
	uint32_t common[TEXT_MAX], n_common = small_encode(sv, text, n, common);

	for (uint32_t p = 0; p < n; p++) {
		uint32_t other[TEXT_MAX], n_other, k = 0;

		if (!grows(sv, text, p, n, coarse))
			continue;
		n_other = small_encode(sv, text, p, other);
		while (k < n_common && k < n_other && common[k] == other[k])
			k++;
		n_common = k;
	}
	return n_common;
}

TEST(stream_follows_the_rule_at_every_prefix)
{
	uint64_t seed = 2;

	for (int round = 0; round < 600; round++) {
		const char *alphabet = alphabets[round % 4];
		struct tok_cache *cache = NULL;
		struct small_vocab sv;

		small_vocab_make(&sv, &seed, alphabet, 1 + small_random(&seed, 50));
		if (round % 8 < 4)
			cache = tok_cache_create(sv.v, 64, NULL);
		for (int k = 0; k < 4; k++) {
			uint8_t text[TEXT_MAX];
			uint32_t n = 1 + small_random(&seed, 60), given = 0;
			uint32_t want[TEXT_MAX], got[TEXT_MAX * 3];
			struct tok_stream s;
			struct tok_result r;

			random_text(&seed, alphabet, text, n);
			tok_stream_init(&s, sv.v, cache, 0);
			for (uint32_t i = 0; i < n; i++) {
				uint32_t n_want = small_encode(&sv, text, i + 1, want);

				assert_true(tok_stream_bound(&s, 1) <= TEXT_MAX * 3 - given);
				r = tok_stream_feed(
					&s, text + i, 1, false, got + given, TEXT_MAX * 3 - given);
				assert_int_equal(r.status, TOK_OK);
				given += (uint32_t)r.produced;
				/* as much as the rule allows, no more, no less */
				assert_int_equal(given, certain_ids(&sv, text, i + 1, false));
				assert_true(given <= n_want);
				assert_memory_equal(got, want, given * sizeof(*got));
			}
			r = tok_stream_feed(&s, NULL, 0, true, got + given, TEXT_MAX * 3 - given);
			assert_int_equal(r.status, TOK_OK);
			given += (uint32_t)r.produced;
			assert_same(got, given, want, small_encode(&sv, text, n, want), text, n,
				"stream");
			assert_int_equal(tok_stream_waiting(&s), 0);
		}
		tok_cache_free(cache);
		small_vocab_free(&sv);
	}
}

/* With too little to look at ids come late: never early, nor later than by the coarser rule. */
TEST(release_looks_at_so_much_and_no_more)
{
	uint64_t seed = 5;
	uint32_t late = 0;

	for (int round = 0; round < 400; round++) {
		const char *alphabet = alphabets[round % 4];
		const uint32_t n = 1 + small_random(&seed, 60);
		uint32_t got[TEXT_MAX], want[TEXT_MAX], *next = got;
		struct tok_cache *cache;
		struct small_vocab sv;
		struct tok_stream s;
		uint8_t text[TEXT_MAX];

		small_vocab_make(&sv, &seed, alphabet, 1 + small_random(&seed, 50));
		cache = round % 8 < 4 ? tok_cache_create(sv.v, 64, NULL) : NULL;
		random_text(&seed, alphabet, text, n);
		tok_stream_init(&s, sv.v, cache, 0);
		for (uint32_t i = 0; i < n; i++) {
			const uint32_t certain = certain_ids(&sv, text, i + 1, false);

			assert_true(tok_bpe_push(&s, text + i, 1, &next));
			next = tok_bpe_release_within(&s, small_random(&seed, 5), next);
			assert_in_range(next - got, certain_ids(&sv, text, i + 1, true), certain);
			late += (uint32_t)(next - got) < certain;
			small_encode(&sv, text, i + 1, want);
			assert_memory_equal(got, want, (size_t)(next - got) * sizeof(*got));
		}
		tok_cache_free(cache);
		small_vocab_free(&sv);
	}
	assert_true(late > 0);
}

/* As early as single bytes, too, and with nothing written beyond the bound. */
TEST(random_cuts_equal_whole)
{
	uint64_t seed = 3;
	enum { LONG = 6000, BEHIND = 0xa5a5a5a5 };
	uint8_t *text = malloc(LONG);
	uint32_t *want = malloc(LONG * sizeof(*want)), *got = malloc(6 * LONG * sizeof(*got));

	assert_non_null(text);
	assert_non_null(want);
	assert_non_null(got);
	for (int round = 0; round < 120; round++) {
		const char *alphabet = alphabets[round % 4];
		struct tok_stream s, bytes;
		struct small_vocab sv;
		uint32_t at = 0, given = 0, by_bytes = 0, n = LONG;

		small_vocab_make(&sv, &seed, alphabet, 1 + small_random(&seed, 80));
		random_text(&seed, alphabet, text, n);
		/* many pretokens in half of the rounds; no token has a blank inside */
		for (uint32_t i = 0; round % 8 >= 4 && i < n; i++)
			text[i] = small_random(&seed, round % 3 * 15 + 2) == 0 ? ' ' : text[i];
		tok_stream_init(&s, sv.v, NULL, 0);
		tok_stream_init(&bytes, sv.v, NULL, 0);
		while (at < n) {
			uint32_t piece = 1 + small_random(&seed, round % 2 ? 2000 : 20), room;
			struct tok_result r;

			piece = piece < n - at ? piece : n - at;
			room = (uint32_t)tok_stream_bound(&s, piece);
			assert_in_range(given + room, 0, 6 * LONG - 1);
			got[given + room] = BEHIND;
			r = tok_stream_feed(
				&s, text + at, piece, at + piece == n, got + given, room);
			assert_int_equal(r.status, TOK_OK);
			assert_int_equal(r.consumed, piece);
			assert_int_equal(got[given + room], BEHIND);
			given += (uint32_t)r.produced;
			for (; piece > 0; piece--, at++) {
				r = tok_stream_feed(&bytes, text + at, 1, at + 1 == n, want, LONG);
				assert_int_equal(r.status, TOK_OK);
				by_bytes += (uint32_t)r.produced;
			}
			assert_int_equal(given, by_bytes);
		}
		assert_same(got, given, want, small_encode(&sv, text, n, want), text, 40, "long");
		small_vocab_free(&sv);
	}
	free(text);
	free(want);
	free(got);
}

/* As a file that lies might have them: what the machine joins to tokens, no merge makes. */
static void
forget_merges(struct tok_vocab *v)
{
	memset(v->pair, 0xff, tok_vocab_table_n(v, TOK_TABLE_PAIR) * sizeof(*v->pair));
	for (uint32_t i = 0; i < 256 * 256; i++)
		v->byte_pair[i].merge = UINT32_MAX;
}

/* Each invalid byte gives as many ids as the bound allows for one. All but the last are a whole
 * pretoken, which is encoded with the one that the cut left open. */
TEST(invalid_bytes_behind_a_cut_fit_the_bound)
{
	enum { MOST = 60, BROKEN = 40, BEHIND = 0xa5a5a5a5 };
	uint64_t seed = 6;
	uint32_t given = 0;

	for (int round = 0; round < 400; round++) {
		uint32_t want[3 * (MOST + BROKEN)], got[6 * (MOST + BROKEN)], room, early;
		const uint32_t n = 1 + small_random(&seed, MOST);
		const char *alphabet = alphabets[round % 4];
		const bool lies = round % 8 >= 4;
		uint8_t text[MOST + BROKEN];
		struct small_vocab sv;
		struct tok_stream s;
		struct tok_result r, whole;

		small_vocab_make(&sv, &seed, alphabet, 1 + small_random(&seed, 50));
		if (lies)
			forget_merges(sv.v);
		random_text(&seed, alphabet, text, n);
		memset(text + n, 0xff, BROKEN);
		text[n + BROKEN - 2] = 'x';
		whole = tok_encode(sv.v, NULL, text, n + BROKEN, 0, want, 3 * (MOST + BROKEN));
		tok_stream_init(&s, sv.v, NULL, 0);
		r = tok_stream_feed(&s, text, n, false, got, 3 * MOST);
		early = (uint32_t)r.produced;
		given += early;
		room = (uint32_t)tok_stream_bound(&s, BROKEN);
		got[early + room] = BEHIND;
		r = tok_stream_feed(&s, text + n, BROKEN, true, got + early, room);
		assert_int_equal(r.status, TOK_OK);
		assert_int_equal(got[early + room], BEHIND);
		small_vocab_free(&sv);
		if (lies)
			continue;
		assert_int_equal(early + r.produced, whole.produced);
		assert_memory_equal(got, want, whole.produced * sizeof(*got));
	}
	assert_true(given > 0);
}

TEST(short_room_is_said_and_nothing_is_lost)
{
	uint64_t seed = 4;
	struct small_vocab sv;

	small_vocab_make(&sv, &seed, "ab", 40);
	for (uint32_t room = 1; room < 40; room++) {
		static const uint8_t text[] = "abba abab\xff"
					      "aabb \xe4\xb8\xad bbbaaab aab";
		uint32_t want[200], got[200], given = 0, at = 0, n = sizeof(text) - 1;
		struct tok_result r = tok_encode(sv.v, NULL, text, n, 0, want, 200);
		uint32_t n_want = (uint32_t)r.produced;
		struct tok_stream s;

		assert_int_equal(r.status, TOK_OK);
		tok_stream_init(&s, sv.v, NULL, 0);
		for (int turn = 0; turn < 1000; turn++) {
			uint32_t offer = room;

			r = tok_stream_feed(&s, text + at, n - at, true, got + given, offer);
			assert_true(r.produced <= offer);
			given += (uint32_t)r.produced;
			at += (uint32_t)r.consumed;
			if (r.status == TOK_OK)
				break;
			assert_int_equal(r.status, TOK_MORE);
			if (r.consumed == 0 && r.produced == 0) {
				/* the room asked for is the bound, and with it one byte goes on */
				assert_true(tok_stream_bound(&s, 1) > offer);
				room = (uint32_t)tok_stream_bound(&s, 1);
			}
		}
		assert_int_equal(r.status, TOK_OK);
		assert_same(got, given, want, n_want, text, n, "short room");
		r = tok_stream_feed(&s, "a", 1, false, got, 10);
		assert_int_equal(r.status, TOK_BAD);
		assert_int_equal(r.error, TOK_ERROR_FINISHED);
	}
	small_vocab_free(&sv);
}

/*
 * A vocabulary in which the end of a text decides about its beginning. Symbols S(0), S(1), ... of
 * 18 bytes each are tokens, and so are S(i)S(i+1), the later the lower its rank: in S(0)...S(k) the
 * pairs form from the right, so each further symbol changes all ids.
 */
enum { SYMBOLS = 120, SYMBOL_BYTES = 18, STEM = 16, FIRSTS = 12, SECONDS = 10 };

struct chain {
	struct tok_model m;
	uint32_t symbol[SYMBOLS];
	uint8_t text[SYMBOLS * SYMBOL_BYTES];
};

static uint32_t
chain_add(struct tok_model *m, uint32_t left, uint32_t right)
{
	const struct tok_model_token l = m->token[left], r = m->token[right];
	uint32_t id = m->n_tokens++;

	m->token[id] = (struct tok_model_token){.off = (uint32_t)m->n_bytes, .len = l.len + r.len};
	memcpy(m->bytes + m->n_bytes, m->bytes + l.off, l.len);
	memcpy(m->bytes + m->n_bytes + l.len, m->bytes + r.off, r.len);
	m->n_bytes += l.len + r.len;
	tok_model_put_merge(m, left, right, id);
	return id;
}

static void
chain_make(struct chain *c)
{
	static const char firsts[FIRSTS + 1] = "ABCDEFGHIJKL", seconds[SECONDS + 1] = "qrstuvwxyz";
	struct tok_model *m = &c->m;
	uint32_t stem = 'a', with_first[FIRSTS];

	*m = (struct tok_model){.format = "test", .pretok = TOK_PRETOK_GPT2};
	m->token = calloc(1024, sizeof(*m->token));
	m->bytes = malloc(65536);
	m->merge = calloc(1024, sizeof(*m->merge));
	assert_non_null(m->token);
	assert_non_null(m->bytes);
	assert_non_null(m->merge);
	for (; m->n_tokens < 256; m->n_tokens++) {
		m->token[m->n_tokens] = (struct tok_model_token){.off = m->n_tokens, .len = 1};
		m->bytes[m->n_bytes++] = (uint8_t)m->n_tokens;
	}
	for (uint32_t i = 1; i < STEM; i++)
		stem = chain_add(m, stem, 'a' + i);
	for (uint32_t i = 0; i < FIRSTS; i++)
		with_first[i] = chain_add(m, stem, (uint8_t)firsts[i]);
	for (uint32_t i = 0; i < SYMBOLS; i++) {
		c->symbol[i] = chain_add(m, with_first[i / SECONDS], (uint8_t)seconds[i % SECONDS]);
		memcpy(c->text + i * SYMBOL_BYTES, m->bytes + m->token[c->symbol[i]].off,
			SYMBOL_BYTES);
	}
	for (uint32_t i = SYMBOLS - 1; i-- > 0;)
		chain_add(m, c->symbol[i], c->symbol[i + 1]);
}

TEST(carry_beyond_its_limit_is_an_error)
{
	static struct chain c;
	static uint32_t ids[3 * sizeof(c.text) + 8];
	struct tok_error err;
	struct tok_vocab *v;
	struct tok_stream s;
	struct tok_result r;
	uint32_t fits = TOK_CARRY_MAX / SYMBOL_BYTES, n = 0;

	chain_make(&c);
	v = tok_vocab_build(&c.m, "chain", "none", NULL, &err);
	if (v == NULL)
		fail_msg("%s", err.text);

	/* As many symbols as fit: nothing is certain until the end, then all is right. */
	tok_stream_init(&s, v, NULL, 0);
	r = tok_stream_feed(&s, c.text, fits * SYMBOL_BYTES, false, ids, sizeof(ids) / 4);
	assert_int_equal(r.status, TOK_OK);
	assert_int_equal(r.produced, 0);
	assert_int_equal(tok_stream_waiting(&s), fits * SYMBOL_BYTES);
	r = tok_stream_feed(&s, NULL, 0, true, ids, sizeof(ids) / 4);
	assert_int_equal(r.status, TOK_OK);
	assert_int_equal(r.produced, fits / 2 + fits % 2);
	if (fits % 2)
		assert_int_equal(ids[n++], c.symbol[0]);
	for (; n < r.produced; n++)
		assert_int_equal(v->span[ids[n]].len, 2 * SYMBOL_BYTES);

	/* More: the stream says why it ends, and stays ended. */
	tok_stream_init(&s, v, NULL, 0);
	r = tok_stream_feed(&s, c.text, sizeof(c.text), false, ids, sizeof(ids) / 4);
	assert_int_equal(r.status, TOK_BAD);
	assert_int_equal(r.error, TOK_ERROR_CARRY);
	assert_non_null(strstr(tok_error_code_text(r.error), "2048"));
	r = tok_stream_feed(&s, "a", 1, true, ids, sizeof(ids) / 4);
	assert_int_equal(r.status, TOK_BAD);
	assert_int_equal(r.error, TOK_ERROR_FINISHED);

	/* The mark of a word's end is one byte more. */
	for (uint32_t most = TOK_CARRY_MAX - 1; most <= TOK_CARRY_MAX; most++) {
		v->word_end = TOK_WORD_END_MARK;
		tok_stream_init(&s, v, NULL, 0);
		r = tok_stream_feed(&s, c.text, most, false, ids, sizeof(ids) / 4);
		assert_int_equal(r.status, TOK_OK);
		assert_int_equal(tok_stream_waiting(&s), most);
		r = tok_stream_feed(&s, NULL, 0, true, ids, sizeof(ids) / 4);
		assert_int_equal(r.error, most < TOK_CARRY_MAX ? TOK_ERROR_NONE : TOK_ERROR_CARRY);
		if (most < TOK_CARRY_MAX)
			assert_int_equal(ids[r.produced - 1], v->ext[' ']);
		v->word_end = TOK_WORD_END_NONE;
	}

	/* A pretoken that lies whole in the piece: what comes before it is released, and no more.
	 */
	for (int way = 0; way < 3; way++) {
		static uint8_t text[sizeof(c.text) + 32];
		static const char before[] = "abc abc ";
		const size_t n_before = way == 2 ? sizeof(before) - 1 : 0;
		uint32_t want[16];
		size_t n_text = n_before;

		memcpy(text, before, n_before);
		memcpy(text + n_text, c.text, sizeof(c.text));
		n_text += sizeof(c.text);
		if (way >= 1)
			text[n_text++] = ' ';
		memset(ids, 0xff, sizeof(ids));
		tok_stream_init(&s, v, NULL, 0);
		r = tok_stream_feed(&s, text, n_text, way == 0, ids, sizeof(ids) / 4);
		assert_int_equal(r.status, TOK_BAD);
		assert_int_equal(r.error, TOK_ERROR_CARRY);
		assert_true(r.produced <= sizeof(ids) / 4);
		n = (uint32_t)tok_encode(v, NULL, before, n_before, 0, want, 16).produced;
		assert_true(r.produced <= n);
		assert_memory_equal(ids, want, r.produced * sizeof(*ids));
		if (way == 2) /* all pretokens before it: the blank belongs to the one that fails */
			assert_true(
				r.produced >=
				tok_encode(v, NULL, before, n_before - 1, 0, want, 16).produced);
	}
	r = tok_encode(v, NULL, c.text, sizeof(c.text), 0, ids, sizeof(ids) / 4);
	assert_int_equal(r.status, TOK_BAD);
	assert_int_equal(r.produced, 0);

	tok_vocab_free(v);
	free(c.m.token);
	free(c.m.bytes);
	free(c.m.merge);
}
