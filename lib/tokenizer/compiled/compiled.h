/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Compiled vocabularies: a file with the tables as they lie in memory. Loading maps the file.
 * doc/reference/file-formats.md describes the format. Set-up only.
 */
#pragma once

#include "build/vocab_table.h"
#include "vocab.h"

#define TOK_COMPILED_ENDING ".tokv"
/* With its NUL eight bytes. A transfer in text mode would change them. */
#define TOK_COMPILED_MAGIC "TOKV\r\n\x1a"

/* Increase this if the contents or the meaning of a table or of the header change. */
#define TOK_COMPILED_VERSION 16u

#define TOK_COMPILED_ORDER 0x01020304u	     /* in the byte order of the writing machine */
#define TOK_COMPILED_MAX ((uint64_t)1 << 30) /* largest file, in bytes */
#define TOK_COMPILED_FILES 2

struct tok_compiled_source {
	char name[240]; /* file name without folders; empty: no file */
	uint64_t bytes;
	uint32_t crc; /* CRC-32 */
	uint32_t reserved;
};

struct tok_compiled_table {
	char name[40];
	uint64_t off, bytes; /* place in the file; 0 bytes: no such table */
	uint32_t element;    /* bytes of one element */
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
	uint32_t data_sum;  /* tok_compiled_sum() of everything after the header */
	char format[16];    /* of the source files */
	struct tok_compiled_source source[TOK_COMPILED_FILES];
	uint32_t number[TOK_N_NUMBERS + TOK_N_NUMBERS % 2];
	uint32_t before[TOK_TEMPLATE_MAX], after[TOK_TEMPLATE_MAX]; /* of the template */
	struct tok_compiled_table table[TOK_N_TABLES];
	uint32_t reserved;
	uint32_t header_crc; /* CRC-32 of the header before this field */
};
static_assert(sizeof(struct tok_compiled_header) % 8 == 0, "no padding that nobody fills");

/* CRC-32 of the Unicode tables built into the library. Compiled tables depend on them, so a file
 * can be loaded only by a library with the same ones. */
uint32_t tok_compiled_constants(void);

uint32_t tok_compiled_sum(const uint8_t *p, size_t n);

/*
 * Write a vocabulary that was built from the files paths[0 .. n) to the file `out`. The file is
 * replaced atomically.
 */
bool tok_compiled_write(const struct tok_vocab *v, const char *const *paths, uint32_t n,
	const char *out, struct tok_error *err);

/* Load a compiled vocabulary. */
struct tok_vocab *tok_compiled_load(const char *path, const char *name,
	const struct tok_load_opts *opts, struct tok_error *err);

/*
 * Validate the tables of a compiled vocabulary. The caller has checked that each table lies within
 * memory and holds whole elements; nothing else is trusted. If the tables pass, no text and no ids
 * can make the hot path access memory out of bounds, loop forever or give an id out of range. Which
 * ids a text gets is trusted: a crafted file can give wrong ids, as a crafted source can. Returns
 * NULL, or what is wrong, or that memory ran out. Fills in v->repeat_runs.
 */
const char *tok_compiled_check(struct tok_vocab *v);

/* The string that a node of a longest-match trie spells. */
struct tok_spelled {
	uint16_t bytes, chars;
	uint8_t cut;  /* bytes missing from its last character */
	bool goes_on; /* the node is TOK_LONGEST_GO_ON or below it */
};

/* Do the n nodes form two trees, numbered breadth first? If so, fills in s[0 .. n), which must be
 * zeroed. */
bool tok_compiled_spell(const struct tok_longest_node *node, uint32_t n, struct tok_spelled *s);

/* The ids that a word or a rank may have: a stage replaces those above all ids. */
static inline uint32_t
tok_compiled_n_ids(const struct tok_vocab *v)
{
	return tok_has_unknown(v) ? tok_vocab_table_n(v, TOK_TABLE_SPAN) : v->info.n_ids;
}

/* The parts of tok_compiled_check, in check_*.c. */
const char *tok_compiled_check_norm(const struct tok_vocab *v);
const char *tok_compiled_check_added(const struct tok_vocab *v);
const char *tok_compiled_check_bpe(struct tok_vocab *v);
const char *tok_compiled_check_unigram(const struct tok_vocab *v);
/* For a vocabulary with sentencepiece's normalizer; called after the check of its kind. */
const char *tok_compiled_check_normalizer(const struct tok_vocab *v);
/* Texts of ids, where they are not in `bytes`. */
bool tok_compiled_check_texts(const struct tok_vocab *v);
const char *tok_compiled_check_longest(const struct tok_vocab *v);
const char *tok_compiled_check_wordpiece(const struct tok_vocab *v);
/* Tables of words: each search ends, at an entry that is in range. */
const char *tok_compiled_check_words(const struct tok_vocab *v);
/* Does each page of cat_page exist? True if there is none. */
bool tok_compiled_check_pages(const struct tok_vocab *v);
