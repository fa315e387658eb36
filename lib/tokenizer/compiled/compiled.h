/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Compiled vocabularies: the tables as they lie in memory, in a file that is mapped. What is in the
 * file, and who may read it, is in doc/reference/vocabularies.md. Set-up only.
 */
#ifndef TOK_COMPILED_H
#define TOK_COMPILED_H

#include "vocab.h"

#define TOK_COMPILED_ENDING ".tokv"
#define TOK_COMPILED_MAGIC                                                                         \
	"TOKV\r\n\x1a" /* and a NUL: eight bytes that a transfer as text spoils */

/* Of the tables and the header: raised by whoever changes what any of them holds or means. */
#define TOK_COMPILED_VERSION 6u

#define TOK_COMPILED_ORDER 0x01020304u	     /* as the machine that wrote it has it */
#define TOK_COMPILED_MAX ((uint64_t)1 << 30) /* bytes of a file */
#define TOK_COMPILED_FILES 2

struct tok_compiled_source {
	char name[240]; /* without folders; empty: none */
	uint64_t bytes;
	uint32_t crc; /* CRC-32 */
	uint32_t reserved;
};

struct tok_compiled_table {
	char name[40];
	uint64_t off, bytes; /* in the file; 0: no such table */
	uint32_t element;    /* bytes */
	uint32_t reserved;
};

struct tok_compiled_header {
	char magic[8];
	uint32_t order;
	uint32_t version;
	uint32_t header_bytes;
	uint32_t n_tables;
	uint64_t file_bytes;
	uint32_t constants; /* tok_compiled_constants */
	uint32_t data_crc;  /* CRC-32 of all that is behind the header */
	char format[16];    /* of the source */
	struct tok_compiled_source source[TOK_COMPILED_FILES];
	uint32_t number[TOK_N_NUMBERS];
	uint32_t before[TOK_TEMPLATE_MAX], after[TOK_TEMPLATE_MAX]; /* of the template */
	struct tok_compiled_table table[TOK_N_TABLES];
	uint32_t reserved;
	uint32_t header_crc; /* CRC-32 of all before it */
};
static_assert(sizeof(struct tok_compiled_header) % 8 == 0, "no padding that nobody fills");
static_assert(TOK_N_NUMBERS % 2 == 0, "likewise: give the header a reserved number");

/* CRC-32 of what tables follow that is in the library and not in a file: the properties of
 * characters. */
uint32_t tok_compiled_constants(void);

/*
 * Write a vocabulary that was built from the files at paths[0 .. n) to the file `out`, which is
 * there as a whole or not at all.
 */
bool tok_compiled_write(const struct tok_vocab *v, const char *const *paths, uint32_t n,
	const char *out, struct tok_error *err);

/* Load one. */
struct tok_vocab *tok_compiled_load(const char *path, const char *name,
	const struct tok_load_opts *opts, struct tok_error *err);

/*
 * Do the tables hold together? Their places and sizes in elements are those of memory that is
 * there. Nothing else is taken for granted: with tables that pass, no text or ids make the hot path
 * read or write where it must not, or go on for ever. NULL, or what of them does not fit, or could
 * not be seen for want of memory. v->repeat_runs is filled in.
 */
const char *tok_compiled_check(struct tok_vocab *v);

/* What a node of a trie of longest match spells. */
struct tok_spelled {
	uint16_t bytes, chars;
	uint8_t cut;  /* bytes that the last character lacks */
	bool goes_on; /* below TOK_LONGEST_GO_ON, or it */
};

/* Are n nodes two trees in one, numbered breadth first? s[0 .. n), zeroed, is filled in then. */
bool tok_compiled_spell(const struct tok_longest_node *node, uint32_t n, struct tok_spelled *s);

/* Its parts, compiled_check_*.c. */
const char *tok_compiled_check_added(const struct tok_vocab *v);
const char *tok_compiled_check_bpe(struct tok_vocab *v);
const char *tok_compiled_check_pieces(const struct tok_vocab *v);
const char *tok_compiled_check_unigram(const struct tok_vocab *v);
/* Behind those of the kind: of a vocabulary that has sentencepiece's normalizer. */
const char *tok_compiled_check_normalizer(const struct tok_vocab *v);
const char *tok_compiled_check_longest(const struct tok_vocab *v);
const char *tok_compiled_check_wordpiece(const struct tok_vocab *v);

#endif
