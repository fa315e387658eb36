/* SPDX-License-Identifier: BSD-3-Clause */
/* The three machines in a row: UTF-8, pretokens, merges. Hot path. */
#include "bpe.h"
#include "cache.h"
#include "pretok.h"
#include "utf8.h"

#define NO_BORDER ((size_t)-1)

void
tok_stream_init(
	struct tok_stream *s, const struct tok_vocab *v, struct tok_cache *c, uint32_t flags)
{
	s->vocab = v;
	s->cache = c;
	s->flags = flags;
	s->over = 0;
	s->state = TOK_ST_NONE;
	s->n_utf8 = 0;
	s->n_ahead = 0;
	tok_bpe_open(s);
}

size_t
tok_stream_waiting(const struct tok_stream *s)
{
	return (size_t)s->n_utf8 + s->n_ahead + s->n_pos;
}

/* An id covers at least one byte; a byte that is not UTF-8 becomes one U+FFFD at most. */
size_t
tok_stream_bound(const struct tok_stream *s, size_t n)
{
	return (n + s->n_utf8) * TOK_UTF8_REPLACEMENT_BYTES + s->n_ahead + s->n_pos;
}

size_t
tok_encode_bound(size_t n)
{
	return n * TOK_UTF8_REPLACEMENT_BYTES;
}

/* ---- whole pretokens ---- */

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

/* A short pretoken that is not one token: from the cache, or by merging. */
static_assert(TOK_MERGE_MAX <= TOK_CACHE_BYTES, "what is merged can be kept");

static uint32_t *
encode_parts(struct tok_stream *s, const uint8_t *p, uint32_t len, uint32_t *ids)
{
	const struct tok_vocab *v = s->vocab;
	struct tok_cache_entry *set = NULL, *e;
	uint64_t key[3] = {0};
	uint32_t n;

	if (s->cache != NULL) {
		memcpy(key, p, len);
		set = tok_cache_set(s->cache, key, len);
		e = tok_cache_find(set, key, len);
		if (e != NULL) {
			memcpy(ids, e->id, e->n * sizeof(*ids));
			return ids + e->n;
		}
	}
	n = tok_bpe_merge(v, p, len, ids);
	for (uint32_t i = 0; i < n; i++)
		ids[i] = v->ext[ids[i]];
	if (set != NULL && n <= TOK_CACHE_IDS)
		tok_cache_learn(set, key, len, ids, n);
	return ids + n;
}

/* A pretoken on its way through the tables of words. */
struct lookup {
	uint64_t key; /* of up to 8 bytes: their value; else the hash */
	uint32_t slot;
	uint32_t len;
};

static inline struct lookup
lookup_begin(const struct tok_vocab *v, const uint8_t *p, size_t len, const uint8_t *end)
{
	struct lookup l = {.len = (uint32_t)len};

	if (len <= TOK_KEY_BYTES) {
		l.key = load_key(p, l.len, end);
		l.slot = (uint32_t)(tok_hash_word(l.key, l.len) >> v->word_shift);
		__builtin_prefetch(&v->word[l.slot]);
	} else if (len <= v->info.max_token_bytes) {
		l.key = tok_hash_long(p, l.len);
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

/* One whole pretoken, of any length. NULL: more than TOK_CARRY_MAX bytes were uncertain. */
static inline uint32_t *
encode_pretoken(struct tok_stream *s, struct lookup l, const uint8_t *p, size_t len, uint32_t *ids)
{
	const struct tok_vocab *v = s->vocab;
	uint32_t i = l.slot;

	if (len <= TOK_KEY_BYTES) {
		for (; v->word[i].len != 0; i = (i + 1) & v->word_mask) {
			if (v->word[i].key == l.key && v->word[i].len == len) {
				*ids = v->word[i].id;
				return ids + 1;
			}
		}
	} else if (len <= v->info.max_token_bytes) {
		for (; v->long_word[i].len != 0; i = (i + 1) & v->long_mask) {
			const struct tok_long_word *w = &v->long_word[i];

			if (w->tag == (uint32_t)l.key && w->len == len &&
				same_bytes(v->bytes + w->off, p, len)) {
				*ids = w->id;
				return ids + 1;
			}
		}
	}
	if (len <= TOK_MERGE_MAX)
		return encode_parts(s, p, (uint32_t)len, ids);
	if (!tok_bpe_push(s, p, len, &ids))
		return NULL;
	return tok_bpe_close(s, ids);
}

/*
 * All whole pretokens of the well-formed text at p, which begins where a pretoken does. Returns
 * where the open one begins (n if there is none), or NO_BORDER when the carry was exceeded.
 */
static size_t
encode_whole(struct tok_stream *s, const uint8_t *p, size_t n, bool last, uint32_t **ids)
{
	struct tok_pretok_scan scan = {
		.v = s->vocab, .text = p, .n = n, .last = last, .undecided = NO_BORDER};
	size_t start[TOK_SCAN_BLOCK + 1];
	struct lookup look[TOK_SCAN_BLOCK];
	uint32_t *next;
	uint32_t have = 0; /* start[0] is carried over from the block before when 1 */

	while (scan.at < n) {
		uint32_t k, found = have + tok_pretok_gpt2_scan(&scan, start + have);

		/* A contraction that is cut by the end: what is behind its quote is uncertain. */
		while (found > 0 && scan.undecided != NO_BORDER &&
			start[found - 1] > scan.undecided)
			found--;
		/* All look-ups of the block are under way before the first is waited for. */
		for (k = 0; k + 1 < found; k++)
			look[k] = lookup_begin(
				s->vocab, p + start[k], start[k + 1] - start[k], p + n);
		for (k = 0; k + 1 < found; k++) {
			next = encode_pretoken(
				s, look[k], p + start[k], start[k + 1] - start[k], *ids);
			if (next == NULL)
				return NO_BORDER; /* what came before it stands */
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
	next = encode_pretoken(s, look[0], p + start[0], n - start[0], *ids);
	if (next == NULL)
		return NO_BORDER;
	*ids = next;
	return n;
}

/* ---- pretokens that are cut ---- */

static bool
take_ahead(struct tok_stream *s, uint32_t **ids)
{
	uint8_t n = s->n_ahead;

	s->n_ahead = 0;
	return tok_bpe_push(s, s->ahead, n, ids);
}

static void
hold(struct tok_stream *s, const uint8_t *p, uint32_t len)
{
	memcpy(s->ahead, p, len);
	s->n_ahead = (uint8_t)len;
}

/* After a close: what was held begins the next pretoken. It is one character. */
static bool
reopen(struct tok_stream *s, uint32_t **ids)
{
	enum tok_class cls;

	if (s->n_ahead == 0)
		return true;
	cls = tok_class_of(s->vocab, tok_utf8_decode(s->ahead, s->n_ahead));
	tok_pretok_gpt2_step(&s->state, NULL, cls, s->ahead[0]);
	return take_ahead(s, ids);
}

/*
 * Characters of well-formed text, one by one, until no pretoken is open at one of them. Returns the
 * bytes taken, or NO_BORDER when the carry was exceeded.
 */
static size_t
encode_steps(struct tok_stream *s, const uint8_t *p, size_t n, uint32_t **ids)
{
	const struct tok_vocab *v = s->vocab;
	size_t at = 0;

	while (at < n) {
		uint32_t len = tok_utf8_length(p[at]);
		enum tok_class cls = tok_class_of(v, tok_utf8_decode(p + at, len));
		bool fits = true;

		switch (tok_pretok_gpt2_step(&s->state, s->ahead, cls, p[at])) {
		case TOK_STEP_TAKE:
			fits = tok_bpe_push(s, p + at, len, ids);
			break;
		case TOK_STEP_HOLD:
			hold(s, p + at, len);
			break;
		case TOK_STEP_AHEAD_HOLD:
			fits = take_ahead(s, ids);
			hold(s, p + at, len);
			break;
		case TOK_STEP_TAKE_CLOSE:
			fits = tok_bpe_push(s, p + at, len, ids);
			*ids = tok_bpe_close(s, *ids);
			return fits ? at + len : NO_BORDER;
		case TOK_STEP_AHEAD_TAKE_CLOSE:
			fits = take_ahead(s, ids) && tok_bpe_push(s, p + at, len, ids);
			*ids = tok_bpe_close(s, *ids);
			return fits ? at + len : NO_BORDER;
		case TOK_STEP_CLOSE:
			*ids = tok_bpe_close(s, *ids);
			if (s->n_ahead == 0)
				return at;
			if (!reopen(s, ids))
				return NO_BORDER;
			continue; /* the same character again, after what was held */
		}
		if (!fits)
			return NO_BORDER;
		at += len;
	}
	return at;
}

/* The text ends: so does the open pretoken, and what is ahead of it belongs to it or follows. */
static bool
finish(struct tok_stream *s, uint32_t **ids)
{
	bool fits = true;

	if (s->state == TOK_ST_SPACES) {
		fits = take_ahead(s, ids);
	} else if (s->state == TOK_ST_QUOTE_AHEAD) {
		*ids = tok_bpe_close(s, *ids);
		s->state = TOK_ST_NONE;
		fits = reopen(s, ids);
	}
	*ids = tok_bpe_close(s, *ids);
	s->state = TOK_ST_NONE;
	return fits;
}

/* Well-formed text. With `last` it is the end. False: the carry was exceeded. */
static bool
encode_text(struct tok_stream *s, const uint8_t *p, size_t n, bool last, uint32_t **ids)
{
	size_t took;

	if (s->state != TOK_ST_NONE) {
		took = encode_steps(s, p, n, ids);
		if (took == NO_BORDER)
			return false;
		p += took;
		n -= took;
	}
	if (s->state == TOK_ST_NONE && n > 0) {
		took = encode_whole(s, p, n, last, ids);
		if (took == NO_BORDER)
			return false;
		if (took < n && encode_steps(s, p + took, n - took, ids) == NO_BORDER)
			return false;
	}
	return !last || finish(s, ids);
}

/* ---- bytes ---- */

static bool
replace(struct tok_stream *s, uint32_t **ids)
{
	return encode_text(
		s, (const uint8_t *)TOK_UTF8_REPLACEMENT, TOK_UTF8_REPLACEMENT_BYTES, false, ids);
}

/* With TOK_WHY_UTF8, *took is the number of bytes before the one that does not belong. */
static enum tok_why
encode_bytes(struct tok_stream *s, const uint8_t *text, size_t n, bool last, uint32_t **ids,
	size_t *took)
{
	const uint8_t *p = text, *end = p + n;

	*took = 0;

	/* Complete, or give up, the character that the piece before left incomplete. */
	while (s->n_utf8 > 0 && p < end) {
		uint8_t have = s->n_utf8;

		if (!tok_utf8_follows(s->utf8[0], have, *p)) {
			*took = (size_t)(p - text);
			if (s->flags & TOK_STRICT_UTF8)
				return TOK_WHY_UTF8;
			s->n_utf8 = 0;
			if (!replace(s, ids))
				return TOK_WHY_CARRY;
			break;
		}
		s->utf8[s->n_utf8++] = *p++;
		if (s->n_utf8 == tok_utf8_length(s->utf8[0])) {
			s->n_utf8 = 0;
			if (!encode_text(s, s->utf8, have + 1u, false, ids))
				return TOK_WHY_CARRY;
		}
	}
	while (p < end) {
		struct tok_utf8_span span = tok_utf8_scan(p, (size_t)(end - p));
		bool all = last && span.end == TOK_UTF8_WHOLE;

		if (span.valid > 0 && !encode_text(s, p, span.valid, all, ids))
			return TOK_WHY_CARRY;
		p += span.valid;
		if (span.end == TOK_UTF8_SHORT) {
			memcpy(s->utf8, p, span.rest);
			s->n_utf8 = (uint8_t)span.rest;
		} else if (span.end == TOK_UTF8_BROKEN) {
			*took = (size_t)(p - text);
			if (s->flags & TOK_STRICT_UTF8)
				return TOK_WHY_UTF8;
			if (!replace(s, ids))
				return TOK_WHY_CARRY;
		}
		p += span.rest;
	}
	if (last && s->n_utf8 > 0) {
		*took = n;
		if (s->flags & TOK_STRICT_UTF8)
			return TOK_WHY_UTF8;
		s->n_utf8 = 0;
		if (!replace(s, ids))
			return TOK_WHY_CARRY;
	}
	if (last)
		return finish(s, ids) ? TOK_WHY_NONE : TOK_WHY_CARRY;
	*ids = tok_bpe_release(s, *ids);
	return TOK_WHY_NONE;
}

struct tok_result
tok_stream_feed(
	struct tok_stream *s, const void *text, size_t n, bool last, uint32_t *ids, size_t room)
{
	struct tok_result r = {.status = TOK_OK};
	const uint8_t *p = text;

	if (s->over)
		return (struct tok_result){.status = TOK_BAD, .why = TOK_WHY_OVER};
	do {
		size_t take = n - r.consumed, took;
		uint32_t *next = ids + r.produced;
		bool end;

		/* Take what surely fits: as a rule everything, in one turn. */
		if (tok_stream_bound(s, take) > room - r.produced) {
			size_t held = tok_stream_bound(s, 0);

			take = room - r.produced > held
				       ? (room - r.produced - held) / TOK_UTF8_REPLACEMENT_BYTES
				       : 0;
			if (take == 0) {
				r.status = TOK_MORE;
				return r;
			}
		}
		end = last && r.consumed + take == n;
		r.why = encode_bytes(s, p + r.consumed, take, end, &next, &took);
		r.produced = (size_t)(next - ids);
		if (r.why != TOK_WHY_NONE) {
			r.consumed += r.why == TOK_WHY_UTF8 ? took : 0;
			r.status = TOK_BAD;
			s->over = 1;
			return r;
		}
		s->over = end;
		r.consumed += take;
	} while (r.consumed < n);
	return r;
}

struct tok_result
tok_encode(const struct tok_vocab *v, struct tok_cache *c, const void *text, size_t n,
	uint32_t flags, uint32_t *ids, size_t room)
{
	struct tok_stream s;

	tok_stream_init(&s, v, c, flags);
	return tok_stream_feed(&s, text, n, true, ids, room);
}

const char *
tok_why_text(enum tok_why why)
{
	switch (why) {
	case TOK_WHY_NONE:
		return "no error";
	case TOK_WHY_UTF8:
		return "the text is not UTF-8, and strict UTF-8 was asked for";
	case TOK_WHY_CARRY:
		return "more than 2048 bytes of one pretoken have uncertain ids";
	case TOK_WHY_ID:
		return "no such id in the vocabulary";
	case TOK_WHY_OVER:
		return "the stream has ended";
	}
	return "unknown";
}
