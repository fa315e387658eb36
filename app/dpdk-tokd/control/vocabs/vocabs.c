/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <rte_malloc.h>

#include "log.h"
#include "vocabs.h"

static void *
vocab_alloc(void *ctx, size_t bytes, size_t align)
{
	struct tokd_vocabs *v = ctx;
	void *p = rte_zmalloc_socket("tok_vocab", bytes, (unsigned int)align, v->node);

	if (p != NULL)
		return p;
	p = rte_zmalloc_socket("tok_vocab", bytes, (unsigned int)align, SOCKET_ID_ANY);
	v->no_memory = p == NULL;
	if (p == NULL)
		TOKD_LOG(main, ERR,
			"vocabulary: cannot allocate %zu bytes of EAL memory; reserve more huge "
			"pages (with --no-huge raise -m)\n",
			bytes);
	else
		TOKD_LOG(main, WARNING,
			"vocabulary: %zu bytes are not on NUMA node %d; reserve more huge pages "
			"there\n",
			bytes, v->node);
	return p;
}

static void
vocab_free(void *ctx, void *p, size_t bytes)
{
	rte_free(p);
}

static bool __attribute__((format(printf, 2, 3))) fail(struct tok_error *err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	return false;
}

/* Refuses a second one with the same checksum: clients choose by it. */
static bool
add(struct tokd_vocabs *v, struct tok_vocab *tok, struct tok_error *err)
{
	const struct tok_vocab_info info = tok_vocab_info(tok);

	for (uint32_t i = 0; i < v->n; i++) {
		const struct tok_vocab_info other = tok_vocab_info(v->tok[i]);

		if (other.checksum == info.checksum)
			return fail(err,
				"--vocab: %.64s and %.64s are the same vocabulary (%08" PRIx32
				"): name it once",
				other.name, info.name, info.checksum);
	}
	v->tok[v->n++] = tok;
	return true;
}

/* Copies the name at *at, and moves *at past it and its comma. */
static bool
next_name(const struct tokd_vocabs *v, const char **at, char *name, size_t room)
{
	size_t len = strcspn(*at, ",");

	if (v->n == TOKD_VOCABS_MAX || len == 0 || len >= room)
		return false;
	memcpy(name, *at, len);
	name[len] = '\0';
	*at += len;
	if (**at == ',' && *++*at == '\0')
		return false; /* a trailing comma */
	return true;
}

bool
tokd_vocabs_load(
	struct tokd_vocabs *v, const struct tokd_options *opt, int node, struct tok_error *err)
{
	const struct tok_mem mem = {.alloc = vocab_alloc, .free = vocab_free, .ctx = v};
	const struct tok_load_opts opts = {
		.pretokenizer = opt->pretokenizer,
		.mem = node == TOKD_VOCABS_NO_EAL ? NULL : &mem,
	};
	const char *at = opt->vocab;
	char name[PATH_MAX];
	bool ok = true;

	v->node = node;
	v->n = 0;
	v->no_memory = false;
	while (ok && *at != '\0') {
		struct tok_vocab *tok;
		struct tok_error load;

		ok = next_name(v, &at, name, sizeof(name)) ||
		     fail(err, "--vocab %.64s: give 1 to %u names or paths, separated by commas",
			     opt->vocab, TOKD_VOCABS_MAX);
		if (!ok)
			break;
		tok = tok_vocab_load(name, &opts, &load);
		ok = tok != NULL ? add(v, tok, err) : fail(err, "--vocab: %.490s", load.text);
		if (!ok)
			tok_vocab_free(tok);
	}
	if (!ok)
		tokd_vocabs_free(v);
	return ok;
}

void
tokd_vocabs_free(struct tokd_vocabs *v)
{
	while (v->n > 0)
		tok_vocab_free(v->tok[--v->n]);
}
