/* SPDX-License-Identifier: BSD-3-Clause */
/* Set-up of a worker's terms. */
#pragma once

#include "datapath/terms.h"
#include "vocabs.h"

/*
 * For worker number `worker` on v->node: a cache of pretokens and the block keys of each vocabulary
 * of `v`, which must outlive them. NULL: *err has the reason.
 */
struct tokd_terms *tokd_terms_create(const struct tokd_options *opt, struct tokd_vocabs *v,
	uint32_t worker, struct tok_error *err);
/* NULL is allowed. */
void tokd_terms_free(struct tokd_terms *t);
