/* SPDX-License-Identifier: BSD-3-Clause */
/* bash completion: a function for the program, and one for each command. */
#include <ctype.h>
#include <string.h>

#include "opt_inside.h"

enum kind { KIND_NONE, KIND_FILES, KIND_VOCABS, KIND_WORDS };

static enum kind
kind_of(const char *arg)
{
	if (strstr(arg, "VOCAB") != NULL)
		return KIND_VOCABS;
	if (strstr(arg, "FILE") != NULL || strstr(arg, "PATH") != NULL ||
		strstr(arg, "SOCKET") != NULL)
		return KIND_FILES;
	return strchr(arg, '|') != NULL ? KIND_WORDS : KIND_NONE;
}

/* Names of vocabularies in the search path. */
static const char vocabs[] =
	"_tokd_vocabs() {\n"
	"\tlocal data=${XDG_DATA_HOME:-$HOME/.local/share}/dpdk-tokd/vocab folders folder entry\n"
	"\tIFS=: read -ra folders \\\n"
	"\t\t<<<\"${TOK_VOCAB_PATH:-$data:/usr/local/share/dpdk-tokd/vocab:/usr/share/dpdk-tokd/vocab}\"\n"
	"\tfor folder in \"${folders[@]}\"; do\n"
	"\t\tfor entry in \"$folder\"/*; do\n"
	"\t\t\tentry=${entry##*/}\n"
	"\t\t\t[ \"$entry\" = '*' ] && continue\n"
	"\t\t\tentry=${entry%.json} entry=${entry%.tiktoken} entry=${entry%.txt}\n"
	"\t\t\tprintf '%s\\n' \"${entry%.tokv}\"\n"
	"\t\tdone\n"
	"\tdone\n"
	"}\n\n";

static const char files[] = "compopt -o filenames 2>/dev/null\n"
			    "\t\tmapfile -t COMPREPLY < <(compgen -f -- \"$current\")\n";

static const char files_and_vocabs[] = "compopt -o filenames 2>/dev/null\n"
				       "\t\tmapfile -t COMPREPLY < <(\n"
				       "\t\t\tcompgen -W \"$(_tokd_vocabs)\" -- \"$current\"\n"
				       "\t\t\tcompgen -f -- \"$current\"\n"
				       "\t\t)\n";

static const char *const body[] = {
	[KIND_NONE] = "COMPREPLY=()\n", [KIND_FILES] = files, [KIND_VOCABS] = files_and_vocabs};

/* _tok_vocab_info for "tok vocab info". */
static void
function_name(const struct opt_program *p, FILE *to)
{
	fputc('_', to);
	for (const char *c = p->name; *c != '\0'; c++)
		fputc(isalnum((unsigned char)*c) ? *c : '_', to);
}

/* Completions after options with a value of this kind. */
static void
values_of_kind(const struct opt_program *p, enum kind kind, FILE *to)
{
	const char *between = "\t";

	for (size_t i = 0; i < p->n_defs; i++) {
		const struct opt_def *d = &p->defs[i];

		if (d->arg == NULL || kind_of(d->arg) != kind)
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
	if (between[0] != '\t')
		fprintf(to, ")\n\t\t%s\t\treturn\n\t\t;;\n", body[kind]);
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
function(const struct opt_program *p, FILE *to)
{
	const enum kind operand = p->operand != NULL ? kind_of(p->operand) : KIND_NONE;

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
		values_of_kind(p, kind, to);
	fputs("\tesac\n", to);
	if (operand != KIND_NONE)
		fprintf(to, "\tif [[ $current != -* ]]; then\n\t\t%s\t\treturn\n\tfi\n",
			body[operand]);
	fputs("\tmapfile -t COMPREPLY < <(compgen -W '", to);
	words_of(p, 0, to);
	fputs("' -- \"$current\")\n}\n\n", to);
}

/* A function for each command, and one for the command words. */
static void
commands(const struct opt_program *p, FILE *to)
{
	for (size_t i = 0; p->commands[i] != NULL; i++)
		function(p->commands[i], to);
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

static bool
has_vocabs(const struct opt_program *p)
{
	bool has = p->operand != NULL && kind_of(p->operand) == KIND_VOCABS;

	for (size_t i = 0; i < p->n_defs; i++)
		has = has || (p->defs[i].arg != NULL && kind_of(p->defs[i].arg) == KIND_VOCABS);
	for (size_t i = 0; p->commands != NULL && p->commands[i] != NULL; i++)
		has = has || has_vocabs(p->commands[i]);
	return has;
}

void
opt_bash(const struct opt_program *p, FILE *to)
{
	fprintf(to, "# SPDX-License-Identifier: BSD-3-Clause\n# bash completion of %s.\n\n",
		p->name);
	if (has_vocabs(p))
		fputs(vocabs, to);
	if (p->commands != NULL)
		commands(p, to);
	else
		function(p, to);
	fputs("complete -F ", to);
	function_name(p, to);
	fprintf(to, " %s\n", p->name);
}
