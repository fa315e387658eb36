/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whole pretokens, a block of them at a time: as words that are one token, from what was learned,
 * by merging, or byte by byte when they are long. Each table is asked for all pretokens of a block
 * before the first answer is waited for: they are larger than the caches, and one miss after the
 * other is most of the time.
 */
#include "encode_whole.h"
#include "cache.h"
#include "pretok.h"
#include "pretoken.h"
#include "utf8.h"

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

/* A pretoken on its way through the tables of words. */
struct lookup {
	uint64_t key; /* of up to 8 bytes: their value; else the hash */
	size_t len;
	struct tok_cache_entry *set; /* where it may be learned; NULL: nowhere */
	uint32_t slot;		     /* of word[] or long_word[] */
	uint32_t id;		     /* outside id, or TOK_NO_TOKEN: it is not one token */
};

static inline struct lookup
lookup_begin(const struct tok_vocab *v, const uint8_t *p, size_t len, const uint8_t *end)
{
	struct lookup l = {.len = len};

	if (len <= TOK_KEY_BYTES) {
		l.key = load_key(p, (uint32_t)len, end);
		l.slot = (uint32_t)(tok_hash_word(l.key, (uint32_t)len) >> v->word_shift);
		__builtin_prefetch(&v->word[l.slot]);
	} else if (len <= v->info.max_token_bytes) {
		l.key = tok_hash_long(p, (uint32_t)len);
		l.slot = (uint32_t)(l.key >> v->long_shift);
		__builtin_prefetch(&v->long_word[l.slot]);
	}
	return l;
}

/* For len > 8: most words have at most 16 bytes, two overlapping loads. */
static inline bool
same_bytes(const uint8_t *a, const uint8_t *b, size_t len)
{
	uint64_t x[2], y[2];

	if (len > 16)
		return memcmp(a, b, len) == 0;
	memcpy(&x[0], a, 8);
	memcpy(&y[0], b, 8);
	memcpy(&x[1], a + len - 8, 8);
	memcpy(&y[1], b + len - 8, 8);
	return x[0] == y[0] && x[1] == y[1];
}

/* A short pretoken that is not one token: from the cache, or by merging. */
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

static uint32_t *
encode_parts(struct tok_stream *s, const struct lookup *l, const uint8_t *p, const uint8_t *end,
	uint32_t *ids)
{
	const uint32_t len = (uint32_t)l->len; /* TOK_MERGE_MAX at most */
	const struct tok_vocab *v = s->vocab;
	struct tok_cache_entry *e;
	uint64_t key[3];
	uint32_t n;

	if (l->set != NULL) {
		load_parts(key, p, len, end);
		e = tok_cache_find(l->set, key, len);
		if (e != NULL) {
			/*
			 * There is room for three ids a byte (tok_stream_bound), and at least as
			 * many bytes as ids: for six here, and for fifteen where there are five.
			 */
			memcpy(ids, e->id, SOME_IDS * sizeof(*ids));
			if (e->n > SOME_IDS)
				memcpy(ids + SOME_IDS, e->id + SOME_IDS,
					(TOK_CACHE_IDS - SOME_IDS) * sizeof(*ids));
			return ids + e->n;
		}
	}
	if (v->longest.node != NULL) {
		n = (uint32_t)(tok_greedy_close(s, tok_greedy_push(s, p, len, ids)) - ids);
	} else {
		n = tok_bpe_merge(v, p, len, ids);
		for (uint32_t i = 0; i < n; i++)
			ids[i] = v->ext[ids[i]];
	}
	if (l->set != NULL && n <= TOK_CACHE_IDS)
		tok_cache_learn(l->set, key, len, ids, n);
	return ids + n;
}

/* Whether the pretoken is one token: l->id. Otherwise its place in the cache is asked for. */
static inline void
lookup_word(const struct tok_stream *s, struct lookup *l, const uint8_t *p, const uint8_t *end)
{
	const struct tok_vocab *v = s->vocab;
	uint32_t i = l->slot;

	l->id = TOK_NO_TOKEN;
	if (l->len <= TOK_KEY_BYTES) {
		for (; v->word[i].len != 0; i = (i + 1) & v->word_mask) {
			if (v->word[i].key == l->key && v->word[i].len == l->len) {
				l->id = v->word[i].id;
				return;
			}
		}
	} else if (l->len <= v->info.max_token_bytes) {
		for (; v->long_word[i].len != 0; i = (i + 1) & v->long_mask) {
			const struct tok_long_word *w = &v->long_word[i];

			if (w->tag == (uint32_t)l->key && w->len == l->len &&
				same_bytes(v->bytes + w->off, p, l->len)) {
				l->id = w->id;
				return;
			}
		}
	}
	if (l->len <= TOK_MERGE_MAX && s->cache != NULL) {
		uint64_t key[3];

		load_parts(key, p, l->len, end);
		l->set = tok_cache_set(s->cache, key, (uint32_t)l->len);
		__builtin_prefetch(&l->set[0]);
		__builtin_prefetch(&l->set[1]);
	}
}

/* One whole pretoken that was looked up. NULL: more than TOK_CARRY_MAX bytes were uncertain. */
static inline uint32_t *
encode_pretoken(struct tok_stream *s, const struct lookup *l, const uint8_t *p, const uint8_t *end,
	uint32_t *ids)
{
	if (l->id != TOK_NO_TOKEN) {
		*ids = l->id;
		return ids + 1;
	}
	if (s->vocab->pretok == TOK_PRETOK_PIECES && l->len == tok_utf8_length(*p))
		return tok_bytes_ids(s->vocab, p, l->len, ids); /* a character in no token */
	if (l->len <= TOK_MERGE_MAX)
		return encode_parts(s, l, p, end, ids);
	if (!tok_pretoken_push(s, p, l->len, &ids))
		return NULL;
	return tok_pretoken_close(s, ids);
}

size_t
tok_encode_whole(struct tok_stream *s, const uint8_t *p, size_t n, bool last, uint32_t **ids)
{
	struct tok_pretok_scan scan = {
		.v = s->vocab, .text = p, .n = n, .last = last, .undecided = TOK_NO_BORDER};
	size_t start[TOK_SCAN_BLOCK + 1];
	struct lookup look[TOK_SCAN_BLOCK];
	uint32_t *next;
	uint32_t have = 0; /* start[0] is carried over from the block before when 1 */

	while (scan.at < n) {
		uint32_t k, found = have + tok_pretok_scan(&scan, start + have);

		/* A contraction that is cut by the end: what is behind its quote is uncertain. */
		while (found > 0 && scan.undecided != TOK_NO_BORDER &&
			start[found - 1] > scan.undecided)
			found--;
		/* All look-ups of the block are under way before the first is waited for. */
		for (k = 0; k + 1 < found; k++)
			look[k] = lookup_begin(
				s->vocab, p + start[k], start[k + 1] - start[k], p + n);
		for (k = 0; k + 1 < found; k++)
			lookup_word(s, &look[k], p + start[k], p + n);
		for (k = 0; k + 1 < found; k++) {
			next = encode_pretoken(s, &look[k], p + start[k], p + n, *ids);
			if (next == NULL)
				return TOK_NO_BORDER; /* what came before it stands */
			*ids = next;
		}
		if (found > 0)
			start[0] = start[found - 1];
		have = found > 0;
	}
	if (have == 0)
		return n;
	if (!last)
		return start[0];
	look[0] = lookup_begin(s->vocab, p + start[0], n - start[0], p + n);
	lookup_word(s, &look[0], p + start[0], p + n);
	next = encode_pretoken(s, &look[0], p + start[0], p + n, *ids);
	if (next == NULL)
		return TOK_NO_BORDER;
	*ids = next;
	return n;
}
