/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The reference parses its files with serde_json (de.rs) without float_roundtrip: it collects
 * digits in 64 bits and divides by a power of ten. With 17 digits the result is sometimes not the
 * nearest double, which can decide between two otherwise equal sums of scores. So the digits are
 * needed, and a JSON parser does not keep them.
 */
#include <stdlib.h>
#include <string.h>

#include "scores.h"
#include "build/model_make.h"

#define EXPONENT_MAX 1000000000L

/* The functions below read text that is known to be valid JSON, and NUL-terminated. */
static const char *
skip_blanks(const char *p)
{
	return p + strspn(p, " \t\r\n");
}

/* The end of the string at p, or NULL. */
static const char *
skip_string(const char *p)
{
	if (*p++ != '"')
		return NULL;
	for (; *p != '"'; p++) {
		if (*p == '\0' || (*p == '\\' && *++p == '\0'))
			return NULL;
	}
	return p + 1;
}

/* The end of the value at p, or NULL. */
static const char *
skip_value(const char *p)
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

/* The value of a key in the object at p, or NULL. */
static const char *
find_key(const char *p, const char *key)
{
	const size_t len = strlen(key);

	if (p == NULL || *p != '{')
		return NULL;
	do {
		const char *name = skip_blanks(p + 1);

		p = skip_string(name);
		if (p == NULL)
			return NULL;
		const bool found = (size_t)(p - name) == len + 2 && memcmp(name + 1, key, len) == 0;

		p = skip_blanks(p);
		if (*p++ != ':')
			return NULL;
		p = skip_blanks(p);
		if (found)
			return p;
		p = skip_value(p);
		p = p == NULL ? "" : skip_blanks(p);
	} while (*p == ',');
	return NULL;
}

/* ---- numbers ---- */

struct digits {
	uint64_t value;
	long exponent;
	bool full; /* 64 bits are full: the other digits are dropped */
};

static bool
add_digit(struct digits *d, char digit)
{
	const uint64_t x = (uint64_t)(digit - '0');

	d->full |= d->value > (UINT64_MAX - x) / 10;
	if (!d->full)
		d->value = d->value * 10 + x;
	return !d->full;
}

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* f64_from_parts in de.rs. */
static double
from_parts(const struct digits *d)
{
	char power[] = "1e308";
	double f = (double)d->value;
	long e = d->exponent;

	while (e < -308 && f != 0) {
		f /= 1e308;
		e += 308;
	}
	if (f == 0 || e < -308)
		return 0;
	if (e > 308)
		return strtod("inf", NULL);
	power[2] = (char)('0' + labs(e) / 100);
	power[3] = (char)('0' + labs(e) / 10 % 10);
	power[4] = (char)('0' + labs(e) % 10);
	return e < 0 ? f / strtod(power, NULL) : f * strtod(power, NULL);
}

/* Parse the number at p. Returns its end, or NULL: not a number. */
static const char *
read_number(const char *p, double *score)
{
	struct digits d = {0};
	const bool negative = *p == '-';
	double f;

	p += negative;
	if (!is_digit(*p))
		return NULL;
	for (; is_digit(*p); p++)
		d.exponent += !add_digit(&d, *p);
	if (*p == '.') {
		for (p++; is_digit(*p); p++)
			d.exponent -= add_digit(&d, *p);
	}
	if (*p == 'e' || *p == 'E') {
		char *end;
		const long exponent = strtol(p + 1, &end, 10);

		/* With such exponents the result is 0 or infinite for any digits. */
		d.exponent += exponent > EXPONENT_MAX	 ? EXPONENT_MAX
			      : exponent < -EXPONENT_MAX ? -EXPONENT_MAX
							 : exponent;
		p = end;
	}
	f = from_parts(&d);
	*score = negative ? -f : f;
	return p;
}

/* ---- the list ---- */

/* Parse the pair at p, a string and a number. Returns its end, or NULL. */
static const char *
read_pair(const char *p, double *score)
{
	if (*p != '[')
		return NULL;
	p = skip_string(skip_blanks(p + 1));
	p = p == NULL ? NULL : skip_blanks(p);
	if (p == NULL || *p != ',')
		return NULL;
	p = read_number(skip_blanks(p + 1), score);
	p = p == NULL ? NULL : skip_blanks(p);
	return p == NULL || *p != ']' ? NULL : p + 1;
}

static bool
read_list(const char *p, double *score, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		if (p == NULL || *p != (i == 0 ? '[' : ','))
			return false;
		p = read_pair(skip_blanks(p + 1), &score[i]);
		p = p == NULL ? NULL : skip_blanks(p);
	}
	return p != NULL && *p == ']';
}

bool
tok_json_scores(const char *path, double *score, uint32_t n, struct tok_error *err)
{
	size_t bytes;
	char *text = tok_read_file(path, &bytes, err);
	bool ok;

	if (text == NULL)
		return false;
	ok = read_list(find_key(find_key(skip_blanks(text), "model"), "vocab"), score, n) ||
	     tok_fail(err, "%s: model.vocab: expected a list of tokens with their scores",
		     tok_shown_path(path));
	free(text);
	return ok;
}
