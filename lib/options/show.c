/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints --help, values, the configuration file and the variables of a service. */
#include <inttypes.h>
#include <string.h>

#include "opt_inside.h"

#define HELP_COLUMN 27 /* column of the help texts */
#define HELP_WIDTH 98

const char *
opt_source_name(enum opt_source source)
{
	static const char *const names[] = {
		[OPT_FROM_DEFAULT] = "default",
		[OPT_FROM_FILE] = "file",
		[OPT_FROM_ENVIRONMENT] = "environment",
		[OPT_FROM_COMMAND_LINE] = "command line",
	};

	return names[source];
}

/* A size as a user would write it: 16M, 64k, 1500. */
static void
print_size(uint64_t v, char *text, size_t room)
{
	if (v >= OPT_G && v % OPT_G == 0)
		snprintf(text, room, "%" PRIu64 "G", v / OPT_G);
	else if (v >= OPT_M && v % OPT_M == 0)
		snprintf(text, room, "%" PRIu64 "M", v / OPT_M);
	else if (v >= OPT_K && v % OPT_K == 0)
		snprintf(text, room, "%" PRIu64 "k", v / OPT_K);
	else
		snprintf(text, room, "%" PRIu64, v);
}

void
opt_print(const struct opt_def *d, int64_t v, char *text, size_t room)
{
	if (d->type == OPT_SIZE)
		print_size((uint64_t)v, text, room);
	else if (d->type == OPT_S)
		snprintf(text, room, "%" PRIu64 "%s", (uint64_t)(v % 1000 == 0 ? v / 1000 : v),
			v % 1000 == 0 ? "s" : "ms");
	else if (d->type == OPT_OCTAL)
		snprintf(text, room, "%04" PRIo64, (uint64_t)v);
	else if (d->min < 0)
		snprintf(text, room, "%" PRId64, v);
	else
		snprintf(text, room, "%" PRIu64, (uint64_t)v);
}

const char *
opt_unit(const struct opt_def *d)
{
	return d->type == OPT_MS ? " ms" : d->type == OPT_SIZE ? " bytes" : "";
}

static bool
is_number(const struct opt_def *d)
{
	return d->type >= OPT_COUNT && d->type <= OPT_OCTAL;
}

void
opt_limits(const struct opt_def *d, char *text, size_t room)
{
	char low[32], high[32], preset[80] = "";

	text[0] = '\0';
	if (d->preset != NULL)
		snprintf(preset, sizeof(preset), "default %s", d->preset);
	if (is_number(d) && (d->type != OPT_COUNT || d->max < UINT32_MAX)) {
		opt_print(d, d->min, low, sizeof(low));
		opt_print(d, (int64_t)d->max, high, sizeof(high));
		snprintf(text, room, "%s to %s%s%s%s", low, high, opt_unit(d),
			preset[0] != '\0' ? "; " : "", preset);
	} else if (d->type == OPT_FLAG && d->preset != NULL) {
		snprintf(text, room, "yes or no; %s", preset);
	} else {
		snprintf(text, room, "%s", preset);
	}
	if ((d->flags & OPT_RELOADS) != 0) {
		const size_t used = strlen(text);

		snprintf(text + used, room - used, "%sreloadable", used > 0 ? "; " : "");
	}
}

void
opt_head(const struct opt_def *d, char *text, size_t room)
{
	char letter[8] = "";

	if (d->letter != '\0')
		snprintf(letter, sizeof(letter), "-%c, ", d->letter);
	snprintf(text, room, "%s--%s%s%s", letter, d->name, d->arg != NULL ? " " : "",
		d->arg != NULL ? d->arg : "");
}

/* Wraps `text`, from column `at`, to lines that begin at HELP_COLUMN. */
static void
wrap(FILE *to, const char *text, int at)
{
	while (*text != '\0') {
		const int n = (int)strcspn(text, " ");

		if (at > HELP_COLUMN && at + 1 + n > HELP_WIDTH) {
			fprintf(to, "\n%*s", HELP_COLUMN, "");
			at = HELP_COLUMN;
		}
		at += fprintf(to, "%s%.*s", at > HELP_COLUMN ? " " : "", n, text);
		text += n + (text[n] == ' ');
	}
	fputc('\n', to);
}

/* One option of --help, its first line aligned with the others. */
static void
entry(FILE *to, const char *name, const char *help, const char *limits)
{
	char words[512];
	int at = fprintf(to, "  %s", name);

	snprintf(words, sizeof(words), "%s%s%s%s", help, limits[0] != '\0' ? " (" : "", limits,
		limits[0] != '\0' ? ")" : "");
	if (at >= HELP_COLUMN) {
		fputc('\n', to);
		at = 0;
	}
	fprintf(to, "%*s", HELP_COLUMN - at, "");
	wrap(to, words, HELP_COLUMN);
}

static void
help_options(const struct opt_program *p, FILE *to)
{
	size_t i = 0;

	fprintf(to, "\noptions:\n");
	for (bool built_in = false;; i++) {
		char name[80], limits[128];

		if (!built_in && (i == p->n_defs || p->defs[i].section != NULL)) {
			entry(to, "--help", "print this text and exit", "");
			entry(to, "--version", "print the version and exit", "");
			built_in = true;
		}
		if (i == p->n_defs)
			return;
		if (p->defs[i].section != NULL)
			fprintf(to, "\n%s:\n", p->defs[i].section);
		opt_head(&p->defs[i], name, sizeof(name));
		opt_limits(&p->defs[i], limits, sizeof(limits));
		entry(to, name, p->defs[i].help, limits);
	}
}

static void
help(const struct opt_program *p, FILE *to)
{
	if (p->usage != NULL)
		fprintf(to, "usage: %s %s\n", p->name, p->usage);
	for (size_t i = 0; p->commands != NULL && p->commands[i] != NULL; i++)
		fprintf(to, "%s%s %s\n", i == 0 ? "usage: " : "       ", p->commands[i]->name,
			p->commands[i]->usage);
	fprintf(to, "\n%s\n", p->about);
	if (p->commands != NULL)
		fprintf(to, "\n%s COMMAND --help lists the options of a command.\n", p->name);
	help_options(p, to);
	for (const struct opt_section *s = p->sections; s != NULL && s->title != NULL; s++) {
		if (s->in_help)
			fprintf(to, "\n%s:\n%s\n", s->title, s->text);
	}
}

/* For a service's environment file: every variable, with its default, as a comment. */
static void
variables(const struct opt_program *p, FILE *to)
{
	for (size_t i = 0; p->env_prefix != NULL && i < p->n_defs; i++) {
		const struct opt_def *d = &p->defs[i];
		char limits[128], name[OPT_NAME_ROOM];

		if ((d->flags & OPT_ACTION) != 0)
			continue;
		opt_limits(d, limits, sizeof(limits));
		opt_env(p, d, name, sizeof(name));
		fprintf(to, "\n# %s%s%s%s\n#%s=%s\n", d->help, limits[0] != '\0' ? " (" : "",
			limits, limits[0] != '\0' ? ")" : "", name,
			d->preset != NULL ? d->preset : "");
	}
}

void
opt_help(const struct opt_program *p, const char *form, FILE *to)
{
	if (strcmp(form, "man") == 0)
		opt_man(p, to);
	else if (strcmp(form, "bash") == 0)
		opt_bash(p, to);
	else if (strcmp(form, "env") == 0)
		variables(p, to);
	else
		help(p, to);
}

bool
opt_value(const struct opt_program *p, const struct opt_given *given, const void *target, size_t i,
	struct opt_value *value)
{
	const struct opt_def *d = &p->defs[i];
	const char *text;
	uint64_t v = 0;

	if (i >= p->n_defs || (d->flags & OPT_ACTION) != 0)
		return false;
	value->name = d->name;
	value->source = given->source[i];
	value->text[0] = '\0';
	text = given->text[value->source][i];
	if (text == NULL)
		return true;
	if (is_number(d)) {
		memcpy(&v, (const char *)target + d->offset, d->width); /* little-endian */
		opt_print(d, (int64_t)v, value->text, sizeof(value->text));
	} else {
		snprintf(value->text, sizeof(value->text), "%s", text);
	}
	return true;
}

void
opt_print_file(
	const struct opt_program *p, const struct opt_given *given, const void *target, FILE *to)
{
	struct opt_value value;

	fprintf(to, "# Configuration of %s, for --%s FILE.\n[%s]\n", p->name, p->file_option,
		p->file_section);
	for (size_t i = 0; opt_value(p, given, target, i, &value); i++) {
		const struct opt_def *d = &p->defs[i];
		char limits[128];

		if ((d->flags & OPT_NOT_IN_FILE) != 0)
			continue;
		opt_limits(d, limits, sizeof(limits));
		fprintf(to, "\n# %s", d->help);
		if (limits[0] != '\0')
			fprintf(to, " (%s)", limits);
		if (value.source == OPT_FROM_DEFAULT)
			fprintf(to, "\n");
		else
			fprintf(to, "\n# from the %s\n", opt_source_name(value.source));
		if (value.text[0] == '\0') {
			fprintf(to, "# %s =\n", d->name); /* no value, rather than an empty one */
			continue;
		}
		fprintf(to, "%s = ", d->name);
		for (const char *c = value.text; *c != '\0'; c++)
			fprintf(to, "%s%c", *c == '#' ? "\\" : "", *c);
		fprintf(to, "\n");
	}
}
