/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where pretokens begin, for the comparison with the reference: dump_borders REGEX ... reads texts,
 * each after its length in four bytes, and writes for each how many pretokens it has and where they
 * begin.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "build/model.h"
#include "build/model_make.h"
#include "pretokenize/pretok.h"

#define TEXT_MAX 65536

static struct tok_vocab *
make(char **regex, int n, struct tok_error *err)
{
	struct tok_model m = {.format = "", .pretok = TOK_PRETOK_REGEX};
	struct tok_vocab *v;

	if (!tok_model_init(&m, TOK_BYTES, TOK_BYTES, 0, err))
		return NULL;
	for (uint32_t i = 0; i < TOK_BYTES; i++) {
		const uint8_t byte = (uint8_t)i;

		tok_model_put(&m, i, &byte, 1, false);
	}
	for (int i = 0; i < n && i < TOK_SPLITS_MAX; i++)
		m.regex[i] = strdup(regex[i]);
	v = tok_vocab_build(&m, "dump_borders", "dump_borders", NULL, err);
	tok_model_free(&m);
	return v;
}

static uint32_t
scan(const struct tok_vocab *v, const uint8_t *text, uint32_t n, uint32_t *begins)
{
	struct tok_pretok_scan s = {.v = v, .text = text, .n = n, .last = true};
	size_t start[TOK_SCAN_BLOCK];
	uint32_t found = 0;

	while (s.at < n) {
		const uint32_t k = tok_pretok_scan(&s, start, TOK_SCAN_BLOCK);

		for (uint32_t i = 0; i < k; i++)
			begins[found++] = (uint32_t)start[i];
	}
	return found;
}

int
main(int argc, char **argv)
{
	static uint8_t text[TEXT_MAX];
	static uint32_t begins[TEXT_MAX + TOK_SCAN_BLOCK];
	struct tok_error err;
	struct tok_vocab *v = make(argv + 1, argc - 1, &err);
	uint32_t n;

	if (v == NULL) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	while (fread(&n, sizeof(n), 1, stdin) == 1) {
		uint32_t found;

		if (n > TEXT_MAX || fread(text, 1, n, stdin) != n)
			return 1;
		found = scan(v, text, n, begins);
		fwrite(&found, sizeof(found), 1, stdout);
		fwrite(begins, sizeof(*begins), found, stdout);
	}
	tok_vocab_free(v);
	return fflush(stdout) == 0 ? 0 : 1;
}
