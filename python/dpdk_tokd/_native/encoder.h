/* SPDX-License-Identifier: BSD-3-Clause */
/* What one thread needs to encode: a cache, and room for ids and for UTF-8. Nothing of Python. */
#pragma once

#include <tok.h>

#include "signals.h"
#include "text/utf8.h"

/* Room that an encoder keeps for the next call: 4 MiB of ids and as much of text, of which only
 * what was ever written to is memory. */
#define ENCODER_ROOM_KEPT ((size_t)1 << 20) /* ids */
#define ENCODER_TEXT_KEPT ((size_t)4 << 20) /* bytes */

/* A text as its owner holds it. */
struct encoder_text {
	const void *p;
	size_t n;	    /* bytes of UTF-8, or characters */
	unsigned int width; /* 0: UTF-8; else bytes of a character of a str: 1, 2, 4 */
};

struct encoder {
	struct tok_cache *cache;
	utf8_writer *utf8;
	uint8_t *text;
	size_t text_room;
	uint32_t *ids;
	size_t room;
};

/* NULL if memory is short. */
struct encoder *encoder_create(const struct tok_vocab *v);
void encoder_free(struct encoder *e);

/* Make room for at least `need` ids, those that are there kept. False if memory is short. */
bool encoder_grow(struct encoder *e, size_t need);

static inline bool
encoder_room(struct encoder *e, size_t need)
{
	return need <= e->room || encoder_grow(e, need);
}

/*
 * Make *text UTF-8, in the encoder's room if it is not, with looks for signals. What is wrong with
 * it as the result of a call that encodes: TOK_MORE: memory is short; TOK_BAD: a character is a
 * surrogate, or a handler has raised an exception.
 */
enum tok_status encoder_utf8(struct encoder *e, struct encoder_text *text, struct signals *signals);

/*
 * Encode UTF-8 into room for encoder_bound() ids, with looks for signals. TOK_BAD without an error:
 * a handler has raised an exception.
 */
size_t encoder_bound(const struct tok_vocab *v, size_t n, uint32_t flags);
struct tok_result encoder_encode(struct encoder *e, const struct tok_vocab *v,
	const struct encoder_text *text, uint32_t flags, uint32_t *ids, size_t room,
	struct signals *signals);

/* The same of a stream's next text, into room for encoder_feed_bound() ids. */
size_t encoder_feed_bound(const struct tok_stream *s, size_t n);
struct tok_result encoder_feed(struct tok_stream *s, const struct encoder_text *text, bool last,
	uint32_t *ids, size_t room, struct signals *signals);

/* Give back what is more than an encoder may keep. */
void encoder_trim(struct encoder *e);
