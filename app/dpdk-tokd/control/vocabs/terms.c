/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include <rte_common.h>
#include <rte_cycles.h>
#include <rte_malloc.h>

#include <tokd/block_keys.h>

#include "terms.h"

static void *
cache_alloc(void *ctx, size_t bytes, size_t align)
{
	const int *node = ctx;

	return rte_zmalloc_socket("tok_cache", bytes, (unsigned int)align, *node);
}

static void
cache_free(void *ctx, void *p, size_t bytes)
{
	rte_free(p);
}

/* Bytes that an id decodes to, at most: a blank may come before its text. */
static uint32_t
longest_of(const struct tok_vocab *v)
{
	const uint32_t n = tok_vocab_info(v).n_ids;
	uint32_t most = 0, len;

	for (uint32_t id = 0; id < n; id++) {
		if (tok_vocab_token(v, id, &len) != NULL)
			most = RTE_MAX(most, len + 1);
	}
	return most;
}

/* Vocabulary `i`: each has its own ids, and its model's name may be hashed. */
static bool
make_vocab(struct tokd_vocab *v, const struct tokd_options *opt, struct tokd_vocabs *from,
	uint32_t i, uint32_t worker, struct tok_error *err)
{
	const struct tok_mem mem = {.alloc = cache_alloc, .free = cache_free, .ctx = &from->node};
	struct tokb_error keys;

	v->tok = from->tok[i];
	v->checksum = tok_vocab_info(v->tok).checksum;
	v->short_ids = tok_vocab_info(v->tok).n_ids <= UINT16_MAX + 1;
	v->longest = longest_of(v->tok);
	/* It would keep words of texts. */
	v->cache = opt->wipe ? NULL : tok_cache_create(v->tok, opt->cache_entries, &mem);
	if (v->cache == NULL && !opt->wipe) {
		snprintf(err->text, sizeof(err->text),
			"worker %u: no memory for its cache of pretokens on NUMA node %d; lower "
			"--cache, or reserve more huge pages there (with --no-huge raise -m)",
			worker, from->node);
		return false;
	}
	if (opt->block_keys != 0) {
		const struct tokb_options o = tokd_block_options(opt, i);

		v->keys = tokb_create(&o, &keys);
		if (v->keys == NULL) {
			snprintf(err->text, sizeof(err->text), "worker %u: --block-keys: %.400s",
				worker, keys.text);
			return false;
		}
	}
	return true;
}

struct tokd_terms *
tokd_terms_create(const struct tokd_options *opt, struct tokd_vocabs *v, uint32_t worker,
	struct tok_error *err)
{
	const uint64_t ms = rte_get_tsc_hz() / 1000;
	struct tokd_terms *t;

	t = rte_zmalloc_socket("tokd_terms", sizeof(*t), RTE_CACHE_LINE_SIZE, v->node);
	if (t == NULL) {
		snprintf(err->text, sizeof(err->text),
			"worker %u: cannot allocate %zu bytes of EAL memory on NUMA node %d",
			worker, sizeof(*t), v->node);
		return NULL;
	}
	t->users = 1;
	t->max_text = opt->max_text;
	t->tok_flags = tokd_tok_flags(opt);
	t->open_ticks = ms * opt->stream_timeout_ms;
	t->finished_ticks = ms * opt->done_timeout_ms;
	for (; t->n_vocabs < v->n; t->n_vocabs++) {
		if (!make_vocab(&t->vocab[t->n_vocabs], opt, v, t->n_vocabs, worker, err)) {
			tokd_terms_free(t);
			return NULL;
		}
	}
	return t;
}

void
tokd_terms_free(struct tokd_terms *t)
{
	if (t == NULL)
		return;
	for (uint32_t i = 0; i < RTE_DIM(t->vocab); i++) {
		tok_cache_free(t->vocab[i].cache);
		tokb_free(t->vocab[i].keys);
	}
	rte_free(t);
}
