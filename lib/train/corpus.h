/* SPDX-License-Identifier: BSD-3-Clause */
/* Split files into lines, and lines into words. */
#pragma once

#include "vocab.h"
#include "words.h"

/* Splits lines of well-formed UTF-8 into words for one kind of vocabulary. */
struct train_splitter {
	struct tok_vocab *vocab; /* whose pretokenizer and normalizer are used */
	struct train_words *words;
	/* WordPiece: the open word */
	uint8_t *word;
	uint64_t n, room; /* bytes */
	uint32_t *mark;	  /* characters whose order later ones may change */
	uint64_t n_marks, room_marks;
};

/* Make a vocabulary that has only the given pretokenizer and normalizer. */
struct tok_vocab *train_splitter_vocab(const struct tok_train_options *o, struct tok_error *err);

/* Count the words of a line. */
bool train_split_bytes(
	struct train_splitter *s, const uint8_t *line, size_t n, struct tok_error *err);
bool train_split_bert(
	struct train_splitter *s, const uint8_t *line, size_t n, struct tok_error *err);

/* Count the words of all files. */
bool train_count(const struct tok_train_options *o, const char *const *files, uint32_t n_files,
	struct train_words *words, struct tok_error *err);
