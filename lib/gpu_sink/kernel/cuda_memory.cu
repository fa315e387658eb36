/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory of the device cuda, on the GPU and on the host: allocates it, and accesses it while the
 * kernel runs. Set-up and control, no kernel.
 */
#include <stdlib.h>
#include <unistd.h>

#include "device_cuda.h"

#define STAGING_BYTES 65536 /* per copy out of the region */
/*
 * Allocation granularity of cudaMalloc: dma-buf and IPC export whole allocations, so these must not
 * share one with others.
 */
#define EXPORT_ALIGN (2ull << 20)

namespace
{

typedef decltype(&cuMemGetHandleForAddressRange) get_handle_fn;
typedef decltype(&cuPointerSetAttribute) set_attribute_fn;

bool
gpu_memory(const struct tokg_cuda *c, void **to, uint64_t bytes, const char *what,
	struct tokg_error *err)
{
	size_t free_bytes = 0, all = 0;
	cudaError_t e = cudaMalloc(to, bytes);

	if (e == cudaSuccess)
		e = cudaMemset(*to, 0, bytes);
	if (e == cudaSuccess)
		return true;
	cudaMemGetInfo(&free_bytes, &all);
	tokg_wrong(err, "device cuda:%d: %llu bytes for %s (%zu of %zu are free): %s", c->index,
		(unsigned long long)bytes, what, free_bytes, all, cudaGetErrorString(e));
	return false;
}

bool
tables_copy(struct tokg_cuda *c, const struct tokg_tables *t, struct tokg_error *err)
{
	struct tokg_table_copy table[TOKG_TABLES];
	const uint64_t bytes = tokg_tables_plan(t, c->d.geometry.row_bytes, &c->consumer.e, table);

	if (!gpu_memory(c, &c->tables, bytes, "the tables", err))
		return false;
	for (const auto &x : table) {
		uint8_t *const to = (uint8_t *)c->tables + x.at;

		if (x.bytes == 0)
			continue;
		if (!tokg_cuda_good(c, cudaMemcpy(to, x.from, x.bytes, cudaMemcpyHostToDevice),
			    "copying the tables", err))
			return false;
		*x.to = to;
	}
	return true;
}

bool
scratch_get(struct tokg_cuda *c, struct tokg_error *err)
{
	const uint32_t blocks = c->consumer.text_view != NULL ? 1 + c->workers : 0;
	const struct tokg_scratch s = tokg_scratch_plan(&c->d.geometry, blocks, c->as_graphs);

	if (!gpu_memory(c, &c->scratch, s.end, "the work queue", err) ||
		!gpu_memory(c, &c->reserved, sizeof(uint64_t), "a counter", err))
		return false;
	tokg_scratch_set(&c->consumer, &s, (uint8_t *)c->scratch);
	c->schedule = (struct tokg_schedule *)((uint8_t *)c->scratch + s.schedule);
	c->consumer.outbox_reserved = (uint64_t *)c->reserved;
	c->scratch_zero = s.found;
	return true;
}

/* Asks whether the GPU keeps the order of a NIC's writes for a running kernel. */
void
order_ask(struct tokg_cuda *c)
{
	struct tokg_device *const d = &c->d;
	const int ordering =
		tokg_cuda_attribute(c->index, cudaDevAttrGPUDirectRDMAWritesOrdering, -1);

	d->order = ordering >= cudaGPUDirectRDMAWritesOrderingOwner ? TOKG_ORDER_FAST
								    : TOKG_ORDER_STRICT;
	snprintf(d->order_reason, sizeof(d->order_reason),
		"GPU memory; gpuDirectRDMAWritesOrdering is %d (%s)", ordering,
		ordering < 0						? "unknown"
		: ordering >= cudaGPUDirectRDMAWritesOrderingAllDevices ? "all devices"
		: ordering >= cudaGPUDirectRDMAWritesOrderingOwner	? "owner"
									: "none");
}

/* The region is written by a NIC: makes synchronous copies and fills of it really synchronous. */
bool
sync_memops(struct tokg_cuda *c, struct tokg_error *err)
{
	const set_attribute_fn set = (set_attribute_fn)tokg_cuda_function("cuPointerSetAttribute");
	unsigned int on = 1;
	const CUresult e =
		set == NULL ? CUDA_ERROR_NOT_SUPPORTED
			    : set(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, (CUdeviceptr)c->region);

	return e == CUDA_SUCCESS ||
	       tokg_wrong(err, "device cuda:%d: the ring's SYNC_MEMOPS cannot be set: error %d",
		       c->index, (int)e);
}

/* Exports the region for a NIC; -1 if the GPU or driver cannot. */
int
dmabuf_get(struct tokg_cuda *c, uint64_t bytes)
{
	const get_handle_fn get =
		(get_handle_fn)tokg_cuda_function("cuMemGetHandleForAddressRange");
	int fd = -1;

	if (get == NULL || get(&fd, (CUdeviceptr)c->region, bytes,
				   CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0) != CUDA_SUCCESS)
		return -1;
	return fd;
}

bool
outbox_get(struct tokg_cuda *c, struct tokg_error *err)
{
	const uint64_t n = tokg_outbox_size(&c->d.geometry);
	const uint64_t bytes = sizeof(*c->outbox) + n * sizeof(struct tokg_out_entry);
	void *on_gpu;

	if (!tokg_cuda_good(c, cudaHostAlloc((void **)&c->outbox, bytes, cudaHostAllocMapped),
		    "pinned memory for the outbox", err) ||
		!tokg_cuda_good(c, cudaHostAlloc(&c->staging, STAGING_BYTES, cudaHostAllocDefault),
			"pinned memory", err) ||
		!tokg_cuda_good(c, cudaHostGetDevicePointer(&on_gpu, c->outbox, 0),
			"mapping the outbox", err))
		return false;
	memset(c->outbox, 0, bytes);
	c->outbox->n = n;
	c->consumer.outbox = (struct tokg_out_entry *)((struct tokg_outbox *)on_gpu + 1);
	c->consumer.outbox_mask = n - 1;
	c->consumer.owner = &((struct tokg_outbox *)on_gpu)->owner;
	return true;
}

bool
scan_times_get(struct tokg_cuda *c, struct tokg_error *err)
{
	struct tokg_device *const d = &c->d;

	if (!tokg_cuda_good(c,
		    cudaHostAlloc(
			    (void **)&d->scan_times, sizeof(*d->scan_times), cudaHostAllocMapped),
		    "pinned memory for times", err))
		return false;
	memset(d->scan_times, 0, sizeof(*d->scan_times));
	return tokg_cuda_good(c,
		cudaHostGetDevicePointer((void **)&c->consumer.scan_times, d->scan_times, 0),
		"mapping the times", err);
}

/*
 * Ring in host memory, which the GPU reads over its bus; producers of this host write to it with
 * --sink shm. The kernel's accesses have system scope, so it needs no change. Its compare-and-swaps
 * there may not be atomic for the host, but nobody else writes the words that it swaps (claim,
 * done) while it runs.
 */
bool
host_ring_get(struct tokg_cuda *c, uint64_t bytes, struct tokg_error *err)
{
	int can = 0;
	cudaError_t e;

	if (!tokg_cuda_good(c,
		    cudaDeviceGetAttribute(&can, cudaDevAttrHostRegisterSupported, c->index),
		    "its attributes", err))
		return false;
	if (!can)
		return tokg_wrong(err,
			"device cuda:%d: --ring host: it cannot use memory that is shared "
			"among processes: use --ring gpu",
			c->index);
	if (!tokg_memory_get(&c->host_ring, bytes, "tokd-gpu-ring", 0, -1, err))
		return false;
	e = cudaHostRegister(c->host_ring.at, c->host_ring.bytes, cudaHostRegisterMapped);
	c->registered = tokg_cuda_good(c, e,
		e == cudaErrorNotSupported || e == cudaErrorNotPermitted ||
				e == cudaErrorOperatingSystem
			? "--ring host: it cannot use the ring's memory"
			: "--ring host: registering the ring's memory",
		err);
	if (!c->registered ||
		!tokg_cuda_good(c, cudaHostGetDevicePointer(&c->region, c->host_ring.at, 0),
			"--ring host: mapping the ring's memory", err))
		return false;
	c->d.region = c->host_ring.at;
	c->d.region_fd = c->host_ring.fd;
	c->d.region_address = (uint64_t)(uintptr_t)c->host_ring.at;
	c->d.order = TOKG_ORDER_FAST;
	snprintf(c->d.order_reason, sizeof(c->d.order_reason),
		"host memory that the GPU reads, on %s", tokg_memory_pages(&c->host_ring));
	return true;
}

bool
gpu_ring_get(struct tokg_cuda *c, uint64_t bytes, struct tokg_error *err)
{
	if (!gpu_memory(c, &c->gpu_ring, bytes, "the ring", err))
		return false;
	c->region = c->gpu_ring;
	c->d.region_address = (uint64_t)(uintptr_t)c->region;
	c->d.region_dmabuf = dmabuf_get(c, bytes);
	order_ask(c);
	return sync_memops(c, err);
}

bool
region_get(struct tokg_cuda *c, const struct tokg_device_config *g, struct tokg_error *err)
{
	const uint64_t bytes = tokg_align(g->geometry.region_bytes, EXPORT_ALIGN);
	uint64_t out = g->geometry.producers * g->geometry.out_bytes;
	struct tokg_ctl ctl = tokg_ctl_make(g);
	struct tokg_engine_area area;
	cudaIpcMemHandle_t ipc;

	/* IPC memory can be written anyhow: one handle opens all. */
	if (g->external_engine) {
		area = tokg_engine_area_plan(&g->geometry);
		out = area.made_off + area.made_bytes;
	}
	out = tokg_align(out, EXPORT_ALIGN);
	if (!(g->host_ring ? host_ring_get(c, bytes, err) : gpu_ring_get(c, bytes, err)) ||
		!gpu_memory(c, &c->outputs, out, "the outputs", err))
		return false;
	ctl.magic = TOKG_MAGIC;
	if (!tokg_cuda_good(c, cudaMemcpy(c->region, &ctl, sizeof(ctl), cudaMemcpyDefault),
		    "writing the ring's first page", err))
		return false;
	static_assert(sizeof(ipc) == sizeof(c->d.ipc), "a handle is 64 bytes");
	/* Not supported everywhere. If it fails, ipc stays 0, and the agent refuses subscribers. */
	if (cudaIpcGetMemHandle(&ipc, c->outputs) == cudaSuccess)
		memcpy(c->d.ipc, &ipc, sizeof(ipc));
	else
		(void)cudaGetLastError();
	c->d.outputs = c->outputs;
	c->d.external_engine = g->external_engine;
	return true;
}

uint64_t
back_bytes(const struct tokg_cuda *c)
{
	return c->d.geometry.producers * c->d.geometry.back_stride;
}

bool
back_get(struct tokg_cuda *c, struct tokg_error *err)
{
	const struct tokg_geometry *const g = &c->d.geometry;
	uint8_t *const region = (uint8_t *)c->region;

	if (c->d.region != NULL) {
		if (!gpu_memory(c, &c->gpu_back, back_bytes(c) + 8ull * g->producers * g->slots,
			    "claims and done words", err))
			return false;
		c->consumer.back = (uint8_t *)c->gpu_back;
		c->consumer.back_far = region + g->back_off;
		c->consumer.claim = (uint64_t *)((uint8_t *)c->gpu_back + back_bytes(c));
		return true;
	}
	c->consumer.back = region + g->back_off;
	c->consumer.claim = (uint64_t *)(region + g->claim_off);
	return tokg_cuda_good(c,
		       cudaHostAlloc((void **)&c->host_back, back_bytes(c), cudaHostAllocMapped),
		       "pinned memory for done words", err) &&
	       tokg_cuda_good(c,
		       cudaHostGetDevicePointer((void **)&c->consumer.back_far, c->host_back, 0),
		       "mapping the done words", err);
}

/* Where the device has a word of the region in host memory that is not there but near the kernel.
 */
uint8_t *
claims_of(const struct tokg_cuda *c, uint64_t offset, uint64_t bytes)
{
	const struct tokg_geometry *const g = &c->d.geometry;
	const uint64_t all = 8ull * g->producers * g->slots;

	if (c->gpu_back == NULL || offset < g->claim_off || bytes > all ||
		offset - g->claim_off > all - bytes)
		return NULL;
	return (uint8_t *)c->consumer.claim + (offset - g->claim_off);
}

/*
 * The same of words of a back area in GPU memory that are in host memory, too: done and ended. The
 * log is not.
 */
const uint8_t *
dones_of(const struct tokg_cuda *c, uint64_t offset, uint64_t bytes)
{
	const struct tokg_geometry *const g = &c->d.geometry;
	const uint64_t in_back = (offset - g->back_off) % g->back_stride;

	const uint64_t end = tokg_log_at(g, 0, 0) - g->back_off;

	if (c->host_back == NULL || offset < g->back_off || offset - g->back_off >= back_bytes(c) ||
		in_back < sizeof(struct tokg_back) || in_back >= end || bytes > end - in_back)
		return NULL;
	return c->host_back + (offset - g->back_off);
}

/* On a stream of its own, through pinned memory, because the kernel keeps running. */
int
copy_out(struct tokg_cuda *c, const void *from, void *to, size_t bytes)
{
	tokg_owner_lives(&c->d);
	if (cudaSetDevice(c->index) != cudaSuccess)
		return -1;
	for (size_t at = 0; at < bytes; at += STAGING_BYTES) {
		const size_t n = bytes - at < STAGING_BYTES ? bytes - at : STAGING_BYTES;

		if (cudaMemcpyAsync(c->staging, (const uint8_t *)from + at, n,
			    cudaMemcpyDeviceToHost, c->io) != cudaSuccess ||
			cudaStreamSynchronize(c->io) != cudaSuccess)
			return -1;
		memcpy((uint8_t *)to + at, c->staging, n);
	}
	return 0;
}

} // namespace

bool
tokg_cuda_text_view_get(struct tokg_cuda *c, const struct tok_vocab *v, struct tokg_error *err)
{
	const size_t bytes = v != NULL ? tokg_view_bytes(v) : 0;
	void *image;
	bool copied;

	if (v == NULL)
		return true;
	if (!gpu_memory(c, &c->text_view, bytes, "the vocabulary", err))
		return false;
	image = malloc(bytes);
	if (image == NULL)
		return tokg_wrong(err, "device cuda:%d: no memory for %zu bytes of vocabulary",
			c->index, bytes);
	tokg_view_write(v, (uint64_t)(uintptr_t)c->text_view, image);
	copied = tokg_cuda_good(c, cudaMemcpy(c->text_view, image, bytes, cudaMemcpyHostToDevice),
		"copying the vocabulary", err);
	free(image);
	c->consumer.text_view = (const struct tokg_view *)c->text_view;
	return copied;
}

bool
tokg_cuda_memory_get(
	struct tokg_cuda *c, const struct tokg_device_config *g, struct tokg_error *err)
{
	if (!region_get(c, g, err) || !outbox_get(c, err) || !tables_copy(c, &g->tables, err) ||
		!scratch_get(c, err) || !back_get(c, err) ||
		(g->time_scans && !scan_times_get(c, err)))
		return false;
	c->d.outbox = c->outbox;
	c->consumer.region = (uint8_t *)c->region;
	c->consumer.outputs = (uint8_t *)c->outputs;
	if (g->external_engine)
		tokg_engine_area_set(&c->consumer, c->consumer.outputs,
			c->consumer.outputs + tokg_engine_area_plan(&g->geometry).made_off);
	return true;
}

void
tokg_cuda_memory_free(struct tokg_cuda *c)
{
	if (c->d.region_dmabuf >= 0)
		close(c->d.region_dmabuf);
	for (void *m : {c->gpu_ring, c->outputs, c->tables, c->scratch, c->reserved, c->gpu_back,
		     c->text_view})
		cudaFree(m);
	if (c->registered)
		cudaHostUnregister(c->host_ring.at);
	tokg_memory_free(&c->host_ring);
	for (void *m :
		{(void *)c->outbox, c->staging, (void *)c->d.scan_times, (void *)c->host_back})
		cudaFreeHost(m);
}

cudaError_t
tokg_cuda_done_copy(struct tokg_cuda *c)
{
	void *const to = c->gpu_back != NULL ? c->gpu_back : c->host_back;

	return cudaMemcpyAsync(to, (uint8_t *)c->region + c->d.geometry.back_off, back_bytes(c),
		cudaMemcpyDefault, c->kernel);
}

int
tokg_cuda_write_u64_later(struct tokg_device *d, uint64_t offset, uint64_t value)
{
	struct tokg_cuda *const c = (struct tokg_cuda *)d;
	uint8_t *at = claims_of(c, offset, sizeof(value));

	if (d->region != NULL && at == NULL)
		return tokg_mapped_write_u64(d, offset, value);
	if (at == NULL)
		at = (uint8_t *)c->region + offset;
	tokg_owner_lives(d);
	if (!tokg_in_region(d, offset, sizeof(value)) || cudaSetDevice(c->index) != cudaSuccess)
		return -1;
	c->write_error =
		c->write_value(c->io, (CUdeviceptr)at, value, CU_STREAM_WRITE_VALUE_DEFAULT);
	return c->write_error == CUDA_SUCCESS ? 0 : -1;
}

int
tokg_cuda_write_u64(struct tokg_device *d, uint64_t offset, uint64_t value)
{
	struct tokg_cuda *const c = (struct tokg_cuda *)d;

	if (tokg_cuda_write_u64_later(d, offset, value) < 0)
		return -1;
	/* A store to memory of the host. */
	if (d->region != NULL && claims_of(c, offset, sizeof(value)) == NULL)
		return 0;
	return cudaStreamSynchronize(c->io) == cudaSuccess ? 0 : -1;
}

int
tokg_cuda_read(struct tokg_device *d, uint64_t offset, void *to, size_t bytes)
{
	struct tokg_cuda *const c = (struct tokg_cuda *)d;
	const uint8_t *const dones = dones_of(c, offset, bytes);
	const uint8_t *const claims = claims_of(c, offset, bytes);

	if (!tokg_in_region(d, offset, bytes))
		return -1;
	if (claims != NULL)
		return copy_out(c, claims, to, bytes);
	if (d->region != NULL)
		return tokg_mapped_read(d, offset, to, bytes);
	if (dones != NULL) {
		tokg_owner_lives(d);
		tokg_words_read(dones, to, bytes);
		return 0;
	}
	return copy_out(c, (const uint8_t *)c->region + offset, to, bytes);
}

int
tokg_cuda_read_outputs(struct tokg_device *d, uint64_t offset, void *to, size_t bytes)
{
	struct tokg_cuda *const c = (struct tokg_cuda *)d;

	if (!tokg_in_outputs(d, offset, bytes))
		return -1;
	return copy_out(c, (const uint8_t *)c->outputs + offset, to, bytes);
}

/* It is in the outputs, which CUDA IPC opens once for all. */
int
tokg_cuda_renew_made(struct tokg_device *d, struct tokg_error *err)
{
	(void)d;
	(void)err;
	return 0;
}

int
tokg_cuda_taken(struct tokg_device *d, uint64_t *n)
{
	struct tokg_cuda *const c = (struct tokg_cuda *)d;

	return copy_out(c, c->reserved, n, sizeof(*n));
}
