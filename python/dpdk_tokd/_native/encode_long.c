/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One long text by several threads. It is cut before a single blank between two ASCII letters, if
 * the vocabulary says that the pieces then have the ids of the text (cuts_before_blanks). Added
 * tokens may hold a blank or take one: a text in which they are found is not cut. Special tokens as
 * they usually are, "<|im_end|>" or "[MASK]", can do neither.
 */
#include "libtok.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

#define THREAD_BYTES (LONG_BYTES / 2)  /* worth waking a thread */
#define PIECE_BYTES ((size_t)32 << 10) /* its ids stay in the cache until they are copied */

static inline bool
is_letter(uint8_t c)
{
	return (uint8_t)((c | 0x20) - 'a') < 26;
}

uint32_t long_threads_most = BATCH_THREADS_MAX;

/* No special token holds white space, nor begins or ends where it would take a blank between
 * letters; nor does a normalizer make such a one of it, which keeps ASCII but for case. */
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

	if (!i.cuts_before_blanks)
		return false;
	if (flags & TOK_ADDED_AS_TEXT)
		return true;
	return i.n_added == 0 && (!(flags & TOK_SPECIAL) || specials_leave_blanks(v));
}

uint32_t
long_threads(const struct tok_vocab *v, size_t n, uint32_t flags)
{
	size_t most = n / THREAD_BYTES;
	cpu_set_t cpus;

	most = most < long_threads_most ? most : long_threads_most;
	if (most < 2 || !can_be_cut(v, flags) || sched_getaffinity(0, sizeof(cpus), &cpus) != 0)
		return 1;
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

struct work {
	const struct tok_vocab *v;
	struct encoder *const *encoder;
	const uint8_t *text;
	size_t n;
	uint32_t flags;
	uint32_t *ids;
	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t turn;  /* n_done has changed */
	uint32_t n_threads;   /* that have begun: each has the encoder of its number */
	size_t at;	      /* the text below is taken */
	uint64_t n_taken, n_done;
	struct tok_result r; /* of the pieces that are done, in order */
	struct signals signals;
};

/* The number of the next piece, and its bytes; the lock is held. False: there is none. */
static bool
take_piece(struct work *w, uint64_t *number, size_t *begin, size_t *n)
{
	if (w->at == w->n || w->r.status != TOK_OK)
		return false;
	*number = w->n_taken++;
	*begin = w->at;
	w->at = w->n - w->at <= PIECE_BYTES ? w->n : cut_from(w->text, w->n, w->at + PIECE_BYTES);
	*n = w->at - *begin;
	return true;
}

/* Until all pieces before are done; the lock is held. */
static void
wait_for_turn(struct work *w, uint64_t number)
{
	while (w->n_done != number)
		signals_wait(&w->signals, &w->turn, &w->lock);
}

static void
piece_done(struct work *w, size_t begin, struct tok_result r)
{
	if (w->r.status == TOK_OK) {
		r.consumed += begin;
		r.produced += w->r.produced;
		w->r = r;
	}
	w->n_done++;
	pthread_cond_broadcast(&w->turn);
}

/*
 * Ids go to the encoder's room, which is in the cache, and from there after those of the pieces
 * before; those of a piece that has no place to be cut, and so no bound, at once to where they
 * belong. The ids' memory is so written once, from its beginning on.
 */
static void
work(void *arg)
{
	struct work *w = arg;
	struct encoder *e;
	uint64_t number;
	size_t begin, n;

	pthread_mutex_lock(&w->lock);
	e = w->encoder[w->n_threads++];
	while (take_piece(w, &number, &begin, &n)) {
		const struct encoder_text piece = {.p = w->text + begin, .n = n};
		const size_t bound = encoder_bound(w->v, n, w->flags);
		const bool in_room = n <= 2 * PIECE_BYTES && encoder_room(e, bound);
		uint32_t *to = in_room ? e->ids : NULL;
		struct tok_result r;
		bool raised;

		if (!in_room) {
			wait_for_turn(w, number);
			to = w->ids + w->r.produced;
		}
		pthread_mutex_unlock(&w->lock);
		r = encoder_encode(e, w->v, &piece, w->flags, to, bound, &w->signals);
		raised = signals_raised(&w->signals);
		pthread_mutex_lock(&w->lock);
		wait_for_turn(w, number);
		to = w->ids + w->r.produced;
		piece_done(w, begin, raised ? (struct tok_result){.status = TOK_BAD} : r);
		/* After an error there is no next place: others would copy to the same one. */
		if (in_room && w->r.status == TOK_OK) {
			pthread_mutex_unlock(&w->lock);
			memcpy(to, e->ids, r.produced * sizeof(*to));
			pthread_mutex_lock(&w->lock);
		}
	}
	pthread_mutex_unlock(&w->lock);
}

struct tok_result
long_encode(const struct tok_vocab *v, struct encoder *const *encoder, uint32_t threads,
	const struct encoder_text *text, uint32_t flags, uint32_t *ids)
{
	const struct tok_template *t = &tok_vocab_shape(v)->around;
	const bool around = flags & TOK_TEMPLATE;
	struct work w = {.v = v,
		.encoder = encoder,
		.text = text->p,
		.n = text->n,
		.flags = flags & ~(uint32_t)TOK_TEMPLATE,
		.ids = ids,
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.turn = PTHREAD_COND_INITIALIZER,
		.r = {.status = TOK_OK, .produced = around ? t->n_before : 0}};

	pool_run(work, &w, threads - 1, &w.signals);
	if (atomic_load(&w.signals.raised))
		return (struct tok_result){.status = TOK_BAD};
	if (around && w.r.status == TOK_OK) {
		memcpy(ids, t->before, t->n_before * sizeof(*ids));
		memcpy(ids + w.r.produced, t->after, t->n_after * sizeof(*ids));
		w.r.produced += t->n_after;
	}
	return w.r;
}
