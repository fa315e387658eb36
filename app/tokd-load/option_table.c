/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>

#include "option_table.h"
#include "values.h"

#define OPTIONS_MAX 32

static void
help(const struct option_table *t)
{
	fputs(t->usage, stdout);
	for (size_t i = 0; i < t->n; i++) {
		char both[40];

		snprintf(both, sizeof(both), "--%s %s", t->def[i].name, t->def[i].arg);
		printf("  %-19s  %s\n", both, t->def[i].help);
	}
	fputs("  --help               this text\n\n"
	      "exit code: 0 all ids were right; 1 some were not, or the run failed; 2 a bad option\n",
		stdout);
}

static int
set(void *options, const struct option_def *d, const char *value)
{
	void *field = (char *)options + d->at;

	switch (d->kind) {
	case OPTION_TEXT:
		*(const char **)field = value;
		return 0;
	case OPTION_NUMBER:
		return value_number(d->name, value, d->least, d->most, field);
	case OPTION_SERVER:
		return value_server(d->name, value, field);
	case OPTION_FLAG:
		*(bool *)field = true;
		return 0;
	case OPTION_OTHER:
		return d->parse(d->name, value, field);
	}
	return -1;
}

int
option_table_parse(const struct option_table *t, void *options, int argc, char **argv)
{
	struct option known[OPTIONS_MAX + 2] = {0};
	int which, c;

	for (size_t i = 0; i < t->n; i++) {
		const bool alone = t->def[i].kind == OPTION_FLAG;

		known[i] = (struct option){
			t->def[i].name, alone ? no_argument : required_argument, NULL, 'o'};
	}
	known[t->n] = (struct option){"help", no_argument, NULL, 'h'};
	while ((c = getopt_long(argc, argv, "", known, &which)) != -1) {
		if (c == 'h') {
			help(t);
			return 1;
		}
		if (c != 'o' || set(options, &t->def[which], optarg) != 0)
			return -1;
	}
	if (optind < argc) {
		fprintf(stderr, "%s: %s: not an option; see --help\n",
			program_invocation_short_name, argv[optind]);
		return -1;
	}
	return 0;
}
