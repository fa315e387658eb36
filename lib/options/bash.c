/* SPDX-License-Identifier: BSD-3-Clause */
/* bash completion: a function for the program, and one for each command. */
#include <ctype.h>
#include <string.h>

#include "opt_inside.h"

enum kind { KIND_NONE, KIND_FILES, KIND_SCRIPT, KIND_WORDS };

struct output {
	FILE *to;
	const struct opt_program *top; /* not a command */
};

static enum kind
kind_of(const struct output *o, const char *arg)
{
	if (o->top->words_arg != NULL && strstr(arg, o->top->words_arg) != NULL)
		return KIND_SCRIPT;
	if (strstr(arg, "FILE") != NULL || strstr(arg, "PATH") != NULL ||
		strstr(arg, "SOCKET") != NULL)
		return KIND_FILES;
	return strchr(arg, '|') != NULL ? KIND_WORDS : KIND_NONE;
}

static const char files[] = "compopt -o filenames 2>/dev/null\n"
			    "\t\tmapfile -t COMPREPLY < <(compgen -f -- \"$current\")\n";

/* _tok_vocab_info for "tok vocab info". */
static void
function_name(const struct opt_program *p, FILE *to)
{
	fputc('_', to);
	for (const char *c = p->name; *c != '\0'; c++)
		fputc(isalnum((unsigned char)*c) ? *c : '_', to);
}

static void
complete(const struct output *o, enum kind kind)
{
	if (kind == KIND_NONE) {
		fputs("COMPREPLY=()\n", o->to);
	} else if (kind == KIND_FILES) {
		fputs(files, o->to);
	} else {
		fputs("compopt -o filenames 2>/dev/null\n"
		      "\t\tmapfile -t COMPREPLY < <(\n\t\t\tcompgen -W \"$(",
			o->to);
		function_name(o->top, o->to);
		fputs("_words)\" -- \"$current\"\n\t\t\tcompgen -f -- \"$current\"\n\t\t)\n",
			o->to);
	}
}

/* Completions after options with a value of this kind. */
static void
values_of_kind(const struct output *o, const struct opt_program *p, enum kind kind)
{
	const char *between = "\t";
	FILE *to = o->to;

	for (size_t i = 0; i < p->n_defs; i++) {
		const struct opt_def *d = &p->defs[i];

		if (d->arg == NULL || kind_of(o, d->arg) != kind)
			continue;
		fprintf(to, "%s--%s", between, d->name);
		between = " | ";
		if (d->letter != '\0')
			fprintf(to, " | -%c", d->letter);
		if (kind == KIND_WORDS) {
			fputs(")\n\t\tmapfile -t COMPREPLY < <(compgen -W '", to);
			for (const char *c = d->arg; *c != '\0'; c++)
				fputc(*c == '|' ? ' ' : *c, to);
			fputs("' -- \"$current\")\n\t\treturn\n\t\t;;\n", to);
			between = "\t";
		}
	}
	if (between[0] != '\t') {
		fputs(")\n\t\t", to);
		complete(o, kind);
		fputs("\t\treturn\n\t\t;;\n", to);
	}
}

static void
words_of(const struct opt_program *p, unsigned int flags, FILE *to)
{
	for (size_t i = 0; i < p->n_defs; i++) {
		if ((p->defs[i].flags & flags) == flags)
			fprintf(to, "--%s ", p->defs[i].name);
	}
	fputs("--help --version", to);
}

/* A program or a command: options, their values, operands. */
static void
function(const struct output *o, const struct opt_program *p)
{
	const enum kind operand = p->operand != NULL ? kind_of(o, p->operand) : KIND_NONE;
	FILE *to = o->to;

	function_name(p, to);
	fputs("() {\n"
	      "\tlocal current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}\n"
	      "\t# --name=value is three words.\n"
	      "\tif [ \"$current\" = = ]; then\n"
	      "\t\tcurrent=\n"
	      "\telif [ \"$before\" = = ]; then\n"
	      "\t\tbefore=${COMP_WORDS[COMP_CWORD - 2]}\n"
	      "\tfi\n",
		to);
	if (p->before_dashes != NULL) {
		fputs("\tif [[ \" ${COMP_WORDS[*]:0:COMP_CWORD} \" != *' -- '* ]]; then\n"
		      "\t\tmapfile -t COMPREPLY < <(compgen -W '-- ",
			to);
		words_of(p, OPT_ACTION, to);
		fprintf(to, " %s' -- \"$current\")\n\t\treturn\n\tfi\n", p->before_dashes);
	}
	fputs("\tcase $before in\n", to);
	for (enum kind kind = KIND_NONE; kind <= KIND_WORDS; kind++)
		values_of_kind(o, p, kind);
	fputs("\tesac\n", to);
	if (operand != KIND_NONE) {
		fputs("\tif [[ $current != -* ]]; then\n\t\t", to);
		complete(o, operand);
		fputs("\t\treturn\n\tfi\n", to);
	}
	fputs("\tmapfile -t COMPREPLY < <(compgen -W '", to);
	words_of(p, 0, to);
	fputs("' -- \"$current\")\n}\n\n", to);
}

/* A function for each command, and one for the command words. */
static void
commands(const struct output *o)
{
	const struct opt_program *p = o->top;
	FILE *to = o->to;

	for (size_t i = 0; p->commands[i] != NULL; i++)
		function(o, p->commands[i]);
	function_name(p, to);
	fputs("() {\n\tlocal typed=${COMP_WORDS[*]:1:COMP_CWORD-1} words= name rest\n"
	      "\t[ -z \"$typed\" ] && words='--help --version'\n\tfor name in",
		to);
	for (size_t i = 0; p->commands[i] != NULL; i++)
		fprintf(to, " '%s'", p->commands[i]->name + strlen(p->name) + 1);
	fputs("; do\n\t\tif [[ \"$typed \" == \"$name \"* ]]; then\n\t\t\t\"", to);
	function_name(p, to);
	fputs("_${name// /_}\"\n\t\t\treturn\n\t\tfi\n"
	      "\t\trest=${name#\"${typed:+$typed }\"}\n"
	      "\t\t[[ -z $typed || $rest != \"$name\" ]] && words+=\" ${rest%% *}\"\n"
	      "\tdone\n"
	      "\tmapfile -t COMPREPLY < <(compgen -W \"$words\" -- "
	      "\"${COMP_WORDS[COMP_CWORD]}\" | sort -u)\n}\n\n",
		to);
}

void
opt_bash(const struct opt_program *p, FILE *to)
{
	const struct output o = {to, p};

	fprintf(to, "# SPDX-License-Identifier: BSD-3-Clause\n# bash completion of %s.\n\n",
		p->name);
	if (p->words_script != NULL) {
		function_name(p, to);
		fprintf(to, "_words() {\n%s}\n\n", p->words_script);
	}
	if (p->commands != NULL)
		commands(&o);
	else
		function(&o, p);
	fputs("complete -F ", to);
	function_name(p, to);
	fprintf(to, " %s\n", p->name);
}
