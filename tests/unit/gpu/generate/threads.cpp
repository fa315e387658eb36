/* SPDX-License-Identifier: BSD-3-Clause */
/* The consumer's source, and threads of it that end anywhere. */
#include "../../../../lib/gpu_sink/kernel/device_cpu.cpp"

#include <atomic>

#include "generate.h"

static std::atomic<cpu_device *> killed;

extern "C" void
threads_age(struct tokg_device *d)
{
	const tokg_consumer *const c = &((cpu_device *)d)->consumer;
	const uint32_t lap = TOKG_LAP_MAX - 1, turn = TOKG_TURN_MAX - 2;

	for (uint32_t p = 0; p < PRODUCERS; p++) {
		c->log_head[p] = (uint64_t)lap * LOG;
		for (uint32_t i = 0; i < LOG; i++)
			*tokg_word(c, tokg_log_at(&c->g, p, i)) = TOKG_TOKEN(0, 0, 0, lap);
		for (uint32_t i = 0; i < LANES; i++) {
			c->lanes[p * LANES + i].begun = TOKG_BEGUN(0, turn);
			*tokg_word(c, tokg_opened_at(&c->g, p, i)) = TOKG_LANE_WORD(0, turn, 0);
			*tokg_word(c, tokg_ended_at(&c->g, p, i)) =
				TOKG_LANE_WORD(0, turn, TOKG_END_STOP);
		}
	}
}

extern "C" void
threads_kill(struct tokg_device *d)
{
	killed = (cpu_device *)d;
}

extern "C" bool
threads_ended(void)
{
	cpu_device *const c = killed;

	return c != nullptr && __atomic_load_n(&c->ended, __ATOMIC_ACQUIRE) == c->running;
}

extern "C" void
threads_revive(void)
{
	killed = nullptr;
}

#ifdef TOKG_INJECT
/* Called by the consumer's threads before each access to what is shared. */
extern "C" void
tokg_inject_step(const char *, const void *)
{
	static thread_local uint64_t dice;
	static thread_local uint32_t left;
	cpu_device *const c = killed.load(std::memory_order_relaxed);

	if (dice == 0)
		dice = (uint64_t)(uintptr_t)&dice ^ tokg_now();
	if (below(&dice, 2048) == 0)
		sched_yield();
	if (c == nullptr)
		return;
	if (left == 0)
		left = 1 + below(&dice, 300);
	if (--left == 0) {
		__atomic_fetch_add(&c->ended, 1, __ATOMIC_RELEASE);
		pthread_exit(NULL);
	}
}
#endif
