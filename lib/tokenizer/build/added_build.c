/* SPDX-License-Identifier: BSD-3-Clause */
/* Build the sets of added tokens (added.h) from a model. Set-up only. */
#include <stdlib.h>

#include "isa/kernels.h"
#include "parts.h"
#include "normalize/added.h"
#include "pieces.h"
#include "longest_build.h"
#include "vocab_table.h"

/* Of a set: its tokens; its trie is behind them in the list. */
#define TOK_TABLE_ADDED(which)                                                                     \
	((enum tok_table)(                                                                         \
		(which) == TOK_ADDED_TEXT_SET ? TOK_TABLE_ADDED_TEXT : TOK_TABLE_ADDED_NORMAL))
static_assert(TOK_TABLE_ADDED_TEXT_POP == TOK_TABLE_ADDED_TEXT + 2 &&
		      TOK_TABLE_ADDED_NORMAL_POP == TOK_TABLE_ADDED_NORMAL + 2,
	"in this order");

/* The added tokens that the model lists. If the format has no such list: its special tokens. */
struct list {
	struct tok_model_added *added;
	const uint8_t *bytes;
	uint32_t n;
	bool owned;
};

static bool
make_list(const struct tok_model *m, struct list *l)
{
	if (m->added != NULL) {
		*l = (struct list){m->added, m->added_bytes, m->n_added, false};
		return true;
	}
	*l = (struct list){calloc(m->n_tokens + 1, sizeof(*l->added)), m->bytes, 0, true};
	if (l->added == NULL)
		return false;
	for (uint32_t id = 0; id < m->n_tokens; id++) {
		const struct tok_model_token *t = &m->token[id];

		if (t->special && t->len <= TOK_ADDED_BYTES_MAX)
			l->added[l->n++] =
				(struct tok_model_added){id, TOK_ADDED_SPECIAL, t->off, t->len};
	}
	return true;
}

/* A set that is being built. */
struct making {
	struct tok_trie_word *piece;
	struct tok_added_token *token;
	uint8_t *text; /* of all pieces, normalized if they are searched in normalized text */
	size_t n_text;
	uint32_t n;
};

#define NO_FORM "added token %u: its normal form has no bytes, or more than %u"

/* m: normalize the token with this model's normalizer; NULL: do not normalize. */
static bool
put(struct making *g, const struct list *l, const struct tok_model_added *t,
	const struct tok_model *m, const struct tok_vocab *v, struct tok_error *err)
{
	uint8_t *text = g->text + g->n_text, steps[TOK_ADDED_BYTES_MAX];
	const uint8_t *from = l->bytes + t->off;
	uint32_t len = t->len;
	size_t n;

	if (m != NULL && m->norm.n > 0) {
		if (!tok_norm_apply(v, from, len, steps, sizeof(steps), &n) || n == 0)
			return tok_fail(err, NO_FORM, t->id, TOK_ADDED_BYTES_MAX);
		from = steps;
		len = (uint32_t)n;
	}
	if (m != NULL && m->metaspace.stage == TOK_METASPACE_NORMALIZER) {
		const uint32_t prefix = m->metaspace.prefix == TOK_PREFIX_ANYWAY;

		if (t->what & (TOK_ADDED_LSTRIP | TOK_ADDED_RSTRIP))
			return tok_fail(err,
				"added token %u is normalized and takes white space, but blanks "
				"become U+2581, which is not white space: not implemented",
				t->id);
		text[0] = ' ';
		len = prefix + (uint32_t)tok_piece_bytes((const char *)from, len, text + prefix);
	} else if (m != NULL && v->unigram.norm.on) {
		if (!tok_spm_normalize(v, from, len, text, TOK_ADDED_BYTES_MAX, &n) || n == 0)
			return tok_fail(err, NO_FORM, t->id, TOK_ADDED_BYTES_MAX);
		len = (uint32_t)n;
	} else {
		memcpy(text, from, len);
	}
	g->piece[g->n] = (struct tok_trie_word){text, len, g->n, TOK_LONGEST_GO_ON, 0};
	g->token[g->n++] = (struct tok_added_token){
		.id = t->id, .len = (uint16_t)len, .what = (uint16_t)t->what};
	g->n_text += len;
	return true;
}

static bool
keep(struct tok_vocab *v, enum tok_added_which which, struct making *g, struct tok_error *err)
{
	struct tok_added *set = &v->added[which];

	if (g->n == 0)
		return true;
	if (!tok_vocab_table_make(v, TOK_TABLE_ADDED(which), g->n))
		return tok_fail(err, "out of memory for %u added tokens", g->n);
	memcpy(set->token, g->token, g->n * sizeof(*set->token));
	return tok_longest_build(v, &set->trie, TOK_TABLE_ADDED(which) + 1,
		TOK_TABLE_ADDED(which) + 2, g->piece, g->n, err);
}

/* Collect the bytes that tokens begin with, possibly repeated. False: there are too many. */
static bool
few_first(const struct tok_longest_node *root, uint8_t first[TOK_SKIP_BYTES])
{
	uint32_t n = 0;

	for (uint32_t byte = 0; byte < TOK_BYTES; byte++) {
		if (!(root->child[byte >> 6] >> (byte & 63) & 1))
			continue;
		if (n == TOK_SKIP_BYTES)
			return false;
		for (uint32_t i = n++; i < TOK_SKIP_BYTES; i++)
			first[i] = (uint8_t)byte;
	}
	return true;
}

void
tok_added_sum(struct tok_vocab *v)
{
	v->info.n_added = 0;
	for (uint32_t which = 0; which < 2; which++) {
		struct tok_added *set = &v->added[which];
		/* The normalizer of pieces looks for those that are looked for after it. */
		const bool again = v->kind == TOK_KIND_BPE && v->unigram.norm.sentencepiece &&
				   which == TOK_ADDED_TEXT_SET;

		set->n = tok_vocab_table_n(v, TOK_TABLE_ADDED(which));
		if (set->n > 0 && few_first(&set->trie.node[TOK_LONGEST_GO_ON], set->first))
			set->skip = v->kernels->skip;
		for (uint32_t i = 0; i < set->n; i++) {
			const bool plain = !(set->token[i].what & TOK_ADDED_SPECIAL);

			set->what[1] |= set->token[i].what;
			set->what[0] |= plain ? set->token[i].what : 0;
			set->plain |= plain;
			v->info.n_added += plain && !again;
		}
	}
}

static bool
build_set(struct tok_vocab *v, const struct tok_model *m, const struct list *l,
	enum tok_added_which which, struct tok_error *err)
{
	const bool normalized = which == TOK_ADDED_NORMAL_SET;
	struct making g = {0};
	size_t bytes = 1;
	bool ok;

	for (uint32_t i = 0; i < l->n; i++)
		bytes += (normalized ? TOK_ADDED_BYTES_MAX : l->added[i].len) + (size_t)1;
	g.piece = calloc(l->n + (size_t)1, sizeof(*g.piece));
	g.token = calloc(l->n + (size_t)1, sizeof(*g.token));
	g.text = malloc(bytes);
	ok = (g.piece != NULL && g.token != NULL && g.text != NULL) ||
	     tok_fail(err, "out of memory for %u added tokens", l->n);
	for (uint32_t i = 0; ok && i < l->n; i++) {
		if (((l->added[i].what & TOK_ADDED_NORMALIZED) != 0) == normalized)
			ok = put(&g, l, &l->added[i], normalized ? m : NULL, v, err);
	}
	ok = ok && keep(v, which, &g, err);
	free(g.piece);
	free(g.token);
	free(g.text);
	return ok;
}

/* Ids that the model never produces, except added tokens that are not special. */
static bool
build_special(
	struct tok_vocab *v, const struct tok_model *m, const struct list *l, struct tok_error *err)
{
	uint8_t *special = calloc(m->n_tokens, sizeof(*special));
	uint32_t n = 0, n_special = 0;
	bool ok = special != NULL;

	for (uint32_t id = 0; ok && id < m->n_tokens; id++)
		special[id] = m->token[id].special;
	for (uint32_t i = 0; ok && i < l->n; i++)
		special[l->added[i].id] &= (l->added[i].what & TOK_ADDED_SPECIAL) != 0;
	for (uint32_t id = 0; ok && id < m->n_tokens; id++)
		n_special += special[id];
	ok = ok && (n_special == 0 || tok_vocab_table_make(v, TOK_TABLE_SPECIAL, n_special));
	for (uint32_t id = 0; ok && id < m->n_tokens; id++) {
		if (special[id])
			v->special[n++] = id;
	}
	v->info.n_special = n;
	free(special);
	return ok || tok_fail(err, "out of memory for special tokens");
}

bool
tok_added_build(struct tok_vocab *v, const struct tok_model *m, struct tok_error *err)
{
	struct list l;
	bool ok = make_list(m, &l) || tok_fail(err, "out of memory for added tokens");

	ok = ok && build_special(v, m, &l, err) && build_set(v, m, &l, TOK_ADDED_TEXT_SET, err) &&
	     build_set(v, m, &l, TOK_ADDED_NORMAL_SET, err);
	if (ok)
		tok_added_sum(v);
	if (l.owned)
		free(l.added);
	return ok;
}
