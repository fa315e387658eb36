/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses a value into its field, or makes an error that names its source. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "opt_inside.h"

/* One value and its source. */
struct one {
	const struct opt_program *p;
	const struct opt_def *d;
	const char *text;
	enum opt_source source;
	const char *path; /* of OPT_FROM_FILE */
};

/* "--rxd 5", "TOKD_RXD=5" or "/etc/tokd.conf: rxd = 5". */
struct head {
	char text[320];
};

static struct head
head(const struct one *o)
{
	char env[OPT_NAME_ROOM];
	struct head h;

	switch (o->source) {
	case OPT_FROM_FILE:
		snprintf(
			h.text, sizeof(h.text), "%.200s: %s = %.64s", o->path, o->d->name, o->text);
		break;
	case OPT_FROM_ENVIRONMENT:
		opt_env(o->p, o->d, env, sizeof(env));
		snprintf(h.text, sizeof(h.text), "%s=%.64s", env, o->text);
		break;
	default:
		snprintf(h.text, sizeof(h.text), "--%s%s%.64s", o->d->name,
			o->text[0] != '\0' ? " " : "", o->text);
		break;
	}
	return h;
}

/* Factor of the unit after a number of this type; 0: no such unit. */
static uint64_t
factor_of(enum opt_type type, const char *unit)
{
	if (unit[0] == '\0')
		return type == OPT_S ? 1000 : 1;
	if (type == OPT_MS || type == OPT_S)
		return strcmp(unit, "s") == 0 ? 1000 : strcmp(unit, "ms") == 0;
	if (type != OPT_SIZE || unit[1] != '\0')
		return 0;
	switch (toupper((unsigned char)unit[0])) {
	case 'K':
		return OPT_K;
	case 'M':
		return OPT_M;
	case 'G':
		return OPT_G;
	default:
		return 0;
	}
}

static bool
parse_number(const char *text, enum opt_type type, uint64_t *v)
{
	uint64_t factor;
	char *end;

	if (!isdigit((unsigned char)text[0]))
		return false; /* strtoull accepts signs and blanks */
	/*
	 * A number too large for strtoull becomes the largest one, which exceeds nearly every
	 * limit.
	 */
	*v = strtoull(text, &end, type == OPT_OCTAL ? 8 : 10);
	factor = factor_of(type, end);
	if (__builtin_mul_overflow(*v, factor, v))
		*v = UINT64_MAX;
	return factor != 0;
}

bool
opt_number(const char *text, uint64_t least, uint64_t most, uint64_t *v)
{
	return parse_number(text, OPT_COUNT, v) && *v >= least && *v <= most;
}

static bool
set_number(const struct one *o, void *field, struct opt_error *e)
{
	static const char *const form[] = {
		[OPT_COUNT] = "a decimal number",
		[OPT_MS] = "milliseconds, or a time such as 5s",
		[OPT_S] = "seconds, or a time such as 200ms",
		[OPT_SIZE] = "a decimal number, optionally with k, M or G",
		[OPT_OCTAL] = "an octal number, as for chmod",
	};
	const struct opt_def *d = o->d;
	const bool minus = d->min < 0 && o->text[0] == '-';
	char low[32], high[32];
	uint64_t v;

	opt_print(d, d->min, low, sizeof(low));
	opt_print(d, (int64_t)d->max, high, sizeof(high));
	if (!parse_number(o->text + minus, d->type, &v))
		return opt_wrong(e, "%s: not a number; give %s (%s to %s%s)", head(o).text,
			form[d->type], low, high, opt_unit(d));
	if (minus ? v > (uint64_t)-d->min : v > d->max || (d->min > 0 && v < (uint64_t)d->min))
		return opt_wrong(e, "%s: out of range; give %s to %s%s", head(o).text, low, high,
			opt_unit(d));
	if (minus)
		v = -v;
	if (d->width == sizeof(uint16_t))
		*(uint16_t *)field = (uint16_t)v;
	else if (d->width == sizeof(uint32_t))
		*(uint32_t *)field = (uint32_t)v;
	else
		*(uint64_t *)field = v;
	return true;
}

static bool
set_flag(const struct one *o, bool *field, struct opt_error *e)
{
	*field = strcmp(o->text, "yes") == 0;
	return *field || strcmp(o->text, "no") == 0 ||
	       opt_wrong(e, "%s: neither yes nor no; give one of them", head(o).text);
}

static bool
set_choice(const struct one *o, void *field, struct opt_error *e)
{
	const size_t len = strlen(o->text);
	char words[128] = "";
	uint32_t i = 0;

	for (const char *word = o->d->arg; *word != '\0'; i++) {
		const size_t n = strcspn(word, "|"), used = strlen(words);
		const bool last = word[n] == '\0';

		if (n == len && memcmp(word, o->text, n) == 0) {
			if (o->d->width == sizeof(const char *))
				*(const char **)field = o->text;
			else
				*(uint32_t *)field = i;
			return true;
		}
		snprintf(words + used, sizeof(words) - used, "%s%.*s",
			i == 0 ? ""
			: last ? " or "
			       : ", ",
			(int)n, word);
		word += n + !last;
	}
	return opt_wrong(e, "%s: give %s", head(o).text, words);
}

/* With a configuration file, any value must survive being written to it and read back. */
static bool
check_text(const struct one *o, struct opt_error *e)
{
	const bool in_file = o->p->file_section != NULL;
	const size_t limit = o->d->max != 0 ? o->d->max : in_file ? OPT_TEXT_MAX : SIZE_MAX;
	const size_t len = strlen(o->text);

	if (len == 0)
		return opt_wrong(e, "%s: the value is empty; give %s", head(o).text, o->d->arg);
	if (len > limit)
		return opt_wrong(e, "%s: %zu bytes, it is limited to %zu; give a shorter one",
			head(o).text, len, limit);
	for (size_t i = 0; in_file && i < len; i++) {
		if (iscntrl((unsigned char)o->text[i]))
			return opt_wrong(e,
				"%s: byte %zu is a control character (0x%02x); leave it out",
				head(o).text, i + 1, (unsigned char)o->text[i]);
	}
	if (in_file && (o->text[0] == ' ' || o->text[len - 1] == ' '))
		return opt_wrong(e, "%s: a blank at the start or end; leave it out", head(o).text);
	if (in_file && opt_is_quoted(o->text, len))
		return opt_wrong(e, "%s: in quotes; leave them out", head(o).text);
	return true;
}

static bool
set_text(const struct one *o, void *field, struct opt_error *e)
{
	struct opt_texts *all = field;

	if (!check_text(o, e))
		return false;
	if ((o->d->flags & OPT_REPEATABLE) == 0) {
		*(const char **)field = o->text;
	} else if (o->source !=
		   OPT_FROM_COMMAND_LINE) { /* those of the command line are set already */
		all->n = 1;
		all->text[0] = o->text;
	}
	return true;
}

static bool
set(const struct one *o, void *field, struct opt_error *e)
{
	struct opt_error err = {""};

	switch (o->d->type) {
	case OPT_TEXT:
		if (!set_text(o, field, e))
			return false;
		break;
	case OPT_CHOICE:
		if (!set_choice(o, field, e))
			return false;
		break;
	case OPT_FLAG:
		if (!set_flag(o, field, e))
			return false;
		break;
	case OPT_OTHER:
		break;
	default:
		if (!set_number(o, field, e))
			return false;
		break;
	}
	if (o->d->check == NULL || o->d->check(o->d, o->text, field, &err))
		return true;
	return opt_wrong(e, "%s: %s", head(o).text, err.text);
}

bool
opt_check_power_of_2(const struct opt_def *d, const char *text, void *field, struct opt_error *err)
{
	const uint64_t v = *(const uint64_t *)field;
	char low[32], high[32];
	uint64_t below;

	if ((v & (v - 1)) == 0)
		return true;
	below = 1ull << (63 - __builtin_clzll(v));
	opt_print(d, (int64_t)below, low, sizeof(low));
	opt_print(d, (int64_t)below * 2, high, sizeof(high));
	return opt_wrong(err, "not a power of two; give %s or %s", low, high);
}

void
opt_copy(const struct opt_program *p, size_t i, const struct opt_given *from_given,
	const void *from, struct opt_given *given, void *target)
{
	const struct opt_def *d = &p->defs[i];

	memcpy((char *)target + d->offset, (const char *)from + d->offset, d->width);
	for (int source = 0; source < OPT_SOURCES; source++)
		given->text[source][i] = from_given->text[source][i];
	given->source[i] = from_given->source[i];
}

bool
opt_set(const struct opt_program *p, size_t i, struct opt_given *given, void *target,
	struct opt_error *e)
{
	const struct opt_def *d = &p->defs[i];
	void *field = (char *)target + d->offset;

	/* From the lowest to the highest precedence: the last one stays. */
	for (int from = OPT_FROM_DEFAULT; from < OPT_SOURCES; from++) {
		const struct one o = {p, d, given->text[from][i], from, given->path};

		if (o.text == NULL)
			continue;
		if ((d->flags & OPT_REPEATABLE) != 0 && from != OPT_FROM_COMMAND_LINE &&
			given->text[OPT_FROM_COMMAND_LINE][i] != NULL)
			continue; /* would take the place of the collected ones */
		if (!set(&o, field, e))
			return false;
		given->source[i] = (uint8_t)from;
	}
	return true;
}
