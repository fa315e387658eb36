/* SPDX-License-Identifier: BSD-3-Clause */
/* See json_text.h. RFC 8259. */
#include <string.h>

#include "json_text.h"
#include "unicode/utf8.h"

/* ---- any text ---- */

/* Bytes of a string that are not simply a part of it. */
static const bool special[256] = {[0 ... ' ' - 1] = true, ['"'] = true, ['\\'] = true};

static inline char *
plain_end(char *p)
{
	while (!special[(uint8_t)*p])
		p++;
	return p;
}

/* The end of the string at p, or NULL. */
static char *
skip_string(char *p)
{
	if (*p++ != '"')
		return NULL;
	for (p = plain_end(p); *p != '"'; p = plain_end(p + 1)) {
		if (*p == '\0' || (*p == '\\' && *++p == '\0'))
			return NULL;
	}
	return p + 1;
}

char *
tok_json_skip(char *p)
{
	size_t depth = 0;

	do {
		if (*p == '"') {
			p = skip_string(p);
			if (p == NULL)
				return NULL;
			continue;
		}
		if (*p == '\0' || (depth == 0 && (*p == ']' || *p == '}')))
			return NULL;
		depth += *p == '[' || *p == '{';
		depth -= *p == ']' || *p == '}';
		p++;
		while (depth == 0 && *p != '\0' && strchr(",]} \t\r\n", *p) == NULL)
			p++; /* a number, true, false, null */
	} while (depth > 0);
	return p;
}

char *
tok_json_find(char *p, const char *key)
{
	const size_t len = strlen(key);

	if (p == NULL || (*p != '{' && *p != ','))
		return NULL;
	do {
		const char *name = tok_json_blanks(p + 1);

		p = skip_string(tok_json_blanks(p + 1));
		if (p == NULL)
			return NULL;
		const bool found = (size_t)(p - name) == len + 2 && memcmp(name + 1, key, len) == 0;

		p = tok_json_blanks(p);
		if (*p++ != ':')
			return NULL;
		p = tok_json_blanks(p);
		if (found)
			return p;
		p = tok_json_skip(p);
		if (p == NULL)
			return NULL;
		p = tok_json_blanks(p);
	} while (*p == ',');
	return NULL;
}

/* ---- one value after the other ---- */

static bool
fail(struct tok_json_text *t, const char *why)
{
	t->why = why;
	return false;
}

bool
tok_json_open(struct tok_json_text *t, char open)
{
	t->p = tok_json_blanks(t->p);
	if (*t->p != open)
		return fail(t, open == ':' ? "expected a colon" : "expected a list");
	t->p++;
	return true;
}

bool
tok_json_next(struct tok_json_text *t, char close, bool *first)
{
	t->p = tok_json_blanks(t->p);
	if (*t->p == close) {
		t->p++;
		return false;
	}
	if (!*first) {
		if (*t->p != ',')
			return fail(t, "expected a comma, or the end of the list");
		t->p = tok_json_blanks(t->p + 1);
	}
	*first = false;
	return true;
}

/* The four hexadecimal digits at p, or -1. */
static int
hex4(const char *p)
{
	int value = 0;

	for (int i = 0; i < 4; i++) {
		const char c = p[i];
		const int digit = c >= '0' && c <= '9'	 ? c - '0'
				  : c >= 'a' && c <= 'f' ? c - 'a' + 10
				  : c >= 'A' && c <= 'F' ? c - 'A' + 10
							 : -1;

		if (digit < 0)
			return -1;
		value = value << 4 | digit;
	}
	return value;
}

static char *
put_utf8(char *to, uint32_t cp)
{
	if (cp < 0x80) {
		*to++ = (char)cp;
		return to;
	}
	if (cp < 0x800) {
		*to++ = (char)(0xc0 | cp >> 6);
	} else {
		if (cp < 0x10000) {
			*to++ = (char)(0xe0 | cp >> 12);
		} else {
			*to++ = (char)(0xf0 | cp >> 18);
			*to++ = (char)(0x80 | (cp >> 12 & 0x3f));
		}
		*to++ = (char)(0x80 | (cp >> 6 & 0x3f));
	}
	*to++ = (char)(0x80 | (cp & 0x3f));
	return to;
}

/* Decode the escape sequence after a backslash. Returns its end, or NULL. `nul`: accept \u0000. */
static char *
unescape(char *p, char **to, bool nul)
{
	static const char from[] = "\"\\/bfnrt", into[] = "\"\\/\b\f\n\r\t";
	const char *simple = *p == '\0' ? NULL : strchr(from, *p);
	int high, low;

	if (simple != NULL) {
		*(*to)++ = into[simple - from];
		return p + 1;
	}
	high = *p == 'u' ? hex4(p + 1) : -1;
	if (high < !nul || (high & 0xfc00) == 0xdc00)
		return NULL;
	p += 5;
	if ((high & 0xfc00) != 0xd800) {
		*to = put_utf8(*to, (uint32_t)high);
		return p;
	}
	low = p[0] == '\\' && p[1] == 'u' ? hex4(p + 2) : -1;
	if ((low & 0xfc00) != 0xdc00 || low < 0)
		return NULL;
	*to = put_utf8(*to, 0x10000u + ((uint32_t)(high & 0x3ff) << 10 | (uint32_t)(low & 0x3ff)));
	return p + 6;
}

bool
tok_json_string(struct tok_json_text *t, struct tok_json_string *s)
{
	char *p = t->p, *to;
	uint8_t high = 0;

	if (*p != '"')
		return fail(t, "expected a string");
	s->p = ++p;
	for (; !special[(uint8_t)*p]; p++)
		high |= (uint8_t)*p;
	for (to = p;;) {
		const uint8_t c = (uint8_t)*p;

		if (!special[c]) {
			high |= c;
			*to++ = *p++;
		} else if (c == '"') {
			break;
		} else if (c == '\\') {
			const bool nul = strncmp(p, "\\u0000", 6) == 0;

			p = unescape(p + 1, &to, t->nul);
			if (p == NULL)
				return fail(t,
					nul ? "\\u0000 is not allowed" : "invalid escape sequence");
		} else {
			return fail(t, c == '\0' ? "a string does not end"
						 : "a control character in a string");
		}
	}
	t->p = p + 1;
	if ((size_t)(to - s->p) > UINT32_MAX)
		return fail(t, "a string is too long");
	s->len = (uint32_t)(to - s->p);
	*to = '\0';
	return high < 0x80 || tok_utf8_scan((const uint8_t *)s->p, s->len).end == TOK_UTF8_WHOLE ||
	       fail(t, "a string is not UTF-8");
}

bool
tok_json_number(struct tok_json_text *t, uint32_t most, uint32_t *n)
{
	const char *p = t->p;
	uint64_t value = 0;

	if (*p < '0' || *p > '9' || (*p == '0' && p[1] >= '0' && p[1] <= '9'))
		return false;
	for (; *p >= '0' && *p <= '9' && value <= most; p++)
		value = value * 10 + (uint64_t)(*p - '0');
	if (value > most || *p == '\0' || strchr(",]} \t\r\n", *p) == NULL)
		return false;
	t->p += p - t->p;
	*n = (uint32_t)value;
	return true;
}
