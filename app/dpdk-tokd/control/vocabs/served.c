/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
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
static int
vocabs_on(struct tokd_served *s, const struct tokd_options *opt, int node, struct tokd_vocabs **v,
	struct tok_error *err)
{
	for (*v = s->vocabs; *v < s->vocabs + s->n_nodes; ++*v) {
		if ((*v)->node == node)
			return 0;
	}
	if (!tokd_vocabs_load(*v, opt, node, err))
		return (*v)->no_memory ? -ENOMEM : -EINVAL;
	s->n_nodes++;
	log_vocabs(*v, opt);
	return 0;
}

int
tokd_served_load(struct tokd_served **served, const struct tokd_options *opt, const int *node,
	uint32_t n, struct tok_error *err)
{
	struct tokd_served *s = calloc(1, sizeof(*s));
	int rc = 0;

	if (s == NULL) {
		snprintf(err->text, sizeof(err->text), "out of memory");
		return -ENOMEM;
	}
	for (; s->n_workers < n && rc == 0; s->n_workers += rc == 0) {
		const uint32_t i = s->n_workers;
		struct tokd_vocabs *v;

		rc = vocabs_on(s, opt, node[i], &v, err);
		if (rc == 0) {
			s->terms[i] = tokd_terms_create(opt, v, i, err);
			rc = s->terms[i] != NULL ? 0 : -ENOMEM;
		}
	}
	if (rc != 0) {
		tokd_served_free(s);
		return rc;
	}
	*served = s;
	return 0;
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
