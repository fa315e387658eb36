/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "merge.h"
#include "text.h"

#define AHEAD 16u			   /* places whose memory is asked for in advance */
#define SHOWN_EACH 256u			   /* merges between two reports of progress */
#define TEXT_MAX (2 * TOK_MAX_TOKEN_BYTES) /* bytes of a token as a file has it: two a byte */

/* The neighbours on one side of the places merged in a step. */
struct side {
	uint64_t *weight; /* by token: how often, zero between steps */
	uint32_t *n;	  /* by token: in how many places, likewise */
	uint32_t *token;  /* those there are */
	uint32_t *pair;	  /* by their number: pair with the new token, or TRAIN_NONE */
	uint64_t *off;	  /* by token: where its places go on */
	uint32_t n_tokens;
	struct seen {
		uint32_t token, place;
	} *seen;
	uint64_t n_seen, room;
};

struct merging {
	const struct tok_train_options *o;
	struct train_text text;
	struct train_tokens *t;
	struct train_queue q;
	struct side before, behind;
	uint32_t *place; /* of one step */
	uint64_t room;
	uint32_t *by; /* pairs, in the order in which they were merged */
	uint32_t n_merges;
	uint64_t room_by;
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

/* For the neighbours of n places. */
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

/* ---- which places ---- */

static int
compare_places(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* First of place[from .. n) that is not below `least`: it is near. */
static uint32_t
seek(const uint32_t *place, uint32_t from, uint32_t n, uint64_t least)
{
	uint64_t step = 1, low, high;

	if (from == n || place[from] >= least)
		return from;
	while (step < n - from && place[from + step] < least)
		step *= 2;
	low = from + step / 2;
	high = step < n - from ? from + step : n;
	while (high - low > 1) {
		const uint64_t middle = low + (high - low) / 2;

		*(place[middle] < least ? &low : &high) = middle;
	}
	return (uint32_t)high;
}

/*
 * Places of an entry to g->place, and those in the same words that other entries of the pair have:
 * a word is merged as a whole. Returns how many, or TRAIN_NONE: out of memory.
 */
static uint32_t
gather(struct merging *g, const struct train_entry *e)
{
	const struct train_queue *q = &g->q;
	const uint32_t *own = q->place + e->off;
	uint64_t n = e->n;
	uint32_t *all = train_grow(g->place, &g->room, n + 1, sizeof(*all));

	if (all == NULL)
		return TRAIN_NONE;
	g->place = all;
	memcpy(all, own, n * sizeof(*all));
	for (uint32_t i = q->pair[e->pair].entry; i != TRAIN_NONE; i = q->entry[i].next) {
		const struct train_entry *other = &q->entry[i];
		const uint32_t *place = q->place + other->off;
		uint32_t at = 0, from;

		for (uint32_t k = 0; k < e->n && at < other->n; k++) {
			const uint32_t word = g->text.place[own[k]].word;

			from = at = seek(place, at, other->n, g->text.begin[word]);
			while (at < other->n && place[at] < g->text.begin[word + 1])
				at++;
			all = train_grow(g->place, &g->room, n + (at - from), sizeof(*all));
			if (all == NULL || n + (at - from) >= TRAIN_NONE)
				return TRAIN_NONE;
			g->place = all;
			memcpy(all + n, place + from, (at - from) * sizeof(*all));
			n += at - from;
		}
	}
	if (n > e->n)
		qsort(all, n, sizeof(*all), compare_places);
	return (uint32_t)n;
}

/* ---- a step ---- */

/* Merge left and right to `made` where they stand side by side; neighbours are noted. */
static void
merge_places(struct merging *g, uint32_t n, uint32_t left, uint32_t right, uint32_t made)
{
	struct train_place *text = g->text.place;
	const struct train_token *token = g->t->token;
	const uint32_t left_chars = token[left].chars, right_chars = token[right].chars;

	for (uint32_t i = 0; i < n; i++) {
		const uint32_t p = g->place[i], second = p + left_chars;
		const uint32_t last = second + right_chars - 1;
		uint32_t neighbour;
		uint64_t weight;

		if (i + AHEAD < n)
			__builtin_prefetch(&text[g->place[i + AHEAD]]);
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

/* The pairs that a side's neighbours are in now come so often more. */
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
 * And those that they were in so often less: after the others, of which some came about in the same
 * step and are gone. What is not there was too long to be counted.
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

/* Places of a side's pairs to those of the queue, in a row for each. */
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

/* Where a token is beside itself, both sides have places of that pair: they are one entry. */
static bool
join(struct merging *g, uint32_t made)
{
	struct side *a = &g->before, *b = &g->behind;
	struct train_queue *q = &g->q;
	const uint32_t n = a->n[made] + b->n[made];

	if (!train_places(q, n))
		return false;
	memcpy(q->place + q->n_places, q->place + a->off[made] - a->n[made],
		a->n[made] * sizeof(*q->place));
	memcpy(q->place + q->n_places + a->n[made], q->place + b->off[made] - b->n[made],
		b->n[made] * sizeof(*q->place));
	qsort(q->place + q->n_places, n, sizeof(*q->place), compare_places);
	q->n_places += n;
	a->off[made] = q->n_places;
	a->n[made] = n;
	b->n[made] = 0;
	return true;
}

/* Pairs that came about to the queue; the side is as before the step. */
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

/* Merge the pair of an entry to a token. False: out of memory. */
static bool
step(struct merging *g, const struct train_entry *e, uint32_t made)
{
	struct side *a = &g->before, *b = &g->behind;
	const uint64_t key = g->q.pair[e->pair].key;
	const uint32_t left = (uint32_t)(key >> 32), right = (uint32_t)key;
	const uint32_t n = gather(g, e);

	if (n == TRAIN_NONE)
		return false;
	if (!side_room(a, n) || !side_room(b, n))
		return false;
	merge_places(g, n, left, right, made);
	if (!count_new(g, a, false, made) || !count_new(g, b, true, made))
		return false;
	count_old(&g->q, a, false, left);
	count_old(&g->q, b, true, right);
	if (!place_side(&g->q, a) || !place_side(&g->q, b))
		return false;
	if (a->n[made] > 0 && b->n[made] > 0 && a->off[made] != UINT64_MAX && !join(g, made))
		return false;
	return put_side(&g->q, a) && put_side(&g->q, b);
}

/* ---- all of them ---- */

/* The token that a pair makes, or TOK_NO_TOKEN with *err filled in. */
static uint32_t
make_token(struct merging *g, uint32_t left, uint32_t right, struct tok_error *err)
{
	const struct train_token *l = &g->t->token[left], *r = &g->t->token[right];
	const uint32_t chars = l->chars + r->chars;
	uint8_t text[2 * TEXT_MAX];
	uint32_t skip = 0, made, len, bytes;

	/* What is behind the first of a word begins with ##, which goes with the merge. */
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
note_merge(struct merging *g, uint32_t pair)
{
	uint32_t *by = train_grow(g->by, &g->room_by, g->n_merges + 1ull, sizeof(*by));

	if (by == NULL)
		return false;
	g->by = by;
	g->q.pair[pair].merge = g->n_merges;
	by[g->n_merges++] = pair;
	return true;
}

static bool
merge_all(struct merging *g, struct tok_error *err)
{
	const uint64_t least = g->o->min_frequency > 0 ? g->o->min_frequency : 1;
	const struct tok_train_progress *progress = &g->o->progress;
	bool out_of_memory = false;

	while (g->t->n < g->o->vocab_size) {
		const uint32_t entry = train_queue_take(&g->q, least, &out_of_memory);
		struct train_entry e;
		uint64_t key;
		uint32_t made;

		if (entry == TRAIN_NONE)
			break;
		e = g->q.entry[entry];
		key = g->q.pair[e.pair].key;
		made = make_token(g, (uint32_t)(key >> 32), (uint32_t)key, err);
		if (made == TOK_NO_TOKEN)
			return false;
		out_of_memory = !note_merge(g, e.pair) || !step(g, &e, made);
		if (out_of_memory)
			break;
		train_entry_free(&g->q, entry);
		if (progress->show != NULL && g->n_merges % SHOWN_EACH == 0)
			progress->show(progress->ctx, TOK_TRAIN_MERGES, g->t->n, g->o->vocab_size);
	}
	return !out_of_memory ||
	       tok_fail(err, "out of memory at token %u of %u", g->t->n, g->o->vocab_size);
}

/* A pair that was merged twice has the place of the last time, as in the reference. */
static bool
list_merges(const struct merging *g, struct train_merges *merges, struct tok_error *err)
{
	const struct train_pair *pair = g->q.pair;

	merges->n = 0;
	merges->merge = malloc((g->n_merges + 1ull) * sizeof(*merges->merge));
	if (merges->merge == NULL)
		return tok_fail(err, "out of memory for %u merges", g->n_merges);
	for (uint32_t i = 0; i < g->n_merges; i++) {
		if (pair[g->by[i]].merge == i)
			merges->merge[merges->n++] = pair[g->by[i]].key;
	}
	return true;
}

bool
train_merge(const struct tok_train_options *o, struct train_words *words,
	const struct train_alphabet *a, struct train_tokens *t, struct train_merges *merges,
	struct tok_error *err)
{
	struct merging g = {.o = o, .t = t};
	bool ok = train_queue_init(&g.q, err) && train_text_make(&g.text, o, words, a, err);

	if (ok) {
		train_words_free(words);
		ok = (side_make(&g.before, o->vocab_size) && side_make(&g.behind, o->vocab_size)) ||
		     tok_fail(err, "out of memory for %u tokens", o->vocab_size);
	}
	ok = ok && train_text_pairs(&g.text, &g.q, err) && merge_all(&g, err) &&
	     list_merges(&g, merges, err);
	side_free(&g.before);
	side_free(&g.behind);
	train_queue_free(&g.q);
	train_text_free(&g.text);
	free(g.place);
	free(g.by);
	return ok;
}
