/* SPDX-License-Identifier: BSD-3-Clause */
/* tokd-micro: what of a machine no standard tool measures: the tokenizer's own scanner beside plain
 * loops; loads that wait for one another, by the size of the memory (stress-ng has none); copies of
 * slots of the GPU ring's sizes (stress-ng's memcpy has one size); the TSC beside CLOCK_MONOTONIC.
 * For the rest tools/sweep uses stress-ng, sockperf, oslat and perftest. */
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include <opt.h>

#include "../../../app/tokd-load/pin.h"
#include "micro.h"

/* Whole units, of which the least that may be given is one. */
static bool
check_units(const struct opt_def *d, const char *text, void *field, struct opt_error *why)
{
	(void)text;
	if (*(uint64_t *)field % (uint64_t)d->min == 0)
		return true;
	return opt_wrong(why, "give a multiple of %" PRId64, d->min);
}

#define FIELD(f) OPT_FIELD(struct micro_options, f)
/* Every mode has these. */
#define MS                                                                                         \
	{                                                                                          \
		"ms", "T", OPT_COUNT, FIELD(ms), 1, 600000, NULL,                                  \
			"go on for T milliseconds, at "                                            \
			"least",                                                                   \
			.flags = OPT_REQUIRED                                                      \
	}
#define CPU                                                                                        \
	{                                                                                          \
		"cpu", "N", OPT_COUNT, FIELD(cpu), 0, CPU_SETSIZE - 1, NULL, "run on this CPU"     \
	}

static const struct opt_def chase_defs[] = {
	{"bytes", "N", OPT_COUNT, FIELD(bytes), 2 * MICRO_LINE, MICRO_BYTES_MAX, NULL, "of memory",
		.flags = OPT_REQUIRED, .check = check_units},
	MS,
	CPU,
};

static const struct opt_def copy_defs[] = {
	{"bytes", "N", OPT_COUNT, FIELD(bytes), MICRO_LINE, 1 << 24, NULL, "in a slot",
		.flags = OPT_REQUIRED, .check = check_units},
	{"from", "M", OPT_COUNT, FIELD(from), MICRO_LINE, MICRO_BYTES_MAX, NULL,
		"bytes of the memory that slots are copied from", .flags = OPT_REQUIRED},
	MS,
	CPU,
};

static const struct opt_def scan_defs[] = {
	{"how", "pretokens|memchr-blanks|memchr-none|loop", OPT_CHOICE, FIELD(how), 0, 0, NULL,
		"pretokens: GPT-2's; loop: byte by byte", .flags = OPT_REQUIRED},
	{"text", "FILE", OPT_TEXT, FIELD(text), 0, 0, NULL, "in UTF-8", .flags = OPT_REQUIRED},
	{"vocab", "VOCAB", OPT_TEXT, FIELD(vocab), 0, 0, NULL, "a name or a path, as for tok",
		.flags = OPT_REQUIRED},
	MS,
	CPU,
};

static const struct opt_def tsc_defs[] = {
	MS,
	CPU,
};

static int run_chase(int argc, char **argv);
static int run_copy(int argc, char **argv);
static int run_scan(int argc, char **argv);
static int run_tsc(int argc, char **argv);

#define MODE(mode, what)                                                                           \
	static const struct opt_program mode = {                                                   \
		.name = "tokd-micro " #mode,                                                       \
		.version = TOKD_VERSION,                                                           \
		.summary = what,                                                                   \
		.usage = "[options]",                                                              \
		.about = what,                                                                     \
		.defs = mode##_defs,                                                               \
		.n_defs = sizeof(mode##_defs) / sizeof(mode##_defs[0]),                            \
		.run = run_##mode,                                                                 \
	}
MODE(chase, "dependent loads, one per line of 64 bytes, in random order");
MODE(copy, "copies of slots out of consecutive memory");
MODE(scan, "scans of a text");
MODE(tsc, "one moment by the TSC and by CLOCK_MONOTONIC: the closest readings");

static const struct opt_program *const modes[] = {&chase, &copy, &scan, &tsc, NULL};

static const struct opt_program program = {
	.name = "tokd-micro",
	.version = TOKD_VERSION,
	.summary = "repeat one small operation, check it, and print its times as JSON",
	.about = "Exit code: 0 right; 1 wrong or failed; 2 a bad option.",
	.operand = "MODE",
	.operands_max = 1,
	.commands = modes,
};

static int
run(const struct opt_program *mode, int (*measure)(const struct micro_options *o), int argc,
	char **argv)
{
	struct micro_options o = {.cpu = -1};
	struct opt_given given;
	const int code = opt_main(mode, argc, argv, &o, &given);

	if (code >= 0)
		return code;
	if (o.from != 0 && o.from < o.bytes)
		return opt_usage(mode, "--from %" PRIu64 ": give --bytes at least", o.from);
	return pin_to(o.cpu) == 0 ? measure(&o) : OPT_EXIT_FAILED;
}

static int
run_chase(int argc, char **argv)
{
	return run(&chase, micro_chase, argc, argv);
}

static int
run_copy(int argc, char **argv)
{
	return run(&copy, micro_copy, argc, argv);
}

static int
run_scan(int argc, char **argv)
{
	return run(&scan, micro_scan, argc, argv);
}

static int
run_tsc(int argc, char **argv)
{
	return run(&tsc, micro_tsc, argc, argv);
}

int
main(int argc, char **argv)
{
	return opt_run_command(&program, argc, argv);
}
