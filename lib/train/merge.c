/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "merge.h"
#include "text.h"

#define AHEAD 16u			   /* how many places ahead memory is prefetched */
#define SHOWN_EACH 256u			   /* merges between two reports of progress */
#define TEXT_MAX (2 * TOK_MAX_TOKEN_BYTES) /* bytes of a token as a file has it: two a byte */

struct seen {
	uint32_t token, place;
};

/* The neighbours on one side of the places merged in a step. */
struct side {
	uint64_t *weight; /* by token: count, zero between steps */
	uint32_t *n;	  /* by token: number of places, zero between steps */
	uint32_t *token;  /* the neighbours */
	uint32_t *pair;	  /* by index of the neighbour: pair with the new token, or TRAIN_NONE */
	uint64_t *off;	  /* by token: offset for its next place */
	uint32_t n_tokens;
	struct seen *seen;
	uint64_t n_seen, room;
};

struct merging {
	const struct tok_train_options *o;
	struct train_text text;
	struct train_tokens *t;
	struct train_queue q;
	struct side before, behind;
	struct train_merges *merges;
	uint64_t room;
};

static bool
side_make(struct side *s, uint32_t n)
{
	s->weight = calloc(n, sizeof(*s->weight));
	s->n = calloc(n, sizeof(*s->n));
	s->token = malloc(n * sizeof(*s->token));
	s->pair = malloc(n * sizeof(*s->pair));
	s->off = malloc(n * sizeof(*s->off));
	return s->weight != NULL && s->n != NULL && s->token != NULL && s->pair != NULL &&
	       s->off != NULL;
}

static void
side_free(struct side *s)
{
	free(s->weight);
	free(s->n);
	free(s->token);
	free(s->pair);
	free(s->off);
	free(s->seen);
}

/* Make room for the neighbours of n places. */
static bool
side_room(struct side *s, uint32_t n)
{
	struct seen *seen = train_grow(s->seen, &s->room, n, sizeof(*seen));

	s->seen = seen == NULL ? s->seen : seen;
	return seen != NULL;
}

static inline void
side_add(struct side *s, uint32_t token, uint64_t weight, uint32_t place)
{
	if (s->n[token]++ == 0)
		s->token[s->n_tokens++] = token;
	s->weight[token] += weight;
	s->seen[s->n_seen++] = (struct seen){token, place};
}

/* ---- a step ---- */

/* Replace left and right by `made` wherever they are side by side, and note the neighbours. */
static void
merge_places(struct merging *g, const uint32_t *place, uint32_t n, uint32_t left, uint32_t right,
	uint32_t made)
{
	struct train_place *text = g->text.place;
	const struct train_token *token = g->t->token;
	const uint32_t left_chars = token[left].chars, right_chars = token[right].chars;

	for (uint32_t i = 0; i < n; i++) {
		const uint32_t p = place[i], second = p + left_chars;
		const uint32_t last = second + right_chars - 1;
		uint32_t neighbour;
		uint64_t weight;

		if (i + AHEAD < n)
			__builtin_prefetch(&text[place[i + AHEAD]]);
		if (text[p].token != left || text[second].token != right)
			continue;
		weight = g->text.count[text[p].word];
		text[second].token = TRAIN_INSIDE;
		text[p].token = made;
		text[last].token = made;
		neighbour = text[p - 1].token;
		if (neighbour != TRAIN_END)
			side_add(&g->before, neighbour, weight, p - token[neighbour].chars);
		neighbour = text[last + 1].token;
		if (neighbour != TRAIN_END)
			side_add(&g->behind, neighbour, weight, p);
	}
}

static uint64_t
key_of(bool behind, uint32_t token, uint32_t neighbour)
{
	return behind ? train_key(token, neighbour) : train_key(neighbour, token);
}

/* Increase the counts of the new pairs of a side's neighbours. */
static bool
count_new(struct merging *g, struct side *s, bool behind, uint32_t made)
{
	const uint64_t most = g->o->max_token_length == 0 ? UINT64_MAX : g->o->max_token_length;
	const struct train_token *token = g->t->token;

	for (uint32_t i = 0; i < s->n_tokens; i++) {
		const uint32_t neighbour = s->token[i];

		s->pair[i] = TRAIN_NONE;
		if ((uint64_t)token[neighbour].chars + token[made].chars >= most)
			continue;
		s->pair[i] = train_pair_add(&g->q, key_of(behind, made, neighbour));
		if (s->pair[i] == TRAIN_NONE)
			return false;
		g->q.pair[s->pair[i]].count += (int64_t)s->weight[neighbour];
	}
	return true;
}

/*
 * Decrease the counts of their old pairs. This comes second, because some of these pairs were
 * created and removed in the same step. Pairs that are missing were too long to be counted.
 */
static void
count_old(struct train_queue *q, struct side *s, bool behind, uint32_t old)
{
	for (uint32_t i = 0; i < s->n_tokens; i++) {
		const uint32_t neighbour = s->token[i];
		const uint32_t pair = train_pair_find(q, key_of(behind, old, neighbour));

		if (pair != TRAIN_NONE)
			q->pair[pair].count -= (int64_t)s->weight[neighbour];
		s->weight[neighbour] = 0;
	}
}

/* Copy the places of a side's pairs to the queue, contiguous for each pair. */
static bool
place_side(struct train_queue *q, struct side *s)
{
	if (!train_places(q, s->n_seen))
		return false;
	for (uint32_t i = 0; i < s->n_tokens; i++) {
		const uint32_t token = s->token[i];
		const bool kept = s->pair[i] != TRAIN_NONE;

		s->off[token] = kept ? q->n_places : UINT64_MAX;
		q->n_places += kept ? s->n[token] : 0;
	}
	for (uint64_t i = 0; i < s->n_seen; i++) {
		uint64_t *off = &s->off[s->seen[i].token];

		if (*off != UINT64_MAX)
			q->place[(*off)++] = s->seen[i].place;
	}
	return true;
}

/* Insert the new pairs into the queue, and reset the side. */
static bool
put_side(struct train_queue *q, struct side *s)
{
	bool ok = true;

	for (uint32_t i = 0; i < s->n_tokens; i++) {
		const uint32_t n = s->n[s->token[i]], pair = s->pair[i];

		s->n[s->token[i]] = 0;
		if (ok && n > 0 && pair != TRAIN_NONE && q->pair[pair].count > 0)
			ok = train_queue_put(q, pair, s->off[s->token[i]] - n, n);
	}
	s->n_tokens = 0;
	s->n_seen = 0;
	return ok;
}

/* Merge a pair into a token. False: out of memory. */
static bool
step(struct merging *g, uint32_t pair, uint32_t made)
{
	struct side *a = &g->before, *b = &g->behind;
	const struct train_pair p = g->q.pair[pair];
	const uint32_t left = (uint32_t)(p.key >> 32), right = (uint32_t)p.key;

	if (!side_room(a, p.n) || !side_room(b, p.n))
		return false;
	merge_places(g, g->q.place + p.off, p.n, left, right, made);
	if (!count_new(g, a, false, made) || !count_new(g, b, true, made))
		return false;
	count_old(&g->q, a, false, left);
	count_old(&g->q, b, true, right);
	return place_side(&g->q, a) && place_side(&g->q, b) && put_side(&g->q, a) &&
	       put_side(&g->q, b);
}

/* ---- all steps ---- */

/* The token that a pair makes, or TOK_NO_TOKEN with *err filled in. */
static uint32_t
make_token(struct merging *g, uint32_t left, uint32_t right, struct tok_error *err)
{
	const struct train_token *l = &g->t->token[left], *r = &g->t->token[right];
	const uint32_t chars = l->chars + r->chars;
	uint8_t text[2 * TEXT_MAX];
	uint32_t skip = 0, made, len, bytes;

	/* A token that continues a word begins with ##, which the merge removes. */
	if (g->o->kind == TOK_KIND_WORDPIECE && r->len > TRAIN_PREFIX_BYTES &&
		memcmp(g->t->text + r->off, TRAIN_PREFIX, TRAIN_PREFIX_BYTES) == 0)
		skip = TRAIN_PREFIX_BYTES;
	len = l->len + r->len - skip;
	bytes = g->o->kind == TOK_KIND_WORDPIECE ? len : chars;
	if (bytes > TOK_MAX_TOKEN_BYTES) {
		tok_fail(err,
			"token %u would have %u bytes, the limit is %u: --max-token-length N makes "
			"tokens of fewer than N characters",
			g->t->n, bytes, TOK_MAX_TOKEN_BYTES);
		return TOK_NO_TOKEN;
	}
	memcpy(text, g->t->text + l->off, l->len);
	memcpy(text + l->len, g->t->text + r->off + skip, r->len - skip);
	made = train_tokens_add(g->t, text, len);
	if (made == TOK_NO_TOKEN)
		tok_fail(err, "out of memory at token %u", g->t->n);
	if (made < g->t->n_special && g->o->kind == TOK_KIND_BPE) {
		tok_fail(err,
			"special token \"%.*s\" is also what words of the text are made of: take one "
			"that is not",
			(int)len, text);
		return TOK_NO_TOKEN;
	}
	if (made != TOK_NO_TOKEN)
		g->t->token[made].chars = chars;
	return made;
}

static bool
note_merge(struct merging *g, uint64_t key)
{
	struct train_merges *m = g->merges;
	uint64_t *merge = train_grow(m->merge, &g->room, m->n + 1ull, sizeof(*merge));

	if (merge == NULL)
		return false;
	m->merge = merge;
	merge[m->n++] = key;
	return true;
}

static bool
merge_all(struct merging *g, struct tok_error *err)
{
	const uint64_t least = g->o->min_frequency > 0 ? g->o->min_frequency : 1;
	const struct tok_train_progress *progress = &g->o->progress;
	bool out_of_memory = false;

	while (g->t->n < g->o->vocab_size) {
		const uint32_t pair = train_queue_take(&g->q, least, &out_of_memory);
		uint64_t key;
		uint32_t made;

		if (pair == TRAIN_NONE)
			break;
		key = g->q.pair[pair].key;
		made = make_token(g, (uint32_t)(key >> 32), (uint32_t)key, err);
		if (made == TOK_NO_TOKEN)
			return false;
		out_of_memory = !note_merge(g, key) || !step(g, pair, made);
		if (out_of_memory)
			break;
		if (progress->show != NULL && g->merges->n % SHOWN_EACH == 0)
			progress->show(progress->ctx, TOK_TRAIN_MERGES, g->t->n, g->o->vocab_size);
	}
	return !out_of_memory ||
	       tok_fail(err, "out of memory at token %u of %u", g->t->n, g->o->vocab_size);
}

bool
train_merge(const struct tok_train_options *o, struct train_words *words,
	const struct train_alphabet *a, struct train_tokens *t, struct train_merges *merges,
	struct tok_error *err)
{
	struct merging g = {.o = o, .t = t, .merges = merges};
	bool ok = train_queue_init(&g.q, err) && train_text_make(&g.text, o, words, a, err);

	if (ok) {
		train_words_free(words);
		ok = (side_make(&g.before, o->vocab_size) && side_make(&g.behind, o->vocab_size)) ||
		     tok_fail(err, "out of memory for %u tokens", o->vocab_size);
	}
	ok = ok && train_text_pairs(&g.text, &g.q, err) && merge_all(&g, err);
	side_free(&g.before);
	side_free(&g.behind);
	train_queue_free(&g.q);
	train_text_free(&g.text);
	return ok;
}
