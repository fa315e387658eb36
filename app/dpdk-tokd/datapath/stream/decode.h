/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The way back: ids to text. Ids come as bytes, cut anywhere, as text does; libtok's stream holds
 * back characters that are not complete.
 */
#pragma once

#include <tok.h>

#include "datapath/worker.h"

struct tokd_decode {
	struct tok_decode_stream tok;
	uint32_t longest;	 /* bytes that an id decodes to, at most */
	uint32_t n_skipped;	 /* ids that give no text, */
	const uint32_t *skipped; /* in ascending order */
	uint8_t n_cut;		 /* bytes of an incomplete id, */
	uint8_t cut[3];		 /* and they */
};

void tokd_decode_init(struct tokd_decode *d, const struct tokd_vocab *vocab, bool skip_special);

/* Bytes of text that n more bytes may give. */
size_t tokd_decode_bound(const struct tokd_decode *d, size_t n);

/*
 * As tok_decode_stream_feed, for n bytes. `consumed` counts whole ids. With room for the bound it
 * is never TOK_MORE.
 */
struct tok_result tokd_decode_feed(struct tokd_decode *d, const uint8_t *bytes, size_t n, bool last,
	uint8_t *out, size_t room);
