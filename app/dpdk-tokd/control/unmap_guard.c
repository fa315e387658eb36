/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Why munmap() is ours: the report for DPDK, about 22.11:
 *
 *   net/memif: rings are unmapped under a running burst
 *
 *   When a peer closes its socket, DPDK's interrupt thread runs memif_disconnect(): it clears
 *   ETH_MEMIF_FLAG_CONNECTED, then memif_free_regions() unmaps the peer's rings. The burst
 *   functions look at the flag once, at their start. An lcore that was put off its CPU behind that
 *   look continues in memory that is gone: SIGSEGV in the burst. To reproduce: a server port that
 *   is polled, a busy loop on the same CPU, and a client that connects, leaves 1023 packets in its
 *   ring and exits; about one departure in ten is fatal. Wanted: that the driver waits until no
 *   burst can be inside, or raises an event before it frees the regions.
 *
 * Nothing weaker helps here. The driver raises no ethdev event when a peer goes (no RTE_ETH_EVENT_*
 * at all), so that the control thread learns of it when the memory is gone, and has nothing that it
 * could hold up; both roles free the regions in the same way; a port that is stopped first, or
 * polled under a lock, would cost every burst of every driver. Between the flag and the fault
 * stands one call that a program can take the place of: munmap(). Ours lets the interrupt thread
 * wait until each worker has left the burst that it was in; all other threads pass.
 */
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
