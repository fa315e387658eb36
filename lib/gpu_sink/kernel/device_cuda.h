/* SPDX-License-Identifier: BSD-3-Clause */
/* The device on a GPU, as its two sources see it: device_cuda.cu runs the kernel, cuda_memory.cu
 * makes the memory and reaches into it. */
#ifndef TOKG_DEVICE_CUDA_H
#define TOKG_DEVICE_CUDA_H

#include <cuda.h>
#include <cuda_runtime.h>

#include "common.h"
#include "host_memory.h"

typedef decltype(&cuStreamWriteValue64) tokg_cuda_write_fn;

struct tokg_cuda {
	struct tokg_device d; /* first: what the caller holds */
	struct tokg_consumer consumer;
	int index;
	uint32_t workers;
	bool running;
	cudaStream_t kernel, io;
	tokg_cuda_write_fn write_value;
	CUresult write_error;	      /* of the last write_value that failed */
	void *region;		      /* as the GPU has it */
	struct tokg_memory host_ring; /* that it is in, if not in GPU memory; */
	bool registered;	      /* given to the GPU */
	void *gpu_ring, *outputs, *tables, *scratch, *reserved; /* in GPU memory */
	uint64_t scratch_zero;
	struct tokg_outbox *outbox; /* pinned, mapped */
	void *staging;		    /* pinned */
};

static inline bool
tokg_cuda_good(const struct tokg_cuda *c, cudaError_t e, const char *what, struct tokg_error *err)
{
	return e == cudaSuccess || tokg_wrong(err, "device cuda:%d: %s: %s", c->index, what,
					   cudaGetErrorString(e)) == 0;
}

/* A function of the driver; NULL where this driver has none of that name. */
static inline void *
tokg_cuda_function(const char *name)
{
	cudaDriverEntryPointQueryResult found;
	void *f = NULL;

	if (cudaGetDriverEntryPointByVersion(name, &f, 12000, cudaEnableDefault, &found) !=
			cudaSuccess ||
		found != cudaDriverEntryPointSuccess)
		return NULL;
	return f;
}

/* Ring, outputs, outbox, tables and what the consumer keeps for itself; they stand in the device
 * and in its consumer. False and `err`: what was got by then is for tokg_cuda_memory_free. */
bool tokg_cuda_memory_get(
	struct tokg_cuda *c, const struct tokg_device_config *g, struct tokg_error *err);
/* No kernel runs: giving memory back would wait for it. */
void tokg_cuda_memory_free(struct tokg_cuda *c);

/* The device's operations on memory: device.h. */
int tokg_cuda_write_u64(struct tokg_device *d, uint64_t offset, uint64_t value);
int tokg_cuda_read(struct tokg_device *d, uint64_t offset, void *to, size_t bytes);
int tokg_cuda_read_outputs(struct tokg_device *d, uint64_t offset, void *to, size_t bytes);
int tokg_cuda_taken(struct tokg_device *d, uint64_t *n);

#endif
