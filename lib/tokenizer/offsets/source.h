/* SPDX-License-Identifier: BSD-3-Clause */
/* The text between two added tokens, as the normalizer leaves it, and the bytes it came from. */
#pragma once

#include "normalize/nfc.h"
#include "spm.h"

struct tok_source {
	const uint8_t *text;	      /* the source is a part of this */
	const struct tok_range *made; /* what each of its bytes comes from; NULL: itself */
	bool first;		      /* nothing came before this text */
	/* Set the next span, its `from` and `same`. False: there is none. */
	bool (*read)(struct tok_source *s);
	struct tok_nfc_piece piece; /* of the text: not read yet */
	struct tok_nfc_span span;   /* the rest of the current span: whole characters */
	struct tok_range from;	    /* the bytes it came from; `same`: byte i came from byte i */
	bool same;
	size_t left; /* normalized bytes that the model may take */
	bool prefix; /* metaspace: a blank comes before the rest, with the range of its first
			character; `no_bytes`: from nowhere, as in sentencepiece */
	bool no_bytes;
	bool lead; /* a blank comes before the first span, unless that begins with one */
	struct {   /* the first span, after that blank */
		struct tok_nfc_span span;
		struct tok_range from;
		bool same;
	} behind;
	struct tok_spm_chars spm;
};

/* Bytes [begin, end) of a text, as they are. */
void tok_source_open(struct tok_source *s, const uint8_t *text, size_t begin, size_t end);

/* A text of n bytes, with what each of them comes from. */
void tok_source_open_made(struct tok_source *s, const uint8_t *text, const struct tok_range *made,
	size_t n, bool first);

/* Is it a text as it is, of which nothing is taken? */
bool tok_source_is_fresh(const struct tok_source *s);

/* Readers of a fresh source: a normalizer comes first. */
void tok_source_spm(struct tok_source *s, const struct tok_vocab *v);
void tok_source_metaspace(struct tok_source *s, enum tok_prefix prefix);

/* ByteLevel's add_prefix_space, after any of these. */
void tok_source_prefix(struct tok_source *s);

/* Get more normalized text if the span is empty. False: there is none. */
bool tok_source_fill(struct tok_source *s);

/* The range that the next n >= 1 bytes came from. They are taken. False: fewer are left. */
bool tok_source_take(struct tok_source *s, size_t n, struct tok_range *range);

/* The next character of the model's text. It is taken. False: there is none. */
bool tok_source_char(struct tok_source *s, struct tok_spm_char *c);
