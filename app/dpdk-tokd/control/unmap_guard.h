/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A driver may unmap memory that a worker reads. When a peer of net_memif goes, DPDK's interrupt
 * thread marks the port as not connected and unmaps the peer's rings at once; a worker that was put
 * off its CPU in the middle of a burst then faults in them (seen with DPDK 22.11: one departure in
 * ten, with other load on the worker's CPU). The driver has no hook for it, but munmap() is one:
 * the one here lets the interrupt thread wait until every worker has left the burst that it was in.
 */
#ifndef TOKD_UNMAP_GUARD_H
#define TOKD_UNMAP_GUARD_H

struct tokd_app;

/* From now on for the workers of *app, which stands until another or NULL takes its place. */
void tokd_unmap_guard(const struct tokd_app *app);

#endif
