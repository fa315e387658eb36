/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Texts there and back: the sink as it is, the consumer and its engine as threads of the device
 * `cpu`, under owners that know every token that must come. Built twice, all sources with it:
 *
 *   with ThreadSanitizer   each producer is a thread, and the agent another
 *   with -DTOKG_INJECT     one thread is producers, NIC and agent, interleaved at random, and
 *                          injects failures: writes land in pieces of 8 bytes, late, in any order;
 *                          connections break, agents and workers go and come back, the consumer's
 *                          threads end at any access to the ring
 *
 * generate [--in-order] [--heads] [--external]. TOKG_STRESS_TEXTS: how many, TOKG_STRESS_SEED.
 */
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <monotonic.h>
#include "generate.h"
#include "ring/geometry.h"

uint64_t n_wrong;

static struct {
	struct agent agent;
	struct side *side[PRODUCERS];
	uint64_t texts, dice;
	float word[N_IDS * 4];
	bool over; /* atomic */
} w;

void
wrong(const char *format, ...)
{
	va_list ap;

	if (__atomic_fetch_add(&n_wrong, 1, __ATOMIC_RELAXED) >= 10)
		return;
	printf("# WRONG: ");
	va_start(ap, format);
	vprintf(format, ap);
	va_end(ap);
	printf("\n");
}

static void
bail_out(const struct tokg_error *err)
{
	printf("Bail out! %s\n", err->text);
	exit(1);
}

static void
set_up(bool any_order, bool heads, bool external, uint64_t seed)
{
	struct tokg_device_config c = {
		.geometry = {.producers = PRODUCERS,
			.slots = SLOTS,
			.slot_bytes = SLOT_BYTES,
			.flags = TOKG_CHECKED,
			.kind = TOKG_KIND_WORD,
			.dtype = TOKG_F32,
			.dim = 4,
			.n_ids = N_IDS,
			.lanes = LANES,
			.log = LOG,
			.out_bytes = OUT_BYTES},
		.tables = {.kind = TOKG_KIND_WORD,
			.dtype = TOKG_F32,
			.dim = 4,
			.n_ids = N_IDS,
			.word = w.word},
		.external_engine = external,
		.stop_id = STOP_ID,
		.ring_epoch = 1,
		.workers = 2,
		.heads = heads,
		.first_cpu = -1,
	};
	struct tokg_error err;

	if (!tokg_geometry_fill(&c.geometry, &err) ||
		(w.agent.d = tokg_device_cpu(&c, &err)) == NULL)
		bail_out(&err);
	threads_age(w.agent.d);
	if (w.agent.d->ops->start(w.agent.d, 1, &err) < 0)
		bail_out(&err);
	if (external)
		w.agent.engine = engine_make(&w.agent, seed);
	w.dice = seed;
	for (uint32_t i = 0; i < PRODUCERS; i++)
		w.side[i] = side_make(&w.agent, i, seed * 1000 + i, any_order);
}

static uint64_t
texts_begun(void)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < PRODUCERS; i++)
		n += side_texts(w.side[i]);
	return n;
}

static void
restart_consumer(void)
{
	struct tokg_device *d = w.agent.d;
	struct tokg_error err;

	if (d->ops->stop(d, TOKG_STOP_NOW, 60000, &err) < 0)
		bail_out(&err);
	threads_revive();
	n_restarts++;
	if (d->ops->start(d, d->incarnation + 1, &err) < 0)
		bail_out(&err);
}

static void
inject(struct side *s, bool *killing)
{
	switch (below(&w.dice, 4096)) {
	case 0:
	case 1:
		side_break(s);
		break;
	case 2:
		side_regrant(s);
		break;
	case 3:
		side_die(s);
		break;
	case 4:
		/* Incarnations are numbered up to 65535. */
		if (!*killing && w.agent.d->incarnation < 60000) {
			threads_kill(w.agent.d);
			*killing = true;
		}
		break;
	default:
		break;
	}
}

/* Everything interleaved, in this thread. */
static void
run_injected(void)
{
	uint64_t last = 0, since = monotonic_ms();
	bool busy = true, killing = false;

	while (busy || killing) {
		const uint64_t begun = texts_begun();

		busy = begun < w.texts;
		for (uint32_t i = 0; i < PRODUCERS; i++) {
			busy = side_step(w.side[i], begun < w.texts) || busy;
			if (begun < w.texts)
				inject(w.side[i], &killing);
		}
		agent_step(&w.agent);
		if (w.agent.engine != NULL)
			engine_step(w.agent.engine, begun < w.texts);
		if (killing && threads_ended()) {
			restart_consumer();
			killing = false;
		}
		/* On few cores the consumer must have its turn. */
		if (below(&w.dice, 8) == 0)
			sched_yield();
		if (begun != last) {
			last = begun;
			since = monotonic_ms();
		} else if (monotonic_ms() - since > 120000) {
			wrong("nothing has moved for 120 s, after %" PRIu64 " texts", begun);
			return;
		}
	}
}

static void *
producer_thread(void *side)
{
	const uint64_t until = monotonic_ms() + 300000;
	bool more = true;

	while (side_step(side, more) || more) {
		if (monotonic_ms() >= until) {
			wrong("a producer has not ended within 300 s, after %" PRIu64 " texts",
				side_texts(side));
			break;
		}
		more = side_texts(side) < w.texts / PRODUCERS;
		sched_yield();
	}
	return NULL;
}

static void *
agent_thread(void *nothing)
{
	(void)nothing;
	while (!__atomic_load_n(&w.over, __ATOMIC_ACQUIRE)) {
		agent_step(&w.agent);
		sched_yield();
	}
	return NULL;
}

static void *
engine_thread(void *nothing)
{
	(void)nothing;
	while (!__atomic_load_n(&w.over, __ATOMIC_ACQUIRE)) {
		engine_step(w.agent.engine, true);
		sched_yield();
	}
	return NULL;
}

static void
run_threads(void)
{
	pthread_t producer[PRODUCERS], agent, engine;

	for (uint32_t i = 0; i < PRODUCERS; i++)
		pthread_create(&producer[i], NULL, producer_thread, w.side[i]);
	pthread_create(&agent, NULL, agent_thread, NULL);
	if (w.agent.engine != NULL)
		pthread_create(&engine, NULL, engine_thread, NULL);
	for (uint32_t i = 0; i < PRODUCERS; i++)
		pthread_join(producer[i], NULL);
	__atomic_store_n(&w.over, true, __ATOMIC_RELEASE);
	pthread_join(agent, NULL);
	if (w.agent.engine != NULL)
		pthread_join(engine, NULL);
}

int
main(int argc, char **argv)
{
	const char *const texts = getenv("TOKG_STRESS_TEXTS"), *const seed =
								       getenv("TOKG_STRESS_SEED");
	bool any_order = INJECT, heads = false, external = false;

	for (int i = 1; i < argc; i++) {
		any_order = any_order && strcmp(argv[i], "--in-order") != 0;
		heads = heads || strcmp(argv[i], "--heads") == 0;
		external = external || strcmp(argv[i], "--external") == 0;
	}
	w.texts = texts != NULL ? strtoull(texts, NULL, 10) : INJECT ? 20000 : 3000;
	printf("1..1\n");
	set_up(any_order, heads, external, seed != NULL ? strtoull(seed, NULL, 10) : 1);
	if (INJECT)
		run_injected();
	else
		run_threads();
	for (uint32_t i = 0; i < PRODUCERS && n_wrong == 0; i++)
		side_judge(w.side[i]);
	printf("# %" PRIu64 " restarts of the consumer, %" PRIu64 " engines died; wrong: %" PRIu64
	       "\n",
		n_restarts, n_engines, n_wrong);
	printf("%s 1 - %s, %s\n", n_wrong == 0 ? "ok" : "not ok",
		any_order ? "any order" : "in order", INJECT ? "injected" : "threads");
	fflush(stdout);
	_exit(n_wrong == 0 ? 0 : 1);
}
