/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Kernels: hot loops that are compiled once for each instruction set. tok_vocab.kernels points to
 * the table of kernels to call. It is set when the vocabulary is loaded.
 *
 * A kernel has one file for each instruction set: NAME_portable.c, NAME_avx2.c, NAME_avx512.c,
 * NAME_neon.c. Shared code is in a header. Each file first includes isa/target_*.h, which tells the
 * compiler the instruction set, so no build system needs special flags. The name of its function
 * ends with the instruction set; the function is declared here and listed in choose.c.
 */
#pragma once

#include "tables/added_set.h"
#include "tok.h"

struct tok_block;
struct tok_bpe_word;
struct tok_cache;
struct tok_pretok_scan;
struct tok_vocab;

/* tok_pretok_scan (pretokenize/pretok.h), for pretokenizers known by name. */
typedef uint32_t tok_scan_kernel(struct tok_pretok_scan *scan, size_t *start, uint32_t room);

/*
 * Number of bytes at the front of p[0 .. n) that are whole characters of well-formed UTF-8; or
 * fewer, but whole characters. What follows is for tok_utf8_scan.
 */
typedef size_t tok_utf8_kernel(const uint8_t *p, size_t n);

/*
 * Find the first n pretokens of a block, which lie in the text [p, end), in the table of short
 * pretokens, in the first way of their sets: most are there. Fills in key, set, ids, and missed:
 * the indices of those that are not there. Returns their number.
 */
typedef uint32_t tok_find_kernel(const struct tok_cache *c, struct tok_block *b, uint32_t n,
	const uint8_t *p, const uint8_t *end);

/* tok_bpe_merge (encode/bpe.h) */
typedef void tok_merge_kernel(const struct tok_vocab *v, const struct tok_bpe_word *w, uint32_t n);

struct tok_kernels {
	const char *isa; /* "portable", "avx2", "avx512", "neon" */
	tok_scan_kernel *scan;
	tok_utf8_kernel *utf8;
	tok_skip_kernel *skip;
	tok_find_kernel *find;
	tok_merge_kernel *merge;
};

tok_scan_kernel tok_scan_portable, tok_scan_avx2, tok_scan_avx512, tok_scan_neon;
tok_utf8_kernel tok_utf8_portable, tok_utf8_avx2, tok_utf8_avx512, tok_utf8_neon;
tok_skip_kernel tok_skip_portable, tok_skip_avx2, tok_skip_avx512, tok_skip_neon;
tok_find_kernel tok_find_portable, tok_find_avx2, tok_find_avx512;
tok_merge_kernel tok_merge_portable, tok_merge_avx2, tok_merge_avx512, tok_merge_neon;

/*
 * The table for the best instruction set of this CPU, or for the one that the environment variable
 * TOK_ISA names. NULL with *err filled in: TOK_ISA names one that is unknown or not available here.
 */
const struct tok_kernels *tok_kernels_choose(struct tok_error *err);
