/* SPDX-License-Identifier: BSD-3-Clause */
/* For programs that are run on a device of either kind: to open it, post by hand, and wait. */
#ifndef TESTS_GPU_DEVICE_POST_H
#define TESTS_GPU_DEVICE_POST_H

#include "check.h"
#include "device.h"
#include "geometry.h"

#define POST_EPOCH 7

/*
 * "cpu" or "cuda:N", started, all producers granted POST_EPOCH. Exits with 1, or 77 where the
 * machine has no GPU or no driver, and says why. TOKD_GPU_WORKERS: how many, instead of 1 (cpu) or
 * all that the GPU holds. The process ends TOKD_GPU_LIMIT_S (300) seconds later at the latest, and
 * with it its kernel, whatever became of those who started it.
 */
struct tokg_device *post_open(const char *name, struct tokg_device_config *c);
/*
 * Payload of h->bytes, with room for its padding to TOKG_LINE, then the header, with `ticket` and
 * its check word: by plain stores, or by the device's write_u64 where its memory is not mapped.
 */
void post_slot(struct tokg_device *d, uint32_t producer, uint32_t slot, struct tokg_hdr *h,
	uint64_t ticket, void *payload);
/* Spins until the slot is done; its status. Exits with 1 after 10 s. */
uint32_t post_wait(struct tokg_device *d, uint32_t producer, uint32_t slot, uint64_t ticket);
uint64_t post_now(void); /* ns */
void post_fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

#endif
