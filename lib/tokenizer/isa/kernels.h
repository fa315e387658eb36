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
#ifndef TOK_KERNELS_H
#define TOK_KERNELS_H

#include "tok.h"

struct tok_bpe_word;
struct tok_pretok_scan;
struct tok_vocab;

/* tok_pretok_scan (pretokenize/pretok.h), except for SentencePiece's models. */
typedef uint32_t tok_scan_kernel(struct tok_pretok_scan *scan, size_t *start);

/* tok_bpe_merge (encode/bpe.h) */
typedef void tok_merge_kernel(const struct tok_vocab *v, struct tok_bpe_word *w, uint32_t n);

struct tok_kernels {
	const char *isa; /* "portable", "avx2", "avx512", "neon" */
	tok_scan_kernel *scan;
	tok_merge_kernel *merge;
};

tok_scan_kernel tok_scan_portable, tok_scan_avx2, tok_scan_avx512, tok_scan_neon;
tok_merge_kernel tok_merge_portable, tok_merge_avx2, tok_merge_avx512;

/*
 * The table for the best instruction set of this CPU, or for the one that the environment variable
 * TOK_ISA names. NULL with *err filled in: TOK_ISA names one that is unknown or not available here.
 */
const struct tok_kernels *tok_kernels_choose(struct tok_error *err);

#endif
