/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Form C of texts, for the comparison with the reference. Reads texts, writes form C of each, both
 * as a length of four bytes, then as many bytes. Each text is cut in many ways as well, short ones
 * in every way. Length ~0: too many marks. ~1: not the same for all cuts, or another promise of
 * nfc.h was broken.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mix.h>
#include "nfc_pieces.h"
#include "unicode/utf8.h"

#define TEXT_MAX (4u << 20)
#define SHORT 8 /* characters of a text that is cut in every way */

static uint8_t text[TEXT_MAX], out[3 * TEXT_MAX], again[3 * TEXT_MAX];

/* With a chance of 1/2, 1/4, 1/8 or 1/16, by the lowest bits of the state, which stay. */
static bool
by_chance(void *state, size_t i, size_t at)
{
	uint64_t *dice = state, low = *dice & 3, x = dice_throw(dice);

	*dice = (*dice & ~3ull) | low;
	return (x & ((2u << low) - 1)) == 0;
}

static bool
same(size_t n, nfc_cut cut, void *ctx, size_t n_out)
{
	size_t got = nfc_pieces(text, n, cut, ctx, again);

	return got == n_out && (got >= NFC_BROKEN || memcmp(out, again, got) == 0);
}

static size_t
in_all_ways(size_t n)
{
	size_t n_out = nfc_pieces(text, n, nfc_uncut, NULL, out), chars = 0;
	uint64_t bits, seed;

	for (size_t at = 0; at < n; at += tok_utf8_length(text[at]))
		chars++;
	if (!same(n, nfc_each, NULL, n_out))
		return NFC_BROKEN;
	for (seed = n; seed < n + 8; seed++) {
		uint64_t state = seed;

		if (!same(n, by_chance, &state, n_out))
			return NFC_BROKEN;
	}
	for (bits = 1; chars <= SHORT && bits + 1 < 1ull << chars >> 1; bits++) {
		if (!same(n, nfc_by_bits, &bits, n_out))
			return NFC_BROKEN;
	}
	return n_out;
}

int
main(void)
{
	uint32_t n;

	while (fread(&n, sizeof(n), 1, stdin) == 1) {
		size_t n_out;

		if (n > TEXT_MAX || fread(text, 1, n, stdin) != n) {
			fprintf(stderr, "dump_nfc: text of %u bytes is cut off or above %u\n", n,
				TEXT_MAX);
			return 1;
		}
		n_out = in_all_ways(n);
		n = n_out >= NFC_BROKEN ? ~(uint32_t)(SIZE_MAX - n_out) : (uint32_t)n_out;
		fwrite(&n, sizeof(n), 1, stdout);
		fwrite(out, 1, n_out >= NFC_BROKEN ? 0 : n_out, stdout);
	}
	return fflush(stdout) == 0 ? 0 : 1;
}
