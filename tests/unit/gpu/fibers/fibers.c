/* SPDX-License-Identifier: BSD-3-Clause */
#undef _FORTIFY_SOURCE /* its longjmp refuses another stack */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <mix.h>
#include "fibers.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

#define STACK ((size_t)256 << 10) /* the lowest page is not mapped */
#define PAGE 4096

const uint64_t *tokg_meet(bool team, const char *what, const uint64_t *value, uint32_t *n);
void tokg_let_others(void);

struct stack {
	const void *low;
	size_t bytes;
	void *fake; /* AddressSanitizer's */
};

struct fiber {
	jmp_buf at;
	struct stack stack;
	bool begun, ended;
	const char *waits; /* at this barrier; NULL: it can run */
};

/* Threads that meet. Those of the next meeting write while others still read this one's values. */
struct group {
	uint32_t first, n, came, turn;
	uint64_t value[2][FIBERS_MAX];
};

/* Each thread of the machine has a block of its own. */
static _Thread_local struct {
	struct fiber fiber[FIBERS_MAX];
	struct group block, team[FIBERS_MAX / FIBERS_TEAM];
	jmp_buf scheduler;
	struct stack scheduler_stack;
	uint32_t current;
	void (*thread)(uint32_t tid, void *arg);
	void *arg;
} f;

/* ---- switching ---- */

static void
leave(struct stack *from, const struct stack *to)
{
#ifdef __SANITIZE_ADDRESS__
	__sanitizer_start_switch_fiber(&from->fake, to->low, to->bytes);
#endif
}

static void
arrive(struct stack *here, struct stack *from)
{
#ifdef __SANITIZE_ADDRESS__
	__sanitizer_finish_switch_fiber(here->fake, &from->low, &from->bytes);
#endif
}

static void
to_scheduler(struct fiber *me)
{
	if (_setjmp(me->at) == 0) {
		leave(&me->stack, &f.scheduler_stack);
		_longjmp(f.scheduler, 1);
	}
	arrive(&me->stack, &f.scheduler_stack);
}

/* Its stack is used again by the next run. */
static void
fiber_main(void)
{
	struct fiber *const me = &f.fiber[f.current];

	me->stack.fake = NULL;
	arrive(&me->stack, &f.scheduler_stack);
	for (;;) {
		f.thread(f.current, f.arg);
		me->ended = true;
		to_scheduler(me);
	}
}

static void
fiber_begin(struct fiber *fiber)
{
	static _Thread_local ucontext_t context; /* this function never returns */

	if (fiber->stack.low == NULL) {
		uint8_t *const at = mmap(NULL, STACK, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		if (at == MAP_FAILED || mprotect(at, PAGE, PROT_NONE) != 0) {
			fprintf(stderr, "fibers: no memory for a stack of %zu bytes\n", STACK);
			abort();
		}
		fiber->stack.low = at;
		fiber->stack.bytes = STACK;
	}
	fiber->begun = true;
	getcontext(&context);
	context.uc_stack.ss_sp = (void *)(uintptr_t)fiber->stack.low;
	context.uc_stack.ss_size = fiber->stack.bytes;
	context.uc_link = NULL;
	makecontext(&context, fiber_main, 0);
	leave(&f.scheduler_stack, &fiber->stack);
	setcontext(&context);
}

/* Until its next barrier, or its end. */
static void
fiber_run(uint32_t tid)
{
	struct fiber *const fiber = &f.fiber[tid];

	f.current = tid;
	if (_setjmp(f.scheduler) == 0) {
		if (!fiber->begun)
			fiber_begin(fiber);
		leave(&f.scheduler_stack, &fiber->stack);
		_longjmp(fiber->at, 1);
	}
	arrive(&f.scheduler_stack, &f.fiber[f.current].stack);
}

/* ---- barriers ---- */

/* All have come, to the same barrier: they can run. */
static void
group_go_on(struct group *g)
{
	struct fiber *const fiber = &f.fiber[g->first];

	for (uint32_t i = 1; i < g->n; i++) {
		if (fiber[i].waits != fiber[0].waits && strcmp(fiber[i].waits, fiber[0].waits) != 0)
			return;
	}
	for (uint32_t i = 0; i < g->n; i++)
		fiber[i].waits = NULL;
	g->came = 0;
	g->turn ^= 1;
}

const uint64_t *
tokg_meet(bool team, const char *what, const uint64_t *value, uint32_t *n)
{
	struct fiber *const me = &f.fiber[f.current];
	struct group *const g = team ? &f.team[f.current / FIBERS_TEAM] : &f.block;
	const uint64_t *const all = g->value[g->turn];

	g->value[g->turn][f.current - g->first] = *value;
	*n = g->n;
	me->waits = what;
	if (++g->came == g->n)
		group_go_on(g);
	to_scheduler(me);
	return all;
}

void
tokg_let_others(void)
{
	to_scheduler(&f.fiber[f.current]);
}

/* ---- the block ---- */

static void
group_begin(struct group *g, uint32_t first, uint32_t n)
{
	g->first = first;
	g->n = n;
	g->came = 0;
}

static void
block_begin(uint32_t n)
{
	group_begin(&f.block, 0, n);
	for (uint32_t i = 0; i < n; i += FIBERS_TEAM)
		group_begin(&f.team[i / FIBERS_TEAM], i, n < FIBERS_TEAM ? n : FIBERS_TEAM);
	for (uint32_t i = 0; i < n; i++) {
		f.fiber[i].ended = false;
		f.fiber[i].waits = NULL;
	}
}

/* Fisher and Yates. */
static void
shuffle(uint32_t *order, uint32_t n, uint64_t *seed)
{
	for (uint32_t i = n - 1; i > 0; i--) {
		const uint32_t k = (uint32_t)((dice_throw(seed) >> 32) * (i + 1) >> 32);
		const uint32_t was = order[i];

		order[i] = order[k];
		order[k] = was;
	}
}

/* One thread and barrier of each kind. Its fibers are never continued. */
static void
report_stuck(uint32_t n, char report[FIBERS_TEXT])
{
	int at = snprintf(report, FIBERS_TEXT, "not all threads reach the same barrier:");

	for (uint32_t i = 0; i < n; i++) {
		const char *const waits = f.fiber[i].ended ? "its end" : f.fiber[i].waits;
		const char *const before = i == 0		  ? ""
					   : f.fiber[i - 1].ended ? "its end"
								  : f.fiber[i - 1].waits;

		if (strcmp(waits, before) != 0 && at < FIBERS_TEXT)
			at += snprintf(report + at, (size_t)(FIBERS_TEXT - at),
				" from thread %u on at %s;", i, waits);
	}
	for (uint32_t i = 0; i < n; i++)
		f.fiber[i].begun = false;
}

bool
fibers_run(const struct fibers_how *how, void (*thread)(uint32_t tid, void *arg), void *arg,
	char report[FIBERS_TEXT])
{
	const uint32_t n = how->n;
	uint32_t order[FIBERS_MAX], ended = 0;
	uint64_t seed = how->seed;

	f.thread = thread;
	f.arg = arg;
	block_begin(n);
	for (uint32_t i = 0; i < n; i++)
		order[i] = how->order == FIBERS_BACKWARD ? n - 1 - i : i;
	while (ended < n) {
		bool ran = false;

		if (how->order == FIBERS_RANDOM)
			shuffle(order, n, &seed);
		for (uint32_t i = 0; i < n; i++) {
			struct fiber *const fiber = &f.fiber[order[i]];

			if (fiber->ended || fiber->waits != NULL)
				continue;
			fiber_run(order[i]);
			ended += fiber->ended;
			ran = true;
		}
		if (!ran) {
			report_stuck(n, report);
			return false;
		}
	}
	return true;
}

void
fibers_free(void)
{
	for (uint32_t i = 0; i < FIBERS_MAX; i++) {
		if (f.fiber[i].stack.low != NULL)
			munmap((void *)(uintptr_t)f.fiber[i].stack.low, STACK);
		f.fiber[i].stack.low = NULL;
		f.fiber[i].begun = false;
	}
}
