/* SPDX-License-Identifier: BSD-3-Clause */
/* tokd-jitter: what a loop that only reads the clock loses to whatever else the CPU does. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/mman.h>

#include <rte_cycles.h>

#include "../../app/tokd-load/pin.h"

/* Counts by ticks between two reads of the clock, each bucket 0.1% wide: below 2^EXACT each number
 * of ticks has its own, above it each power of two has 2^(EXACT - 1). */
#define EXACT 11
#define HALF (1u << (EXACT - 1))
#define BUCKETS ((64 - EXACT + 2) * HALF)

static const char help[] =
	"usage: tokd-jitter --seconds S [--cpu N]\n"
	"Read the CPU's counter in a loop for S seconds, and tell how long each pass took: JSON with\n"
	"ns_per_tick, passes, max_ticks, and buckets [least ticks, passes].\n\n"
	"  --seconds S  0.01 to 3600\n"
	"  --cpu N      run on this CPU [wherever the kernel likes]\n"
	"  --help       this text\n";

#define MOMENT_TRIES 16
#define CALIBRATE_NS 20000000

struct options {
	double seconds;
	int cpu;
};

struct moment {
	uint64_t ns, ticks;
};

static uint64_t bucket[BUCKETS];

static inline uint32_t
index_of(uint64_t ticks)
{
	uint32_t shift;

	if (ticks < 2 * HALF)
		return (uint32_t)ticks;
	shift = (uint32_t)(63 - __builtin_clzll(ticks)) - (EXACT - 1);
	return shift * HALF + (uint32_t)(ticks >> shift);
}

static uint64_t
least_of(uint32_t index)
{
	uint32_t shift;

	if (index < 2 * HALF)
		return index;
	shift = index / HALF - 1;
	return (uint64_t)(index % HALF + HALF) << shift;
}

static uint64_t
now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_RAW, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Both clocks at one moment: of several tries the one that took least, as none was cut short then.
 */
static struct moment
moment_now(void)
{
	struct moment best = {0};
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < MOMENT_TRIES; i++) {
		uint64_t before = rte_rdtsc(), ns = now_ns(), after = rte_rdtsc();

		if (after - before < least) {
			least = after - before;
			best = (struct moment){ns, before + (after - before) / 2};
		}
	}
	return best;
}

static double
ns_per_tick(const struct moment *begin, const struct moment *end)
{
	return (double)(end->ns - begin->ns) / (double)(end->ticks - begin->ticks);
}

/* How fast the counter runs, about: the run itself tells it better. */
static double
ns_per_tick_about(void)
{
	struct moment begin = moment_now(), end;

	do
		end = moment_now();
	while (end.ns - begin.ns < CALIBRATE_NS);
	return ns_per_tick(&begin, &end);
}

/* The largest pass, in ticks. */
static uint64_t
watch(uint64_t ticks)
{
	uint64_t begin = rte_rdtsc(), last = begin, now, most = 0;

	do {
		now = rte_rdtsc();
		bucket[index_of(now - last)]++;
		if (now - last > most)
			most = now - last;
		last = now;
	} while (now - begin < ticks);
	return most;
}

static void
print(double scale, uint64_t most)
{
	uint64_t passes = 0;
	const char *comma = "";

	for (uint32_t i = 0; i < BUCKETS; i++)
		passes += bucket[i];
	printf("{\"ns_per_tick\": %.9f, \"passes\": %" PRIu64 ", \"max_ticks\": %" PRIu64
	       ", \"buckets\": [",
		scale, passes, most);
	for (uint32_t i = 0; i < BUCKETS; i++)
		if (bucket[i] > 0) {
			printf("%s[%" PRIu64 ", %" PRIu64 "]", comma, least_of(i), bucket[i]);
			comma = ", ";
		}
	puts("]}");
}

static int
bad(const char *name, const char *value, const char *remedy)
{
	fprintf(stderr, "tokd-jitter: --%s %s: %s\n", name, value, remedy);
	return -1;
}

static int
set(struct options *o, int which, const char *value)
{
	char *end;

	errno = 0;
	if (which == 's') {
		o->seconds = strtod(value, &end);
		if (end == value || *end != '\0' || !(o->seconds >= 0.01 && o->seconds <= 3600))
			return bad("seconds", value, "give a number from 0.01 to 3600");
	} else if (which == 'c') {
		long cpu = strtol(value, &end, 10);

		if (errno != 0 || end == value || *end != '\0' || cpu < 0 || cpu >= CPU_SETSIZE)
			return bad("cpu", value, "give a CPU's number, as in /proc/cpuinfo");
		o->cpu = (int)cpu;
	} else {
		return -1;
	}
	return 0;
}

int
main(int argc, char **argv)
{
	static const struct option known[] = {{"seconds", required_argument, NULL, 's'},
		{"cpu", required_argument, NULL, 'c'}, {"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0}};
	struct options o = {.cpu = -1};
	struct moment begin, end;
	uint64_t ticks, most;
	int c;

	while ((c = getopt_long(argc, argv, "", known, NULL)) != -1) {
		if (c == 'h') {
			fputs(help, stdout);
			return 0;
		}
		if (set(&o, c, optarg) != 0)
			return 2;
	}
	if (optind < argc || o.seconds == 0) {
		fputs("tokd-jitter: --seconds S is needed, and nothing else is taken; see --help\n",
			stderr);
		return 2;
	}
	if (pin_to(o.cpu) != 0)
		return 1;
	(void)mlockall(MCL_CURRENT | MCL_FUTURE); /* else page faults are seen as well */
	memset(bucket, 0, sizeof(bucket));
	ticks = (uint64_t)(o.seconds * 1e9 / ns_per_tick_about());
	begin = moment_now();
	most = watch(ticks);
	end = moment_now();
	print(ns_per_tick(&begin, &end), most);
	return 0;
}
