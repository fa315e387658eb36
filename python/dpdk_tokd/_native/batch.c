/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The texts are divided into chunks of neighbours, each of which has a place for as many ids as
 * there could be. Threads take chunk after chunk; the ids of a chunk lie close together at the
 * beginning of its place, and at the end chunk is moved to chunk: of one thread, which has one
 * chunk, none is.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "batch.h"

#define CHUNK_COST_MIN ((size_t)64 << 10) /* worth a thread */
#define CHUNKS_A_THREAD 8		  /* so that all end at about the same time */
#define TEXT_COST 64			  /* what a text costs beside its bytes, in bytes */

struct batch_chunk {
	size_t first, end; /* texts */
	size_t at;	   /* in ids[] */
	size_t n_ids;
	size_t failed; /* the text, where why.status is not TOK_OK */
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

bool
batch_plan(struct batch *b, uint32_t threads)
{
	size_t cost = 0, least = CHUNK_COST_MIN, used = 0;

	for (size_t i = 0; i < b->n_texts; i++)
		cost += b->text[i].n + TEXT_COST;
	if (cost / threads / CHUNKS_A_THREAD > least)
		least = cost / threads / CHUNKS_A_THREAD;
	if (threads == 1)
		least = SIZE_MAX;
	b->n_chunks = 0;
	b->room = 0;
	b->chunk =
		calloc(cost / least + 1, sizeof(*b->chunk)); /* all but the last cost that much */
	if (b->chunk == NULL)
		return false;
	for (size_t i = 0; i < b->n_texts; i++) {
		if (used == 0)
			b->chunk[b->n_chunks++] = (struct batch_chunk){.first = i, .at = b->room};
		b->chunk[b->n_chunks - 1].end = i + 1;
		b->room += tok_encode_bound(b->vocab, b->text[i].n, b->flags);
		used += b->text[i].n + TEXT_COST;
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

/* splits[i + 1] becomes the number of ids of text i. */
static bool
encode_chunk(const struct batch *b, struct batch_chunk *c, struct tok_cache *cache)
{
	uint32_t *ids = b->ids + c->at;

	for (size_t i = c->first; i < c->end; i++) {
		const struct batch_text *t = &b->text[i];
		struct tok_result r = tok_encode(b->vocab, cache, t->p, t->n, b->flags,
			ids + c->n_ids, tok_encode_bound(b->vocab, t->n, b->flags));

		if (r.status != TOK_OK) {
			c->failed = i;
			c->why = r;
			return false;
		}
		r.produced = batch_cut(ids + c->n_ids, sizeof(*ids), r.produced, &b->cut);
		b->splits[i + 1] = (int64_t)r.produced;
		c->n_ids += r.produced;
	}
	return true;
}

struct work {
	struct batch *b;
	atomic_size_t next;  /* chunk that nobody has taken */
	atomic_uint threads; /* that have begun: each has the cache of its number */
};

/* Chunks are taken in order, and those that were are ended: the first error is always the same. */
static void *
work(void *arg)
{
	struct work *w = arg;
	struct batch *b = w->b;
	struct tok_cache *cache = b->cache[atomic_fetch_add(&w->threads, 1)];
	size_t i;

	while ((i = atomic_fetch_add(&w->next, 1)) < b->n_chunks) {
		if (!encode_chunk(b, &b->chunk[i], cache))
			atomic_store(&w->next, b->n_chunks);
	}
	return NULL;
}

/* From chunks with room between them to one array, from counts to splits. */
static bool
join(struct batch *b)
{
	size_t n = 0;

	for (size_t i = 0; i < b->n_chunks; i++) {
		const struct batch_chunk *c = &b->chunk[i];

		if (c->why.status != TOK_OK) {
			b->failed = c->failed;
			b->why = c->why;
			return false;
		}
		if (c->at > n)
			memmove(b->ids + n, b->ids + c->at, c->n_ids * sizeof(*b->ids));
		n += c->n_ids;
	}
	b->splits[0] = 0;
	for (size_t i = 0; i < b->n_texts; i++)
		b->splits[i + 1] += b->splits[i];
	return true;
}

bool
batch_encode(struct batch *b)
{
	struct work w = {.b = b};
	pthread_t thread[BATCH_THREADS_MAX];
	uint32_t started = 0;

	while (started + 1 < b->n_threads && pthread_create(&thread[started], NULL, work, &w) == 0)
		started++;
	work(&w);
	while (started > 0)
		pthread_join(thread[--started], NULL);
	return join(b);
}
