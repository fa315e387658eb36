/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include <rte_malloc.h>

#include "log.h"
#include "vocabs.h"

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

/* Clients could not tell two of one checksum apart. */
static int
add(struct tokd_vocabs *v, struct tok_vocab *tok, const char *name)
{
	const struct tok_vocab_info info = tok_vocab_info(tok);

	for (uint32_t i = 0; i < v->n; i++) {
		const struct tok_vocab_info other = tok_vocab_info(v->tok[i]);

		if (other.checksum != info.checksum)
			continue;
		TOKD_LOG(main, ERR,
			"--vocab: %s and %s are the same vocabulary (%08" PRIx32
			"): name it once\n",
			other.name, name, info.checksum);
		tok_vocab_free(tok);
		return -EEXIST;
	}
	v->tok[v->n++] = tok;
	TOKD_LOG(main, INFO,
		"vocabulary %s from %s: %u ids, checksum %08" PRIx32
		", %zu bytes of tables on NUMA node %d\n",
		info.name, info.path, info.n_ids, info.checksum, info.table_bytes, v->node);
	return 0;
}

int
tokd_vocabs_load(struct tokd_vocabs *v, const struct tokd_options *opt, int node)
{
	const struct tok_mem mem = {.alloc = vocab_alloc, .free = vocab_free, .ctx = &v->node};
	const struct tok_load_opts opts = {.pretokenizer = opt->pretokenizer, .mem = &mem};
	const char *at = opt->vocab;
	struct tok_error error;
	char name[PATH_MAX];
	int rc = 0;

	v->node = node;
	v->n = 0;
	while (rc == 0 && *at != '\0') {
		size_t len = strcspn(at, ",");
		struct tok_vocab *tok;

		if (v->n == TOKD_VOCABS_MAX || len == 0 || len >= sizeof(name)) {
			TOKD_LOG(main, ERR,
				"--vocab %s: give 1 to %u names or paths with commas between\n",
				opt->vocab, TOKD_VOCABS_MAX);
			rc = -EINVAL;
			break;
		}
		memcpy(name, at, len);
		name[len] = '\0';
		tok = tok_vocab_load(name, &opts, &error);
		if (tok == NULL) {
			TOKD_LOG(main, ERR, "--vocab %s: %s\n", name, error.text);
			rc = -EINVAL;
			break;
		}
		rc = add(v, tok, name);
		at += len;
		at += *at == ',';
	}
	if (rc != 0)
		tokd_vocabs_free(v);
	return rc;
}

void
tokd_vocabs_free(struct tokd_vocabs *v)
{
	while (v->n > 0)
		tok_vocab_free(v->tok[--v->n]);
}
