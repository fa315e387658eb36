/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading files, and ids by bytes, for the loaders. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "model_make.h"

char *
tok_read_file(const char *path, size_t *len, struct tok_error *err)
{
	FILE *f = fopen(path, "rb");
	struct stat st;
	char *text = NULL;

	if (f == NULL || fstat(fileno(f), &st) != 0) {
		tok_fail(err, "%s: %s", path, strerror(errno));
		goto out;
	}
	if (!S_ISREG(st.st_mode)) {
		tok_fail(err, "%s: not a regular file", path);
		goto out;
	}
	if ((size_t)st.st_size > TOK_FILE_MAX) {
		tok_fail(err, "%s: %zu bytes, more than the %zu MiB a vocabulary may have", path,
			(size_t)st.st_size, TOK_FILE_MAX >> 20);
		goto out;
	}
	text = malloc((size_t)st.st_size + 1);
	if (text == NULL) {
		tok_fail(err, "%s: out of memory for %zu bytes", path, (size_t)st.st_size);
		goto out;
	}
	*len = fread(text, 1, (size_t)st.st_size, f);
	if (*len != (size_t)st.st_size) {
		tok_fail(err, "%s: read %zu of %zu bytes", path, *len, (size_t)st.st_size);
		free(text);
		text = NULL;
		goto out;
	}
	text[*len] = '\0';
out:
	if (f != NULL)
		fclose(f);
	return text;
}

bool
tok_index_init(struct tok_index *x, const struct tok_model *m, struct tok_error *err)
{
	uint32_t slots = 1024;

	while (slots < 2 * m->n_tokens)
		slots *= 2;
	x->m = m;
	x->mask = slots - 1;
	x->slot = calloc(slots, sizeof(*x->slot));
	return x->slot != NULL || tok_fail(err, "out of memory for %u tokens", m->n_tokens);
}

void
tok_index_free(struct tok_index *x)
{
	free(x->slot);
	x->slot = NULL;
}

/* FNV-1a; files are chosen by whoever runs us, not by the network. */
static uint32_t
hash_bytes(const uint8_t *p, uint32_t len)
{
	uint64_t h = 0xcbf29ce484222325ull;

	for (uint32_t i = 0; i < len; i++)
		h = (h ^ p[i]) * 0x100000001b3ull;
	return (uint32_t)(h ^ h >> 32);
}

static uint32_t *
find_slot(const struct tok_index *x, const uint8_t *bytes, uint32_t len)
{
	uint32_t i = hash_bytes(bytes, len) & x->mask;

	for (; x->slot[i] != 0; i = (i + 1) & x->mask) {
		const struct tok_model_token *t = &x->m->token[x->slot[i] - 1];

		if (t->len == len && memcmp(x->m->bytes + t->off, bytes, len) == 0)
			break;
	}
	return &x->slot[i];
}

uint32_t
tok_index_find(const struct tok_index *x, const uint8_t *bytes, uint32_t len)
{
	return *find_slot(x, bytes, len) - 1; /* free: 0 - 1 == TOK_NO_TOKEN */
}

bool
tok_index_add(struct tok_index *x, uint32_t id)
{
	const struct tok_model_token *t = &x->m->token[id];
	uint32_t *slot;

	if (t->special || t->len == 0)
		return true;
	slot = find_slot(x, x->m->bytes + t->off, t->len);
	if (*slot != 0)
		return false;
	*slot = id + 1;
	return true;
}
