/* SPDX-License-Identifier: BSD-3-Clause */
/* Form C of a text that is fed in pieces, for the tests. */
#pragma once

#include "normalize/nfc.h"

#define NFC_FULL SIZE_MAX	  /* refused: too many marks */
#define NFC_BROKEN (SIZE_MAX - 1) /* a promise of nfc.h was broken */

/* Is there a cut before the character at byte `at`, which is number `i` of the text? */
typedef bool (*nfc_cut)(void *ctx, size_t i, size_t at);

bool nfc_uncut(void *ctx, size_t i, size_t at);
bool nfc_each(void *ctx, size_t i, size_t at);
bool nfc_by_bits(void *bits, size_t i, size_t at); /* uint64_t: bit i - 1 */

/* Writes form C to out, which has room for 3 n bytes. Returns its length, or one of the above. */
size_t nfc_pieces(const uint8_t *text, size_t n, nfc_cut cut, void *ctx, uint8_t *out);
