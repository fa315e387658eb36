/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Find the merges that can ever be applied. A token inside a text is made by the same merges as its
 * bytes alone (doc/internals/streaming.md, lemma 1). So of all merges with this token as their
 * result, only the last one in the encoding of its bytes is ever applied. Hugging Face files of
 * models from tiktoken list every pair with the right bytes. The merges that are never applied are
 * dropped here, and so are the tokens that no merge makes. Set-up only.
 */
#include <stdlib.h>
#include <string.h>

#include "model_make.h"

struct pairs {
	const struct tok_model *m;
	uint32_t *slot; /* index of a merge + 1; 0: free */
	uint32_t mask;
	uint32_t of_byte[256]; /* id, or TOK_NO_TOKEN */
};

static uint32_t *
find_slot(const struct pairs *x, uint32_t left, uint32_t right)
{
	uint64_t hash = ((uint64_t)left << 32 | right) * 0x9e3779b97f4a7c15ull;
	uint32_t i = (uint32_t)(hash >> 32) & x->mask;

	for (; x->slot[i] != 0; i = (i + 1) & x->mask) {
		const struct tok_model_merge *g = &x->m->merge[x->slot[i] - 1];

		if (g->left == left && g->right == right)
			break;
	}
	return &x->slot[i];
}

/* Index of the merge that joins two ids, or TOK_NO_TOKEN. */
static uint32_t
find(const struct pairs *x, uint32_t left, uint32_t right)
{
	return *find_slot(x, left, right) - 1; /* free: 0 - 1 */
}

static bool
make_pairs(struct pairs *x, const struct tok_model *m, struct tok_error *err)
{
	uint32_t slots = 1024;

	while (slots < 2 * m->n_merges)
		slots *= 2;
	*x = (struct pairs){.m = m, .mask = slots - 1};
	x->slot = calloc(slots, sizeof(*x->slot));
	if (x->slot == NULL)
		return tok_fail(err, "out of memory for %u merges", m->n_merges);
	for (uint32_t i = 0; i < m->n_merges; i++) {
		uint32_t *slot = find_slot(x, m->merge[i].left, m->merge[i].right);

		if (*slot != 0)
			return tok_fail(
				err, "merges %u and %u join the same two tokens", *slot - 1, i);
		*slot = i + 1;
	}
	memset(x->of_byte, 0xff, sizeof(x->of_byte));
	for (uint32_t id = 0; id < m->n_tokens; id++) {
		if (m->token[id].len == 1 && !m->token[id].special && !m->token[id].outside)
			x->of_byte[m->bytes[m->token[id].off]] = id;
	}
	return true;
}

/* Does merge i come before merge k? TOK_NO_TOKEN: no merge. */
static bool
is_before(const struct pairs *x, uint32_t i, uint32_t k)
{
	if (i == TOK_NO_TOKEN || k == TOK_NO_TOKEN)
		return i < k;
	return x->m->merge[i].rank < x->m->merge[k].rank;
}

/*
 * Apply byte pair encoding to the n bytes at p. If the result is a single token, return the index
 * of the last merge, else TOK_NO_TOKEN. part[] and merge[] are work space for n entries: part[i] is
 * a token, merge[i] joins it with the next token.
 */
static uint32_t
last_merge(const struct pairs *x, const uint8_t *p, uint32_t n, uint32_t *part, uint32_t *merge)
{
	uint32_t last = TOK_NO_TOKEN;

	for (uint32_t i = 0; i < n; i++) {
		part[i] = x->of_byte[p[i]];
		if (part[i] == TOK_NO_TOKEN)
			return TOK_NO_TOKEN;
	}
	for (uint32_t i = 0; i + 1 < n; i++)
		merge[i] = find(x, part[i], part[i + 1]);
	while (n > 1) {
		uint32_t at = 0;

		for (uint32_t i = 1; i + 1 < n; i++)
			at = is_before(x, merge[i], merge[at]) ? i : at;
		last = merge[at];
		if (last == TOK_NO_TOKEN)
			return TOK_NO_TOKEN;
		part[at] = x->m->merge[last].result;
		memmove(part + at + 1, part + at + 2, (n - at - 2) * sizeof(*part));
		memmove(merge + at, merge + at + 1, (n - at - 2) * sizeof(*merge));
		n--;
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

bool
tok_model_live_merges(struct tok_model *m, struct tok_error *err)
{
	uint32_t part[TOK_MAX_TOKEN_BYTES], merge[TOK_MAX_TOKEN_BYTES];
	bool *live = calloc(m->n_merges + (size_t)1, sizeof(*live));
	struct pairs x = {0};
	bool ok = live != NULL || tok_fail(err, "out of memory for %u merges", m->n_merges);

	ok = ok && make_pairs(&x, m, err);
	m->n_unmerged = 0;
	for (uint32_t id = 0; ok && id < m->n_tokens; id++) {
		const struct tok_model_token *t = &m->token[id];
		uint32_t last;

		if (t->special || t->outside || t->len < 2)
			continue;
		last = last_merge(&x, m->bytes + t->off, t->len, part, merge);
		if (last == TOK_NO_TOKEN)
			m->n_unmerged++;
		else
			live[last] = true;
	}
	if (ok)
		keep(m, live);
	free(x.slot);
	free(live);
	return ok;
}
