/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Configuration: pieces of the input, with NUL between, are words of the command line, variables
 * (those that begin with e), words before -- (with x), and the file, which is the rest (with f).
 * What is accepted is printed, read back, and has to be the same; what is refused is so in one
 * line.
 */
#include <string.h>

#include <opt_inside.h>

#include "fuzz.h"
#include "options/options.h"

#define ENV_PREFIX "TOKD_"

#define WORDS_MAX 12 /* of one input */

struct words {
	char *word[WORDS_MAX + 4]; /* with those of our own, and NULL at the end */
	int n;
};

static const char *file_text;
static size_t file_bytes;

/* The file is the input's, whatever path is asked for. */
char *__wrap_opt_file_read(const char *path, size_t *bytes, struct opt_error *e);

char *
__wrap_opt_file_read(const char *path, size_t *bytes, struct opt_error *e)
{
	char *text = malloc(file_bytes + 1);

	MUST(text != NULL);
	if (file_bytes > 0)
		memcpy(text, file_text, file_bytes);
	*bytes = file_bytes;
	return text;
}

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	return 0;
}

static void
add(struct words *w, const char *before, const char *text, size_t n)
{
	const size_t n_before = strlen(before);
	char *word;

	word = malloc(n_before + n + 1);
	MUST(word != NULL);
	memcpy(word, before, n_before);
	memcpy(word + n_before, text, n);
	word[n_before + n] = '\0';
	w->word[w->n++] = word;
}

static void
add_all(struct words *w, const struct words *from)
{
	for (int i = 0; i < from->n; i++)
		w->word[w->n + i] = from->word[i];
	w->n += from->n;
}

static void
let_go(struct words *w)
{
	for (int i = 0; i < w->n; i++)
		free(w->word[i]);
}

/* Printed, it is a file that is read back to the same values. */
static void
check_printed(const struct tokd_options *opt)
{
	char *argv[] = {"dpdk-tokd", "--", "--config", "printed"};
	char *no_environment[] = {NULL};
	struct opt_value was, is;
	struct opt_error e;
	struct tokd_options again;
	int eal_argc;
	char *text;
	FILE *to = open_memstream(&text, &file_bytes);

	MUST(to != NULL);
	opt_print_file(&tokd_program, &opt->given, opt, to);
	fclose(to);
	file_text = text;
	MUST(tokd_options_parse(4, argv, no_environment, &eal_argc, &again, &e) ==
		TOKD_OPTIONS_RUN);
	for (size_t i = 0; opt_value(&tokd_program, &opt->given, opt, i, &was); i++) {
		MUST(opt_value(&tokd_program, &again.given, &again, i, &is));
		if ((tokd_program.defs[i].flags & OPT_NOT_IN_FILE) == 0)
			MUST(strcmp(was.text, is.text) == 0);
	}
	opt_free(&again.given);
	free(text);
}

/* The input's pieces, each in memory of its own, for AddressSanitizer to guard. */
static void
take_pieces(const uint8_t *data, size_t size, struct words *eal, struct words *app,
	struct words *environment)
{
	const char *at = (const char *)data, *end = at + size;

	for (int i = 0; i < WORDS_MAX && at < end && *at != 'f'; i++) {
		const char *nul = memchr(at, '\0', (size_t)(end - at));
		const size_t n = (size_t)((nul != NULL ? nul : end) - at);

		if (*at == 'e')
			add(environment, ENV_PREFIX, at + 1, n - 1);
		else if (*at == 'x')
			add(eal, "", at + 1, n - 1);
		else
			add(app, "", at, n);
		at = nul != NULL ? nul + 1 : end;
	}
	file_text = at + 1;
	file_bytes = at < end ? (size_t)(end - at) - 1 : 0;
	if (at < end)
		add(environment, ENV_PREFIX, "CONFIG=f", strlen("CONFIG=f"));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct words eal = {0}, app = {0}, environment = {0}, all = {0};
	struct opt_error error;
	struct tokd_options opt;
	int eal_argc;

	take_pieces(data, size, &eal, &app, &environment);
	add(&all, "dpdk-tokd", "", 0);
	add_all(&all, &eal);
	add(&all, "--", "", 0);
	add_all(&all, &app);
	switch (tokd_options_parse(all.n, all.word, environment.word, &eal_argc, &opt, &error)) {
	case TOKD_OPTIONS_RUN:
	case TOKD_OPTIONS_CHECK:
		MUST(error.text[0] == '\0');
		check_printed(&opt);
		break;
	case TOKD_OPTIONS_BAD:
		MUST(error.text[0] != '\0' && strchr(error.text, '\n') == NULL);
		break;
	default:
		break;
	}
	opt_free(&opt.given);
	let_go(&all);
	let_go(&environment);
	return 0;
}
