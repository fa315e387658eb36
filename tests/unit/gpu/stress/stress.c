/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sink, the consumer and its engine as threads of the device `cpu`, with owners that know each
 * row and each token that must come. Built twice, with all sources:
 *
 *   with ThreadSanitizer   nothing is injected; payloads and rows are plain memory. Each producer
 *                          is a thread, and so are agent and external engine.
 *   with -DTOKG_INJECT     words of the ring are relaxed atomics. One thread is producers, NICs,
 *                          agent, subscriber and engine, interleaved at random, and injects
 *                          failures: writes land in pieces of 8 bytes, late, in any order;
 *                          connections break; agents and workers end with writes in flight, and
 *                          others come; the consumer's threads end at any access to the ring.
 *
 * Producers begin with tickets near 1, near 2^32, and near the last: that one stops part of the
 * way. A run proves the protocol's logic, not a GPU's memory order or speed.
 *
 *   --in-order    writes land in order
 *   --late        so, and after each restart a worker of the incarnation before goes on; no lanes
 *   --no-check    no check word: in any order that must be found to go wrong
 *   --heads       the consumer looks at the next slot of each producer, else at all
 *   --external    with an external engine, which dies now and then
 *
 * TOKG_STRESS_TEXTS: how many; TOKG_STRESS_SEED.
 */
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <monotonic.h>
#include "ring/geometry.h"
#include "stress.h"

#define STUCK_S 60 /* of this process's CPU time: it may get little of a loaded machine */

struct stress w = {.any_order = INJECT, .check = true, .lanes = LANES, .seed = 1};

static uint64_t dice;

void
wrong(const char *format, ...)
{
	va_list ap;

	if (__atomic_fetch_add(&w.n_wrong, 1, __ATOMIC_RELAXED) >= 10)
		return;
	printf("# WRONG: ");
	va_start(ap, format);
	vprintf(format, ap);
	va_end(ap);
	printf("\n");
}

void
bail_out(const char *why)
{
	printf("Bail out! %s\n", why);
	fflush(stdout);
	_exit(1);
}

uint64_t
load(uint64_t offset)
{
	return __atomic_load_n(
		(const uint64_t *)((const uint8_t *)w.d->region + offset), __ATOMIC_ACQUIRE);
}

uint64_t
texts_begun(void)
{
	return __atomic_load_n(&w.n_begun, __ATOMIC_RELAXED);
}

/* As after a long life. The last producer's tickets are enough for an eighth of the texts and more:
 * with lanes a text takes several slots. */
static void
tickets_begin(void)
{
	const uint64_t left = (w.lanes > 0 ? 3 : 1) * w.texts / (8 * SLOTS);
	const uint64_t first[PRODUCERS] = {0, (1ull << 32) - 20, TOKG_TICKET_MAX - left};

	for (uint32_t p = 0; p < PRODUCERS; p++) {
		for (uint32_t i = 0; i < SLOTS; i++) {
			w.d->ops->write_u64(w.d, tokg_done_at(&w.d->geometry, p, i),
				TOKG_DONE(first[p], first[p] > 0 ? TOKG_OK : 0));
			w.d->ops->write_u64(w.d,
				tokg_hdr_at(&w.d->geometry, p, i) +
					offsetof(struct tokg_hdr, ticket),
				first[p]);
		}
	}
}

static void
set_up(void)
{
	static float table[N_IDS * DIM];
	struct tokg_device_config c = {
		.geometry = {.producers = PRODUCERS,
			.slots = SLOTS,
			.slot_bytes = TOKG_SLOT_BYTES_MIN,
			.flags = w.check ? TOKG_CHECKED : 0,
			.kind = TOKG_KIND_WORD,
			.dtype = TOKG_F32,
			.dim = DIM,
			.n_ids = N_IDS,
			.lanes = w.lanes,
			.log = w.lanes > 0 ? LOG : 0,
			.out_bytes = OUT_BYTES},
		.tables = {.kind = TOKG_KIND_WORD,
			.dtype = TOKG_F32,
			.dim = DIM,
			.n_ids = N_IDS,
			.word = table},
		.text_vocab = request_text_vocab(),
		.text_flags = TOK_ADDED_AS_TEXT,
		.external_engine = w.external,
		.stop_id = STOP_ID,
		.ring_epoch = 1,
		.workers = 2,
		.heads = w.heads,
		.first_cpu = -1,
	};
	struct tokg_error err;

	for (uint32_t i = 0; i < N_IDS; i++) {
		table[DIM * i] = (float)i;
		table[DIM * i + 1] = -(float)i;
		table[DIM * i + 2] = (float)i / 2;
		table[DIM * i + 3] = 1;
	}
	if (!tokg_geometry_fill(&c.geometry, &err) || (w.d = tokg_device_cpu(&c, &err)) == NULL)
		bail_out(err.text);
	w.fate = calloc(SERIALS, sizeof(*w.fate));
	w.delivered = calloc(SERIALS, sizeof(*w.delivered));
	tickets_begin();
	consumer_prepare(w.d);
	if (w.d->ops->start(w.d, 1, &err) < 0)
		bail_out(err.text);
	if (w.external)
		engine_begin();
	dice = w.seed;
	for (uint32_t i = 0; i < PRODUCERS; i++)
		w.producer[i] = producer_make(i, w.seed * 1000 + i);
}

/* Agents and workers end by the texts that have begun since: on a loaded machine texts take more
 * turns, and no more of them may be lost. */
static void
inject(struct producer *p, uint64_t begun)
{
	uint32_t n;

	if (below(&dice, 2048) == 0)
		producer_break(p);
	for (; begun > 0; begun--) {
		n = below(&dice, 800);
		if (n < 5)
			producer_regrant(p);
		else if (n < 6)
			producer_die(p);
	}
}

/* Restarts the consumer now and then, whether its threads have ended by themselves or are told. */
static void
restart(uint64_t begun)
{
	static uint64_t next = 200;

	if (!consumer_is_dying() && begun >= next && below(&dice, 4) != 0)
		consumer_kill(w.d);
	if (consumer_is_dying() ? !consumer_has_ended() : begun < next)
		return;
	consumer_restart(w.d);
	next = begun + (w.late ? 4 : 1) * (50 + below(&dice, 250));
}

static uint64_t
cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec;
}

/* Everything interleaved, in this thread. */
static void
run_injected(void)
{
	uint64_t last = 0, since = cpu_seconds();
	bool busy = true;

	/* Without a check word it is enough that something is wrong. */
	while ((busy || consumer_is_dying()) && (w.check || !w.any_order || w.n_misled == 0)) {
		const uint64_t begun = texts_begun();
		const bool more = begun < w.texts;

		busy = false;
		for (uint32_t i = 0; i < PRODUCERS; i++) {
			const uint64_t before = texts_begun();

			busy = producer_step(w.producer[i]) || busy;
			if (more)
				inject(w.producer[i], texts_begun() - before);
		}
		agent_step();
		if (w.external)
			engine_step();
		if (more || consumer_is_dying())
			restart(begun);
		/* On few cores the consumer must have its turn. */
		if (below(&dice, 8) == 0)
			sched_yield();
		if (begun != last) {
			last = begun;
			since = cpu_seconds();
		} else if (cpu_seconds() - since > STUCK_S) {
			wrong("nothing has moved for %d s of CPU time, after %" PRIu64 " texts",
				STUCK_S, begun);
			for (uint32_t i = 0; i < PRODUCERS; i++)
				producer_print(w.producer[i]);
			return;
		}
	}
}

static void *
producer_thread(void *producer)
{
	const uint64_t until = monotonic_ms() + 300000;

	while (producer_step(producer)) {
		if (monotonic_ms() >= until) {
			wrong("a producer has not ended within 300 s");
			break;
		}
		sched_yield();
	}
	return NULL;
}

static void *
agent_thread(void *nothing)
{
	(void)nothing;
	while (!__atomic_load_n(&w.finished, __ATOMIC_ACQUIRE)) {
		agent_step();
		sched_yield();
	}
	return NULL;
}

static void *
engine_thread(void *nothing)
{
	(void)nothing;
	while (!__atomic_load_n(&w.finished, __ATOMIC_ACQUIRE)) {
		engine_step();
		sched_yield();
	}
	return NULL;
}

static void
run_threads(void)
{
	pthread_t producer[PRODUCERS], agent, engine;

	for (uint32_t i = 0; i < PRODUCERS; i++)
		pthread_create(&producer[i], NULL, producer_thread, w.producer[i]);
	pthread_create(&agent, NULL, agent_thread, NULL);
	if (w.external)
		pthread_create(&engine, NULL, engine_thread, NULL);
	for (uint32_t i = 0; i < PRODUCERS; i++)
		pthread_join(producer[i], NULL);
	__atomic_store_n(&w.finished, true, __ATOMIC_RELEASE);
	pthread_join(agent, NULL);
	if (w.external)
		pthread_join(engine, NULL);
}

static void
judge(void)
{
	for (uint32_t i = 0; i < PRODUCERS && w.n_wrong == 0; i++)
		producer_judge_lanes(w.producer[i]);
	consumer_stop(w.d);
	agent_judge();
	for (uint32_t i = 0; i < PRODUCERS; i++)
		producer_judge(w.producer[i]);
	if (!w.late && !consumer_copies_equal(w.d))
		wrong("the two copies of the done words differ");
	printf("# %" PRIu64 " restarts of the consumer, %" PRIu64 " engines died; wrong: %" PRIu64
	       "\n",
		w.n_restarts, w.n_engines, w.n_wrong);
	/* A failure that never happens proves nothing. */
	if (INJECT && w.n_restarts == 0)
		wrong("the consumer was never started again");
	if (INJECT && w.external && w.n_engines == 0)
		wrong("no engine died");
}

int
main(int argc, char **argv)
{
	const char *const texts = getenv("TOKG_STRESS_TEXTS"), *const seed =
								       getenv("TOKG_STRESS_SEED");
	bool right;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--in-order") == 0)
			w.any_order = false;
		else if (strcmp(argv[i], "--late") == 0)
			w.late = true;
		else if (strcmp(argv[i], "--no-check") == 0)
			w.check = false;
		else if (strcmp(argv[i], "--heads") == 0)
			w.heads = true;
		else if (strcmp(argv[i], "--external") == 0)
			w.external = true;
		else
			bail_out("an unknown option");
	}
	if (w.late && w.external)
		bail_out("--late has no lanes, which --external needs");
	if (w.late) {
		w.any_order = false;
		w.lanes = 0;
	}
	w.texts = texts != NULL ? strtoull(texts, NULL, 10) : INJECT ? 20000 : 3000;
	if (seed != NULL)
		w.seed = strtoull(seed, NULL, 10);
	printf("1..1\n");
	set_up();
	if (INJECT)
		run_injected();
	else
		run_threads();
	if (w.check || !w.any_order) {
		judge();
		right = w.n_wrong == 0;
	} else {
		printf("# without the check word: wrong after %" PRIu64 " texts\n", texts_begun());
		right = w.n_misled > 0;
	}
	printf("%s 1 - %s, %s%s%s%s%s\n", right ? "ok" : "not ok",
		w.any_order ? "any order" : "in order", INJECT ? "injected" : "threads",
		w.late ? ", late workers" : "", w.check ? "" : ", no check word",
		w.heads ? ", heads" : "", w.external ? ", external engine" : "");
	fflush(stdout);
	_exit(right ? 0 : 1);
}
