/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The texts are divided into chunks of neighbours. Threads take chunk after chunk and keep the ids
 * one after the other; at the end those of each chunk are copied to their place.
 */
#include "batch.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_COST_MIN ((size_t)128 << 10) /* worth waking a thread: it takes 50 us to come */
#define CHUNK_COST_MAX ((size_t)2 << 20)   /* some 20 ms: between looks for signals */
#define CHUNKS_A_THREAD 8		   /* so that all end at about the same time */

#define HEAD_ID_BYTES 16	     /* most texts have at least one id for each 16 bytes */
#define HEAD_BYTES ((size_t)4 << 10) /* fed at once */

struct batch_chunk {
	size_t first, end; /* texts */
	const struct encoder *encoder;
	size_t at, n_ids; /* in its ids[] */
	size_t failed;	  /* the text, where why.status is not TOK_OK */
	struct tok_result why;
};

struct batch_cut
batch_cut_of(const struct tok_vocab *v, uint32_t flags, size_t most, bool left)
{
	const struct tok_template *t = &tok_vocab_shape(v)->around;

	return (struct batch_cut){
		.most = most,
		.left = left,
		.n_before = flags & TOK_TEMPLATE ? t->n_before : 0,
		.n_after = flags & TOK_TEMPLATE ? t->n_after : 0,
	};
}

size_t
batch_cut(void *items, size_t size, size_t n, const struct batch_cut *cut)
{
	size_t keep = cut->left ? cut->most - cut->n_before : cut->n_after; /* the last */
	char *p = items;

	if (n <= cut->most)
		return n;
	memmove(p + (cut->most - keep) * size, p + (n - keep) * size, keep * size);
	return cut->most;
}

/*
 * The ids that a stream has given are final, whatever follows; so the template's last ones may
 * come at once. Strict calls read on, to refuse what is not UTF-8.
 */
bool
batch_head(const struct tok_vocab *v, struct encoder *e, size_t used,
	const struct encoder_text *text, uint32_t flags, const struct batch_cut *cut,
	struct tok_result *r)
{
	const size_t want = cut->most - cut->n_after;
	struct tok_stream s;
	size_t n = 0;

	if (cut->left || flags & TOK_STRICT_UTF8 || text->n < 2 * HEAD_BYTES ||
		text->n / HEAD_ID_BYTES < want || !encoder_room(e, used + cut->most))
		return false;
	tok_stream_init(&s, v, e->cache, flags);
	for (size_t at = 0; n < want; at += HEAD_BYTES) {
		const size_t bound = tok_stream_bound(&s, HEAD_BYTES);

		if (text->n - at < HEAD_BYTES || !encoder_room(e, used + n + bound + cut->n_after))
			return false;
		*r = tok_stream_feed(&s, (const uint8_t *)text->p + at, HEAD_BYTES, false,
			e->ids + used + n, bound);
		if (r->status != TOK_OK)
			return false;
		n += r->produced;
	}
	memcpy(e->ids + used + want, tok_vocab_shape(v)->around.after,
		cut->n_after * sizeof(*e->ids));
	*r = (struct tok_result){.status = TOK_OK, .produced = cut->most};
	return true;
}

/* What a text costs, in bytes: a character of a str counts with its width. */
static inline size_t
cost_of(const struct encoder_text *t)
{
	return t->n * (t->width == 0 ? 1 : t->width) + BATCH_TEXT_COST;
}

bool
batch_plan(struct batch *b, uint32_t threads)
{
	size_t cost = 0, least = CHUNK_COST_MIN, used = 0;

	for (size_t i = 0; i < b->n_texts; i++)
		cost += cost_of(&b->text[i]);
	b->cost = cost;
	if (cost / threads / CHUNKS_A_THREAD > least)
		least = cost / threads / CHUNKS_A_THREAD;
	if (threads == 1 || least > CHUNK_COST_MAX)
		least = CHUNK_COST_MAX;
	b->n_chunks = 0;
	b->chunk =
		calloc(cost / least + 1, sizeof(*b->chunk)); /* all but the last cost that much */
	if (b->chunk == NULL)
		return false;
	for (size_t i = 0; i < b->n_texts; i++) {
		if (used == 0)
			b->chunk[b->n_chunks++] = (struct batch_chunk){.first = i};
		b->chunk[b->n_chunks - 1].end = i + 1;
		used += cost_of(&b->text[i]);
		if (used >= least)
			used = 0;
	}
	b->n_threads = b->n_chunks < threads ? (uint32_t)b->n_chunks : threads;
	b->n_threads = b->n_threads == 0 ? 1 : b->n_threads;
	return true;
}

void
batch_free(struct batch *b)
{
	free(b->chunk);
}

/* Behind the `used` ids of an encoder. splits[i + 1] becomes the number of ids of text i. */
static bool
encode_chunk(const struct batch *b, struct batch_chunk *c, struct encoder *e, size_t used,
	struct signals *signals)
{
	c->encoder = e;
	c->at = used;
	for (size_t i = c->first; i < c->end; i++) {
		struct encoder_text t = b->text[i];
		size_t bound;

		c->failed = i;
		c->why = (struct tok_result){.status = encoder_utf8(e, &t, signals)};
		if (c->why.status != TOK_OK)
			return false;
		if (!batch_head(b->vocab, e, used, &t, b->flags, &b->cut, &c->why)) {
			bound = encoder_bound(b->vocab, t.n, b->flags);
			c->why = (struct tok_result){.status = TOK_MORE};
			if (!encoder_room(e, used + bound))
				return false;
			c->why = encoder_encode(
				e, b->vocab, &t, b->flags, e->ids + used, bound, signals);
			if (c->why.status != TOK_OK)
				return false;
		}
		b->splits[i + 1] = (int64_t)batch_cut(
			e->ids + used, sizeof(*e->ids), c->why.produced, &b->cut);
		used += (size_t)b->splits[i + 1];
		c->n_ids = used - c->at;
	}
	return true;
}

struct work {
	struct batch *b;
	atomic_size_t next;  /* chunk that nobody has taken */
	atomic_uint threads; /* that have begun: each has the encoder of its number */
	struct signals signals;
};

/* Chunks are taken in order, and those that were are ended: the first error is always the same. */
static void
work(void *arg)
{
	struct work *w = arg;
	struct batch *b = w->b;
	struct encoder *e = b->encoder[atomic_fetch_add(&w->threads, 1)];
	size_t i, used = 0;

	while ((i = atomic_fetch_add(&w->next, 1)) < b->n_chunks) {
		const bool ok = encode_chunk(b, &b->chunk[i], e, used, &w->signals);

		used += b->chunk[i].n_ids;
		if (signals_raised(&w->signals) || !ok)
			atomic_store(&w->next, b->n_chunks);
	}
}

/* From counts to splits. */
static bool
add_up(struct batch *b)
{
	for (size_t i = 0; i < b->n_chunks; i++) {
		const struct batch_chunk *c = &b->chunk[i];

		if (c->why.status != TOK_OK) {
			b->failed = c->failed;
			b->why = c->why;
			return false;
		}
	}
	b->splits[0] = 0;
	for (size_t i = 0; i < b->n_texts; i++)
		b->splits[i + 1] += b->splits[i];
	b->n_ids = (size_t)b->splits[b->n_texts];
	return true;
}

bool
batch_encode(struct batch *b)
{
	struct work w = {.b = b};

	pool_run(work, &w, b->n_threads - 1, &w.signals);
	if (!atomic_load(&w.signals.raised))
		return add_up(b);
	b->failed = 0;
	b->why = (struct tok_result){.status = TOK_BAD};
	return false;
}

void
batch_take(const struct batch *b, uint32_t *ids)
{
	for (size_t i = 0; i < b->n_chunks; i++) {
		const struct batch_chunk *c = &b->chunk[i];

		memcpy(ids, c->encoder->ids + c->at, c->n_ids * sizeof(*ids));
		ids += c->n_ids;
	}
}
