/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "nfc_pieces.h"
#include "unicode/utf8.h"

bool
nfc_uncut(void *ctx, size_t i, size_t at)
{
	return false;
}

bool
nfc_each(void *ctx, size_t i, size_t at)
{
	return true;
}

bool
nfc_by_bits(void *bits, size_t i, size_t at)
{
	return i > 0 && i <= 64 && *(uint64_t *)bits >> (i - 1) & 1;
}

/* Form C of one piece behind out[0 .. n_out). */
static size_t
feed(struct tok_nfc *nfc, const uint8_t *p, size_t n, bool last, uint8_t *out, size_t n_out)
{
	struct tok_nfc_piece piece = {p, p + n, last};
	size_t most = n_out + (tok_nfc_waiting(nfc) + n) * TOK_NFC_EXPANSION;

	for (;;) {
		struct tok_nfc_span span;
		enum tok_nfc_result r = tok_nfc_next(nfc, &piece, &span);

		if (r == TOK_NFC_FULL)
			return NFC_FULL;
		if (r == TOK_NFC_DONE)
			break;
		if (span.n == 0 || (*span.p & 0xc0) == 0x80 || span.n > most - n_out)
			return NFC_BROKEN;
		memcpy(out + n_out, span.p, span.n);
		n_out += span.n;
	}
	if (piece.p != piece.end || (last && tok_nfc_waiting(nfc) != 0))
		return NFC_BROKEN;
	return n_out;
}

size_t
nfc_pieces(const uint8_t *text, size_t n, nfc_cut cut, void *ctx, uint8_t *out)
{
	struct tok_nfc nfc;
	size_t from = 0, n_out = 0, i = 0;

	tok_nfc_init(&nfc, false);
	for (size_t at = 0; at < n; at += tok_utf8_length(text[at]), i++) {
		if (!cut(ctx, i, at))
			continue;
		n_out = feed(&nfc, text + from, at - from, false, out, n_out);
		if (n_out >= NFC_BROKEN)
			return n_out;
		from = at;
	}
	return feed(&nfc, text + from, n - from, true, out, n_out);
}
