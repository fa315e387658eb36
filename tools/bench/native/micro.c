/* SPDX-License-Identifier: BSD-3-Clause */
/* tokd-micro: what of a machine no standard tool measures: the tokenizer's own scanner beside plain
 * loops; loads that wait for one another, by the size of the memory (stress-ng has none); copies of
 * slots of the GPU ring's sizes (stress-ng's memcpy has one size). For the rest tools/sweep uses
 * stress-ng, sockperf, oslat and perftest. */
#include <getopt.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "../../../app/tokd-load/pin.h"
#include "micro.h"
#include "values.h"

static const char help[] =
	"usage: tokd-micro MODE OPTIONS\n"
	"Repeat one small operation, check it, and print its times as a line of JSON.\n\n"
	"  chase  --bytes N --ms T   dependent loads, one per line of 64 bytes, in random order\n"
	"  copy   --bytes N --from M --ms T\n"
	"                            copy slots of N bytes out of M consecutive bytes\n"
	"  scan   --how H --text FILE --vocab V --ms T\n"
	"                            scan a text; H: pretokens (GPT-2's), memchr-blanks,\n"
	"                            memchr-none, loop (byte by byte)\n"
	"  --cpu N                   run on this CPU\n"
	"  --help                    this text\n\n"
	"exit code: 0 right; 1 wrong or failed; 2 a bad option\n";

enum option_index {
	BYTES,
	MS,
	FROM,
	HOW,
	TEXT,
	VOCAB,
	CPU, /* from here on none is ever needed */
	HELP,
};
#define BIT(option) (1u << (option))

#define ID(option) (0x100 + (option)) /* beyond all characters */

static const struct option known[] = {
	{"bytes", required_argument, NULL, ID(BYTES)},
	{"ms", required_argument, NULL, ID(MS)},
	{"from", required_argument, NULL, ID(FROM)},
	{"how", required_argument, NULL, ID(HOW)},
	{"text", required_argument, NULL, ID(TEXT)},
	{"vocab", required_argument, NULL, ID(VOCAB)},
	{"cpu", required_argument, NULL, ID(CPU)},
	{"help", no_argument, NULL, ID(HELP)},
	{NULL, 0, NULL, 0},
};

static const struct mode {
	const char *name;
	int (*run)(const struct micro_options *o);
	unsigned int needs;
	uint64_t bytes_unit, bytes_most;
} modes[] = {
	{"chase", micro_chase, BIT(BYTES) | BIT(MS), 2 * MICRO_LINE, MICRO_BYTES_MAX},
	{"copy", micro_copy, BIT(BYTES) | BIT(FROM) | BIT(MS), MICRO_LINE, 1 << 24},
	{"scan", micro_scan, BIT(HOW) | BIT(TEXT) | BIT(VOCAB) | BIT(MS), 0, 0},
};

static int
set_bytes(const struct mode *m, const char *value, uint64_t *bytes)
{
	char remedy[64];

	if (value_number("bytes", value, m->bytes_unit, m->bytes_most, bytes) != 0)
		return -1;
	if (*bytes % m->bytes_unit == 0)
		return 0;
	snprintf(remedy, sizeof(remedy), "give a multiple of %" PRIu64, m->bytes_unit);
	return value_bad("bytes", value, remedy);
}

static int
set_number(struct micro_options *o, int option, const char *name, const char *value)
{
	uint64_t cpu = 0;

	switch (option) {
	case FROM:
		return value_number(name, value, MICRO_LINE, MICRO_BYTES_MAX, &o->from);
	case MS:
		return value_number(name, value, 1, 600000, &o->ms);
	default:
		if (value_number(name, value, 0, CPU_SETSIZE - 1, &cpu) != 0)
			return -1;
		o->cpu = (int)cpu;
		return 0;
	}
}

static int
set(struct micro_options *o, const struct mode *m, int option, const char *value)
{
	switch (option) {
	case BYTES:
		return set_bytes(m, value, &o->bytes);
	case HOW:
		o->how = value;
		return 0;
	case TEXT:
		o->text = value;
		return 0;
	case VOCAB:
		o->vocab = value;
		return 0;
	default:
		return set_number(o, option, known[option].name, value);
	}
}

static int
complain(const char *what, const char *problem, const char *option)
{
	fprintf(stderr, "tokd-micro: %s: %s%s; see --help\n", what, problem, option);
	return -1;
}

static const struct mode *
mode_named(const char *name)
{
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
		if (strcmp(name, modes[i].name) == 0)
			return &modes[i];
	complain(name, "no such mode", "");
	return NULL;
}

/* All that it needs, and nothing else. -1: told why. 1: the help was asked for. */
static int
parse(struct micro_options *o, const struct mode *m, int argc, char **argv)
{
	unsigned int given = 0;
	int c;

	while ((c = getopt_long(argc, argv, "", known, NULL)) != -1) {
		const int option = c - ID(0);

		if (option == HELP)
			return 1;
		if (c == '?')
			return -1;
		if (option < CPU && (m->needs & BIT(option)) == 0)
			return complain(m->name, "takes no --", known[option].name);
		if (set(o, m, option, optarg) != 0)
			return -1;
		given |= BIT(option);
	}
	if (optind < argc)
		return complain(argv[optind], "not an option", "");
	for (int i = 0; i < CPU; i++)
		if ((m->needs & ~given & BIT(i)) != 0)
			return complain(m->name, "needs --", known[i].name);
	if (o->from != 0 && o->from < o->bytes)
		return complain("--from", "give --bytes at least", "");
	return 0;
}

int
main(int argc, char **argv)
{
	struct micro_options o = {.cpu = -1};
	const struct mode *m = NULL;
	int rc = 1;

	if (argc < 2)
		return complain("no mode", "give one", "") != 0 ? 2 : 0;
	if (strcmp(argv[1], "--help") != 0) {
		m = mode_named(argv[1]);
		rc = m != NULL ? parse(&o, m, argc - 1, argv + 1) : -1;
	}
	if (rc > 0)
		fputs(help, stdout);
	if (rc != 0)
		return rc > 0 ? 0 : 2;
	return pin_to(o.cpu) == 0 ? m->run(&o) : 1;
}
