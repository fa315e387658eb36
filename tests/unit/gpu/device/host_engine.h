/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An external engine (tokd/engine.h) in the process of the device, driven by a thread of the host:
 * what it is shown and what it makes are in the device's memory, so on a GPU each call is a kernel
 * (tokd/engine_cuda.h) that the host launches and waits for.
 */
#pragma once

#include <tokd/engine.h>

#include "device.h"

#ifdef __cplusplus
extern "C" {
#endif

struct host_engine;

struct host_engine_ops {
	/* The ids of a prompt, beside its rows. */
	bool (*prompt)(struct host_engine *e, uint64_t at, uint32_t n, uint32_t *ids);
	/* tokd_engine_put of each. */
	bool (*put)(struct host_engine *e, const uint64_t *lanes, const uint32_t *ids, uint32_t n,
		uint8_t *taken);
	/* tokd_engine_look at each. */
	bool (*look)(struct host_engine *e, const uint64_t *lanes, uint32_t n,
		struct tokd_lane_look *looks);
	void (*close)(struct host_engine *e);
};

struct host_engine {
	const struct host_engine_ops *ops;
};

/* Of a device with an external engine that was not started yet: on a GPU it takes memory, and has
 * its kernels loaded. NULL and `err`. */
struct host_engine *host_engine_cpu(struct tokg_device *d, struct tokg_error *err);
struct host_engine *host_engine_cuda(struct tokg_device *d, struct tokg_error *err);

#ifdef __cplusplus
}
#endif
