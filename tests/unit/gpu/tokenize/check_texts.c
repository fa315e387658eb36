/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gpu_check_texts [--greedy] VOCABULARY COUNT SEED [FILE]...
 *
 * Compares the ids of COUNT texts on a device with those of tok_encode; --greedy: both by longest
 * match. TOKD_GPU_DEVICE is cpu or cuda:N, by default cpu; for gpu_check_fibers it is
 * fibers:THREADS:ORDER, by default fibers:256:0.
 *
 * The texts are made from SEED and slices of the files. Prints how many were encoded, and how many
 * were left to the CPU and why. Ends with 1 at a difference, with 77 where the vocabulary is
 * refused.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compare.h"
#ifdef TOKG_FIBERS
#include "texts_fibers.h"
#define TEXTS_ON texts_on_fibers
#else
#include "texts_on_device.h"
#define TEXTS_ON texts_on_device
#endif
#include "tok.h"

#define MOST 12000u /* bytes of a text */
#define FILES 16

#ifdef TOKG_FIBERS
static struct tokg_texts *
texts_on_fibers(const struct tok_vocab *v, struct tokg_error *err)
{
	const char *const name = getenv("TOKD_GPU_DEVICE");
	const char *const refused = tokg_view_refuses(v, TOK_ADDED_AS_TEXT);
	const struct tokg_view view = tokg_view_here(v);
	struct fibers_how how = {.n = 256};
	unsigned int order = FIBERS_FORWARD;

	if (name != NULL)
		sscanf(name, "fibers:%u:%u", &how.n, &order);
	how.order = (enum fibers_order)order;
	if (refused == NULL)
		return tokg_texts_fibers(&view, &how);
	snprintf(err->text, sizeof(err->text), "%s", refused);
	return NULL;
}
#endif

static int
check(struct compare *c, struct texts_made *m, uint64_t count)
{
	const bool right = compare_made(c, m, count, MOST);

	for (uint32_t i = 0; i < 4; i++)
		printf("%" PRIu64 " texts: %s\n", c->n[i],
			tokg_text_status_name((enum tokg_text_status)i));
	printf("%" PRIu64 " bytes, %" PRIu64 " ids\n", c->bytes, c->ids);
	if (!right)
		fprintf(stderr, "%s\n", c->why);
	return right ? 0 : 1;
}

int
main(int argc, char **argv)
{
	const bool greedy = argc > 1 && strcmp(argv[1], "--greedy") == 0;
	const struct tok_load_opts opts = {.algo = greedy ? "greedy" : "exact"};
	struct texts_file file[FILES];
	struct texts_made m = {.file = file, .characters = true};
	struct tok_error error;
	struct tokg_error err;
	struct tok_vocab *v;
	struct tokg_texts *x;
	struct compare c;

	argc -= greedy;
	argv += greedy;
	if (argc < 4 || argc > 4 + FILES) {
		fprintf(stderr,
			"usage: gpu_check_texts [--greedy] VOCABULARY COUNT SEED [FILE]...\n");
		return 2;
	}
	m.seed = strtoull(argv[3], NULL, 10);
	for (; 4 + m.n_files < (uint32_t)argc; m.n_files++) {
		if (!texts_read(&file[m.n_files], argv[4 + m.n_files])) {
			fprintf(stderr, "%s cannot be read\n", argv[4 + m.n_files]);
			return 2;
		}
	}
	v = tok_vocab_load(argv[1], &opts, &error);
	if (v == NULL) {
		fprintf(stderr, "%s\n", error.text);
		return 2;
	}
	x = TEXTS_ON(v, &err);
	if (x == NULL || !compare_open(&c, v, x)) {
		fprintf(stderr, "%s\n", x == NULL ? err.text : "no memory");
		return 77;
	}
	return check(&c, &m, strtoull(argv[2], NULL, 10));
}
