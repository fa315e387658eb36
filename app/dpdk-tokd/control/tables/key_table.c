/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include <rte_malloc.h>

#include <tokd/block_keys.h>

#include "tables.h"

static int
make_each(struct tokd_worker *w)
{
	struct tokd_streams *t = w->streams;

	for (uint32_t i = 0; i < w->terms->n_vocabs; i++)
		t->keys_each = RTE_MAX(t->keys_each, tokb_bytes(w->terms->vocab[i].keys));
	t->keys_each = RTE_ALIGN_CEIL(t->keys_each, (size_t)RTE_CACHE_LINE_SIZE);
	t->keys = rte_malloc_socket(
		"tokd_block_keys", (t->n + 1) * t->keys_each, RTE_CACHE_LINE_SIZE, w->node);
	if (t->keys != NULL)
		return 0;
	TOKD_NO_ROOM(w->index, w->node, "--block-size or --streams",
		"block keys of %u streams (%zu bytes each)", t->n, t->keys_each);
	return -ENOMEM;
}

int
tokd_keys_open(struct tokd_worker *w)
{
	struct tokd_ring *r = &w->ring;
	struct tokb_options o;
	int rc;

	if (w->opt->block_keys == 0)
		return 0;
	rc = make_each(w);
	if (rc < 0)
		return rc;
	o = tokd_block_options(w->opt, 0);
	r->block_size = r->hdr->block_size = (uint32_t)o.block_size;
	r->key_bytes = r->hdr->key_bytes = (uint16_t)tokb_key_bytes(o.scheme);
	r->hdr->key_scheme = (uint16_t)o.scheme;
	return 0;
}
