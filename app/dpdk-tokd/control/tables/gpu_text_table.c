/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include <rte_malloc.h>

#include <ring/geometry.h>

#include "tables.h"
#include "datapath/token_ring_write.h"

#define TEXTS_EACH 4	      /* for each slot of the GPU ring: one is there, others open */
#define BYTES_MAX (64u << 20) /* of a worker */

int
tokd_gpu_texts_open(struct tokd_worker *w, const struct tokg_geometry *g)
{
	const uint64_t ring = tokd_ring_max(&w->ring) - sizeof(struct tokd_rec);
	const uint32_t room = (uint32_t)RTE_MIN(ring, (uint64_t)tokg_text_most(g));
	const uint32_t n = RTE_MIN(TEXTS_EACH * g->slots, BYTES_MAX / room);
	struct tokd_gpu_texts *t =
		rte_zmalloc_socket("tokd_gpu_texts", sizeof(*t), RTE_CACHE_LINE_SIZE, w->node);

	if (t == NULL)
		goto no_memory;
	w->gpu_texts = t;
	t->text = rte_zmalloc_socket("tokd_gpu_text", n * sizeof(*t->text), 0, w->node);
	t->bytes = rte_zmalloc_socket(
		"tokd_gpu_bytes", (size_t)n * room, RTE_CACHE_LINE_SIZE, w->node);
	if (t->text == NULL || t->bytes == NULL)
		goto no_memory;
	t->vocab = w->terms->vocab[0].checksum;
	t->room = room;
	t->n = t->n_free = n;
	STAILQ_INIT(&t->free);
	STAILQ_INIT(&t->back);
	for (uint32_t i = 0; i < n; i++)
		STAILQ_INSERT_TAIL(&t->free, &t->text[i], link);
	TOKD_LOG(worker, INFO,
		"worker %u: --pipeline gpu: %u texts of up to %u bytes at a time, others are "
		"tokenized here\n",
		w->index, n, room);
	return 0;

no_memory:
	TOKD_NO_ROOM(w->index, w->node, "tokd-gpu's --slots or --slot-bytes",
		"%u texts of %u bytes", n, room);
	tokd_gpu_texts_close(w);
	return -ENOMEM;
}

void
tokd_gpu_texts_close(struct tokd_worker *w)
{
	if (w->gpu_texts == NULL)
		return;
	rte_free(w->gpu_texts->bytes);
	rte_free(w->gpu_texts->text);
	rte_free(w->gpu_texts);
	w->gpu_texts = NULL;
}
