/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is asked for is collected from everywhere first (here, and options/file.c), and resolved
 * once afterwards (options/value.c): the order of options never matters.
 */
#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "table.h"

/* Names a build folder to the test suite, and so is often set where this program is tried. */
#define OPT_ENV_OF_TESTS "TOKD_BUILD"
/* What begins so is tokd-gpu's, which may have the same environment. */
#define OPT_ENV_OF_GPU "TOKD_GPU_"

int
tokd_opt_bad(struct tokd_options_error *e, const char *fmt, ...)
{
	va_list ap;

	if (e->text[0] != '\0')
		return -1;
	va_start(ap, fmt);
	vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	/* It quotes what was given: it is one line for all that. */
	for (char *p = e->text; *p != '\0'; p++) {
		if (iscntrl((unsigned char)*p))
			*p = '?';
	}
	return -1;
}

const struct tokd_opt_def *
tokd_opt_find(const char *name, size_t len)
{
	for (size_t i = 0; i < TOKD_N_OPTS; i++) {
		if (strlen(tokd_opt_defs[i].name) == len &&
			memcmp(tokd_opt_defs[i].name, name, len) == 0)
			return &tokd_opt_defs[i];
	}
	return NULL;
}

const char *
tokd_opt_short(const struct tokd_opt_def *d, char text[3])
{
	text[0] = '\0';
	for (size_t i = 0; i < TOKD_N_SHORTS; i++) {
		if (strcmp(tokd_opt_shorts[i].name, d->name) == 0)
			snprintf(text, 3, "-%c", tokd_opt_shorts[i].letter);
	}
	return text;
}

static const struct tokd_opt_def *
find_short(char letter)
{
	for (size_t i = 0; i < TOKD_N_SHORTS; i++) {
		const char *name = tokd_opt_shorts[i].name;

		if (letter != '\0' && tokd_opt_shorts[i].letter == letter)
			return tokd_opt_find(name, strlen(name));
	}
	return NULL;
}

void
tokd_opt_env(const struct tokd_opt_def *d, char *name, size_t room)
{
	snprintf(name, room, OPT_ENV_PREFIX "%s", d->name);
	for (char *p = name; *p != '\0'; p++)
		*p = *p == '-' ? '_' : (char)toupper((unsigned char)*p);
}

/* --help, --version, --check-config stand on either side of --. */
static bool
take_action(const char *arg, struct tokd_opt_asked *asked)
{
	if (strncmp(arg, "--", 2) != 0)
		return false;
	for (size_t i = 0; i < TOKD_N_ACTIONS; i++) {
		if (strcmp(arg + 2, tokd_opt_actions[i].name) == 0) {
			asked->action[i] = true;
			return true;
		}
	}
	return false;
}

static void
complain_of_unknown(const char *arg, size_t len, struct tokd_options_error *e)
{
	const char *near = tokd_opt_near(arg + 2, len);

	tokd_opt_bad(e,
		"%.64s: no such application option; %s%s%s--help lists them, and EAL options stand "
		"before --",
		arg, near != NULL ? "is --" : "", near != NULL ? near : "",
		near != NULL ? " meant? " : "");
}

/* How many of args[0 .. n) belong to the option at args[0]; what is wrong goes to *e. */
static int
take_one(char **args, int n, struct tokd_opt_asked *asked, struct tokd_options_error *e)
{
	const char *arg = args[0], *value = NULL;
	const struct tokd_opt_def *d;
	bool is_short;
	int taken = 1;
	size_t len;

	if (strcmp(arg, "-h") == 0)
		arg = "--help";
	if (take_action(arg, asked))
		return 1;
	d = arg[0] == '-' ? find_short(arg[1]) : NULL;
	if (d == NULL && strncmp(arg, "--", 2) != 0) {
		tokd_opt_bad(e,
			"%.64s: not an application option; EAL options stand before --, and "
			"--help lists the application's",
			arg);
		return 1;
	}
	len = strcspn(arg + 2, "=");
	is_short = d != NULL;
	if (!is_short)
		d = tokd_opt_find(arg + 2, len);
	if (d == NULL) {
		complain_of_unknown(arg, len, e);
		return 1;
	}
	if (is_short && arg[2] != '\0') {
		value = arg + 2;
	} else if (!is_short && arg[2 + len] == '=') {
		value = arg + 2 + len + 1;
	} else if (d->type == OPT_FLAG) {
		value = "yes";
	} else if (n >= 2 && strncmp(args[1], "--", 2) != 0) {
		value = args[1];
		taken = 2;
	} else {
		tokd_opt_bad(
			e, "--%s: its value is missing; write --%s %s", d->name, d->name, d->arg);
		return 1;
	}
	asked->text[TOKD_FROM_COMMAND_LINE][d - tokd_opt_defs] = value;
	return taken;
}

/* EAL would call an application option before -- unknown, and not say why. */
static void
look_at_eal_args(int argc, char **argv, struct tokd_opt_asked *asked, struct tokd_options_error *e)
{
	for (int i = 1; i < argc; i++) {
		if (!take_action(argv[i], asked) && strncmp(argv[i], "--", 2) == 0 &&
			tokd_opt_find(argv[i] + 2, strcspn(argv[i] + 2, "=")) != NULL)
			tokd_opt_bad(e,
				"%.64s: an application option; put it after --, as in -- %.64s",
				argv[i], argv[i]);
	}
}

/* A variable whose name begins as ours do: `len` bytes, then = and its value. */
static void
take_variable(const char *variable, size_t len, struct tokd_opt_asked *asked,
	struct tokd_options_error *e)
{
	const char *near = NULL;
	char name[OPT_NAME_ROOM];

	for (size_t i = 0; i < TOKD_N_OPTS; i++) {
		tokd_opt_env(&tokd_opt_defs[i], name, sizeof(name));
		if (strlen(name) == len && memcmp(name, variable, len) == 0) {
			asked->text[TOKD_FROM_ENVIRONMENT][i] = variable + len + 1;
			return;
		}
	}
	if (strlen(OPT_ENV_OF_TESTS) == len && memcmp(variable, OPT_ENV_OF_TESTS, len) == 0)
		return;
	if (strncmp(variable, OPT_ENV_OF_GPU, strlen(OPT_ENV_OF_GPU)) == 0)
		return;
	if (len < sizeof(name)) {
		const size_t prefix = strlen(OPT_ENV_PREFIX);

		for (size_t i = prefix; i < len; i++)
			name[i - prefix] = variable[i] == '_'
						   ? '-'
						   : (char)tolower((unsigned char)variable[i]);
		near = tokd_opt_near(name, len - prefix);
	}
	if (near != NULL && tokd_opt_find(near, strlen(near)) != NULL) {
		tokd_opt_env(tokd_opt_find(near, strlen(near)), name, sizeof(name));
		tokd_opt_bad(e, "%.*s: no such variable; is %s meant? Unset or rename it",
			(int)(len < 64 ? len : 64), variable, name);
		return;
	}
	tokd_opt_bad(e,
		"%.*s: no such variable; unset it (each option of --help is one: --ring-size is "
		"TOKD_RING_SIZE)",
		(int)(len < 64 ? len : 64), variable);
}

static void
take_environment(
	char *const *environment, struct tokd_opt_asked *asked, struct tokd_options_error *e)
{
	for (; *environment != NULL; environment++) {
		const char *variable = *environment;
		const size_t len = strcspn(variable, "=");

		if (variable[len] == '=' &&
			strncmp(variable, OPT_ENV_PREFIX, strlen(OPT_ENV_PREFIX)) == 0)
			take_variable(variable, len, asked, e);
	}
}

static int
take_file(struct tokd_opt_asked *asked, struct tokd_options *opt, struct tokd_options_error *e)
{
	const size_t i = (size_t)(tokd_opt_find("config", strlen("config")) - tokd_opt_defs);
	const char *path = asked->text[TOKD_FROM_COMMAND_LINE][i];
	size_t bytes;

	if (path == NULL)
		path = asked->text[TOKD_FROM_ENVIRONMENT][i];
	if (path == NULL || path[0] == '\0')
		return 0; /* an empty one is complained of like that of any option */
	opt->file = tokd_opt_file_read(path, &bytes, e);
	if (opt->file == NULL)
		return -1;
	opt->config = path;
	return tokd_opt_file_parse(path, opt->file, bytes, asked, e);
}

enum tokd_options_result
tokd_options_parse(int argc, char **argv, char *const *environment, int *eal_argc,
	struct tokd_options *opt, struct tokd_options_error *error)
{
	struct tokd_opt_asked asked = {0};
	enum tokd_options_result result = TOKD_OPTIONS_RUN;
	int i;

	memset(opt, 0, sizeof(*opt));
	error->text[0] = '\0';
	for (i = 0; i < argc && strcmp(argv[i], "--") != 0; i++)
		;
	*eal_argc = i;
	for (i = 1; i < *eal_argc; i++) {
		if (strcmp(argv[i], "-h") == 0)
			return TOKD_OPTIONS_EAL_HELP;
	}
	look_at_eal_args(*eal_argc, argv, &asked, error);
	for (i = *eal_argc + 1; i < argc;)
		i += take_one(&argv[i], argc - i, &asked, error);
	for (i = 0; i < TOKD_N_ACTIONS; i++) {
		if (!asked.action[i])
			continue;
		result = tokd_opt_actions[i].result;
		if (result != TOKD_OPTIONS_CHECK)
			return result; /* whatever else is wrong */
	}
	for (i = 0; i < TOKD_N_OPTS; i++)
		asked.text[TOKD_FROM_DEFAULT][i] = tokd_opt_defs[i].preset;
	take_environment(environment, &asked, error);
	if (error->text[0] != '\0' || take_file(&asked, opt, error) != 0 ||
		tokd_opt_resolve(&asked, opt, error) != 0)
		return TOKD_OPTIONS_BAD;
	return result;
}

void
tokd_options_free(struct tokd_options *opt)
{
	free(opt->file);
	opt->file = NULL;
}
