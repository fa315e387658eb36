/* SPDX-License-Identifier: BSD-3-Clause */
/* A SentencePiece .model, message by message (sentencepiece_model.proto). */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "load/sentencepiece/sp_model.h"

struct sp_file {
	uint8_t data[8192];
	size_t n;
};

/* A field of bytes; they are less than 128. */
static inline void
sp_field(struct sp_file *f, uint8_t number, const void *p, size_t n)
{
	f->data[f->n++] = (uint8_t)(number << 3 | 2);
	f->data[f->n++] = (uint8_t)n;
	memcpy(f->data + f->n, p, n);
	f->n += n;
}

static inline void
sp_piece(struct sp_file *f, const char *text, float score, enum tok_sp_type type)
{
	struct sp_file inside = {.n = 0};

	sp_field(&inside, 1, text, strlen(text));
	inside.data[inside.n++] = 2 << 3 | 5;
	memcpy(inside.data + inside.n, &score, sizeof(score));
	inside.n += sizeof(score);
	inside.data[inside.n++] = 3 << 3;
	inside.data[inside.n++] = (uint8_t)type;
	sp_field(f, 1, inside.data, inside.n);
}

/* One of 128 to 16,000 bytes, of no score. */
static inline void
sp_long_piece(struct sp_file *f, const char *text, enum tok_sp_type type)
{
	const size_t n = strlen(text), all = 1 + 2 + n + 2;
	const uint8_t head[] = {1 << 3 | 2, (uint8_t)(all | 0x80), (uint8_t)(all >> 7), 1 << 3 | 2,
		(uint8_t)(n | 0x80), (uint8_t)(n >> 7)};

	memcpy(f->data + f->n, head, sizeof(head));
	memcpy(f->data + f->n + sizeof(head), text, n);
	f->n += sizeof(head) + n;
	f->data[f->n++] = 3 << 3;
	f->data[f->n++] = (uint8_t)type;
}

static inline void
sp_bytes(struct sp_file *f)
{
	for (unsigned int byte = 0; byte < 256; byte++) {
		char text[8];

		snprintf(text, sizeof(text), "<0x%02X>", byte);
		sp_piece(f, text, 0, TOK_SP_BYTE);
	}
}

/* What Llama 2's and Mistral's say of themselves: BPE, byte_fallback; no extra white space removed.
 */
static inline void
sp_settings(struct sp_file *f)
{
	sp_field(f, 2, "\x18\x02\x98\x02\x01", 5);
	sp_field(f, 3, "\x20\x00", 2);
}
