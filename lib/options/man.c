/* SPDX-License-Identifier: BSD-3-Clause */
/* The manual page: roff with the macros of man(7). */
#include <ctype.h>
#include <string.h>

#include "opt_inside.h"

/* n bytes, escaped, with searchable hyphens. */
static void
roff(FILE *to, const char *text, size_t n)
{
	if (n > 0 && (*text == '.' || *text == '\''))
		fputs("\\&", to);
	for (; n > 0; n--, text++) {
		if (*text == '-')
			fputs("\\-", to);
		else if (*text == '\\')
			fputs("\\e", to);
		else
			fputc(*text, to);
	}
}

static void
roff_text(FILE *to, const char *text)
{
	roff(to, text, strlen(text));
}

static void
capitals(FILE *to, const char *text)
{
	for (; *text != '\0'; text++)
		fputc(toupper((unsigned char)*text), to);
}

/* Paragraphs separated by empty lines; lines that begin with a blank are not reflowed. */
static void
prose(FILE *to, const char *text)
{
	bool literal = false;

	while (*text != '\0') {
		const size_t n = strcspn(text, "\n");
		const bool indented = *text == ' ';

		if (indented != literal)
			fputs(indented ? ".PP\n.nf\n" : ".fi\n", to);
		literal = indented;
		if (n == 0)
			fputs(".PP\n", to);
		else {
			roff(to, text, n);
			fputc('\n', to);
		}
		text += n + (text[n] == '\n');
	}
	if (literal)
		fputs(".fi\n", to);
}

static void
paragraph(FILE *to, const char *name, const char *arg, const char *help)
{
	fputs(".TP\n\\fB", to);
	roff_text(to, name);
	fputs("\\fP", to);
	if (arg != NULL) {
		fputs(" \\fI", to);
		roff_text(to, arg);
		fputs("\\fP", to);
	}
	fputc('\n', to);
	roff_text(to, help);
}

static void
options(const struct opt_program *p, FILE *to)
{
	for (size_t i = 0; i < p->n_defs; i++) {
		const struct opt_def *d = &p->defs[i];
		char head[80], limits[128], variable[OPT_NAME_ROOM];

		if (d->section != NULL)
			fprintf(to, ".SS %s\n", d->section);
		opt_head(d, head, sizeof(head));
		if (d->arg != NULL)
			head[strlen(head) - strlen(d->arg) - 1] = '\0';
		paragraph(to, head, d->arg, d->help);
		opt_limits(d, limits, sizeof(limits));
		if (limits[0] != '\0') {
			fputs("\n(", to);
			roff_text(to, limits);
			fputc(')', to);
		}
		fputs(".\n", to);
		if (p->env_prefix != NULL && (d->flags & OPT_ACTION) == 0) {
			opt_env(p, d, variable, sizeof(variable));
			fprintf(to, "Variable\n.BR %s .\n", variable);
		}
	}
}

static void
synopsis(const struct opt_program *p, FILE *to)
{
	fputs(".B ", to);
	roff_text(to, p->name);
	fputc('\n', to);
	roff_text(to, p->usage);
	fputc('\n', to);
}

void
opt_man(const struct opt_program *p, FILE *to)
{
	fputs(".\\\" SPDX-License-Identifier: BSD-3-Clause\n.TH ", to);
	capitals(to, p->name);
	fprintf(to, " 1 \"\" \"%s %s\" \"User Commands\"\n.SH NAME\n", p->name, p->version);
	roff_text(to, p->name);
	fputs(" \\- ", to);
	roff_text(to, p->summary);
	fputs("\n.SH SYNOPSIS\n", to);
	if (p->usage != NULL)
		synopsis(p, to);
	for (size_t i = 0; p->commands != NULL && p->commands[i] != NULL; i++) {
		fputs(i > 0 ? ".br\n" : "", to);
		synopsis(p->commands[i], to);
	}
	fputs(".SH DESCRIPTION\n", to);
	prose(to, p->about);
	fputs(".SH OPTIONS\n", to);
	paragraph(to, "--help", NULL, "print a summary and exit.\n");
	paragraph(to, "--version", NULL, "print the version and exit.\n");
	options(p, to);
	for (size_t i = 0; p->commands != NULL && p->commands[i] != NULL; i++) {
		fprintf(to, ".SS %s\n", p->commands[i]->name);
		prose(to, p->commands[i]->about);
		options(p->commands[i], to);
	}
	for (const struct opt_section *s = p->sections; s != NULL && s->title != NULL; s++) {
		fputs(".SH ", to);
		capitals(to, s->title);
		fputc('\n', to);
		prose(to, s->text);
	}
}
