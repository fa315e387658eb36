/* SPDX-License-Identifier: BSD-3-Clause */
#include "unmap_guard.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_interrupts.h>

#include "app.h"
#include "log.h"

#define LOOK_EVERY_US 10
#define LONG_S 1 /* a turn takes microseconds */

static _Atomic(const struct tokd_app *) guarded;

void
tokd_unmap_guard(const struct tokd_app *app)
{
	atomic_store(&guarded, app);
}

/*
 * A turn that ends was the last that could know of what the driver has given up since. What a
 * worker writes after each burst is enough: the driver's own mark is older than this.
 */
static void
wait_a_turn(const struct tokd_worker *w)
{
	const uint64_t turn = atomic_load(&w->turn), start = rte_rdtsc();
	bool told = false;

	while (turn != TOKD_NO_TURN && atomic_load(&w->turn) == turn) {
		if (!told && rte_rdtsc() - start > LONG_S * w->tsc_hz) {
			TOKD_LOG(main, WARNING,
				"worker %u: in one turn for more than %d s; DPDK's interrupts wait for it\n",
				w->index, LONG_S);
			told = true;
		}
		rte_delay_us_sleep(LOOK_EVERY_US);
	}
}

/* In place of the C library's, for drivers as well. */
int
munmap(void *addr, size_t len)
{
	const struct tokd_app *app = atomic_load(&guarded);

	if (app != NULL && rte_thread_is_intr()) {
		for (uint32_t i = 0; i < app->n_workers; i++)
			wait_a_turn(app->worker[i]);
	}
	return (int)syscall(SYS_munmap, addr, len);
}
