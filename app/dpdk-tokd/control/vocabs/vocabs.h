/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The vocabularies of --vocab. Clients choose one by its checksum; the first is the default. Tables
 * are read-only and shared by the workers of a NUMA node; each node has a copy.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <tok.h>

#include "options/options.h"

struct tokd_vocabs {
	int node; /* NUMA node to allocate on */
	uint32_t n;
	bool no_memory; /* why loading failed */
	struct tok_vocab *tok[TOKD_VOCABS_MAX];
};

#define TOKD_VOCABS_NO_EAL (-2) /* differs from SOCKET_ID_ANY */

/*
 * Load opt->vocab (names or paths, separated by commas) into EAL memory on `node`, or on another
 * node with a warning; with TOKD_VOCABS_NO_EAL into ordinary memory. False: *err has the reason. *v
 * must not move until tokd_vocabs_free().
 */
bool tokd_vocabs_load(
	struct tokd_vocabs *v, const struct tokd_options *opt, int node, struct tok_error *err);
void tokd_vocabs_free(struct tokd_vocabs *v);
