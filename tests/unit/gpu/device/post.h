/* SPDX-License-Identifier: BSD-3-Clause */
/* For programs that are run on a device of either kind: to open it, post by hand, and wait. */
#pragma once

#include "ring/check.h"
#include "device.h"
#include "ring/geometry.h"

#define POST_EPOCH 7

/*
 * "cpu" or "cuda:N", not started; NULL and `err`. Exits with 77 where the machine has no GPU or no
 * driver, and says why. TOKD_GPU_WORKERS: how many, instead of TOKG_WORKERS_DEFAULT. The process
 * ends TOKD_GPU_LIMIT_S (300) seconds later at the latest, and with it its kernel, whatever became
 * of those who started it.
 */
struct tokg_device *post_device(
	const char *name, struct tokg_device_config *c, struct tokg_error *err);
/* The same with its geometry filled, started, all producers granted POST_EPOCH; exits with 1. */
struct tokg_device *post_open(const char *name, struct tokg_device_config *c);
/* POST_EPOCH to all producers of a device that was started; exits with 1. */
void post_grant(struct tokg_device *d);
/* TOKD_GPU_RING=host: the ring in this host's memory, instead of the GPU's. */
bool post_host_ring(void);
/* TOKD_GPU_LAUNCH=graph: the consumer as graphs, instead of workers that stay. */
bool post_graphs(void);
/* Into the region, by plain stores or as post_slot: a multiple of 8 bytes. */
void post_bytes(struct tokg_device *d, uint64_t at, const void *from, uint64_t bytes);
/*
 * Payload of h->bytes, with room for its padding to TOKG_LINE, then the header, with `ticket` and
 * its check word: by plain stores, or by the device's write_u64 where its memory is not mapped.
 */
void post_slot(struct tokg_device *d, uint32_t producer, uint32_t slot, struct tokg_hdr *h,
	uint64_t ticket, void *payload);
/* Spins until the slot is done; its status. Exits with 1 after 10 s. */
uint32_t post_wait(struct tokg_device *d, uint32_t producer, uint32_t slot, uint64_t ticket);
/* Spins until outbox entry `index` is there: on a GPU `done` may be seen before it. Exits likewise.
 */
const struct tokg_out_entry *post_entry(struct tokg_device *d, uint64_t index);
/* Why a device does not go on: stops it, which says whether a kernel has failed. */
const char *post_why(struct tokg_device *d);
void post_fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
