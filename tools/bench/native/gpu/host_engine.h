/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An external engine (tokd/engine.h) that the host drives. What it is shown and what it makes are
 * in the device's memory, so on a GPU each call is a kernel (tokd/engine_cuda.h) that the host
 * launches and waits for.
 */
#pragma once

#include <tokd/engine.h>

#include "device.h"
#include "engine_area.h"

#ifdef __cplusplus
extern "C" {
#endif

struct host_engine;

/* Calls that return false have said why. */
struct host_engine_ops {
	/* The ids of a prompt, beside its rows: at this offset of the outputs. */
	bool (*prompt)(struct host_engine *e, uint64_t at, uint32_t n, uint32_t *ids);
	/* tokd_engine_put of each. */
	bool (*put)(struct host_engine *e, const uint64_t *lanes, const uint32_t *ids, uint32_t n,
		uint8_t *taken);
	/* tokd_engine_end of a lane. */
	bool (*end)(struct host_engine *e, uint64_t lane, uint32_t how);
	/* tokd_engine_look at each. */
	bool (*look)(struct host_engine *e, const uint64_t *lanes, uint32_t n,
		struct tokd_lane_look *looks);
	void (*close)(struct host_engine *e);
};

struct host_engine {
	const struct host_engine_ops *ops;
	const char *why; /* of the last call that failed */
};

/* Where the engine's memory is. tools/bench/gpu_check/engine.py makes one, too. */
struct host_engine_place {
	struct tokg_engine_area area;
	uint32_t n_ids, ids_most; /* ids are below it; ids of a prompt */
	int outputs_fd, made_fd;  /* device cpu */
	int index;		  /* cuda:N */
	void *outputs;		  /* in this process; NULL: by `ipc` */
	uint8_t ipc[64];
};
static_assert(sizeof(struct host_engine_place) == 152, "engine.py packs it");

/*
 * NULL and `err` if it cannot. On a GPU it takes memory and has its kernels loaded: in the process
 * of the device it must come before the consumer's start.
 */
struct host_engine *host_engine_cpu(const struct host_engine_place *p, struct tokg_error *err);
struct host_engine *host_engine_cuda(const struct host_engine_place *p, struct tokg_error *err);

#ifdef __cplusplus
}
#endif
