/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The device on a GPU: the ring in GPU memory, the consumer as a persistent kernel, or as graphs
 * (graphs_cuda.cu). Set-up only; consumer.cuh has the hot path. Linked with the static runtime,
 * which loads the driver on first use: the program also starts without a driver, and reports that
 * here.
 *
 * nvcc -std=c++17 -O3 -arch=sm_90 -I../../../include -I.. -I../../tokenizer -c device_cuda.cu
 */
#include <stdlib.h>
#include <time.h>

#include "device_cuda.h"
#include "engine.cuh"

/*
 * Blocks of a multiprocessor: one waits for memory while the other computes. The compiler then has
 * 128 registers for a thread, and must not need more: see tests/cli/gpu/test_disassembly.py.
 */
#define BLOCKS_EACH 2
#define BLOCKS_MAX 1024 /* workers; at most the lines of the queue */
/*
 * Under MPS there is one worker for every MPS_SHARE multiprocessors. A kernel that multiplies
 * matrices needs nearly all registers of a multiprocessor, so it never starts beside a worker.
 */
#define MPS_SHARE 4
/*
 * Rows of a job: as many as give each worker one job of a slot of ROWS_SHARED rows. At least a row
 * for each team of the block; at most ROWS_MAX, so that the last worker is not late.
 */
#define ROWS_SHARED 2048
#define ROWS_MIN (TOKG_BLOCK / 32)
#define ROWS_MAX 64

static_assert(BLOCKS_MAX <= TOKG_QUEUE, "each worker waits at a line of its own");

union block_shared {
	tokg_scan scan;
	tokg_hand hand;
};

/*
 * Block 0 scans, the last one is the engine if there are lanes, the others work. A cooperative
 * launch fails unless all blocks are resident.
 *
 * TEXT is a kernel of its own, for those who have a vocabulary. It needs some more than 128
 * registers, so one block is on a multiprocessor.
 */
template <bool TEXT>
__global__ void
__launch_bounds__(TOKG_BLOCK, TEXT ? 1 : BLOCKS_EACH)
	tokg_consume(const __grid_constant__ tokg_consumer c)
{
	__shared__ alignas(16) uint8_t bytes[sizeof(block_shared)];
	block_shared *const shared = (block_shared *)bytes;
	tokg_block b = tokg_block_here(TEXT);

	if (blockIdx.x == 0)
		tokg_scanner(&c, &b, &shared->scan);
	else if (blockIdx.x > c.workers)
		tokg_engine(&c, &b);
	else
		tokg_worker(&c, &b, &shared->hand);
}

namespace
{

const void *
kernel_of(const struct tokg_cuda *c)
{
	return c->consumer.text_view != NULL ? (const void *)tokg_consume<true>
					     : (const void *)tokg_consume<false>;
}

/* What the agent logs. A kernel that stays takes its turn for ever, unless MPS runs others beside
 * it. */
void
sharing_tell(struct tokg_cuda *c, bool shared, int processors)
{
	char *const to = c->d.sharing;
	const size_t room = sizeof(c->d.sharing);
	const char *const pipes = getenv("CUDA_MPS_PIPE_DIRECTORY");

	if (shared && c->as_graphs)
		snprintf(to, room,
			"MPS runs kernels of other processes beside the scheduler's block and the "
			"graphs that it launches");
	else if (shared)
		snprintf(to, room,
			"MPS runs kernels of other processes beside the %u blocks on %d "
			"multiprocessors",
			c->workers + 1, processors);
	else
		snprintf(to, room,
			"without MPS kernels of other processes wait for their time slice, and the "
			"consumer for its own: if subscribers compute on this GPU, start "
			"nvidia-cuda-mps-control, then tokd-gpu and them, as one user, all with "
			"CUDA_MPS_PIPE_DIRECTORY=%.64s",
			pipes != NULL ? pipes : "/tmp/nvidia-mps");
}

/* The number of workers: as requested, if all are resident at the same time. */
bool
workers_count(struct tokg_cuda *c, uint32_t asked, struct tokg_error *err)
{
	const bool shared = tokg_cuda_attribute(c->index, cudaDevAttrMpsEnabled, 0) != 0;
	int of_one = 0, processors = 0;
	const void *const kernel = c->as_graphs ? tokg_graphs_kernel() : kernel_of(c);
	int64_t most;

	if (!tokg_cuda_good(c,
		    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&of_one, kernel, TOKG_BLOCK, 0),
		    "occupancy of the kernel", err) ||
		!tokg_cuda_good(c,
			cudaDeviceGetAttribute(
				&processors, cudaDevAttrMultiProcessorCount, c->index),
			"number of multiprocessors", err))
		return false;
	const int64_t others = 1 + (c->d.geometry.lanes > 0);

	most = (int64_t)of_one * processors - others;
	if (most > BLOCKS_MAX)
		most = BLOCKS_MAX;
	if (asked == TOKG_WORKERS_DEFAULT) {
		const int64_t few = processors >= MPS_SHARE ? processors / MPS_SHARE : 1;
		const int64_t wanted = shared ? few : (int64_t)BLOCKS_EACH * processors - others;

		asked = (uint32_t)(wanted < most ? wanted : most);
	}
	if (most < 1 || asked > most)
		return tokg_wrong(err,
			"device cuda:%d: %u workers, it holds %lld beside the scanner", c->index,
			asked, (long long)most);
	c->workers = asked > 0 ? asked : (uint32_t)most;
	sharing_tell(c, shared, processors);
	return true;
}

uint32_t
rows_of_job(uint32_t workers)
{
	const uint32_t even = (ROWS_SHARED + workers - 1) / workers;

	return even < ROWS_MIN ? ROWS_MIN : even > ROWS_MAX ? ROWS_MAX : even;
}

/* Reports an error of the runtime or of the driver, whichever is not 0. */
int
unwritable(const struct tokg_cuda *c, const char *what, struct tokg_error *err)
{
	tokg_wrong(err, "device cuda:%d: %s cannot be written: %s; cuStreamWriteValue64: error %d",
		c->index, what, cudaGetErrorString(cudaGetLastError()), (int)c->write_error);
	return -1;
}

/* `stop` and `incarnation` share an aligned word. */
int
stop_write(struct tokg_cuda *c, enum tokg_stop how)
{
	static_assert(offsetof(struct tokg_ctl, stop) % 8 == 0 &&
			      offsetof(struct tokg_ctl, incarnation) ==
				      offsetof(struct tokg_ctl, stop) + 4,
		"written as one word");
	return tokg_cuda_write_u64(&c->d, offsetof(struct tokg_ctl, stop),
		(uint32_t)how | (uint64_t)c->d.incarnation << 32);
}

uint64_t
host_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* A stop is asked for again until it succeeds: a failure must not be forgotten meanwhile. */
int
ended(const struct tokg_cuda *c, struct tokg_error *err)
{
	if (c->failure.text[0] == '\0')
		return 0;
	*err = c->failure;
	return -1;
}

int
cuda_stop(struct tokg_device *d, enum tokg_stop how, uint32_t timeout_ms, struct tokg_error *err)
{
	const struct timespec nap = {0, 200000};
	struct tokg_cuda *const c = (struct tokg_cuda *)d;
	const uint64_t until = host_ms() + timeout_ms;
	cudaError_t e;

	if (!c->running)
		return ended(c, err);
	if (!tokg_cuda_good(c, cudaSetDevice(c->index), "choosing it", err))
		return -1;
	if (stop_write(c, how) < 0)
		return unwritable(c, "the stop word", err);
	while ((e = cudaStreamQuery(c->kernel)) == cudaErrorNotReady) {
		(void)cudaGetLastError(); /* else the next launch would seem to fail with it */
		if (host_ms() > until) {
			tokg_wrong(err, "device cuda:%d: the kernel runs on after %u ms", c->index,
				timeout_ms);
			return -1;
		}
		nanosleep(&nap, NULL);
	}
	if (!tokg_cuda_good(
		    c, e, "the kernel failed, and with it all GPU memory of this process", err))
		return -1;
	c->running = false;
	if (c->as_graphs && !tokg_graphs_ended(c, err))
		c->failure = *err;
	return ended(c, err);
}

/* Writes the whole word; the agent's `epoch` in it is kept. */
bool
incarnation_write(struct tokg_cuda *c, uint32_t incarnation)
{
	for (uint32_t p = 0; p < c->d.geometry.producers; p++) {
		const uint64_t at =
			tokg_back_at(&c->d.geometry, p) + offsetof(struct tokg_back, epoch);
		uint64_t word;

		if (tokg_cuda_read(&c->d, at, &word, sizeof(word)) < 0 ||
			tokg_cuda_write_u64(
				&c->d, at, (uint32_t)word | (uint64_t)incarnation << 32) < 0)
			return false;
	}
	return true;
}

int
cuda_start(struct tokg_device *d, uint32_t incarnation, struct tokg_error *err)
{
	struct tokg_cuda *const c = (struct tokg_cuda *)d;
	const uint32_t blocks = 1 + c->workers + (c->d.geometry.lanes > 0);
	void *arguments[] = {&c->consumer};
	uint64_t reserved = 0;

	if (c->running) {
		tokg_wrong(err, "consumer: incarnation %u runs, stop it first", d->incarnation);
		return -1;
	}
	if (!tokg_incarnation_right(d, incarnation, err) ||
		!tokg_cuda_good(c, cudaSetDevice(c->index), "choosing it", err) ||
		!tokg_cuda_good(c, cudaMemsetAsync(c->scratch, 0, c->scratch_zero, c->kernel),
			"clearing the work queue", err) ||
		!tokg_cuda_good(c,
			cudaMemcpyAsync(c->staging, c->reserved, sizeof(reserved),
				cudaMemcpyDeviceToHost, c->kernel),
			"reading the outbox", err) ||
		!tokg_cuda_good(c, tokg_cuda_done_copy(c), "copying the done words", err) ||
		!tokg_cuda_good(
			c, cudaStreamSynchronize(c->kernel), "clearing the work queue", err))
		return -1;
	memcpy(&reserved, c->staging, sizeof(reserved));
	tokg_outbox_repair(c->outbox, reserved);
	d->incarnation = c->consumer.incarnation = incarnation;
	if (!incarnation_write(c, incarnation) || stop_write(c, TOKG_RUN) < 0)
		return unwritable(c, "the region", err);
	if (c->as_graphs ? !tokg_graphs_start(c, err)
			 : !tokg_cuda_good(c,
				   cudaLaunchCooperativeKernel(kernel_of(c), blocks, TOKG_BLOCK,
					   arguments, 0, c->kernel),
				   "starting the kernel", err))
		return -1;
	c->running = true;
	return 0;
}

/* If the kernel does not end, its memory is not freed: freeing would wait for it. */
bool
cuda_close(struct tokg_device *d)
{
	struct tokg_cuda *const c = (struct tokg_cuda *)d;
	struct tokg_error ignored;

	if (cuda_stop(d, TOKG_STOP_NOW, 10000, &ignored) < 0 && c->running)
		return false;
	tokg_graphs_free(c);
	tokg_cuda_memory_free(c);
	if (c->kernel != NULL)
		cudaStreamDestroy(c->kernel);
	if (c->io != NULL)
		cudaStreamDestroy(c->io);
	free(c);
	return true;
}

const struct tokg_device_ops cuda_ops = {
	"cuda",
	cuda_start,
	cuda_stop,
	tokg_cuda_write_u64,
	tokg_cuda_write_u64_later,
	tokg_cuda_read,
	tokg_cuda_read_outputs,
	tokg_cuda_taken,
	tokg_cuda_renew_made,
	cuda_close,
};

/*
 * With these set, calls would wait for the kernel, which never ends. The driver reads them on its
 * first call.
 */
bool
environment_right(int index, struct tokg_error *err)
{
	const char *const blocking = getenv("CUDA_LAUNCH_BLOCKING");
	const char *const connections = getenv("CUDA_DEVICE_MAX_CONNECTIONS");

	if (blocking != NULL && atoi(blocking) != 0)
		return tokg_wrong(err,
			"device cuda:%d: CUDA_LAUNCH_BLOCKING=%.20s: its kernel stays, and the "
			"launch would never return: unset it",
			index, blocking);
	if (connections != NULL && atoi(connections) == 1)
		return tokg_wrong(err,
			"device cuda:%d: CUDA_DEVICE_MAX_CONNECTIONS=1: copies would wait "
			"behind its kernel, which stays: unset it, or set it to 2 or more",
			index);
	return true;
}

bool
gpu_choose(struct tokg_cuda *c, struct tokg_error *err)
{
	int n = 0, cooperative = 0, limited = 0;
	cudaDeviceProp properties;

	if (!tokg_device_cuda_there(c->index, err) ||
		!tokg_cuda_good(c, cudaGetDeviceCount(&n), "looking for GPUs", err))
		return false;
	if (c->index < 0 || c->index >= n)
		return tokg_wrong(
			err, "device cuda:%d: this machine has GPUs 0 to %d", c->index, n - 1);
	if (!tokg_cuda_good(c, cudaSetDevice(c->index), "choosing it", err) ||
		!tokg_cuda_good(c,
			cudaDeviceGetAttribute(
				&cooperative, cudaDevAttrCooperativeLaunch, c->index),
			"its attributes", err) ||
		!tokg_cuda_good(c,
			cudaDeviceGetAttribute(&limited, cudaDevAttrKernelExecTimeout, c->index),
			"its attributes", err) ||
		!tokg_cuda_good(
			c, cudaGetDeviceProperties(&properties, c->index), "its attributes", err))
		return false;
	if (limited)
		return tokg_wrong(err,
			"device cuda:%d: it has a display, and the driver ends kernels that "
			"run for seconds: use another GPU, or stop the display server",
			c->index);
	static_assert(sizeof(properties.uuid) == sizeof(c->d.uuid), "16 bytes");
	memcpy(c->d.uuid, &properties.uuid, sizeof(c->d.uuid));
	c->write_value = (tokg_cuda_write_fn)tokg_cuda_function("cuStreamWriteValue64");
	if (!cooperative || c->write_value == NULL)
		return tokg_wrong(err, "device cuda:%d: GPU or driver is too old: it needs %s",
			c->index, cooperative ? "cuStreamWriteValue64" : "cooperative launches");
	return tokg_cuda_good(c, cudaStreamCreateWithFlags(&c->kernel, cudaStreamNonBlocking),
		       "a stream", err) &&
	       tokg_cuda_good(c, cudaStreamCreateWithFlags(&c->io, cudaStreamNonBlocking),
		       "a stream", err);
}

} // namespace

extern "C" bool
tokg_device_cuda_built(int, struct tokg_error *)
{
	return true;
}

extern "C" bool
tokg_device_cuda_there(int index, struct tokg_error *err)
{
	int n = 0;
	const cudaError_t e = cudaGetDeviceCount(&n);

	if (e == cudaErrorInsufficientDriver)
		return tokg_wrong(err,
			"device cuda:%d: no NVIDIA driver is loaded, or it is older than CUDA "
			"%d.%d needs: see nvidia-smi, or use the device cpu",
			index, CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
	if (e == cudaErrorNoDevice)
		return tokg_wrong(err,
			"device cuda:%d: this machine has no GPU: see nvidia-smi, or use the "
			"device cpu",
			index);
	return true;
}

extern "C" struct tokg_device *
tokg_device_cuda(const struct tokg_device_config *g, struct tokg_error *err)
{
	struct tokg_cuda *c;

	if (!tokg_config_proved(g, err) || !environment_right(g->index, err))
		return NULL;
	c = (struct tokg_cuda *)calloc(1, sizeof(*c));
	if (c == NULL) {
		tokg_wrong(err, "device: no memory for %zu bytes of its own", sizeof(*c));
		return NULL;
	}
	c->d.ops = &cuda_ops;
	c->d.geometry = g->geometry;
	c->d.region_fd = c->d.region_dmabuf = c->d.outputs_fd = c->d.made_fd = -1;
	c->host_ring = tokg_memory_none();
	c->index = g->index;
	c->consumer.g = g->geometry;
	c->as_graphs = c->consumer.text_by_slot = g->graphs;
	if (!gpu_choose(c, err) || !tokg_cuda_text_view_get(c, g->text_vocab, err) ||
		!workers_count(c, g->workers, err) || !tokg_cuda_memory_get(c, g, err) ||
		!tokg_cuda_good(c, cudaStreamSynchronize(cudaStreamLegacy), "setting it up", err)) {
		cuda_close(&c->d);
		return NULL;
	}
	c->consumer.owner_limit_ns = tokg_owner_limit_ns(g);
	c->consumer.workers = c->workers;
	c->consumer.rows = g->rows_of_job > 0 ? g->rows_of_job : rows_of_job(c->workers);
	c->consumer.heads = g->heads;
	c->consumer.stop_id = g->stop_id;
	return &c->d;
}
