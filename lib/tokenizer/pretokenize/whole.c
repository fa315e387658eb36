/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whole pretokens, a block of them at a time: as words that are one token, from what was learned,
 * by merging, or byte by byte when they are long. Each table is asked for all pretokens of a block
 * before the first answer is waited for: they are larger than the caches, and one miss after the
 * other is most of the time.
 */
#include "whole.h"
#include "encode/cache.h"
#include "pretok.h"
#include "encode/pretoken.h"
#include "unicode/utf8.h"

/* Little-endian value of len bytes (1-8) at p; bytes up to `end` may be read. */
static inline uint64_t
load_key(const uint8_t *p, uint32_t len, const uint8_t *end)
{
	uint64_t key = 0;

	if (end - p >= 8) {
		memcpy(&key, p, 8);
		return key & ~0ull >> (64 - 8 * len);
	}
	memcpy(&key, p, len);
	return key;
}

/* Pretokens on their way through the tables, by their number in the block. */
#define BLOCK 256
static_assert(BLOCK >= 2 * TOK_SCAN_BLOCK, "a scan fits behind what is there");

/* One that is not one token. */
struct missed {
	uint64_t key[3];	     /* its bytes, for the cache */
	struct tok_cache_entry *set; /* where it may be learned; NULL: nowhere */
	const struct tok_cache_entry *learned;
	struct tok_bpe_word *merged; /* one of these two, or neither */
	uint32_t at;		     /* its number */
};

struct block {
	size_t start[BLOCK + 1];
	uint64_t key[BLOCK]; /* value of its first 8 bytes at most */
	uint32_t slot[BLOCK];
	uint32_t id[BLOCK]; /* outside id, or TOK_NO_TOKEN: it is not one token */
	uint16_t at_long[BLOCK];
	struct missed missed[BLOCK];
	struct tok_bpe_word word[BLOCK];
};

static_assert(TOK_MERGE_MAX <= TOK_CACHE_BYTES, "what is merged can be kept");
#define SOME_IDS 4 /* a learned pretoken mostly has no more */
static_assert(SOME_IDS <= 2 * TOK_UTF8_REPLACEMENT_BYTES &&
		      TOK_CACHE_IDS <= (SOME_IDS + 1) * TOK_UTF8_REPLACEMENT_BYTES,
	"copies of these lengths stay within the room there is");

/*
 * The bytes of a pretoken of at most TOK_CACHE_BYTES, zero-padded; bytes up to `end` may be read.
 * A copy of a length that the compiler does not know is a call, and takes longer than the rest.
 */
static inline void
load_parts(uint64_t key[3], const uint8_t *p, size_t len, const uint8_t *end)
{
	static const uint8_t ones[2 * TOK_CACHE_BYTES] = {[0 ... TOK_CACHE_BYTES - 1] = 0xff};
	uint64_t mask[3];

	if (end - p < TOK_CACHE_BYTES) {
		key[0] = key[1] = key[2] = 0;
		memcpy(key, p, len);
		return;
	}
	memcpy(key, p, TOK_CACHE_BYTES);
	memcpy(mask, ones + TOK_CACHE_BYTES - len, TOK_CACHE_BYTES);
	for (uint32_t i = 0; i < 3; i++)
		key[i] &= mask[i];
}

static inline uint32_t *
copy_ids(uint32_t *to, const uint32_t *from, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		to[i] = from[i];
	return to + n;
}

/*
 * What was learned. There is room for three ids a byte (tok_stream_bound), and at least as many
 * bytes as ids: for six here, and for fifteen where there are five. Not so behind a normalizer of
 * SentencePiece's, whose own map says how many bytes one can become.
 */
static inline uint32_t *
copy_learned(const struct tok_vocab *v, uint32_t *ids, const struct tok_cache_entry *e)
{
	if (v->unigram.norm.on)
		return copy_ids(ids, e->id, e->n);
	memcpy(ids, e->id, SOME_IDS * sizeof(*ids));
	if (e->n > SOME_IDS)
		memcpy(ids + SOME_IDS, e->id + SOME_IDS, (TOK_CACHE_IDS - SOME_IDS) * sizeof(*ids));
	return ids + e->n;
}

/* By longest matches, or as learned of them. */
static uint32_t *
encode_longest(
	struct tok_stream *s, const struct missed *m, const uint8_t *p, uint32_t len, uint32_t *ids)
{
	const struct tok_cache_entry *e = NULL;
	uint32_t n;

	if (m->set != NULL)
		e = tok_cache_find(m->set, m->key, len);
	if (e != NULL)
		return copy_learned(s->vocab, ids, e);
	n = (uint32_t)(tok_greedy_close(s, tok_greedy_push(s, p, len, ids)) - ids);
	if (m->set != NULL && n <= TOK_CACHE_IDS)
		tok_cache_learn(m->set, m->key, len, ids, n);
	return ids + n;
}

/* Of all n pretokens: the table of short words is asked, and then looked at. */
static inline void
find_words(const struct tok_vocab *v, struct block *b, uint32_t n, const uint8_t *p,
	const uint8_t *end)
{
	for (uint32_t k = 0; k < n; k++) {
		const size_t len = b->start[k + 1] - b->start[k];
		const uint32_t short_len = len < TOK_KEY_BYTES ? (uint32_t)len : TOK_KEY_BYTES;

		b->key[k] = load_key(p + b->start[k], short_len, end);
		b->slot[k] = tok_word_slot(v, b->key[k], short_len);
		__builtin_prefetch(&v->word[b->slot[k]]);
	}
	for (uint32_t k = 0; k < n; k++) {
		const size_t len = b->start[k + 1] - b->start[k];

		b->id[k] = tok_word_find(v, b->slot[k], b->key[k],
			len <= TOK_KEY_BYTES ? (uint32_t)len : TOK_KEY_BYTES + 1);
	}
}

/* Of those above 8 bytes, likewise. */
static inline void
find_long_words(const struct tok_vocab *v, struct block *b, uint32_t n, const uint8_t *p)
{
	uint32_t n_long = 0;

	for (uint32_t k = 0; k < n; k++) {
		const size_t len = b->start[k + 1] - b->start[k];

		b->at_long[n_long] = (uint16_t)k;
		n_long += len > TOK_KEY_BYTES && len <= v->info.max_token_bytes;
	}
	for (uint32_t i = 0; i < n_long; i++) {
		const uint32_t k = b->at_long[i];
		const size_t len = b->start[k + 1] - b->start[k];

		b->slot[k] = tok_long_slot(v, p + b->start[k], (uint32_t)len);
		__builtin_prefetch(&v->long_word[b->slot[k]]);
	}
	for (uint32_t i = 0; i < n_long; i++) {
		const uint32_t k = b->at_long[i];
		const size_t len = b->start[k + 1] - b->start[k];

		b->id[k] = tok_long_find(v, b->slot[k], p + b->start[k], (uint32_t)len);
	}
}

/* List those that are not one token, and ask the cache. Returns their number. */
static inline uint32_t
list_missed(const struct tok_stream *s, struct block *b, uint32_t n, const uint8_t *p,
	const uint8_t *end)
{
	uint32_t n_missed = 0;

	for (uint32_t k = 0; k < n; k++) {
		b->missed[n_missed].at = k;
		n_missed += b->id[k] == TOK_NO_TOKEN;
	}
	for (uint32_t i = 0; i < n_missed; i++) {
		struct missed *m = &b->missed[i];
		const size_t len = b->start[m->at + 1] - b->start[m->at];

		m->set = NULL;
		if (len > TOK_MERGE_MAX || s->cache == NULL)
			continue;
		load_parts(m->key, p + b->start[m->at], len, end);
		m->set = tok_cache_set(s->cache, m->key, (uint32_t)len);
		__builtin_prefetch(&m->set[0]);
		__builtin_prefetch(&m->set[1]);
	}
	return n_missed;
}

/*
 * Of the missed, look up what was learned, and merge the others: all of them before any is
 * learned, which could put it in place of one that was found. What is merged has at most
 * TOK_MERGE_MAX bytes.
 */
static inline void
merge_missed(struct tok_stream *s, struct block *b, uint32_t n, const uint8_t *p)
{
	const struct tok_vocab *v = s->vocab;
	uint32_t n_words = 0;

	for (uint32_t i = 0; i < n; i++) {
		struct missed *m = &b->missed[i];
		const uint8_t *at = p + b->start[m->at];
		const size_t len = b->start[m->at + 1] - b->start[m->at];

		m->learned = NULL;
		m->merged = NULL;
		if (len > TOK_MERGE_MAX || v->longest.node != NULL ||
			(v->pretok == TOK_PRETOK_SENTENCEPIECE && len == tok_utf8_length(*at)))
			continue;
		if (m->set != NULL)
			m->learned = tok_cache_find(m->set, m->key, (uint32_t)len);
		if (m->learned != NULL)
			continue;
		m->merged = &b->word[n_words++];
		m->merged->p = at;
		m->merged->n = (uint32_t)len;
	}
	tok_bpe_merge(v, b->word, n_words);
}

/* Remember what was merged. A pretoken that was there several times is remembered once. */
static inline void
learn_merged(struct block *b, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct missed *m = &b->missed[i];
		const struct tok_bpe_word *w = m->merged;

		if (w != NULL && m->set != NULL && w->n_out <= TOK_CACHE_IDS &&
			tok_cache_find(m->set, m->key, w->n) == NULL)
			tok_cache_learn(m->set, m->key, w->n, w->out, w->n_out);
	}
}

/* One whole pretoken that is not one token. NULL: more than TOK_CARRY_MAX bytes were uncertain. */
static inline uint32_t *
encode_missed(
	struct tok_stream *s, const struct missed *m, const uint8_t *p, size_t len, uint32_t *ids)
{
	const struct tok_vocab *v = s->vocab;

	if (m->learned != NULL)
		return copy_learned(v, ids, m->learned);
	if (m->merged != NULL) {
		struct tok_bpe_word *w = m->merged;

		for (uint32_t i = 0; i < w->n_out; i++)
			*ids++ = w->out[i] = v->ext[w->out[i]];
		return ids;
	}
	if (v->pretok == TOK_PRETOK_SENTENCEPIECE && len == tok_utf8_length(*p))
		return tok_bytes_ids(v, p, len, ids); /* a character in no token */
	if (len <= TOK_MERGE_MAX)
		return encode_longest(s, m, p, (uint32_t)len, ids);
	if (!tok_pretoken_push(s, p, len, &ids))
		return NULL;
	return tok_pretoken_close(s, ids);
}

/*
 * The n pretokens of a block. False: more than TOK_CARRY_MAX bytes of one were uncertain; the ids
 * of those before it are given out.
 */
static bool
encode_block(struct tok_stream *s, struct block *b, uint32_t n, const uint8_t *p,
	const uint8_t *end, uint32_t **ids)
{
	uint32_t missed, done = 0;

	find_words(s->vocab, b, n, p, end);
	find_long_words(s->vocab, b, n, p);
	missed = list_missed(s, b, n, p, end);
	merge_missed(s, b, missed, p);
	for (uint32_t i = 0; i < missed; i++) {
		const struct missed *m = &b->missed[i];
		const uint32_t at = m->at;
		uint32_t *next;

		*ids = copy_ids(*ids, b->id + done, at - done);
		next = encode_missed(s, m, p + b->start[at], b->start[at + 1] - b->start[at], *ids);
		if (next == NULL)
			return false;
		*ids = next;
		done = at + 1;
	}
	learn_merged(b, missed);
	*ids = copy_ids(*ids, b->id + done, n - done);
	return true;
}

size_t
tok_encode_whole(struct tok_stream *s, const uint8_t *p, size_t n, bool last, uint32_t **ids)
{
	struct tok_pretok_scan scan = {
		.v = s->vocab, .text = p, .n = n, .last = last, .undecided = TOK_NO_BORDER};
	struct block b;
	uint32_t have = 0; /* pretokens that begin in the block */

	while (scan.at < n) {
		have += tok_pretok_scan(&scan, b.start + have);

		/* A contraction that is cut by the end: what is behind its quote is uncertain. */
		while (have > 0 && scan.undecided != TOK_NO_BORDER &&
			b.start[have - 1] > scan.undecided)
			have--;
		if (have == 0 || (scan.at < n && have + TOK_SCAN_BLOCK <= BLOCK))
			continue;
		if (!encode_block(s, &b, have - 1, p, p + n, ids))
			return TOK_NO_BORDER;	/* what came before it stands */
		b.start[0] = b.start[have - 1]; /* its end comes with the next block */
		have = 1;
	}
	if (have == 0)
		return n;
	if (!last)
		return b.start[0];
	b.start[1] = n;
	return encode_block(s, &b, 1, p, p + n, ids) ? n : TOK_NO_BORDER;
}
