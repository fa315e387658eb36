/* SPDX-License-Identifier: BSD-3-Clause */
/* Word characters (UTS #18: letters, marks, digits, connectors, joiners) and white space. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Code points where runs begin; runs of word characters and of others alternate. */
extern const uint32_t tok_unicode_word[];
extern const uint32_t tok_unicode_n_word;

static inline bool
tok_is_word(uint32_t cp)
{
	uint32_t low = 0,
		 high = tok_unicode_n_word; /* runs begun at or before cp: in [low, high] */

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (tok_unicode_word[middle] <= cp)
			low = middle + 1;
		else
			high = middle;
	}
	return low % 2 == 1;
}

static inline bool
tok_is_ascii_letter(uint32_t c)
{
	return (c | 0x20) - 'a' < 26;
}

/* White_Space of PropList.txt; unchanged since Unicode 6.3. */
static inline bool
tok_is_white(uint32_t cp)
{
	return (cp >= 0x09 && cp <= 0x0d) || cp == 0x20 || cp == 0x85 || cp == 0xa0 ||
	       cp == 0x1680 || (cp >= 0x2000 && cp <= 0x200a) || cp == 0x2028 || cp == 0x2029 ||
	       cp == 0x202f || cp == 0x205f || cp == 0x3000;
}
