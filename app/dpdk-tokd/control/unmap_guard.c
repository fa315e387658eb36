/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Why this program overrides munmap(). The bug, as reported for DPDK 22.11:
 *
 *   net/memif: rings are unmapped under a running burst
 *
 *   When a peer closes its socket, DPDK's interrupt thread runs memif_disconnect(): it clears
 *   ETH_MEMIF_FLAG_CONNECTED, then memif_free_regions() unmaps the peer's rings. The burst
 *   functions check the flag once, at their start. An lcore that is preempted after that check
 *   continues in unmapped memory: SIGSEGV in the burst. To reproduce: poll a server port, run a
 *   busy loop on the same CPU, and let a client connect, leave 1023 packets in its ring and exit;
 *   about one disconnect in ten is fatal. Wanted: the driver waits until no burst is running, or
 *   raises an event before it frees the regions.
 *
 * Nothing weaker helps. The driver raises no ethdev event when a peer disconnects, so the control
 * thread only learns of it when the memory is gone. Server and client free the regions in the same
 * way. Stopping the port first, or polling it under a lock, would cost every burst of every driver.
 * The one call between flag and fault that a program can override is munmap(). This one makes the
 * interrupt thread wait until each worker has left its burst; all other threads pass.
 */
#include "unmap_guard.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <rte_alarm.h>
#include <rte_cycles.h>
#include <rte_interrupts.h>

#include "app.h"
#include "log.h"

#define POLL_US 10
#define WARN_S 1 /* a turn takes microseconds */
#define END_MS 2000

static _Atomic(const struct tokd_app *) guarded;

static void
come_round(void *done)
{
	atomic_store((atomic_bool *)done, true);
}

/*
 * memif_disconnect(), which may have been held until the workers ended, frees what
 * rte_eth_dev_close() frees, too: no port may be closed before that thread has left it.
 */
static void
let_interrupts_end(void)
{
	static atomic_bool done; /* the alarm may come later than we wait */

	if (rte_eal_alarm_set(1, come_round, &done) != 0)
		return;
	for (uint32_t i = 0; i < END_MS * 1000 / POLL_US && !atomic_load(&done); i++)
		rte_delay_us_sleep(POLL_US);
	if (!atomic_load(&done))
		TOKD_LOG(main, WARNING,
			"DPDK's interrupt thread has been in a driver for %d ms: the port is "
			"closed nevertheless\n",
			END_MS);
}

void
tokd_unmap_guard(const struct tokd_app *app)
{
	atomic_store(&guarded, app);
	if (app == NULL)
		let_interrupts_end();
}

/*
 * Workers count turns after each burst. Takes POLL_US at least: longer than a store of the worker
 * is on its way.
 */
static void
wait_a_turn(const struct tokd_worker *w)
{
	const uint64_t turn = atomic_load(&w->turn), start = rte_rdtsc();
	bool warned = false;

	if (turn == TOKD_NO_TURN)
		return;
	do {
		if (!warned && rte_rdtsc() - start > WARN_S * w->tsc_hz) {
			TOKD_LOG(main, WARNING,
				"worker %u: one turn takes more than %d s; DPDK's interrupt thread "
				"waits for it\n",
				w->index, WARN_S);
			warned = true;
		}
		rte_delay_us_sleep(POLL_US);
	} while (atomic_load(&w->turn) == turn);
}

/* Overrides the C library's, for drivers too. */
int
munmap(void *addr, size_t len)
{
	const struct tokd_app *app = atomic_load(&guarded);

	/*
	 * The driver has cleared its flag: only a burst that read it before can still be in the
	 * rings. One turn is not enough. A CPU may read the flag for a burst while its store of the
	 * turn before is still on its way to us, and that store would end the wait. By the end of
	 * the first wait all such stores have arrived: the second one ends after that burst.
	 */
	if (app != NULL && rte_thread_is_intr()) {
		atomic_thread_fence(memory_order_seq_cst); /* the flag, before we look at a turn */
		for (uint32_t i = 0; i < app->n_workers; i++) {
			wait_a_turn(app->worker[i]);
			wait_a_turn(app->worker[i]);
		}
	}
	return (int)syscall(SYS_munmap, addr, len);
}
