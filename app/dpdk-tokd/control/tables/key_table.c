/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include <rte_malloc.h>

#include <tokd/block_keys.h>

#include "key_table.h"
#include "log.h"
#include "datapath/stream/stream.h"

/* Of its vocabulary: the model's name may be hashed. */
static int
make_first(struct tokd_worker *w, uint32_t vocab)
{
	const struct tokb_options o = tokd_block_options(w->opt, vocab);
	struct tokb_error err;

	w->vocab[vocab].keys = tokb_create(&o, &err);
	if (w->vocab[vocab].keys != NULL)
		return 0;
	TOKD_LOG(worker, ERR, "worker %u: --block-keys: %s\n", w->index, err.text);
	return -ENOMEM;
}

static int
make_each(struct tokd_worker *w)
{
	struct tokd_streams *t = w->streams;

	for (uint32_t i = 0; i < w->n_vocabs; i++)
		t->keys_each = RTE_MAX(t->keys_each, tokb_bytes(w->vocab[i].keys));
	t->keys_each = RTE_ALIGN_CEIL(t->keys_each, (size_t)RTE_CACHE_LINE_SIZE);
	t->keys = rte_malloc_socket(
		"tokd_block_keys", (t->n + 1) * t->keys_each, RTE_CACHE_LINE_SIZE, w->node);
	if (t->keys != NULL)
		return 0;
	TOKD_LOG(worker, ERR,
		"worker %u: cannot allocate block keys of %u streams (%zu bytes each) on NUMA node "
		"%d; lower --block-size or --streams, or reserve more huge pages there (with "
		"--no-huge raise -m)\n",
		w->index, t->n, t->keys_each, w->node);
	return -ENOMEM;
}

int
tokd_keys_open(struct tokd_worker *w)
{
	struct tokd_ring *r = &w->ring;
	struct tokb_options o;
	int rc = 0;

	if (w->opt->block_keys == 0)
		return 0;
	for (uint32_t i = 0; i < w->n_vocabs && rc == 0; i++)
		rc = make_first(w, i);
	if (rc == 0)
		rc = make_each(w);
	if (rc < 0)
		return rc;
	o = tokd_block_options(w->opt, 0);
	r->block_size = r->hdr->block_size = (uint32_t)o.block_size;
	r->key_bytes = r->hdr->key_bytes = (uint16_t)tokb_key_bytes(o.scheme);
	r->hdr->key_scheme = (uint16_t)o.scheme;
	return 0;
}

void
tokd_keys_close(struct tokd_worker *w)
{
	for (uint32_t i = 0; i < w->n_vocabs; i++) {
		tokb_free(w->vocab[i].keys);
		w->vocab[i].keys = NULL;
	}
	if (w->streams != NULL)
		rte_free(w->streams->keys);
}
