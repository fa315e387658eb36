/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "log.h"
#include "served.h"

static void
log_vocabs(const struct tokd_vocabs *v, const struct tokd_options *opt)
{
	for (uint32_t i = 0; i < v->n; i++) {
		const struct tok_vocab_info info = tok_vocab_info(v->tok[i]);

		TOKD_LOG(main, INFO,
			"vocabulary %s from %s: %u ids, checksum %08" PRIx32
			", %zu bytes of tables on NUMA node %d\n",
			info.name, info.path, info.n_ids, info.checksum, info.table_bytes, v->node);
		if (info.n_added > 0 && !opt->added_tokens)
			TOKD_LOG(main, NOTICE,
				"vocabulary %s has %u added tokens that are not special: they are "
				"treated as text; --added-tokens recognises them\n",
				info.name, info.n_added);
	}
}

/* Vocabularies on `node`, loaded on first use. */
static struct tokd_vocabs *
vocabs_on(struct tokd_served *s, const struct tokd_options *opt, int node, struct tok_error *err)
{
	struct tokd_vocabs *v = &s->vocabs[s->n_nodes];

	for (uint32_t i = 0; i < s->n_nodes; i++) {
		if (s->vocabs[i].node == node)
			return &s->vocabs[i];
	}
	if (!tokd_vocabs_load(v, opt, node, err))
		return NULL;
	s->n_nodes++;
	log_vocabs(v, opt);
	return v;
}

struct tokd_served *
tokd_served_load(const struct tokd_options *opt, const int *node, uint32_t n, struct tok_error *err)
{
	struct tokd_served *s = calloc(1, sizeof(*s));

	if (s == NULL) {
		snprintf(err->text, sizeof(err->text), "out of memory");
		return NULL;
	}
	for (; s->n_workers < n; s->n_workers++) {
		const uint32_t i = s->n_workers;
		struct tokd_vocabs *v = vocabs_on(s, opt, node[i], err);

		s->terms[i] = v != NULL ? tokd_terms_create(opt, v, i, err) : NULL;
		if (s->terms[i] == NULL) {
			tokd_served_free(s);
			return NULL;
		}
	}
	return s;
}

void
tokd_served_free(struct tokd_served *s)
{
	if (s == NULL)
		return;
	for (uint32_t i = 0; i < s->n_workers; i++)
		tokd_terms_free(s->terms[i]);
	while (s->n_nodes > 0)
		tokd_vocabs_free(&s->vocabs[--s->n_nodes]);
	free(s);
}
