/* SPDX-License-Identifier: BSD-3-Clause */
#include "fake_cuda.h"

#include <stdlib.h>
#include <string.h>

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "test.h"

#define KERNELS_MAX 16
#define QUERIES_LATE 3 /* after its stop, until a kernel has ended */

struct fake_cuda fake;

static const void *loaded[KERNELS_MAX];
static uint32_t n_loaded, queries;
static cudaStream_t kernel_stream, captured;

static cudaError_t
result(cudaError_t e)
{
	if (e != cudaSuccess)
		fake.last = e;
	return e;
}

static bool
runs(void)
{
	return fake.stop != NULL && *fake.stop == 0;
}

/* In calls that may not be made in a capture. */
static void
no_capture(const char *call)
{
	if (captured != NULL)
		fail_msg("%s in a capture", call);
}

/* In calls that may wait for all that runs on the GPU. */
static void
waits(const char *call)
{
	no_capture(call);
	if (runs())
		fail_msg("%s would wait for the kernel", call);
}

static void
waits_for(cudaStream_t stream, const char *call)
{
	no_capture(call);
	if (stream == kernel_stream || stream == cudaStreamLegacy || stream == NULL)
		waits(call);
}

static cudaError_t
allocated(void **to, size_t bytes)
{
	*to = calloc(1, bytes + 1);
	fake.allocations++;
	return cudaSuccess;
}

static cudaError_t
freed(void *memory)
{
	if (memory != NULL)
		fake.allocations--;
	free(memory);
	return cudaSuccess;
}

/* Kernels. What nvcc has a program say about itself at its start, and launches by <<<>>>: unused.
 */

void **
__cudaRegisterFatBinary(void *binary)
{
	static void *handle;

	return &handle;
}

void
__cudaRegisterFatBinaryEnd(void **handle)
{
}

void
__cudaUnregisterFatBinary(void **handle)
{
}

void
__cudaRegisterFunction(void)
{
}

void
__cudaGetKernel(void)
{
	abort();
}

void
__cudaLaunchKernel(void)
{
	abort();
}

void
__cudaPopCallConfiguration(void)
{
	abort();
}

static bool
is_loaded(const void *kernel)
{
	for (uint32_t i = 0; i < n_loaded; i++)
		if (loaded[i] == kernel)
			return true;
	return false;
}

/* Loading may wait for what runs. */
static void
load(const void *kernel, const char *call)
{
	if (is_loaded(kernel))
		return;
	waits(call);
	assert_true(n_loaded < KERNELS_MAX);
	loaded[n_loaded++] = kernel;
}

cudaError_t
cudaFuncGetAttributes(struct cudaFuncAttributes *a, const void *kernel)
{
	load(kernel, __func__);
	memset(a, 0, sizeof(*a));
	return cudaSuccess;
}

cudaError_t
cudaOccupancyMaxActiveBlocksPerMultiprocessor(
	int *blocks, const void *kernel, int threads, size_t shared)
{
	load(kernel, __func__);
	*blocks = 2;
	return cudaSuccess;
}

static cudaError_t
launched(cudaStream_t stream)
{
	kernel_stream = stream;
	queries = 0;
	fake.stop = fake.stop_of_ring;
	fake.launches++;
	return cudaSuccess;
}

cudaError_t
cudaLaunchCooperativeKernel(const void *kernel, dim3 grid, dim3 block, void **arguments,
	size_t shared, cudaStream_t stream)
{
	load(kernel, __func__);
	waits(__func__);
	return launched(stream);
}

/* Only in a capture. */
cudaError_t
cudaLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **arguments, size_t shared,
	cudaStream_t stream)
{
	assert_ptr_equal(stream, captured);
	assert_true(is_loaded(kernel));
	return cudaSuccess;
}

/* Graphs. */

cudaError_t
cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
	waits(__func__);
	assert_int_equal(mode, cudaStreamCaptureModeThreadLocal);
	captured = stream;
	return cudaSuccess;
}

cudaError_t
cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
	assert_ptr_equal(stream, captured);
	captured = NULL;
	fake.graphs++;
	*graph = malloc(1);
	return cudaSuccess;
}

cudaError_t
cudaGraphInstantiate(cudaGraphExec_t *executable, cudaGraph_t graph, unsigned long long flags)
{
	bool *const uploaded = calloc(1, sizeof(*uploaded));

	waits(__func__);
	assert_int_equal(flags, cudaGraphInstantiateFlagDeviceLaunch);
	*executable = (cudaGraphExec_t)(void *)uploaded;
	fake.executables++;
	return cudaSuccess;
}

cudaError_t
cudaGraphUpload(cudaGraphExec_t executable, cudaStream_t stream)
{
	waits(__func__);
	*(bool *)(void *)executable = true;
	fake.uploads++;
	return cudaSuccess;
}

cudaError_t
cudaGraphDestroy(cudaGraph_t graph)
{
	free(graph);
	fake.graphs--;
	return cudaSuccess;
}

cudaError_t
cudaGraphExecDestroy(cudaGraphExec_t executable)
{
	waits(__func__);
	free(executable);
	fake.executables--;
	return cudaSuccess;
}

cudaError_t
cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream)
{
	waits(__func__);
	assert_true(*(bool *)(void *)executable);
	return launched(stream);
}

/* Memory. */

cudaError_t
cudaMalloc(void **to, size_t bytes)
{
	waits(__func__);
	return allocated(to, bytes);
}

cudaError_t
cudaHostAlloc(void **to, size_t bytes, unsigned int flags)
{
	waits(__func__);
	return allocated(to, bytes);
}

cudaError_t
cudaFree(void *memory)
{
	waits(__func__);
	return freed(memory);
}

cudaError_t
cudaFreeHost(void *memory)
{
	waits(__func__);
	return freed(memory);
}

cudaError_t
cudaMemGetInfo(size_t *left, size_t *all)
{
	*left = *all = 1 << 30;
	return cudaSuccess;
}

cudaError_t
cudaHostRegister(void *memory, size_t bytes, unsigned int flags)
{
	waits(__func__);
	return result(fake.no_register ? cudaErrorNotSupported : cudaSuccess);
}

cudaError_t
cudaHostUnregister(void *memory)
{
	waits(__func__);
	return cudaSuccess;
}

cudaError_t
cudaHostGetDevicePointer(void **on_gpu, void *memory, unsigned int flags)
{
	*on_gpu = memory;
	return cudaSuccess;
}

cudaError_t
cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
	waits(__func__);
	memcpy(to, from, bytes);
	return cudaSuccess;
}

cudaError_t
cudaMemset(void *to, int byte, size_t bytes)
{
	waits(__func__);
	memset(to, byte, bytes);
	return cudaSuccess;
}

cudaError_t
cudaMemcpyAsync(
	void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream)
{
	waits_for(stream, __func__);
	memcpy(to, from, bytes);
	return cudaSuccess;
}

cudaError_t
cudaMemsetAsync(void *to, int byte, size_t bytes, cudaStream_t stream)
{
	waits_for(stream, __func__);
	memset(to, byte, bytes);
	return cudaSuccess;
}

cudaError_t
cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *memory)
{
	return result(cudaErrorNotSupported);
}

/* Streams. */

cudaError_t
cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags)
{
	assert_int_equal(flags, cudaStreamNonBlocking);
	*stream = malloc(1);
	fake.streams++;
	return cudaSuccess;
}

cudaError_t
cudaStreamDestroy(cudaStream_t stream)
{
	free(stream);
	fake.streams--;
	return cudaSuccess;
}

cudaError_t
cudaStreamSynchronize(cudaStream_t stream)
{
	waits_for(stream, __func__);
	return cudaSuccess;
}

cudaError_t
cudaStreamQuery(cudaStream_t stream)
{
	no_capture(__func__);
	assert_ptr_equal(stream, kernel_stream);
	if (runs() || queries++ < QUERIES_LATE)
		return result(cudaErrorNotReady);
	fake.stop = NULL;
	return cudaSuccess;
}

/* The GPU, its driver, errors. */

cudaError_t
cudaGetDeviceCount(int *n)
{
	*n = 1;
	return cudaSuccess;
}

cudaError_t
cudaSetDevice(int index)
{
	assert_int_equal(index, 0);
	return cudaSuccess;
}

cudaError_t
cudaGetDeviceProperties(struct cudaDeviceProp *p, int index)
{
	memset(p, 0, sizeof(*p));
	return cudaSuccess;
}

cudaError_t
cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr which, int index)
{
	switch ((int)which) {
	case cudaDevAttrMultiProcessorCount:
		*value = 4;
		return cudaSuccess;
	case cudaDevAttrCooperativeLaunch:
	case cudaDevAttrHostRegisterSupported:
		*value = 1;
		return cudaSuccess;
	case cudaDevAttrKernelExecTimeout:
		*value = 0;
		return cudaSuccess;
	case cudaDevAttrMpsEnabled:
	case cudaDevAttrGPUDirectRDMAWritesOrdering:
		if (fake.old_driver)
			return result(cudaErrorInvalidValue);
		*value = 0;
		return cudaSuccess;
	}
	fail_msg("attribute %d is not known here", which);
	return cudaErrorInvalidValue;
}

static CUresult
write_value(CUstream stream, CUdeviceptr at, uint64_t value, unsigned int flags)
{
	waits_for(stream, __func__);
	__atomic_store_n((uint64_t *)(uintptr_t)at, value, __ATOMIC_RELEASE);
	return CUDA_SUCCESS;
}

static CUresult
set_attribute(const void *value, CUpointer_attribute which, CUdeviceptr memory)
{
	assert_int_equal(which, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS);
	return CUDA_SUCCESS;
}

cudaError_t
cudaGetDriverEntryPointByVersion(const char *name, void **to, unsigned int version,
	unsigned long long flags, enum cudaDriverEntryPointQueryResult *found)
{
	*found = cudaDriverEntryPointSuccess;
	if (strcmp(name, "cuStreamWriteValue64") == 0)
		*to = (void *)write_value;
	else if (strcmp(name, "cuPointerSetAttribute") == 0)
		*to = (void *)set_attribute;
	else
		return result(cudaErrorSymbolNotFound); /* no dma-buf */
	return cudaSuccess;
}

cudaError_t
cudaGetLastError(void)
{
	const cudaError_t e = (cudaError_t)fake.last;

	fake.last = cudaSuccess;
	return e;
}

const char *
cudaGetErrorString(cudaError_t e)
{
	return e == cudaErrorNotSupported ? "operation not supported" : "an error";
}
