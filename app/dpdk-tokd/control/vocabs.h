/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The vocabularies of --vocab. Clients choose one by its checksum, the first is for those that do
 * not. Tables are read-only and shared by the workers of a NUMA node; each node has its own.
 */
#ifndef TOKD_VOCABS_H
#define TOKD_VOCABS_H

#include <stdint.h>

#include <tok.h>

#include "options/options.h"

struct tokd_vocabs {
	int node; /* NUMA node they are wanted on */
	uint32_t n;
	struct tok_vocab *tok[TOKD_VOCABS_MAX];
};

#define TOKD_VOCABS_NO_EAL (-2) /* not even SOCKET_ID_ANY */

/*
 * Load those of opt->vocab (names or paths, with commas between) into memory of EAL, which is huge
 * pages unless --no-huge, on `node`, or elsewhere with a warning when that has none left; with
 * TOKD_VOCABS_NO_EAL into ordinary memory. False: *err says why. *v must stay where it is until
 * tokd_vocabs_free().
 */
bool tokd_vocabs_load(
	struct tokd_vocabs *v, const struct tokd_options *opt, int node, struct tok_error *err);
void tokd_vocabs_free(struct tokd_vocabs *v);

#endif
