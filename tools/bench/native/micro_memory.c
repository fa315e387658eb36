/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory: how long a load takes that waits for another, how fast slots are copied. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>

#include <mix.h>
#include <monotonic.h>
#include "micro.h"

#define HUGE_PAGE (2ull << 20)
#define PASS_BYTES (1u << 20) /* small memory is gone through so far between looks at the clock */
#define SLOTS 8u	      /* that copies go to, round robin */

uint64_t *
micro_memory(uint64_t bytes)
{
	const uint64_t room = (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
	const uint64_t all = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t *at = room <= all / 2 ? aligned_alloc(HUGE_PAGE, room) : NULL;

	if (at == NULL) {
		fprintf(stderr,
			"tokd-micro: no %" PRIu64
			" bytes of memory: give half of this machine's %" PRIu64 " at most\n",
			room, all);
		exit(1);
	}
	(void)madvise(at, room, MADV_HUGEPAGE);
	for (uint64_t i = 0; i < room / sizeof(*at); i++)
		at[i] = i * MICRO_STEP;
	return at;
}

uint64_t
micro_huge_bytes(void)
{
	FILE *f = fopen("/proc/self/smaps_rollup", "r");
	uint64_t kb = 0;
	char line[128];

	while (f != NULL && fgets(line, sizeof(line), f) != NULL)
		if (sscanf(line, "AnonHugePages: %" SCNu64, &kb) == 1)
			break;
	if (f != NULL)
		fclose(f);
	return kb * 1024;
}

static int
wrong(const char *what)
{
	fprintf(stderr, "tokd-micro: %s: this machine's memory, or this program, is at fault\n",
		what);
	return 1;
}

static void
print(const struct micro_options *o, uint64_t times, uint64_t ns)
{
	printf("{\"bytes\": %" PRIu64 ", \"times\": %" PRIu64 ", \"ns\": %" PRIu64
	       ", \"huge_bytes\": %" PRIu64 "}\n",
		o->bytes, times, ns, micro_huge_bytes());
}

static uint64_t
turns_of(uint64_t bytes)
{
	return bytes < PASS_BYTES ? PASS_BYTES / bytes : 1;
}

/* Each line of memory names the next, in an order that no prefetcher guesses: one cycle through all
 * of them (Sattolo's algorithm). */
static void
make_cycle(uint64_t *word, uint64_t lines)
{
	const uint64_t step = MICRO_LINE / sizeof(*word);
	uint64_t seed = MICRO_STEP;

	for (uint64_t i = 0; i < lines; i++)
		word[i * step] = i * step;
	for (uint64_t i = lines - 1; i > 0; i--) {
		const uint64_t k = dice_throw(&seed) % i, held = word[i * step];

		word[i * step] = word[k * step];
		word[k * step] = held;
	}
}

int
micro_chase(const struct micro_options *o)
{
	const uint64_t lines = o->bytes / MICRO_LINE;
	const uint64_t hops = lines * (lines < 65536 ? 65536 / lines : 1);
	uint64_t begin, ns, times = 0, seen = 0, at = 0, *word = micro_memory(o->bytes);

	make_cycle(word, lines);
	do {
		at = word[at];
		seen++;
	} while (at != 0 && seen < lines);
	if (at != 0 || seen != lines)
		return wrong("the cycle through all lines");
	begin = monotonic_ns();
	do {
		for (uint64_t i = 0; i < hops; i++)
			at = word[at];
		micro_barrier();
		times += hops;
		ns = monotonic_ns() - begin;
	} while (ns < o->ms * 1000000);
	if (at != 0)
		return wrong("where the loads led");
	print(o, times, ns);
	return 0;
}

int
micro_copy(const struct micro_options *o)
{
	const uint64_t places = o->from / o->bytes, turns = turns_of(o->bytes);
	const uint8_t *from = (const uint8_t *)micro_memory(o->from);
	uint8_t *to = (uint8_t *)micro_memory(SLOTS * o->bytes);
	uint64_t begin, ns, times = 0;

	begin = monotonic_ns();
	do {
		for (uint64_t i = 0; i < turns; i++, times++) {
			memcpy(to + times % SLOTS * o->bytes, from + times % places * o->bytes,
				o->bytes);
			micro_barrier();
		}
		ns = monotonic_ns() - begin;
	} while (ns < o->ms * 1000000 || times < SLOTS);
	for (uint64_t i = times - SLOTS; i < times; i++)
		if (memcmp(to + i % SLOTS * o->bytes, from + i % places * o->bytes, o->bytes) != 0)
			return wrong("what was copied last");
	print(o, times, ns);
	return 0;
}
