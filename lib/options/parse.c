/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Values are collected from all sources first (here and in file.c), then checked once (value.c):
 * the order of options never matters.
 */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "opt_inside.h"

/* Keeps an error on one line: it may quote anything. */
static void
one_line(char *text)
{
	for (; *text != '\0'; text++) {
		if (iscntrl((unsigned char)*text))
			*text = '?';
	}
}

bool
opt_wrong(struct opt_error *e, const char *fmt, ...)
{
	va_list ap;

	if (e->text[0] != '\0')
		return false;
	va_start(ap, fmt);
	vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	one_line(e->text);
	return false;
}

int
opt_usage(const struct opt_program *p, const char *fmt, ...)
{
	char text[sizeof(((struct opt_error *)0)->text)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	one_line(text);
	/* The first word is the program, the others a command. */
	fprintf(stderr, "%.*s: %s\n", (int)strcspn(p->name, " "), p->name, text);
	return OPT_EXIT_USAGE;
}

int
opt_flush(const struct opt_program *p)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return OPT_EXIT_OK;
	opt_usage(p, "standard output: %s", strerror(errno));
	return OPT_EXIT_FAILED;
}

const struct opt_def *
opt_find(const struct opt_program *p, const char *name, size_t len)
{
	for (size_t i = 0; i < p->n_defs; i++) {
		if (strlen(p->defs[i].name) == len && memcmp(p->defs[i].name, name, len) == 0)
			return &p->defs[i];
	}
	return NULL;
}

static const struct opt_def *
find_letter(const struct opt_program *p, char letter)
{
	for (size_t i = 0; i < p->n_defs; i++) {
		if (letter != '\0' && p->defs[i].letter == letter)
			return &p->defs[i];
	}
	return NULL;
}

void
opt_env(const struct opt_program *p, const struct opt_def *d, char *name, size_t room)
{
	snprintf(name, room, "%s%s", p->env_prefix, d->name);
	for (; *name != '\0'; name++)
		*name = *name == '-' ? '_' : (char)toupper((unsigned char)*name);
}

static bool
take_built_in(const char *arg, struct opt_given *given)
{
	if (strcmp(arg, "--version") == 0)
		given->version = true;
	else if (strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0)
		given->help = "";
	else if (strncmp(arg, "--help=", strlen("--help=")) == 0)
		given->help = arg + strlen("--help=");
	else
		return false;
	return true;
}

static void
unknown(const struct opt_program *p, const char *arg, struct opt_error *e)
{
	const size_t dashes = strspn(arg, "-");
	const char *near = dashes == 2 ? opt_near(p, arg + 2, strcspn(arg + 2, "=")) : NULL;

	opt_wrong(e, "%.64s: no such option; %s%s%s--help lists them%s", arg,
		near != NULL ? "did you mean --" : "", near != NULL ? near : "",
		near != NULL ? "? " : "",
		p->before_dashes != NULL ? "; EAL options go before --" : "");
}

static void
enter(const struct opt_program *p, const struct opt_def *d, const char *value, void *target,
	struct opt_given *given, struct opt_error *e)
{
	const char **text = &given->text[OPT_FROM_COMMAND_LINE][d - p->defs];
	struct opt_texts *all = (struct opt_texts *)((char *)target + d->offset);

	if ((d->flags & OPT_REPEATABLE) != 0) {
		if (*text == NULL)
			all->n = 0;
		if (all->n == OPT_TEXTS_MAX)
			opt_wrong(e, "--%s %.64s: given more than %d times; give fewer", d->name,
				value, OPT_TEXTS_MAX);
		else
			all->text[all->n++] = value;
	}
	*text = value;
}

/* The number of args[0 .. n) that belong to the option at args[0]. */
static int
take_one(const struct opt_program *p, char **args, int n, void *target, struct opt_given *given,
	struct opt_error *e)
{
	const bool is_short = args[0][1] != '-';
	const char *name = args[0] + 2, *value;
	const size_t len = strcspn(name, "=");
	const struct opt_def *d;
	int taken = 1;

	if (take_built_in(args[0], given))
		return 1;
	d = is_short ? find_letter(p, args[0][1]) : opt_find(p, name, len);
	if (d == NULL || ((d->flags & OPT_ACTION) != 0 && name[len] == '=')) {
		unknown(p, args[0], e);
		return 1;
	}
	if (is_short && *name != '\0') {
		value = name;
	} else if (!is_short && name[len] == '=') {
		value = name + len + 1;
	} else if (d->type == OPT_FLAG) {
		value = "yes";
	} else if (n >= 2 && strncmp(args[1], "--", 2) != 0) {
		value = args[1];
		taken = 2;
	} else {
		opt_wrong(e, "--%s: value missing; write --%s %s", d->name, d->name, d->arg);
		return 1;
	}
	enter(p, d, value, target, given, e);
	return taken;
}

void
opt_take(const struct opt_program *p, char **args, int n, void *target, struct opt_given *given,
	struct opt_error *e)
{
	bool all_operands = false; /* after -- */

	given->operand = args;
	given->n_operands = 0;
	for (int i = 0; i < n;) {
		if (!all_operands && strcmp(args[i], "--") == 0 && p->operand != NULL) {
			all_operands = true;
			i++;
		} else if (all_operands || args[i][0] != '-' || args[i][1] == '\0') {
			if (p->operand == NULL)
				opt_wrong(e, "%.64s: not an option; --help lists them", args[i]);
			else
				args[given->n_operands++] = args[i];
			i++;
		} else {
			i += take_one(p, &args[i], n - i, target, given, e);
		}
	}
}

/* A variable with our prefix: a name of `len` bytes, then = and its value. */
static void
take_variable(const struct opt_program *p, const char *variable, size_t len,
	struct opt_given *given, struct opt_error *e)
{
	const size_t prefix = strlen(p->env_prefix);
	const int shown = (int)(len < 64 ? len : 64);
	const struct opt_def *d;
	char name[OPT_NAME_ROOM];
	const char *near = NULL;

	for (size_t i = 0; i < p->n_defs; i++) {
		opt_env(p, &p->defs[i], name, sizeof(name));
		if ((p->defs[i].flags & OPT_ACTION) == 0 && strlen(name) == len &&
			memcmp(name, variable, len) == 0) {
			given->text[OPT_FROM_ENVIRONMENT][i] = variable + len + 1;
			return;
		}
	}
	for (const char *const *other = p->env_others; other != NULL && *other != NULL; other++) {
		if (strncmp(variable, *other, strlen(*other)) == 0)
			return;
	}
	if (len < sizeof(name)) {
		for (size_t i = prefix; i < len; i++)
			name[i - prefix] = variable[i] == '_'
						   ? '-'
						   : (char)tolower((unsigned char)variable[i]);
		near = opt_near(p, name, len - prefix);
	}
	d = near != NULL ? opt_find(p, near, strlen(near)) : NULL;
	if (d != NULL && (d->flags & OPT_ACTION) == 0) {
		opt_env(p, d, name, sizeof(name));
		opt_wrong(e, "%.*s: no such variable; did you mean %s? Unset or rename it", shown,
			variable, name);
		return;
	}
	opt_env(p, &p->defs[0], name, sizeof(name));
	opt_wrong(e,
		"%.*s: no such variable; unset it (variables are named after options: --%s is %s)",
		shown, variable, p->defs[0].name, name);
}

static void
take_environment(const struct opt_program *p, char *const *environment, struct opt_given *given,
	struct opt_error *e)
{
	if (p->env_prefix == NULL || environment == NULL)
		return;
	for (; *environment != NULL; environment++) {
		const size_t len = strcspn(*environment, "=");

		if ((*environment)[len] == '=' &&
			strncmp(*environment, p->env_prefix, strlen(p->env_prefix)) == 0)
			take_variable(p, *environment, len, given, e);
	}
}

static bool
take_file(const struct opt_program *p, struct opt_given *given, struct opt_error *e)
{
	const char *path;
	size_t bytes, i;

	if (p->file_option == NULL)
		return true;
	i = (size_t)(opt_find(p, p->file_option, strlen(p->file_option)) - p->defs);
	path = given->text[OPT_FROM_COMMAND_LINE][i];
	if (path == NULL)
		path = given->text[OPT_FROM_ENVIRONMENT][i];
	if (path == NULL || path[0] == '\0')
		return true;
	given->file = opt_file_read(path, &bytes, e);
	given->path = path;
	return given->file != NULL && opt_file_parse(p, path, given->file, bytes, given, e);
}

static bool
check_complete(const struct opt_program *p, const struct opt_given *given, struct opt_error *e)
{
	for (size_t i = 0; i < p->n_defs; i++) {
		const struct opt_def *d = &p->defs[i];

		if ((d->flags & OPT_REQUIRED) != 0 && given->source[i] == OPT_FROM_DEFAULT)
			return opt_wrong(e, "--%s %s is missing; see --help", d->name, d->arg);
	}
	if (given->n_operands < p->operands_min || given->n_operands > p->operands_max)
		return opt_wrong(e, "%s; see --help", p->operand_missing);
	return true;
}

/* The hidden ones are for the build: see opt_help. */
static bool
is_form(const char *form)
{
	return form[0] == '\0' || strcmp(form, "man") == 0 || strcmp(form, "bash") == 0 ||
	       strcmp(form, "env") == 0;
}

enum opt_outcome
opt_resolve(const struct opt_program *p, char *const *environment, void *target,
	struct opt_given *given, struct opt_error *e)
{
	if (given->help != NULL && is_form(given->help))
		return OPT_HELP; /* even with errors */
	if (given->help != NULL) {
		opt_wrong(e, "--help=%.64s: no such form; give --help", given->help);
		return OPT_BAD;
	}
	if (given->version)
		return OPT_VERSION;
	for (size_t i = 0; i < p->n_defs; i++)
		given->text[OPT_FROM_DEFAULT][i] = p->defs[i].preset;
	take_environment(p, environment, given, e);
	if (e->text[0] != '\0' || !take_file(p, given, e))
		return OPT_BAD;
	for (size_t i = 0; i < p->n_defs; i++) {
		if (!opt_set(p, i, given, target, e))
			return OPT_BAD;
	}
	return check_complete(p, given, e) ? OPT_RUN : OPT_BAD;
}

void
opt_free(struct opt_given *given)
{
	free(given->file);
	given->file = NULL;
}

int
opt_main(const struct opt_program *p, int argc, char **argv, void *target, struct opt_given *given)
{
	struct opt_error e = {""};

	*given = (struct opt_given){0};
	opt_take(p, argv + 1, argc > 0 ? argc - 1 : 0, target, given, &e);
	switch (opt_resolve(p, environ, target, given, &e)) {
	case OPT_HELP:
		opt_help(p, given->help, stdout);
		return opt_flush(p);
	case OPT_VERSION:
		printf("%s %s\n", p->name, p->version);
		return opt_flush(p);
	case OPT_BAD:
		return opt_usage(p, "%s", e.text);
	default:
		return -1;
	}
}

/* The number of words of argv that are the command's name; 0: another command. */
static int
words_of(const struct opt_program *p, const struct opt_program *command, int argc, char **argv)
{
	const char *rest = command->name + strlen(p->name);
	int n = 0;

	while (*rest == ' ') {
		const size_t len = strcspn(++rest, " ");

		if (n == argc || strlen(argv[n]) != len || memcmp(argv[n], rest, len) != 0)
			return 0;
		rest += len;
		n++;
	}
	return n;
}

int
opt_run_command(const struct opt_program *p, int argc, char **argv)
{
	char names[256] = "";
	struct opt_given given;
	int code;

	for (size_t i = 0; p->commands[i] != NULL; i++) {
		const int n = words_of(p, p->commands[i], argc - 1, argv + 1);
		const size_t used = strlen(names);

		if (n > 0)
			return p->commands[i]->run(argc - n, argv + n);
		snprintf(names + used, sizeof(names) - used, "%s%s", i > 0 ? ", " : "",
			p->commands[i]->name + strlen(p->name) + 1);
	}
	code = opt_main(p, argc, argv, NULL, &given);
	if (code >= 0)
		return code;
	return opt_usage(p, "%.64s: no such command; give one of %s",
		given.n_operands > 0 ? given.operand[0] : "\"\"", names);
}
