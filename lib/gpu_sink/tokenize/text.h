/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Text to token ids by a block of threads: bytes in the device's memory become ids in its memory.
 * The ids are those of tok_encode, or a status says that the CPU must encode this text. There are
 * never other ids.
 *
 * The tables are those of struct tok_vocab, there is no second format. A view is a vocabulary as a
 * device sees it: on the CPU the vocabulary itself, on a GPU a copy whose pointers are the GPU's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ring/gpu_ring.h"

struct tok_vocab;

#ifdef __cplusplus
extern "C" {
#endif

#define TOKG_WORD_MAX 1024u /* bytes of a pretoken, and of text that is held to find its end */
#define TOKG_CHUNK 32u	    /* bytes of text that one thread handles at a time */

enum tokg_text_status {
	TOKG_TEXT_OK = 0,
	TOKG_TEXT_TOO_LONG = 1,	 /* a limit above is exceeded */
	TOKG_TEXT_NOT_PLAIN = 2, /* malformed UTF-8, or the normalizer would change it */
	TOKG_TEXT_ROOM = 3,	 /* it has more ids than there is room for */
};

/* Why the ids of a text are not there; for messages. */
const char *tokg_text_status_name(enum tokg_text_status status);

/* A text of n bytes; room for its ids. All of it is memory of the device. */
struct tokg_text {
	const uint8_t *bytes;
	uint32_t n;
	uint32_t room; /* ids */
	uint32_t *ids;
	uint8_t *scratch; /* tokg_text_scratch(n) bytes, aligned to 8 */
};

/* Of the arrays in scratch, one element per byte of text (struct tokg_arrays). */
#define TOKG_BYTE_SCRATCH (4 + 4 + 4 + 2 + 2 + 1)
/* The same, per chunk. */
#define TOKG_CHUNK_SCRATCH (8 * 4)

/* Bytes of scratch for a text of n bytes. */
static inline size_t
tokg_text_scratch(uint32_t n)
{
	const size_t chunks = ((size_t)n + TOKG_CHUNK - 1) / TOKG_CHUNK;

	return 64 + chunks * (TOKG_CHUNK * TOKG_BYTE_SCRATCH + TOKG_CHUNK_SCRATCH);
}

struct tokg_view {
	const struct tok_vocab *v;
	/* unicode/nfc_tables.h, if text is brought into form C; else NULL */
	const uint8_t *nfc_page, *nfc_props;
};

/*
 * Why a device cannot encode with this vocabulary as tok_encode does with these flags (of enum
 * tok_flags). NULL: it can.
 */
const char *tokg_view_refuses(const struct tok_vocab *v, uint32_t flags);

/* The view of this CPU. It lives as long as the vocabulary. */
struct tokg_view tokg_view_here(const struct tok_vocab *v);

/*
 * The view of another device is one piece of memory that begins with a struct tokg_view. Write to
 * `image`, which has tokg_view_bytes, what a device needs at the address `at`, which is aligned to
 * 256.
 */
size_t tokg_view_bytes(const struct tok_vocab *v);
void tokg_view_write(const struct tok_vocab *v, uint64_t at, void *image);

#ifdef __cplusplus
}
#endif
