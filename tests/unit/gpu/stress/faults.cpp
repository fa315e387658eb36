/* SPDX-License-Identifier: BSD-3-Clause */
/* What goes wrong: producers die, the consumer is restarted, its threads end anywhere. */
#include "../../../../lib/gpu_sink/kernel/device_cpu.cpp"

#include <thread>
#include <unistd.h>

#include "stress.h"

namespace stress
{

std::atomic<uint32_t> killing;

static cpu_device *killed; /* whose threads they are */

/*
 * A worker of the older incarnation, which goes on beside the next one. Queue and rows are its own:
 * what is looked at is what `claim` and `done` promise by themselves, without the wait for its end.
 */
static struct {
	struct tokg_consumer c;
	struct tokg_scan scan;
	uint8_t *memory;
	std::thread thread;
} late;
static thread_local bool is_late;

static void
late_begins(world *w)
{
	const struct tokg_scratch s = tokg_scratch_plan(&w->g, 1, false);

	if (late.memory == NULL)
		late.memory = (uint8_t *)aligned_alloc(TOKG_PAGE, s.end + PRODUCERS * OUT_BYTES);
	memset(late.memory, 0, s.end);
	late.c = ((cpu_device *)w->d)->consumer;
	late.c.incarnation--;
	late.c.workers = 0;
	late.c.outputs = late.memory + s.end;
	late.c.back_far = NULL;
	tokg_scratch_set(&late.c, &s, late.memory);
	late.thread = std::thread([] {
		struct tokg_block b = {};

		is_late = true;
		b.n = b.lanes = b.teams = 1;
		b.encodes = b.polite = true;
		tokg_scanner(&late.c, &b, &late.scan);
	});
}

static std::vector<uint64_t> far_back;

void
done_twice(world *w)
{
	far_back.resize(w->g.producers * w->g.back_stride / sizeof(uint64_t));
	((cpu_device *)w->d)->consumer.back_far = (uint8_t *)far_back.data();
}

bool
done_equal(world *w)
{
	const struct tokg_consumer *const c = &((cpu_device *)w->d)->consumer;

	for (uint32_t i = 0; i < w->g.producers * w->g.slots; i++)
		if (*tokg_done_in(c, c->back_far, i) != *tokg_done_in(c, c->back, i))
			return false;
	return true;
}

void
late_ends()
{
	if (late.thread.joinable())
		late.thread.join();
}

/* The connection of a dead producer has ended; then its epoch; then there is a successor. */
void
bury(world *w, uint32_t i, uint64_t *wait)
{
	producer &p = w->p[i];
	const uint64_t back = tokg_back_at(&w->g, i);

	if (*wait > 0) {
		--*wait;
		return;
	}
	if (p.state == DYING) {
		p.wire.clear(); /* the queue pair is destroyed */
		w->d->ops->write_u64(w->d, back + offsetof(struct tokg_back, epoch),
			(uint64_t)w->d->incarnation << 32);
		p.state = GONE;
	}
	if (!w->a.free_to_give(i))
		return;
	for (uint32_t s = 0; s < SLOTS; s++)
		w->a.slot[i][s].passed = w->load(tokg_done_at(&w->g, i, s)) >> 8;
	w->a.turn[i] = 0;
	p.epoch++;
	w->d->ops->write_u64(w->d, back + offsetof(struct tokg_back, released), 0);
	w->d->ops->write_u64(w->d, back + offsetof(struct tokg_back, epoch),
		(uint64_t)w->d->incarnation << 32 | p.epoch);
	p.begin();
}

void
kill_producer(world *w, uint32_t i)
{
	producer &p = w->p[i];
	const auto lose = [w](const text &t) {
		for (uint32_t k = 0; k < t.n; k++)
			w->dead[t.request + (uint64_t)k * PRODUCERS] = 1;
	};

	p.state = DYING;
	for (const auto &s : p.slot)
		if (s.out)
			lose(s.t);
	for (const text &t : p.again)
		lose(t);
	w->n_deaths++;
}

void
restart_consumer(world *w)
{
	struct tokg_error err;

	if (w->d->ops->stop(w->d, TOKG_STOP_NOW, 60000, &err) < 0)
		bail_out(err);
	late_ends();
	killing = 0;
	while (w->a.take())
		;
	if (w->d->ops->start(w->d, w->d->incarnation + 1, &err) < 0)
		bail_out(err);
	w->n_restarts++;
	if (w->o.late)
		late_begins(w);
}

bool
consumer_ends(world *w, random_numbers *r)
{
	if (killing == 0 && r->below(4) == 0)
		return true;
	killed = (cpu_device *)w->d;
	killing = 1;
	return __atomic_load_n(&killed->ended, __ATOMIC_ACQUIRE) == killed->running;
}

} // namespace stress

#ifdef TOKG_INJECT
/* Called by the consumer's threads before each access to what is shared. */
extern "C" void
tokg_inject_step(const char *what, const void *at)
{
	static thread_local uint64_t state;
	static thread_local uint32_t left;
	static thread_local bool dies, changed;

	if (state == 0)
		state = (uint64_t)(uintptr_t)&state ^ tokg_now();
	const uint32_t n = (uint32_t)(dice_throw(&state) >> 33);

	if (__builtin_expect(n % 2048 == 0, 0))
		sched_yield();
	if (stress::is_late) {
		if (n % 128 == 0)
			usleep(n >> 8 & 1023);
		return;
	}
	if (stress::killing.load(std::memory_order_relaxed) != 0) {
		if (!dies) {
			dies = true;
			left = n % 1000;
		}
		/* Gladly just after something was given out; who waits for work need not for long.
		 */
		left -= left < 20 ? left > 0 : what[0] == 'p' ? 20 : 1;
		if (left == 0 || (changed && n % 4 == 0)) {
			__atomic_fetch_add(&stress::killed->ended, 1, __ATOMIC_RELEASE);
			pthread_exit(NULL);
		}
	}
	changed = what[0] == 'a' || what[0] == 'c' || strcmp(what, "store release") == 0;
}
#endif
