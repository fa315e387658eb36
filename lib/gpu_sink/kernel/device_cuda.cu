/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The device on a GPU: the ring in its memory, and the consumer as a kernel that stays. Set-up;
 * consumer.cuh is what runs. Linked with the static runtime, which looks for the driver when it is
 * first asked: the program starts where there is none, and says so here.
 *
 *   nvcc -std=c++17 -O3 -arch=sm_90 -I../../../include -I.. -c device_cuda.cu
 */
#include <cuda.h>
#include <cuda_runtime.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "common.h"
#include "consumer.cuh"
#include "host_memory.h"

#define ROWS_OF_JOB 16	    /* 2048 rows are as many jobs as an H100 has multiprocessors */
#define BLOCKS_MAX 1024	    /* workers: as many lines as the queue has at most */
#define STAGING_BYTES 65536 /* of one copy out of the region */
/* What cudaMalloc takes whole: no neighbour is in it, whom a dma-buf or IPC would open as well. */
#define EXPORT_ALIGN (2ull << 20)

static_assert(BLOCKS_MAX <= TOKG_QUEUE, "each worker waits at a line of its own");

union block_shared {
	tokg_scan scan;
	tokg_hand hand;
};

/* Block 0 scans, all others work. All are resident: a cooperative launch has them so or fails. */
__global__ void
__launch_bounds__(TOKG_BLOCK) tokg_consume(const __grid_constant__ tokg_consumer c)
{
	__shared__ alignas(16) uint8_t bytes[sizeof(block_shared)];
	block_shared *const shared = (block_shared *)bytes;
	tokg_block b = {};

	b.tid = threadIdx.x;
	b.n = TOKG_BLOCK;
	b.lane = b.tid % 32;
	b.lanes = 32;
	b.team = b.tid / 32;
	b.teams = TOKG_BLOCK / 32;
	if (blockIdx.x == 0)
		tokg_scanner(&c, &b, &shared->scan);
	else
		tokg_worker(&c, &b, &shared->hand);
}

namespace
{

typedef decltype(&cuStreamWriteValue64) write_value_fn;
typedef decltype(&cuMemGetHandleForAddressRange) get_handle_fn;
typedef decltype(&cuPointerSetAttribute) set_attribute_fn;

struct cuda_device {
	struct tokg_device d; /* first: what the caller holds */
	struct tokg_consumer consumer;
	int index;
	uint32_t workers;
	bool running;
	cudaStream_t kernel, io;
	write_value_fn write_value;
	void *region;		      /* as the GPU has it */
	struct tokg_memory host_ring; /* where it is, with that option; `registered` with the GPU */
	bool registered;
	void *device_ring, *outputs, *tables, *scratch, *reserved; /* in GPU memory */
	uint64_t scratch_zero;
	struct tokg_outbox *outbox; /* pinned, mapped */
	void *staging;		    /* pinned */
};

bool
good(const cuda_device *c, cudaError_t e, const char *what, struct tokg_error *why)
{
	return e == cudaSuccess || tokg_wrong(why, "device cuda:%d: %s: %s", c->index, what,
					   cudaGetErrorString(e)) == 0;
}

/* A function of the driver; NULL where this driver has none of that name. */
void *
driver_function(const char *name)
{
	cudaDriverEntryPointQueryResult found;
	void *f = NULL;

	if (cudaGetDriverEntryPointByVersion(name, &f, 12000, cudaEnableDefault, &found) !=
			cudaSuccess ||
		found != cudaDriverEntryPointSuccess)
		return NULL;
	return f;
}

bool
gpu_memory(
	const cuda_device *c, void **to, uint64_t bytes, const char *what, struct tokg_error *why)
{
	size_t free_bytes = 0, all = 0;
	cudaError_t e = cudaMalloc(to, bytes);

	if (e == cudaSuccess)
		e = cudaMemset(*to, 0, bytes);
	if (e == cudaSuccess)
		return true;
	cudaMemGetInfo(&free_bytes, &all);
	tokg_wrong(why, "device cuda:%d: %llu bytes for %s (%zu of %zu are free): %s", c->index,
		(unsigned long long)bytes, what, free_bytes, all, cudaGetErrorString(e));
	return false;
}

/* Copies of the tables, each aligned as 16-byte accesses need it. */
bool
tables_copy(cuda_device *c, const struct tokg_tables *t, struct tokg_error *why)
{
	struct tokg_embed *const e = &c->consumer.e;
	const uint64_t row = c->d.geometry.row_bytes;
	const bool positions = t->kind != TOKG_KIND_WORD, bert = t->kind == TOKG_KIND_BERT;
	const struct {
		const void *from;
		uint64_t bytes;
		const uint8_t **to;
	} table[] = {
		{t->word, t->n_ids * row, &e->word},
		{t->position, positions ? t->n_positions * row : 0, &e->position},
		{t->type, bert ? row : 0, &e->type},
		{t->gamma, bert ? row : 0, &e->gamma},
		{t->beta, bert ? row : 0, &e->beta},
	};
	uint64_t bytes = 0;

	for (const auto &x : table)
		bytes += tokg_align(x.bytes, TOKG_PAGE);
	if (!gpu_memory(c, &c->tables, bytes, "the tables", why))
		return false;
	bytes = 0;
	for (const auto &x : table) {
		uint8_t *const to = (uint8_t *)c->tables + bytes;

		if (x.bytes == 0)
			continue;
		if (!good(c, cudaMemcpy(to, x.from, x.bytes, cudaMemcpyHostToDevice),
			    "copying the tables", why))
			return false;
		*x.to = to;
		bytes += tokg_align(x.bytes, TOKG_PAGE);
	}
	e->kind = t->kind;
	e->dtype = t->dtype;
	e->dim = t->dim;
	e->row_bytes = (uint32_t)row;
	e->n_ids = t->n_ids;
	e->n_positions = t->n_positions;
	e->epsilon = t->epsilon;
	return true;
}

/* What the consumer keeps for itself. */
bool
scratch_get(cuda_device *c, struct tokg_error *why)
{
	const uint64_t slots = (uint64_t)c->d.geometry.producers * c->d.geometry.slots;
	struct tokg_consumer *const k = &c->consumer;
	const uint64_t seen = tokg_align(sizeof(*k->work), TOKG_PAGE);
	const uint64_t states = tokg_align(seen + slots * sizeof(*k->seen), TOKG_PAGE);
	const uint64_t parts = tokg_align(states + slots * sizeof(*k->slots), TOKG_PAGE);
	const uint64_t end = parts + c->d.geometry.slot_bytes / TOKD_RING_ALIGN * sizeof(*k->parts);

	if (!gpu_memory(c, &c->scratch, end, "the work queue", why) ||
		!gpu_memory(c, &c->reserved, sizeof(uint64_t), "a counter", why))
		return false;
	uint8_t *const at = (uint8_t *)c->scratch;

	k->work = (struct tokg_work *)at;
	k->seen = (uint64_t *)(at + seen);
	k->slots = (struct tokg_state *)(at + states);
	k->parts = (struct tokg_part *)(at + parts);
	k->outbox_reserved = (uint64_t *)c->reserved;
	c->scratch_zero = parts;
	return true;
}

/* Does its memory keep the order of a NIC's writes for a kernel that is running already? */
void
order_ask(cuda_device *c)
{
	struct tokg_device *const d = &c->d;
	int ordering = -1;

	if (cudaDeviceGetAttribute(&ordering, cudaDevAttrGPUDirectRDMAWritesOrdering, c->index) !=
		cudaSuccess)
		ordering = -1;
	d->order = ordering >= cudaGPUDirectRDMAWritesOrderingOwner ? TOKG_ORDER_FAST
								    : TOKG_ORDER_STRICT;
	snprintf(d->order_why, sizeof(d->order_why),
		"GPU memory; gpuDirectRDMAWritesOrdering is %d (%s)", ordering,
		ordering < 0						? "unknown"
		: ordering >= cudaGPUDirectRDMAWritesOrderingAllDevices ? "all devices"
		: ordering >= cudaGPUDirectRDMAWritesOrderingOwner	? "owner"
									: "none");
}

/*
 * The ring in memory of this host, for the GPU to read over its bus: what producers here store by
 * --sink shm. The kernel's accesses to the ring are of system scope, so it needs nothing else for
 * this. Its compare-and-swaps there may not be atomic to the host; no word that it swaps (claims,
 * done) is written by anybody else while it runs.
 */
bool
host_ring_get(cuda_device *c, uint64_t bytes, struct tokg_error *why)
{
	int can = 0;

	if (!good(c, cudaDeviceGetAttribute(&can, cudaDevAttrHostRegisterSupported, c->index),
		    "its attributes", why))
		return false;
	if (!can)
		return tokg_wrong(why,
			       "device cuda:%d: --ring host: it cannot use memory that is shared among "
			       "processes: use --ring gpu",
			       c->index) == 0;
	if (!tokg_memory_get(&c->host_ring, bytes, "tokd-gpu-ring", 0, -1, why))
		return false;
	c->registered = good(c,
		cudaHostRegister(c->host_ring.at, c->host_ring.bytes, cudaHostRegisterMapped),
		"--ring host: giving it the ring's memory", why);
	if (!c->registered || !good(c, cudaHostGetDevicePointer(&c->region, c->host_ring.at, 0),
				      "--ring host: mapping the ring's memory", why))
		return false;
	c->d.region = c->host_ring.at;
	c->d.region_fd = c->host_ring.fd;
	c->d.order = TOKG_ORDER_FAST;
	snprintf(c->d.order_why, sizeof(c->d.order_why), "host memory that the GPU reads, on %s",
		tokg_memory_pages(&c->host_ring));
	return true;
}

/* What a NIC writes into: copies and fills of it that say that they are synchronous, are. */
bool
sync_memops(cuda_device *c, struct tokg_error *why)
{
	const set_attribute_fn set = (set_attribute_fn)driver_function("cuPointerSetAttribute");
	unsigned int on = 1;
	const CUresult e =
		set == NULL ? CUDA_ERROR_NOT_SUPPORTED
			    : set(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, (CUdeviceptr)c->region);

	return e == CUDA_SUCCESS ||
	       tokg_wrong(why, "device cuda:%d: the ring's SYNC_MEMOPS cannot be set: error %d",
		       c->index, (int)e) == 0;
}

/* For a NIC: -1 where GPU or driver cannot. */
int
dmabuf_get(cuda_device *c, uint64_t bytes)
{
	const get_handle_fn get = (get_handle_fn)driver_function("cuMemGetHandleForAddressRange");
	int fd = -1;

	if (get == NULL || get(&fd, (CUdeviceptr)c->region, bytes,
				   CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0) != CUDA_SUCCESS)
		return -1;
	return fd;
}

/* As many as asked for, if they are resident together. */
bool
workers_count(cuda_device *c, uint32_t asked, struct tokg_error *why)
{
	int of_one = 0, processors = 0;
	int64_t most;

	if (!good(c,
		    cudaOccupancyMaxActiveBlocksPerMultiprocessor(
			    &of_one, tokg_consume, TOKG_BLOCK, 0),
		    "occupancy of the kernel", why) ||
		!good(c,
			cudaDeviceGetAttribute(
				&processors, cudaDevAttrMultiProcessorCount, c->index),
			"number of multiprocessors", why))
		return false;
	most = (int64_t)of_one * processors - 1;
	if (most > BLOCKS_MAX)
		most = BLOCKS_MAX;
	if (asked == TOKG_WORKERS_DEFAULT)
		asked = processors - 1 < most ? (uint32_t)(processors - 1) : (uint32_t)most;
	if (most < 1 || asked > most)
		return tokg_wrong(why,
			       "device cuda:%d: %u workers, it holds %lld beside the scanner",
			       c->index, asked, (long long)most) == 0;
	c->workers = asked > 0 ? asked : (uint32_t)most;
	return true;
}

int
cuda_write_u64(struct tokg_device *d, uint64_t offset, uint64_t value)
{
	cuda_device *const c = (cuda_device *)d;

	if (d->region != NULL)
		return tokg_mapped_write_u64(d, offset, value);
	tokg_owner_lives(d);
	if (!tokg_in_region(d, offset, sizeof(value)) || cudaSetDevice(c->index) != cudaSuccess)
		return -1;
	if (c->write_value(c->io, (CUdeviceptr)c->region + offset, value,
		    CU_STREAM_WRITE_VALUE_DEFAULT) != CUDA_SUCCESS)
		return -1;
	return cudaStreamSynchronize(c->io) == cudaSuccess ? 0 : -1;
}

/* Beside the kernel that runs: on another stream, through pinned memory. */
int
copy_out(cuda_device *c, const void *from, void *to, size_t bytes)
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

int
cuda_read(struct tokg_device *d, uint64_t offset, void *to, size_t bytes)
{
	cuda_device *const c = (cuda_device *)d;

	if (d->region != NULL)
		return tokg_mapped_read(d, offset, to, bytes);
	if (!tokg_in_region(d, offset, bytes))
		return -1;
	return copy_out(c, (const uint8_t *)c->region + offset, to, bytes);
}

int
cuda_read_outputs(struct tokg_device *d, uint64_t offset, void *to, size_t bytes)
{
	cuda_device *const c = (cuda_device *)d;

	if (!tokg_in_outputs(d, offset, bytes))
		return -1;
	return copy_out(c, (const uint8_t *)c->outputs + offset, to, bytes);
}

int
cuda_taken(struct tokg_device *d, uint64_t *n)
{
	cuda_device *const c = (cuda_device *)d;

	return copy_out(c, c->reserved, n, sizeof(*n));
}

/* `stop` and `incarnation` are one aligned word. */
int
stop_write(cuda_device *c, enum tokg_stop how)
{
	static_assert(offsetof(struct tokg_ctl, stop) % 8 == 0 &&
			      offsetof(struct tokg_ctl, incarnation) ==
				      offsetof(struct tokg_ctl, stop) + 4,
		"written as one word");
	return cuda_write_u64(&c->d, offsetof(struct tokg_ctl, stop),
		(uint32_t)how | (uint64_t)c->d.incarnation << 32);
}

uint64_t
host_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int
cuda_stop(struct tokg_device *d, enum tokg_stop how, uint32_t timeout_ms, struct tokg_error *why)
{
	const struct timespec nap = {0, 200000};
	cuda_device *const c = (cuda_device *)d;
	const uint64_t until = host_ms() + timeout_ms;
	cudaError_t e;

	if (!c->running)
		return 0;
	if (!good(c, cudaSetDevice(c->index), "choosing it", why))
		return -1;
	if (stop_write(c, how) < 0)
		return tokg_wrong(why, "device cuda:%d: the stop word cannot be written: %s",
			c->index, cudaGetErrorString(cudaGetLastError()));
	while ((e = cudaStreamQuery(c->kernel)) == cudaErrorNotReady) {
		if (host_ms() > until)
			return tokg_wrong(why, "device cuda:%d: the kernel runs on after %u ms",
				c->index, timeout_ms);
		nanosleep(&nap, NULL);
	}
	if (!good(c, e, "the kernel failed, and with it all GPU memory of this process", why))
		return -1;
	c->running = false;
	return 0;
}

/* Words of both halves: `epoch` is the agent's, and stays. */
bool
incarnation_write(cuda_device *c, uint32_t incarnation)
{
	for (uint32_t p = 0; p < c->d.geometry.producers; p++) {
		const uint64_t at =
			tokg_back_at(&c->d.geometry, p) + offsetof(struct tokg_back, epoch);
		uint64_t word;

		if (cuda_read(&c->d, at, &word, sizeof(word)) < 0 ||
			cuda_write_u64(&c->d, at, (uint32_t)word | (uint64_t)incarnation << 32) < 0)
			return false;
	}
	return true;
}

int
cuda_start(struct tokg_device *d, uint32_t incarnation, struct tokg_error *why)
{
	cuda_device *const c = (cuda_device *)d;
	void *arguments[] = {&c->consumer};
	uint64_t reserved = 0;

	if (c->running)
		return tokg_wrong(
			why, "consumer: incarnation %u runs, stop it first", d->incarnation);
	if (!tokg_incarnation_right(d, incarnation, why) ||
		!good(c, cudaSetDevice(c->index), "choosing it", why) ||
		!good(c, cudaMemsetAsync(c->scratch, 0, c->scratch_zero, c->kernel),
			"clearing the work queue", why) ||
		!good(c,
			cudaMemcpyAsync(c->staging, c->reserved, sizeof(reserved),
				cudaMemcpyDeviceToHost, c->kernel),
			"reading the outbox", why) ||
		!good(c, cudaStreamSynchronize(c->kernel), "clearing the work queue", why))
		return -1;
	memcpy(&reserved, c->staging, sizeof(reserved));
	tokg_outbox_repair(c->outbox, reserved);
	d->incarnation = c->consumer.incarnation = incarnation;
	if (!incarnation_write(c, incarnation) || stop_write(c, TOKG_RUN) < 0)
		return tokg_wrong(why, "device cuda:%d: the region cannot be written: %s", c->index,
			cudaGetErrorString(cudaGetLastError()));
	if (!good(c,
		    cudaLaunchCooperativeKernel((void *)tokg_consume, 1 + c->workers, TOKG_BLOCK,
			    arguments, 0, c->kernel),
		    "starting the kernel", why))
		return -1;
	c->running = true;
	return 0;
}

/* A kernel that does not end keeps its memory: giving it back would wait for it. */
void
cuda_close(struct tokg_device *d)
{
	cuda_device *const c = (cuda_device *)d;
	struct tokg_error ignored;

	if (cuda_stop(d, TOKG_STOP_NOW, 10000, &ignored) < 0)
		return;
	if (d->region_dmabuf >= 0)
		close(d->region_dmabuf);
	for (void *m : {c->device_ring, c->outputs, c->tables, c->scratch, c->reserved})
		cudaFree(m);
	if (c->registered)
		cudaHostUnregister(c->host_ring.at);
	tokg_memory_free(&c->host_ring);
	cudaFreeHost(d->scan_times);
	cudaFreeHost(c->outbox);
	cudaFreeHost(c->staging);
	if (c->kernel != NULL)
		cudaStreamDestroy(c->kernel);
	if (c->io != NULL)
		cudaStreamDestroy(c->io);
	free(c);
}

const struct tokg_device_ops cuda_ops = {
	"cuda",
	cuda_start,
	cuda_stop,
	cuda_write_u64,
	cuda_read,
	cuda_read_outputs,
	cuda_taken,
	cuda_close,
};

/* With these the agent waits for the kernel, which does not end. Read by the driver when it is
 * first called. */
bool
environment_right(int index, struct tokg_error *why)
{
	const char *const blocking = getenv("CUDA_LAUNCH_BLOCKING");
	const char *const connections = getenv("CUDA_DEVICE_MAX_CONNECTIONS");

	if (blocking != NULL && atoi(blocking) != 0)
		return tokg_wrong(why,
			       "device cuda:%d: CUDA_LAUNCH_BLOCKING=%.20s: its kernel stays, and the "
			       "launch would never return: unset it",
			       index, blocking) == 0;
	if (connections != NULL && atoi(connections) == 1)
		return tokg_wrong(why,
			       "device cuda:%d: CUDA_DEVICE_MAX_CONNECTIONS=1: copies would wait "
			       "behind its kernel, which stays: unset it, or set it to 2 or more",
			       index) == 0;
	return true;
}

bool
gpu_choose(cuda_device *c, struct tokg_error *why)
{
	int n = 0, cooperative = 0;

	if (!tokg_device_cuda_there(c->index, why) ||
		!good(c, cudaGetDeviceCount(&n), "looking for GPUs", why))
		return false;
	if (c->index < 0 || c->index >= n)
		return tokg_wrong(why, "device cuda:%d: this machine has GPUs 0 to %d", c->index,
			       n - 1) == 0;
	if (!good(c, cudaSetDevice(c->index), "choosing it", why) ||
		!good(c,
			cudaDeviceGetAttribute(
				&cooperative, cudaDevAttrCooperativeLaunch, c->index),
			"its attributes", why))
		return false;
	c->write_value = (write_value_fn)driver_function("cuStreamWriteValue64");
	if (!cooperative || c->write_value == NULL)
		return tokg_wrong(why, "device cuda:%d: GPU or driver is too old: it needs %s",
			       c->index,
			       cooperative ? "cuStreamWriteValue64" : "cooperative launches") == 0;
	return good(c, cudaStreamCreateWithFlags(&c->kernel, cudaStreamNonBlocking), "a stream",
		       why) &&
	       good(c, cudaStreamCreateWithFlags(&c->io, cudaStreamNonBlocking), "a stream", why);
}

bool
outbox_get(cuda_device *c, struct tokg_error *why)
{
	const uint64_t n = tokg_outbox_size(&c->d.geometry);
	const uint64_t bytes = sizeof(*c->outbox) + n * sizeof(struct tokg_out_entry);
	void *on_gpu;

	if (!good(c, cudaHostAlloc((void **)&c->outbox, bytes, cudaHostAllocMapped),
		    "pinned memory for the outbox", why) ||
		!good(c, cudaHostAlloc(&c->staging, STAGING_BYTES, cudaHostAllocDefault),
			"pinned memory", why) ||
		!good(c, cudaHostGetDevicePointer(&on_gpu, c->outbox, 0), "mapping the outbox",
			why))
		return false;
	memset(c->outbox, 0, bytes);
	c->outbox->n = n;
	c->consumer.outbox = (struct tokg_out_entry *)((struct tokg_outbox *)on_gpu + 1);
	c->consumer.outbox_mask = n - 1;
	c->consumer.owner = &((struct tokg_outbox *)on_gpu)->owner;
	return true;
}

bool
scan_times_get(cuda_device *c, struct tokg_error *why)
{
	struct tokg_device *const d = &c->d;

	if (!good(c,
		    cudaHostAlloc(
			    (void **)&d->scan_times, sizeof(*d->scan_times), cudaHostAllocMapped),
		    "pinned memory for times", why))
		return false;
	memset(d->scan_times, 0, sizeof(*d->scan_times));
	return good(c, cudaHostGetDevicePointer((void **)&c->consumer.scan_times, d->scan_times, 0),
		"mapping the times", why);
}

bool
device_ring_get(cuda_device *c, uint64_t bytes, struct tokg_error *why)
{
	if (!gpu_memory(c, &c->device_ring, bytes, "the ring", why))
		return false;
	c->region = c->device_ring;
	c->d.region_dmabuf = dmabuf_get(c, bytes);
	order_ask(c);
	return sync_memops(c, why);
}

bool
region_get(cuda_device *c, const struct tokg_device_config *g, struct tokg_error *why)
{
	const uint64_t bytes = tokg_align(g->geometry.region_bytes, EXPORT_ALIGN);
	const uint64_t out =
		tokg_align(g->geometry.producers * g->geometry.out_bytes, EXPORT_ALIGN);
	struct tokg_ctl ctl = tokg_ctl_make(g);
	cudaIpcMemHandle_t ipc;

	if (!(g->host_ring ? host_ring_get(c, bytes, why) : device_ring_get(c, bytes, why)) ||
		!gpu_memory(c, &c->outputs, out, "the outputs", why))
		return false;
	ctl.magic = TOKG_MAGIC;
	if (!good(c, cudaMemcpy(c->region, &ctl, sizeof(ctl), cudaMemcpyDefault),
		    "writing the ring's first page", why))
		return false;
	static_assert(sizeof(ipc) == sizeof(c->d.ipc), "a handle is 64 bytes");
	/* Some systems have none: ipc stays 0, by which the agent knows that no holder can come. */
	if (cudaIpcGetMemHandle(&ipc, c->outputs) == cudaSuccess)
		memcpy(c->d.ipc, &ipc, sizeof(ipc));
	else
		(void)cudaGetLastError();
	c->d.region_address = (uint64_t)(uintptr_t)(c->d.region != NULL ? c->d.region : c->region);
	c->d.outputs = c->outputs;
	return true;
}

} // namespace

extern "C" bool
tokg_device_cuda_there(int index, struct tokg_error *why)
{
	int n = 0;
	const cudaError_t e = cudaGetDeviceCount(&n);

	if (e == cudaErrorInsufficientDriver)
		return tokg_wrong(why,
			       "device cuda:%d: no NVIDIA driver is loaded, or it is older than CUDA "
			       "%d.%d needs: see nvidia-smi, or use the device cpu",
			       index, CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10) == 0;
	if (e == cudaErrorNoDevice)
		return tokg_wrong(why,
			       "device cuda:%d: this machine has no GPU: see nvidia-smi, or use the "
			       "device cpu",
			       index) == 0;
	return true;
}

extern "C" struct tokg_device *
tokg_device_cuda(const struct tokg_device_config *g, struct tokg_error *why)
{
	cuda_device *c;

	if (!tokg_config_proved(g, why) || !environment_right(g->index, why))
		return NULL;
	c = (cuda_device *)calloc(1, sizeof(*c));
	if (c == NULL) {
		tokg_wrong(why, "device: out of memory");
		return NULL;
	}
	c->d.ops = &cuda_ops;
	c->d.geometry = g->geometry;
	c->d.region_fd = c->d.region_dmabuf = c->d.outputs_fd = -1;
	c->host_ring = tokg_memory_none();
	c->index = g->index;
	if (!gpu_choose(c, why) || !workers_count(c, g->workers, why) || !region_get(c, g, why) ||
		!outbox_get(c, why) || (g->time_scans && !scan_times_get(c, why)) ||
		!tables_copy(c, &g->tables, why) || !scratch_get(c, why) ||
		!good(c, cudaDeviceSynchronize(), "setting it up", why)) {
		cuda_close(&c->d);
		return NULL;
	}
	c->d.outbox = c->outbox;
	c->consumer.g = g->geometry;
	c->consumer.region = (uint8_t *)c->region;
	c->consumer.outputs = (uint8_t *)c->outputs;
	c->consumer.owner_limit_ns = tokg_owner_limit_ns(g);
	c->consumer.workers = c->workers;
	c->consumer.rows = ROWS_OF_JOB;
	c->consumer.heads = g->heads;
	return &c->d;
}
