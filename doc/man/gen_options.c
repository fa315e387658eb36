/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fills a template of the manual page, of the completion or of the service's environment file from the
 * table of options, while building: none can say anything else than the program. A template's line that is one of
 * `places` below gives way to what is made here.
 */
#include <stdio.h>
#include <string.h>

#include "options/table.h"

/* Not as a request or an escape, and with hyphens that are found when searched for. */
static void
roff(const char *text)
{
	if (*text == '.' || *text == '\'')
		fputs("\\&", stdout);
	for (; *text != '\0'; text++) {
		if (*text == '-')
			fputs("\\-", stdout);
		else if (*text == '\\')
			fputs("\\e", stdout);
		else
			putchar(*text);
	}
}

static void
man_options(void)
{
	for (size_t i = 0; i < TOKD_N_OPTS; i++) {
		const struct tokd_opt_def *d = &tokd_opt_defs[i];
		char limits[96], variable[OPT_NAME_ROOM], letter[3];

		printf(".TP\n.B ");
		roff(tokd_opt_short(d, letter));
		printf("%s\\-\\-", letter[0] != '\0' ? ", " : "");
		roff(d->name);
		if (d->arg != NULL)
			printf(" \\fI%s\\fP", d->arg);
		printf("\n");
		roff(d->help);
		tokd_opt_limits(d, limits, sizeof(limits));
		if (limits[0] != '\0') {
			printf("\n(");
			roff(limits);
			printf(")");
		}
		tokd_opt_env(d, variable, sizeof(variable));
		printf(".\nVariable\n.BR %s .\n", variable);
	}
}

static void
man_actions(void)
{
	for (size_t i = 0; i < TOKD_N_ACTIONS; i++) {
		printf(".TP\n.B \\-\\-");
		roff(tokd_opt_actions[i].name);
		printf("\n");
		roff(tokd_opt_actions[i].help);
		printf(".\n");
	}
}

static bool
is_path(const struct tokd_opt_def *d)
{
	return d->arg != NULL && (strstr(d->arg, "FILE") != NULL || strstr(d->arg, "PATH") != NULL);
}

/* Lists of words: what stands there, what has a path after it, what has another value. */
static void
bash_options(void)
{
	printf("_dpdk_tokd_options='");
	for (size_t i = 0; i < TOKD_N_OPTS; i++)
		printf("--%s ", tokd_opt_defs[i].name);
	printf("'\n_dpdk_tokd_actions='");
	for (size_t i = 0; i < TOKD_N_ACTIONS; i++)
		printf("--%s ", tokd_opt_actions[i].name);
	printf("'\n_dpdk_tokd_paths='");
	for (size_t i = 0; i < TOKD_N_OPTS; i++) {
		if (is_path(&tokd_opt_defs[i]))
			printf("--%s ", tokd_opt_defs[i].name);
	}
	printf("'\n_dpdk_tokd_values='");
	for (size_t i = 0; i < TOKD_N_OPTS; i++) {
		if (tokd_opt_defs[i].arg != NULL && !is_path(&tokd_opt_defs[i]))
			printf("--%s ", tokd_opt_defs[i].name);
	}
	printf("'\n");
}

/* For /etc/default: every variable, with its default, as a comment. */
static void
env_options(void)
{
	for (size_t i = 0; i < TOKD_N_OPTS; i++) {
		const struct tokd_opt_def *d = &tokd_opt_defs[i];
		char limits[96], variable[OPT_NAME_ROOM];

		tokd_opt_limits(d, limits, sizeof(limits));
		tokd_opt_env(d, variable, sizeof(variable));
		printf("\n# %s%s%s%s\n#%s=%s\n", d->help, limits[0] != '\0' ? " (" : "", limits,
			limits[0] != '\0' ? ")" : "", variable, d->preset != NULL ? d->preset : "");
	}
}

static const struct {
	const char *line;
	void (*fill)(void);
} places[] = {
	{".\\\" OPTIONS OF THE TABLE\n", man_options},
	{".\\\" ACTIONS OF THE TABLE\n", man_actions},
	{"# OPTIONS OF THE TABLE\n", bash_options},
	{"# VARIABLES OF THE TABLE\n", env_options},
};

static void
copy_or_fill(const char *line)
{
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		if (strcmp(line, places[i].line) == 0) {
			places[i].fill();
			return;
		}
	}
	fputs(line, stdout);
}

int
main(int argc, char **argv)
{
	FILE *from = argc == 2 ? fopen(argv[1], "r") : NULL;
	char line[1024];

	if (from == NULL) {
		fprintf(stderr, "usage: gen_options TEMPLATE > FILE\n");
		return 2;
	}
	while (fgets(line, sizeof(line), from) != NULL)
		copy_or_fill(line);
	return ferror(from) != 0 || fflush(stdout) != 0;
}
