/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include "tok.h"

#define TOK_NO_BORDER ((size_t)-1)

/*
 * Encode all whole pretokens of the well-formed text at p, which must begin where a pretoken
 * begins. Returns the offset of the open pretoken (n if there is none), or TOK_NO_BORDER if the
 * carry was exceeded.
 */
size_t tok_encode_whole(
	struct tok_stream *s, const uint8_t *p, size_t n, bool last, uint32_t **ids);
