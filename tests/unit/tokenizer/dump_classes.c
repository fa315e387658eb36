/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes the class of every code point, a byte each, for the comparison with the reference. */
#include <stdio.h>
#include <stdlib.h>

#include "vocab.h"

int
main(int argc, char **argv)
{
	static uint8_t cls[TOK_CODE_POINTS];
	struct tok_error err;
	struct tok_vocab *v = argc == 2 ? tok_vocab_load(argv[1], NULL, &err) : NULL;

	if (v == NULL) {
		fprintf(stderr, "dump_classes: %s\n",
			argc == 2 ? err.text : "expected a vocabulary");
		return 1;
	}
	for (uint32_t cp = 0; cp < TOK_CODE_POINTS; cp++)
		cls[cp] = "OOONWLLL"[tok_cat_of(v, cp)];
	fwrite(cls, 1, sizeof(cls), stdout);
	tok_vocab_free(v);
	return fflush(stdout) == 0 ? 0 : 1;
}
