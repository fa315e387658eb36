/* SPDX-License-Identifier: BSD-3-Clause */
/* The consumer's source, and threads of it that end anywhere, or late. */
#include "../../../../lib/gpu_sink/kernel/device_cpu.cpp"

#include <atomic>
#include <thread>
#include <unistd.h>
#include <vector>

#include "stress.h"

static std::atomic<cpu_device *> killed;

/*
 * A worker of the older incarnation, which goes on beside the next one. Queue and rows are its own:
 * it tests what `claim` and `done` promise by themselves, without the wait for its end.
 */
static struct {
	struct tokg_consumer c;
	struct tokg_scan scan;
	std::vector<uint64_t> memory;
	std::thread thread;
} late;
static thread_local bool is_late;

static void
late_begins(cpu_device *d)
{
	const struct tokg_scratch s = tokg_scratch_plan(&d->d.geometry, 1, false);

	late.memory.assign((s.end + PRODUCERS * OUT_BYTES) / 8, 0);
	late.c = d->consumer;
	late.c.incarnation--;
	late.c.workers = 0;
	late.c.outputs = (uint8_t *)late.memory.data() + s.end;
	late.c.back_far = NULL;
	tokg_scratch_set(&late.c, &s, (uint8_t *)late.memory.data());
	late.thread = std::thread([] {
		struct tokg_block b = {};

		is_late = true;
		b.n = b.lanes = b.teams = 1;
		b.encodes = b.polite = true;
		tokg_scanner(&late.c, &b, &late.scan);
	});
}

static std::vector<uint64_t> far_back;

extern "C" void
consumer_prepare(struct tokg_device *d)
{
	tokg_consumer *const c = &((cpu_device *)d)->consumer;
	const uint32_t lap = TOKG_LAP_MAX - 1, turn = TOKG_TURN_MAX - 2;

	far_back.resize(c->g.producers * c->g.back_stride / sizeof(uint64_t));
	c->back_far = (uint8_t *)far_back.data();
	for (uint32_t p = 0; p < PRODUCERS && c->g.lanes > 0; p++) {
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

extern "C" bool
consumer_copies_equal(struct tokg_device *d)
{
	const tokg_consumer *const c = &((cpu_device *)d)->consumer;

	for (uint32_t i = 0; i < PRODUCERS * SLOTS; i++)
		if (*tokg_done_in(c, c->back_far, i) != *tokg_done_in(c, c->back, i))
			return false;
	return true;
}

extern "C" void
consumer_kill(struct tokg_device *d)
{
	killed = (cpu_device *)d;
}

extern "C" bool
consumer_is_dying(void)
{
	return killed != nullptr;
}

extern "C" bool
consumer_has_ended(void)
{
	cpu_device *const c = killed;

	return c != nullptr && __atomic_load_n(&c->ended, __ATOMIC_ACQUIRE) == c->running;
}

extern "C" void
consumer_stop(struct tokg_device *d)
{
	struct tokg_error err;

	if (d->ops->stop(d, TOKG_STOP_NOW, 60000, &err) < 0)
		bail_out(err.text);
	if (late.thread.joinable())
		late.thread.join();
	killed = nullptr;
}

extern "C" void
consumer_restart(struct tokg_device *d)
{
	struct tokg_error err;

	consumer_stop(d);
	while (agent_take())
		;
	__atomic_add_fetch(&w.n_restarts, 1, __ATOMIC_SEQ_CST);
	if (d->ops->start(d, d->incarnation + 1, &err) < 0)
		bail_out(err.text);
	if (w.late)
		late_begins((cpu_device *)d);
}

#ifdef TOKG_INJECT
/* Called by the consumer's threads before each access to what is shared. */
extern "C" void
tokg_inject_step(const char *what, const void *)
{
	static thread_local uint64_t dice;
	static thread_local uint32_t left;
	static thread_local bool dies, changed;
	cpu_device *const c = killed.load(std::memory_order_relaxed);

	if (dice == 0)
		dice = (uint64_t)(uintptr_t)&dice ^ tokg_now();
	const uint32_t n = (uint32_t)(dice_throw(&dice) >> 33);

	if (__builtin_expect(n % 2048 == 0, 0))
		sched_yield();
	if (is_late) {
		if (n % 256 == 0)
			usleep(n >> 8 & 16383);
		return;
	}
	if (c != nullptr) {
		if (!dies) {
			dies = true;
			left = n % 1000;
		}
		/* Preferably just after a change. A wait for work is cut short. */
		left -= left < 20 ? left > 0 : what[0] == 'p' ? 20 : 1;
		if (left == 0 || (changed && n % 4 == 0)) {
			__atomic_fetch_add(&c->ended, 1, __ATOMIC_RELEASE);
			pthread_exit(NULL);
		}
	}
	changed = what[0] == 'a' || what[0] == 'c' || strcmp(what, "store release") == 0;
}
#endif
