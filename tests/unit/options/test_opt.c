/* SPDX-License-Identifier: BSD-3-Clause */
/* The parser of options, on a table with one option of each kind. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <opt.h>

#include "test.h"

#define ARGS_MAX 16

struct fields {
	const char *name, *word;
	uint16_t count;
	int32_t cpu;
	uint64_t size;
	uint32_t wait_ms, rest_ms, mode, kind;
	bool quick;
	uint64_t even;
	struct opt_texts special;
	bool check;
};

static bool
check_even(const struct opt_def *d, const char *text, void *field, struct opt_error *err)
{
	return (opt_number(text, 0, UINT64_MAX, field) && *(uint64_t *)field % 2 == 0) ||
	       opt_wrong(err, "give an even number");
}

#define FIELD(f) OPT_FIELD(struct fields, f)
static const struct opt_def defs[] = {
	{"name", "NAME", OPT_TEXT, FIELD(name), 0, 8, NULL, "a text", .letter = 'n'},
	{"word", "x|yy", OPT_CHOICE, FIELD(word), 0, 0, NULL, "a word"},
	{"count", "N", OPT_COUNT, FIELD(count), 1, 65535, "7", "a number"},
	{"cpu", "N", OPT_COUNT, FIELD(cpu), -1, 63, NULL, "a signed number"},
	{"size", "BYTES", OPT_SIZE, FIELD(size), 0, 4 * OPT_G, "64k", "a size"},
	{"wait", "MS", OPT_MS, FIELD(wait_ms), 1, 600000, "50", "a time"},
	{"rest", "SECONDS", OPT_S, FIELD(rest_ms), 1, 60000, "5", "a longer one"},
	{"mode", "OCTAL", OPT_OCTAL, FIELD(mode), 0, 0777, "0640", "permissions"},
	{"kind", "a|b|c", OPT_CHOICE, FIELD(kind), 0, 0, "b", "a kind"},
	{"quick", NULL, OPT_FLAG, FIELD(quick), 0, 0, NULL, "a flag"},
	{"even", "N", OPT_OTHER, FIELD(even), 0, 0, NULL, "a check", .check = check_even},
	{"special", "TEXT", OPT_TEXT, FIELD(special), 0, 0, NULL, "texts", .flags = OPT_REPEATABLE},
	{"check", NULL, OPT_FLAG, FIELD(check), 0, 0, NULL, "an action", .flags = OPT_ACTION},
};

static const struct opt_program program = {
	.name = "test",
	.version = "1",
	.summary = "tests",
	.usage = "[options] FILE...",
	.about = "Tests.",
	.defs = defs,
	.n_defs = sizeof(defs) / sizeof(defs[0]),
	.operand = "FILE",
	.operands_max = 2,
	.operand_missing = "expected two FILE at most",
	.env_prefix = "TEST_",
};

struct parsed {
	struct fields f;
	struct opt_given given;
	struct opt_error e;
};

/* `line` and `environment`: words with blanks between. */
static enum opt_outcome
parse(struct parsed *p, const char *line, const char *environment)
{
	static char text[256], env_text[256];
	static char *args[ARGS_MAX];
	char *variables[ARGS_MAX] = {NULL};
	int n = 0, n_env = 0;

	*p = (struct parsed){.f = {.cpu = 5}};
	strcpy(text, line);
	for (char *arg = strtok(text, " "); arg != NULL; arg = strtok(NULL, " "))
		args[n++] = arg;
	strcpy(env_text, environment);
	for (char *v = strtok(env_text, " "); v != NULL; v = strtok(NULL, " "))
		variables[n_env++] = v;
	opt_take(&program, args, n, &p->f, &p->given, &p->e);
	return opt_resolve(&program, variables, &p->f, &p->given, &p->e);
}

TEST(fields_have_their_defaults_or_stay_as_they_are)
{
	struct parsed p;

	assert_int_equal(parse(&p, "", ""), OPT_RUN);
	assert_null(p.f.name);
	assert_int_equal(p.f.count, 7);
	assert_int_equal(p.f.cpu, 5);
	assert_int_equal(p.f.size, 64 << 10);
	assert_int_equal(p.f.wait_ms, 50);
	assert_int_equal(p.f.rest_ms, 5000);
	assert_int_equal(p.f.mode, 0640);
	assert_int_equal(p.f.kind, 1);
}

TEST(values_are_taken_in_every_spelling)
{
	struct parsed p;

	assert_int_equal(
		parse(&p, "-nab one --word=yy --cpu -1 --size 2G --kind c - --quick --even 4",
			"TEST_COUNT=9 OTHER=1"),
		OPT_RUN);
	assert_string_equal(p.f.name, "ab");
	assert_string_equal(p.f.word, "yy");
	assert_int_equal(p.f.cpu, -1);
	assert_int_equal(p.f.size, 2 * OPT_G);
	assert_int_equal(p.f.kind, 2);
	assert_true(p.f.quick);
	assert_int_equal(p.f.even, 4);
	assert_int_equal(p.f.count, 9);
	assert_int_equal(p.given.n_operands, 2);
	assert_string_equal(p.given.operand[0], "one");
	assert_string_equal(p.given.operand[1], "-");
	assert_int_equal(parse(&p, "-n x -- --quick", ""), OPT_RUN);
	assert_false(p.f.quick);
	assert_string_equal(p.given.operand[0], "--quick");
	assert_int_equal(parse(&p, "--wait 2s --rest 200ms", ""), OPT_RUN);
	assert_int_equal(p.f.wait_ms, 2000);
	assert_int_equal(p.f.rest_ms, 200);
	assert_int_equal(parse(&p, "--wait 200ms --rest 2s", ""), OPT_RUN);
	assert_int_equal(p.f.wait_ms, 200);
	assert_int_equal(p.f.rest_ms, 2000);
}

TEST(repeated_values_are_those_of_one_source)
{
	struct parsed p;

	assert_int_equal(parse(&p, "--special a --special=--b", "TEST_SPECIAL=c"), OPT_RUN);
	assert_int_equal(p.f.special.n, 2);
	assert_string_equal(p.f.special.text[0], "a");
	assert_string_equal(p.f.special.text[1], "--b");
	assert_int_equal(parse(&p, "", "TEST_SPECIAL=c"), OPT_RUN);
	assert_int_equal(p.f.special.n, 1);
	assert_string_equal(p.f.special.text[0], "c");
}

TEST(repeated_values_are_bounded)
{
	static char one[] = "--special=x", *args[OPT_TEXTS_MAX];
	static struct parsed p;

	for (size_t i = 0; i < OPT_TEXTS_MAX; i++)
		args[i] = one;
	opt_take(&program, args, OPT_TEXTS_MAX, &p.f, &p.given, &p.e);
	assert_string_equal(p.e.text, "");
	opt_take(&program, args, 1, &p.f, &p.given, &p.e);
	assert_int_equal(p.f.special.n, OPT_TEXTS_MAX);
	assert_non_null(strstr(p.e.text, "--special x: given more than 16384 times"));
}

TEST(help_and_version_come_first)
{
	struct parsed p;

	assert_int_equal(parse(&p, "--nonsense -h", ""), OPT_HELP);
	assert_int_equal(parse(&p, "--count x --version", "TEST_NONSENSE=1"), OPT_VERSION);
}

/* Each names the option, the value, the limit and what to do. */
TEST(errors_are_one_line)
{
	static const struct {
		const char *line, *environment, *says;
	} cases[] = {
		{"--nonsense", "", "--nonsense: no such option; --help lists them"},
		{"--conut 1", "", "--conut: no such option; did you mean --count?"},
		{"--hlep", "", "did you mean --help?"},
		{"-z", "", "-z: no such option; --help"},
		{"--count", "", "--count: value missing; write --count N"},
		{"--count --quick", "", "--count: value missing"},
		{"--count 0", "", "--count 0: out of range; give 1 to 65535"},
		{"--count 65536", "", "--count 65536: out of range"},
		{"--count -1", "", "--count -1: not a number; give a decimal number (1 to 65535)"},
		{"--cpu -2", "", "--cpu -2: out of range; give -1 to 63"},
		{"--cpu --1", "", "--cpu: value missing"},
		{"--size 5G", "", "--size 5G: out of range; give 0 to 4G bytes"},
		{"--size 99999999999999999999G", "", "out of range"},
		{"--size 1T", "",
			"--size 1T: not a number; give a decimal number, optionally with k, M or G "
			"(0 to 4G bytes)"},
		{"--wait 2m", "",
			"--wait 2m: not a number; give milliseconds, or a time such as 5s (1 to "
			"600000 ms)"},
		{"--rest 1 --wait 601s", "", "--wait 601s: out of range; give 1 to 600000 ms"},
		{"--rest 61", "", "--rest 61: out of range; give 1ms to 60s"},
		{"--mode 8", "", "--mode 8: not a number; give an octal number"},
		{"--kind d", "", "--kind d: give a, b or c"},
		{"--word y", "", "--word y: give x or yy"},
		{"--quick=1", "", "--quick 1: neither yes nor no"},
		{"--even 3", "", "--even 3: give an even number"},
		{"--name=", "", "--name: the value is empty; give NAME"},
		{"--name 123456789", "", "--name 123456789: 9 bytes, it is limited to 8"},
		{"--check=yes", "", "--check=yes: no such option"},
		{"a b c", "", "expected two FILE at most; see --help"},
		{"", "TEST_COUNT=0", "TEST_COUNT=0: out of range; give 1 to 65535"},
		{"--count 1", "TEST_COUNT=0", "TEST_COUNT=0: out of range"},
		{"", "TEST_CONUT=1", "TEST_CONUT: no such variable; did you mean TEST_COUNT?"},
		{"", "TEST_CHECK=yes", "TEST_CHECK: no such variable"},
	};
	struct parsed p;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (parse(&p, cases[i].line, cases[i].environment) != OPT_BAD ||
			strstr(p.e.text, cases[i].says) == NULL)
			fail_msg("'%s' '%s': \"%s\", expected \"%s\"", cases[i].line,
				cases[i].environment, p.e.text, cases[i].says);
	}
	p.e.text[0] = '\0';
	opt_take(&program, (char *[]){(char[]){"--a\nb"}}, 1, &p.f, &p.given, &p.e);
	assert_non_null(strstr(p.e.text, "--a?b: no such option"));
	assert_null(strchr(p.e.text, '\n'));
}
