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
