/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From the characters of a str to UTF-8. CPython's own conversion takes longer than the
 * tokenizer, and keeps what it made in the str. Nothing of Python here.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define UTF8_SLACK 64 /* bytes that may be written after the text */

/* The most bytes that n characters of `width` bytes (1, 2, 4) make; at least what is written. */
static inline size_t
utf8_bound(size_t n, unsigned int width)
{
	return n * (width == 1 ? 2 : width == 2 ? 3 : 4) + UTF8_SLACK;
}

/*
 * Write n characters of `width` bytes as UTF-8 to out, which has room for utf8_bound(). Returns
 * the number of bytes, or SIZE_MAX if one is a surrogate.
 */
typedef size_t utf8_writer(uint8_t *out, const void *chars, size_t n, unsigned int width);

utf8_writer utf8_portable, utf8_avx512;

/* The writer for the instruction set that a vocabulary has chosen (tok_vocab_info.isa). */
utf8_writer *utf8_choose(const char *isa);
