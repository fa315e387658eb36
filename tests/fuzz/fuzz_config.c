/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Configuration: pieces of the input, with NUL between, are words of the command line, variables
 * (those that begin with e), words before -- (with x), and the file, which is the rest (with f).
 * What is accepted is printed, read back, and has to be the same; what is refused is so in one
 * line.
 */
#include <string.h>

#include "fuzz.h"
#include "options/table.h"

#define WORDS_MAX 12 /* of one input */

struct words {
	char *word[WORDS_MAX + 4]; /* with those of our own, and NULL at the end */
	int n;
};

static const char *file_text;
static size_t file_bytes;

/* The file is the input's, whatever path is asked for. */
char *__wrap_tokd_opt_file_read(const char *path, size_t *bytes, struct tokd_options_error *e);

char *
__wrap_tokd_opt_file_read(const char *path, size_t *bytes, struct tokd_options_error *e)
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
	struct tokd_option_value was, is;
	struct tokd_opt_asked asked = {0};
	struct tokd_options_error e = {""};
	struct tokd_options again = {0};
	size_t bytes;
	char *text;
	FILE *to = open_memstream(&text, &bytes);

	MUST(to != NULL);
	tokd_options_print(to, opt);
	fclose(to);
	for (size_t i = 0; i < TOKD_N_OPTS; i++)
		asked.text[TOKD_FROM_DEFAULT][i] = tokd_opt_defs[i].preset;
	MUST(tokd_opt_file_parse("printed", text, bytes, &asked, &e) == 0);
	MUST(tokd_opt_resolve(&asked, &again, &e) == 0);
	for (size_t i = 0; tokd_options_value(opt, i, &was); i++) {
		MUST(tokd_options_value(&again, i, &is));
		if (tokd_opt_defs[i].rule != RULE_NOT_IN_FILE)
			MUST(strcmp(was.text, is.text) == 0);
	}
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
			add(environment, OPT_ENV_PREFIX, at + 1, n - 1);
		else if (*at == 'x')
			add(eal, "", at + 1, n - 1);
		else
			add(app, "", at, n);
		at = nul != NULL ? nul + 1 : end;
	}
	file_text = at + 1;
	file_bytes = at < end ? (size_t)(end - at) - 1 : 0;
	if (at < end)
		add(environment, OPT_ENV_PREFIX, "CONFIG=f", strlen("CONFIG=f"));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct words eal = {0}, app = {0}, environment = {0}, all = {0};
	struct tokd_options_error error;
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
	tokd_options_free(&opt);
	let_go(&all);
	let_go(&environment);
	return 0;
}
