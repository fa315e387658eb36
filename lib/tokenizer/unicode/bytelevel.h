/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * GPT-2's printable alphabet: each byte is written as one character, printable Latin-1 bytes as
 * themselves, the other 68 in order as U+0100 to U+0143 (openai/gpt-2, encoder.py,
 * bytes_to_unicode).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Bytes of the byte-level text of n bytes of UTF-8 at `text`, to out (room for n). False if a
 * character is not one of the alphabet.
 */
bool tok_bytelevel_decode(const char *text, size_t n, uint8_t *out, size_t *n_out);

/* Is the byte's character a number (categories Nd and No)? 0 to 9, and Latin-1's ² ³ ¹ ¼ ½ ¾. */
static inline bool
tok_bytelevel_is_number(uint8_t byte)
{
	return (uint8_t)(byte - '0') < 10 || byte == 0xb2 || byte == 0xb3 || byte == 0xb9 ||
	       (uint8_t)(byte - 0xbc) < 3;
}
