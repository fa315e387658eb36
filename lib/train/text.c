/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "text.h"
#include "unicode/utf8.h"

#define PLACES_MAX (UINT32_MAX - 1ull)

/* Write the tokens of a word to `out`, which has room for one per byte. Returns their number. */
static uint32_t
tokens_of(const struct train_words *w, const struct train_word *word,
	const struct train_alphabet *a, bool bytes, struct train_place *out, uint32_t number)
{
	const uint8_t *begin = w->bytes + word->off, *end = begin + word->len;
	uint32_t n = 0;

	for (const uint8_t *p = begin; p < end;) {
		const uint32_t len = bytes ? 1 : tok_utf8_length(*p);
		const uint32_t c = bytes ? *p : tok_utf8_decode(p, len);
		const uint32_t token = (p == begin ? a->first : a->later)[c];

		if (token != TOK_NO_TOKEN)
			out[n++] = (struct train_place){token, number};
		p += len;
	}
	return n;
}

bool
train_text_make(struct train_text *x, const struct tok_train_options *o,
	const struct train_words *w, const struct train_alphabet *a, struct tok_error *err)
{
	const uint64_t most = w->n_bytes + w->n + 1;
	struct train_place *place;

	*x = (struct train_text){.n = 1};
	if (most > PLACES_MAX)
		return tok_fail(err,
			"the distinct words have %llu bytes, the limit is %llu: train on less text",
			(unsigned long long)w->n_bytes, PLACES_MAX - w->n);
	x->place = malloc(most * sizeof(*x->place));
	x->count = malloc((w->n + 1ull) * sizeof(*x->count));
	if (x->place == NULL || x->count == NULL)
		return tok_fail(err, "out of memory for %llu bytes of distinct words",
			(unsigned long long)w->n_bytes);
	x->place[0] = (struct train_place){TRAIN_END, 0};
	for (uint32_t i = 0; i < w->n; i++) {
		const uint32_t n = tokens_of(
			w, &w->word[i], a, o->kind == TOK_KIND_BPE, x->place + x->n, x->n_words);

		if (n < 2)
			continue;
		x->count[x->n_words] = w->word[i].count;
		x->n += n;
		x->place[x->n++] = (struct train_place){TRAIN_END, x->n_words++};
	}
	place = realloc(x->place, x->n * sizeof(*place));
	x->place = place == NULL ? x->place : place;
	return true;
}

void
train_text_free(struct train_text *x)
{
	free(x->place);
	free(x->count);
	*x = (struct train_text){0};
}

/* Is there a pair at p? */
static bool
key_at(const struct train_text *x, uint64_t p, uint64_t *key)
{
	const uint32_t left = x->place[p].token, right = x->place[p + 1].token;

	*key = train_key(left, right);
	return left != TRAIN_END && right != TRAIN_END;
}

/* Insert all pairs, each with room for as many places as it has. */
static bool
put_all(struct train_queue *q)
{
	uint64_t off = 0;

	for (uint32_t i = 0; i < q->n_pairs; i++) {
		const uint32_t n = q->pair[i].n;

		if (!train_queue_put(q, i, off, n))
			return false;
		off += n;
	}
	return true;
}

bool
train_text_pairs(const struct train_text *x, struct train_queue *q, struct tok_error *err)
{
	uint64_t key, n_places = 0;
	bool ok = true;

	for (uint64_t p = 0; ok && p + 1 < x->n; p++) {
		uint32_t pair;

		if (!key_at(x, p, &key))
			continue;
		pair = train_pair_add(q, key);
		ok = pair != TRAIN_NONE;
		if (!ok)
			break;
		q->pair[pair].n++;
		q->pair[pair].count += (int64_t)x->count[x->place[p].word];
		n_places++;
	}
	ok = ok && train_places(q, n_places) && put_all(q);
	for (uint32_t i = 0; ok && i < q->n_pairs; i++)
		q->pair[i].n = 0;
	for (uint64_t p = 0; ok && p + 1 < x->n; p++) {
		if (key_at(x, p, &key)) {
			struct train_pair *pair = &q->pair[train_pair_find(q, key)];

			q->place[pair->off + pair->n++] = (uint32_t)p;
		}
	}
	q->n_places = n_places;
	return ok || tok_fail(err, "out of memory for %u pairs", q->n_pairs);
}
