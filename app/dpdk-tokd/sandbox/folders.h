/* SPDX-License-Identifier: BSD-3-Clause */
/* What a started appliance still opens. A pair with start.c, which uses it alone. */
#pragma once

#include <sandbox.h>

#include "control/port/port.h"
#include "options/options.h"

#define TOKD_FOLDERS_MAX 64

struct tokd_folders {
	size_t n;
	struct tokd_folder folder[TOKD_FOLDERS_MAX]; /* paths: tokd_folders_free() */
};

void tokd_folders_find(struct tokd_folders *f, const struct tokd_options *opt,
	const struct tokd_port *port, struct tok_vocab *const *vocab, uint32_t n_vocabs);
void tokd_folders_free(struct tokd_folders *f);
