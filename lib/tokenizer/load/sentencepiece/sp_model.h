/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SentencePiece's .model: a protocol buffer (sentencepiece_model.proto, ModelProto). Parsed here:
 * only a few fields of four wire types matter, and the Python package is built from C sources
 * alone, without a code generator. Set-up only.
 */
#pragma once

#include "build/model.h"

enum tok_sp_type { /* type of a piece */
	TOK_SP_NORMAL = 1,
	TOK_SP_UNKNOWN = 2,
	TOK_SP_CONTROL = 3,
	TOK_SP_USER_DEFINED = 4,
	TOK_SP_UNUSED = 5,
	TOK_SP_BYTE = 6,
};

enum tok_sp_kind { /* TrainerSpec.model_type */
	TOK_SP_UNIGRAM = 1,
	TOK_SP_BPE = 2,
};

struct tok_sp_piece {
	const char *text; /* in the file's bytes; valid UTF-8 without NUL, not NUL-terminated */
	uint32_t len;
	float score;
	enum tok_sp_type type;
};

/* Strings point into the file's bytes. */
struct tok_sp_model {
	uint32_t n; /* pieces; the index is the id */
	struct tok_sp_piece *piece;
	uint32_t kind; /* enum tok_sp_kind, or another value */
	bool byte_fallback, whitespace_as_suffix;
	bool dummy_prefix, remove_extra_whitespaces, escape_whitespaces;
	bool denormalizes; /* there is a denormalizer_spec with a charsmap */
	const uint8_t *charsmap;
	size_t charsmap_bytes;
	const char *unk_surface; /* what the unknown piece decodes to; valid UTF-8 */
	uint32_t unk_surface_bytes;
};

/* Parse the n bytes of a file; `file` is named in errors. Free the pieces with tok_sp_free. */
bool tok_sp_read(const char *file, const uint8_t *p, size_t n, struct tok_sp_model *sp,
	struct tok_error *err);
void tok_sp_free(struct tok_sp_model *sp);

/*
 * Fill in the normalization and decoding of m->unigram as sentencepiece has it (spm_norm.h);
 * overwrites it. The caller frees *m.
 */
bool tok_sp_normalizer(const char *file, const struct tok_sp_model *sp, struct tok_model *m,
	struct tok_error *err);

/* Convert a model of kind Unigram. The caller frees *m. */
bool tok_sp_unigram(const char *file, const struct tok_sp_model *sp, struct tok_model *m,
	struct tok_error *err);
