/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The reference parses its files with serde_json (de.rs) without float_roundtrip: it collects
 * digits in 64 bits and divides by a power of ten. With 17 digits the result is sometimes not the
 * nearest double, which can decide between two otherwise equal sums of scores. So the digits are
 * needed, and a JSON parser does not keep them.
 */
#include <stdlib.h>
#include <string.h>

#include "parts.h"
#include "load/json_text.h"
#include "build/model_make.h"

#define EXPONENT_MAX 1000000000L

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
static char *
read_number(char *p, double *score)
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
static char *
read_pair(char *p, double *score)
{
	if (*p != '[')
		return NULL;
	p = tok_json_skip(tok_json_blanks(p + 1));
	p = p == NULL ? NULL : tok_json_blanks(p);
	if (p == NULL || *p != ',')
		return NULL;
	p = read_number(tok_json_blanks(p + 1), score);
	p = p == NULL ? NULL : tok_json_blanks(p);
	return p == NULL || *p != ']' ? NULL : p + 1;
}

static bool
read_list(char *p, double *score, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		if (p == NULL || *p != (i == 0 ? '[' : ','))
			return false;
		p = read_pair(tok_json_blanks(p + 1), &score[i]);
		p = p == NULL ? NULL : tok_json_blanks(p);
	}
	return p != NULL && *p == ']';
}

bool
tok_json_scores(const char *file, char *text, double *score, uint32_t n, struct tok_error *err)
{
	return read_list(tok_json_find(tok_json_find(tok_json_blanks(text), "model"), "vocab"),
		       score, n) ||
	       tok_fail(err, "%s: model.vocab: expected a list of tokens with their scores", file);
}
