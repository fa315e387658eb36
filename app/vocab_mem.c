/* SPDX-License-Identifier: BSD-3-Clause */
#include <rte_malloc.h>

#include "log.h"
#include "vocab_mem.h"

static void *
vocab_alloc(void *ctx, size_t bytes, size_t align)
{
	const int *node = ctx;
	void *p = rte_zmalloc_socket("tok_vocab", bytes, (unsigned int)align, *node);

	if (p != NULL)
		return p;
	p = rte_zmalloc_socket("tok_vocab", bytes, (unsigned int)align, SOCKET_ID_ANY);
	if (p == NULL)
		TOKD_LOG(main, ERR,
			"vocabulary: no %zu bytes of EAL memory; reserve more huge pages (with "
			"--no-huge raise -m)\n",
			bytes);
	else
		TOKD_LOG(main, WARNING,
			"vocabulary: %zu bytes are not on NUMA node %d; reserve more huge pages "
			"there\n",
			bytes, *node);
	return p;
}

static void
vocab_free(void *ctx, void *p, size_t bytes)
{
	rte_free(p);
}

struct tok_mem
tokd_vocab_mem(int *node)
{
	return (struct tok_mem){.alloc = vocab_alloc, .free = vocab_free, .ctx = node};
}
