/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Find the merges that can ever be applied. A token inside a text is made by the same merges as its
 * bytes alone (doc/internals/streaming.md, lemma 1). So of all merges with this token as their
 * result, only the last one in the encoding of its bytes is ever applied. Hugging Face files of
 * models from tiktoken list every pair with the right bytes. The merges that are never applied are
 * dropped here, and so are the tokens that no merge makes.
 *
 * Merges are looked at in their order. If the parts of a token are made by earlier merges, it is
 * enough to test whether they stand side by side until this merge comes (encode/bpe_pair.c). Where
 * a part may be made by a later merge, the token's bytes are encoded. Set-up only.
 */
#include <stdlib.h>
#include <string.h>

#include "model_make.h"

/* A merge as it is found: its result, and its place in the order. */
struct found {
	uint32_t merge; /* index, or TOK_NO_TOKEN: none */
	uint32_t rank;	/* TOK_NO_TOKEN: none */
};

struct pairs {
	const struct tok_model *m;
	uint64_t *slot; /* left << 42 | right << 21 | index of the merge; ~0: free */
	uint32_t mask;
	struct tok_hash_seed seed;
	uint32_t of_byte[256];	     /* id, or TOK_NO_TOKEN */
	uint32_t of_bytes[256][256]; /* merge of two bytes, or TOK_NO_TOKEN */
};

static uint64_t *
find_slot(const struct pairs *x, uint32_t left, uint32_t right)
{
	const uint64_t key = (uint64_t)left << 21 | right;
	uint32_t i = (uint32_t)tok_hash_mix(key, x->seed) & x->mask;

	while (x->slot[i] != ~0ull && x->slot[i] >> 21 != key)
		i = (i + 1) & x->mask;
	return &x->slot[i];
}

static struct found
found_at(const struct pairs *x, uint32_t merge)
{
	return (struct found){merge, merge == TOK_NO_TOKEN ? merge : x->m->merge[merge].rank};
}

/* The merge that joins two ids. */
static struct found
find(const struct pairs *x, uint32_t left, uint32_t right)
{
	const uint64_t slot = *find_slot(x, left, right);

	return found_at(x, slot == ~0ull ? TOK_NO_TOKEN : (uint32_t)slot & (TOK_MAX_IDS - 1));
}

static bool
make_pairs(struct pairs *x, const struct tok_model *m, struct tok_error *err)
{
	uint32_t slots = 1024;

	if (m->n_merges > TOK_MAX_IDS)
		return tok_fail(err, "%u merges, the limit is %u", m->n_merges, TOK_MAX_IDS);
	while (slots < 2 * m->n_merges)
		slots *= 2;
	x->m = m;
	x->mask = slots - 1;
	x->slot = malloc(slots * sizeof(*x->slot));
	if (x->slot == NULL || !tok_hash_seed(&x->seed))
		return tok_fail(err, "out of memory for %u merges", m->n_merges);
	memset(x->slot, 0xff, slots * sizeof(*x->slot));
	memset(x->of_byte, 0xff, sizeof(x->of_byte));
	memset(x->of_bytes, 0xff, sizeof(x->of_bytes));
	for (uint32_t id = 0; id < m->n_tokens; id++) {
		if (m->token[id].len == 1 && !m->token[id].special && !m->token[id].outside)
			x->of_byte[m->bytes[m->token[id].off]] = id;
	}
	for (uint32_t i = 0; i < m->n_merges; i++) {
		const struct tok_model_merge *g = &m->merge[i];
		const struct tok_model_token *left = &m->token[g->left],
					     *right = &m->token[g->right];
		uint64_t *slot = find_slot(x, g->left, g->right);

		if (*slot != ~0ull)
			return tok_fail(err, "merges %u and %u join the same two tokens",
				(uint32_t)*slot & (TOK_MAX_IDS - 1), i);
		*slot = (uint64_t)g->left << 42 | (uint64_t)g->right << 21 | i;
		if (left->len == 1 && right->len == 1 &&
			x->of_byte[m->bytes[left->off]] == g->left &&
			x->of_byte[m->bytes[right->off]] == g->right)
			x->of_bytes[m->bytes[left->off]][m->bytes[right->off]] = i;
	}
	return true;
}

/*
 * Apply byte pair encoding to the n bytes at p. If the result is a single token, return the index
 * of the last merge, else TOK_NO_TOKEN. part[] and merge[] are work space for n entries: part[i] is
 * a token, merge[i] joins it with the next token. Of equal ranks the leftmost comes first.
 */
static uint32_t
last_merge(const struct pairs *x, const uint8_t *p, uint32_t n, uint32_t *part, struct found *merge)
{
	uint32_t last = TOK_NO_TOKEN;

	for (uint32_t i = 0; i < n; i++) {
		part[i] = x->of_byte[p[i]];
		if (part[i] == TOK_NO_TOKEN)
			return TOK_NO_TOKEN;
	}
	for (uint32_t i = 0; i + 1 < n; i++)
		merge[i] = found_at(x, x->of_bytes[p[i]][p[i + 1]]);
	while (n > 1) {
		uint32_t at = 0;

		for (uint32_t i = 1; i + 1 < n; i++)
			at = merge[i].rank < merge[at].rank ? i : at;
		last = merge[at].merge;
		if (last == TOK_NO_TOKEN)
			return TOK_NO_TOKEN;
		part[at] = x->m->merge[last].result;
		n--;
		for (uint32_t i = at + 1; i < n; i++) {
			part[i] = part[i + 1];
			merge[i - 1] = merge[i];
		}
		if (at > 0)
			merge[at - 1] = find(x, part[at - 1], part[at]);
		if (at + 1 < n)
			merge[at] = find(x, part[at], part[at + 1]);
	}
	return last;
}

/* Keep the marked merges, in the same order. */
static void
keep(struct tok_model *m, const bool *live)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < m->n_merges; i++) {
		if (live[i])
			m->merge[n++] = m->merge[i];
	}
	m->n_merges = n;
}

/* What is known of a token, by id. */
struct made {
	uint32_t left, right;
	uint32_t time; /* index of its live merge + 1; 0: none yet, or a single byte */
	bool is_byte;
	bool uncertain; /* a part of it may be made by a later merge */
};

/* Do the parts of merge i stand side by side until it comes? See tok_bpe_pair_stands(). */
static bool
stands(const struct pairs *x, const struct made *made, uint32_t i)
{
	uint32_t left = x->m->merge[i].left, right = x->m->merge[i].right, limit = i + 1;

	for (;;) {
		const struct made *l = &made[left], *r = &made[right];

		if (l->time > r->time) {
			limit = l->time < limit ? l->time : limit;
			left = l->right;
		} else {
			if (r->time == 0)
				return true; /* both are bytes */
			limit = r->time < limit ? r->time + 1 : limit;
			right = r->left;
		}
		if (find(x, left, right).merge < limit - 1)
			return false;
	}
}

/* Find live merges whose parts are made by earlier ones. Ranks ascend. */
static void
find_in_order(const struct pairs *x, struct made *made, bool *live)
{
	for (uint32_t i = 0; i < x->m->n_merges; i++) {
		const struct tok_model_merge *g = &x->m->merge[i];
		const struct made *l = &made[g->left], *r = &made[g->right];
		const struct tok_model_token *token = &x->m->token[g->result];
		struct made *t = &made[g->result];

		if (t->time != 0 || token->special || token->outside || token->len < 2)
			continue;
		if ((l->time == 0 && !l->is_byte) || (r->time == 0 && !r->is_byte)) {
			t->uncertain = true;
		} else if (stands(x, made, i)) {
			*t = (struct made){g->left, g->right, i + 1, false, false};
			live[i] = true;
		}
	}
}

/* Find all live merges, and count the tokens that no merge makes. */
static bool
find_live(const struct pairs *x, struct tok_model *m, struct made *made, bool *live,
	struct tok_error *err)
{
	uint32_t part[TOK_MAX_TOKEN_BYTES];
	struct found merge[TOK_MAX_TOKEN_BYTES];
	bool ascend = true;
	uint64_t work = 0;

	for (uint32_t i = 1; i < m->n_merges; i++)
		ascend &= m->merge[i].rank > m->merge[i - 1].rank;
	for (uint32_t byte = 0; byte < 256; byte++) {
		if (x->of_byte[byte] != TOK_NO_TOKEN)
			made[x->of_byte[byte]].is_byte = true;
	}
	if (ascend)
		find_in_order(x, made, live);
	for (uint32_t id = 0; id < m->n_tokens; id++) {
		const struct tok_model_token *t = &m->token[id];
		uint32_t last = TOK_NO_TOKEN;

		if (t->special || t->outside || t->len < 2 || made[id].time != 0)
			continue;
		if (!ascend || made[id].uncertain) {
			if (!tok_model_add_work(&work, t->len, err))
				return false;
			last = last_merge(x, m->bytes + t->off, t->len, part, merge);
		}
		if (last == TOK_NO_TOKEN)
			m->n_unmerged++;
		else
			live[last] = true;
	}
	return true;
}

bool
tok_model_live_merges(struct tok_model *m, struct tok_error *err)
{
	bool *live = calloc(m->n_merges + (size_t)1, sizeof(*live));
	struct made *made = calloc(m->n_tokens + (size_t)1, sizeof(*made));
	struct pairs *x = calloc(1, sizeof(*x));
	bool ok = (live != NULL && made != NULL && x != NULL) ||
		  tok_fail(err, "out of memory for %u merges", m->n_merges);

	m->n_unmerged = 0;
	ok = ok && make_pairs(x, m, err) && find_live(x, m, made, live, err);
	if (ok)
		keep(m, live);
	if (x != NULL)
		free(x->slot);
	free(x);
	free(made);
	free(live);
	return ok;
}
