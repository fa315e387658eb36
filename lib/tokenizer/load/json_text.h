/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Read the large parts of a JSON text, vocabularies and merges, from front to back: a tree of
 * objects, as a JSON library makes it, takes five times as long. Strings are decoded where they lie
 * in the text. Set-up only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where a NUL-terminated text is read. If something in it is invalid, `why` says what. */
struct tok_json_text {
	char *p;
	const char *why;
	bool nul; /* accept \u0000 in strings; else invalid, because C strings end there */
};

/* A decoded string: `len` bytes of UTF-8 without NUL, then a NUL. */
struct tok_json_string {
	char *p;
	uint32_t len;
};

/* The value of a key in the object at p, or among its members after the comma at p; or NULL. The
 * text may be invalid. */
char *tok_json_find(char *p, const char *key);

/* The end of the value at p, or NULL: there is no value. */
char *tok_json_skip(char *p);

/* Skip white space. */
static inline char *
tok_json_blanks(char *p)
{
	while (*p == ' ' || *p == '\n' || *p == '\t' || *p == '\r')
		p++;
	return p;
}

/* Skip `open`: '[', '{' or ':'. False: invalid. */
bool tok_json_open(struct tok_json_text *t, char open);

/*
 * Go to the next element of an array or object that ends with `close`. *first is true before its
 * first element. False: there is none, or `why` is set.
 */
bool tok_json_next(struct tok_json_text *t, char close, bool *first);

bool tok_json_string(struct tok_json_text *t, struct tok_json_string *s);

/* An integer from 0 to `most`. False: another value, and `why` is not set. */
bool tok_json_number(struct tok_json_text *t, uint32_t most, uint32_t *n);
