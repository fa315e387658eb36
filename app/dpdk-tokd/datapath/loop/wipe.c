/* SPDX-License-Identifier: BSD-3-Clause */
#include <rte_ethdev.h>

#include "wipe.h"

#define WIPES_PER_SECOND 100
/* Records have this age when they are wiped, so that taps have time to read them. */
#define RECORD_AGE_S 1
/* libtok uses some 100 KiB. */
#define STACK_BYTES (160u << 10)

/* Zeroes what functions that have returned left on the stack. */
static __rte_noinline void
wipe_stack(void)
{
	uint8_t left[STACK_BYTES];

	memset(left, 0, sizeof(left));
	__asm__ volatile("" : : "r"(left) : "memory");
}

static void
wipe_ring(struct tokd_worker *w, uint64_t now)
{
	struct tokd_ring *r = &w->ring;
	const uint64_t old = tokd_ring_old(r, now - RTE_MIN(now, RECORD_AGE_S * w->tsc_hz));

	tokd_ring_wipe(r, tokd_spill_owed(w, old));
}

void
tokd_wipe(struct tokd_worker *w, uint64_t now)
{
	if (now - w->t_wipe < w->tsc_hz / WIPES_PER_SECOND)
		return;
	w->t_wipe = now;
	/* Drivers keep what they have sent until they need its place, an lcore what it has freed.
	 */
	(void)rte_eth_tx_done_cleanup(w->port, w->queue, 0);
	rte_mempool_cache_flush(NULL, w->pool);
	memset(w->gather, 0, sizeof(w->gather));
	wipe_stack();
	wipe_ring(w, now);
}
