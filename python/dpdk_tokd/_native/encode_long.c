/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One long text by several threads. It is cut before a single blank between two ASCII letters:
 * there a pretoken begins in every family that splits text into words, whatever comes before and
 * after, and no normalizer joins what is on either side. So the ids of the pieces, one behind the
 * other, are those of the text. Models that see blanks as letters (SentencePiece's) and added
 * tokens, which may hold a blank or take one, have no such place: those texts are not cut. Special
 * tokens as they usually are, "<|im_end|>" or "[MASK]", can do neither.
 */
#include "libtok.h"

#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#define PIECE_BYTES (LONG_BYTES / 2) /* worth waking a thread */
#define PIECES_A_THREAD 4	     /* so that all end at about the same time */

static inline bool
is_letter(uint8_t c)
{
	return (uint8_t)((c | 0x20) - 'a') < 26;
}

/* No special token holds white space, nor begins or ends where it would take a blank between
 * letters; nor does any normalizer make such a one of it, which no ASCII becomes. */
static bool
specials_leave_blanks(const struct tok_vocab *v)
{
	uint32_t n, len;
	const uint32_t *id = tok_vocab_specials(v, &n);

	for (uint32_t i = 0; i < n; i++) {
		const uint8_t *token = tok_vocab_token(v, id[i], &len);

		if (token == NULL || len == 0 || is_letter(token[0]) || is_letter(token[len - 1]))
			return false;
		for (uint32_t at = 0; at < len; at++) {
			if (token[at] <= ' ' || token[at] >= 0x7f)
				return false;
		}
	}
	return true;
}

static bool
can_be_cut(const struct tok_vocab *v, uint32_t flags)
{
	const struct tok_vocab_info i = tok_vocab_info(v);

	if (strcmp(i.pretokenizer, "none") == 0 || strcmp(i.pretokenizer, "metaspace") == 0 ||
		strcmp(i.normalizer, "metaspace") == 0 ||
		strcmp(i.normalizer, "sentencepiece") == 0)
		return false;
	if (flags & TOK_ADDED_AS_TEXT)
		return true;
	return i.n_added == 0 && (!(flags & TOK_SPECIAL) || specials_leave_blanks(v));
}

uint32_t
long_threads(const struct tok_vocab *v, size_t n, uint32_t flags)
{
	size_t most = n / PIECE_BYTES;
	cpu_set_t cpus;

	if (most < 2 || !can_be_cut(v, flags) || sched_getaffinity(0, sizeof(cpus), &cpus) != 0)
		return 1;
	most = most < BATCH_THREADS_MAX ? most : BATCH_THREADS_MAX;
	return most < (size_t)CPU_COUNT(&cpus) ? (uint32_t)most : (uint32_t)CPU_COUNT(&cpus);
}

/* The first place from `at` on, at most n. */
static size_t
cut_from(const uint8_t *p, size_t n, size_t at)
{
	for (; at + 1 < n; at++) {
		if (p[at] == ' ' && is_letter(p[at - 1]) && is_letter(p[at + 1]))
			return at;
	}
	return n;
}

struct piece {
	size_t begin, end;
	struct tok_result r;
	atomic_bool taken;
};

struct work {
	const struct tok_vocab *v;
	struct encoder *const *encoder;
	const uint8_t *text;
	uint32_t flags;
	uint32_t *ids;
	struct piece piece[BATCH_THREADS_MAX * PIECES_A_THREAD];
	size_t n_pieces;
	atomic_uint threads; /* that have begun: each has the encoder of its number */
};

/* Where the ids of the piece that begins here are first put: room for the worst case before it. */
static inline uint32_t *
place(const struct work *w, size_t begin)
{
	return w->ids + tok_encode_bound(w->v, begin, w->flags);
}

/*
 * Each thread begins with the pieces of its number, and so with the same part of the text if it is
 * encoded again: its cache has seen the words. Then it takes what the others have left.
 */
static void
work(void *arg)
{
	struct work *w = arg;
	const uint32_t thread = atomic_fetch_add(&w->threads, 1);
	struct encoder *e = w->encoder[thread];

	for (size_t i = 0; i < w->n_pieces; i++) {
		struct piece *p = &w->piece[(thread * PIECES_A_THREAD + i) % w->n_pieces];
		const size_t n = p->end - p->begin;

		if (atomic_exchange(&p->taken, true))
			continue;
		p->r = tok_encode(w->v, e->cache, w->text + p->begin, n, w->flags,
			place(w, p->begin), tok_encode_bound(w->v, n, w->flags));
	}
}

struct tok_result
long_encode(const struct tok_vocab *v, struct encoder *const *encoder, uint32_t threads,
	const struct encoder_text *text, uint32_t flags, uint32_t *ids)
{
	const struct tok_template *t = &tok_vocab_shape(v)->around;
	const bool around = flags & TOK_TEMPLATE;
	const size_t least = text->n / (threads * PIECES_A_THREAD) + 1;
	struct work w = {.v = v, .encoder = encoder, .text = text->p};
	struct tok_result r = {.status = TOK_OK, .produced = around ? t->n_before : 0};

	w.flags = flags & ~(uint32_t)TOK_TEMPLATE;
	w.ids = ids + r.produced;
	for (size_t at = 0; at < text->n; w.n_pieces++) {
		size_t end = cut_from(text->p, text->n, at + least);

		w.piece[w.n_pieces].begin = at;
		w.piece[w.n_pieces].end = end;
		at = end;
	}
	pool_run(work, &w, threads - 1);
	for (size_t i = 0; i < w.n_pieces; i++) {
		const struct piece *p = &w.piece[i];

		r.consumed = p->begin + p->r.consumed;
		if (p->r.status != TOK_OK) {
			r.status = p->r.status;
			r.error = p->r.error;
			return r;
		}
		memmove(ids + r.produced, place(&w, p->begin), p->r.produced * sizeof(*ids));
		r.produced += p->r.produced;
	}
	if (around) {
		memcpy(ids, t->before, t->n_before * sizeof(*ids));
		memcpy(ids + r.produced, t->after, t->n_after * sizeof(*ids));
		r.produced += t->n_after;
	}
	return r;
}
