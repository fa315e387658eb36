/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gpu_promises [N]: what GPU N, its driver and this machine say they can do, and what of it they
 * then do, as one JSON object. A thing that does not work is not an error: it is what is to be
 * known. Ends with 77 where there is no GPU or no driver, and says why.
 */
#include <cuda.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <errno.h>
#include <linux/memfd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

#define BYTES (4ull << 20)
#define READS 4096
#define WARM_NS 300000000ull

namespace
{

bool first = true;

void
number(const char *name, double v)
{
	printf("%s\"%s\": %.10g", first ? "" : ", ", name, v);
	first = false;
}

void
text(const char *name, const char *v)
{
	printf("%s\"%s\": \"%s\"", first ? "" : ", ", name, v);
	first = false;
}

/* What came of something that was tried. */
void
tried(const char *name, cudaError_t e)
{
	text(name, e == cudaSuccess ? "works" : cudaGetErrorString(e));
	(void)cudaGetLastError();
}

void *
driver(const char *name)
{
	cudaDriverEntryPointQueryResult found;
	void *f = NULL;

	if (cudaGetDriverEntryPointByVersion(name, &f, 12000, cudaEnableDefault, &found) !=
			cudaSuccess ||
		found != cudaDriverEntryPointSuccess)
		return NULL;
	return f;
}

/* Until the multiprocessors' clock has risen from idle. */
__global__ void
warm()
{
	uint64_t began, now;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(began)::"memory");
	do
		asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)::"memory");
	while (now - began < WARM_NS);
}

/* Reads of both clocks one after the other: the steps of one, and how fast the other is. */
__global__ void
clocks(uint64_t *ns, uint64_t *ticks)
{
	for (int i = 0; i < READS; i++) {
		asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns[i])::"memory");
		asm volatile("mov.u64 %0, %%clock64;" : "=l"(ticks[i])::"memory");
	}
}

void
say_clocks()
{
	uint64_t *at[2] = {NULL, NULL};
	std::vector<uint64_t> ns(READS), ticks(READS), steps;

	for (int i = 0; i < 2; i++)
		if (cudaMalloc((void **)&at[i], READS * 8) != cudaSuccess)
			return;
	warm<<<1, 1>>>();
	clocks<<<1, 1>>>(at[0], at[1]);
	if (cudaMemcpy(ns.data(), at[0], READS * 8, cudaMemcpyDeviceToHost) != cudaSuccess ||
		cudaMemcpy(ticks.data(), at[1], READS * 8, cudaMemcpyDeviceToHost) != cudaSuccess)
		return;
	for (int i = 1; i < READS; i++)
		if (ns[i] != ns[i - 1])
			steps.push_back(ns[i] - ns[i - 1]);
	std::sort(steps.begin(), steps.end());
	number("globaltimer_step_ns", steps.empty() ? -1 : (double)steps[steps.size() / 2]);
	number("globaltimer_steps_seen", (double)steps.size());
	if (ns[READS - 1] > ns[0])
		number("clock64_ghz",
			(double)(ticks[READS - 1] - ticks[0]) / (double)(ns[READS - 1] - ns[0]));
	cudaFree(at[0]);
	cudaFree(at[1]);
}

void
say_attributes(int gpu)
{
	static const struct {
		const char *name;
		cudaDeviceAttr which;
	} all[] = {
		{"multiprocessors", cudaDevAttrMultiProcessorCount},
		{"cooperative_launch", cudaDevAttrCooperativeLaunch},
		{"gpudirect_rdma", cudaDevAttrGPUDirectRDMASupported},
		{"gpudirect_rdma_writes_ordering", cudaDevAttrGPUDirectRDMAWritesOrdering},
		{"gpudirect_rdma_flush_writes", cudaDevAttrGPUDirectRDMAFlushWritesOptions},
		{"host_register", cudaDevAttrHostRegisterSupported},
		{"host_register_read_only", cudaDevAttrHostRegisterReadOnlySupported},
		{"use_host_pointer_of_registered", cudaDevAttrCanUseHostPointerForRegisteredMem},
		{"host_native_atomics", cudaDevAttrHostNativeAtomicSupported},
		{"concurrent_managed", cudaDevAttrConcurrentManagedAccess},
		{"pageable_memory_access", cudaDevAttrPageableMemoryAccess},
		{"compute_preemption", cudaDevAttrComputePreemptionSupported},
		{"concurrent_kernels", cudaDevAttrConcurrentKernels},
		{"kernel_time_limit", cudaDevAttrKernelExecTimeout},
		{"copy_engines", cudaDevAttrAsyncEngineCount},
		{"compute_mode", cudaDevAttrComputeMode},
		{"ipc_events", cudaDevAttrIpcEventSupport},
		{"l2_bytes", cudaDevAttrL2CacheSize},
	};
	static const struct {
		const char *name;
		CUdevice_attribute which;
	} of_driver[] = {
		{"dma_buf", CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED},
		{"stream_write_value_64", CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS},
	};
	const auto get =
		(CUresult(*)(int *, CUdevice_attribute, CUdevice))driver("cuDeviceGetAttribute");

	for (const auto &x : all) {
		int v = -1;

		if (cudaDeviceGetAttribute(&v, x.which, gpu) != cudaSuccess)
			(void)cudaGetLastError();
		number(x.name, v);
	}
	for (const auto &x : of_driver) {
		int v = -1;

		if (get != NULL && get(&v, x.which, gpu) == CUDA_SUCCESS)
			number(x.name, v);
	}
}

/* A mapping that cannot be stored into: the object is closed as it stands. */
void
store_failed(int)
{
	static const char rest[] =
		", \"dma_buf_mmap\": \"maps, and a store ends with a signal\"}\n";

	_exit(write(STDOUT_FILENO, rest, sizeof(rest) - 1) < 0);
}

/* A dma-buf of GPU memory, and a mapping of it as --sink cuda takes one. The last thing tried. */
void
try_dmabuf()
{
	const auto get =
		(decltype(&cuMemGetHandleForAddressRange))driver("cuMemGetHandleForAddressRange");
	uint32_t word = 0x12345678, back = 0;
	void *at = NULL, *map;
	char why[128];
	int fd = -1;

	if (cudaMalloc(&at, BYTES) != cudaSuccess || get == NULL) {
		text("dma_buf_export", "not tried: no memory, or no cuMemGetHandleForAddressRange");
		return;
	}
	const CUresult e = get(&fd, (CUdeviceptr)at, BYTES, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);

	snprintf(why, sizeof(why), "driver's error %d", (int)e);
	text("dma_buf_export", e == CUDA_SUCCESS ? "works" : why);
	if (e == CUDA_SUCCESS) {
		map = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (map == MAP_FAILED) {
			text("dma_buf_mmap", strerror(errno));
		} else {
			fflush(stdout);
			signal(SIGBUS, store_failed);
			signal(SIGSEGV, store_failed);
			*(volatile uint32_t *)map = word;
			__sync_synchronize();
			cudaMemcpy(&back, at, sizeof(back), cudaMemcpyDeviceToHost);
			text("dma_buf_mmap", back == word
						     ? "works: a store was seen by the GPU"
						     : "maps, and a store was not seen by the GPU");
			munmap(map, BYTES);
		}
		close(fd);
	}
	cudaFree(at);
}

/* A memfd given to the GPU, as --ring host does. */
void
try_register(const char *name, unsigned int memfd_flags, unsigned int flags)
{
	const int fd = memfd_create("gpu-promises", MFD_CLOEXEC | memfd_flags);
	void *map, *on_gpu;
	cudaError_t e;

	if (fd < 0 || ftruncate(fd, BYTES) < 0) {
		text(name, strerror(errno));
		if (fd >= 0)
			close(fd);
		return;
	}
	map = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED) {
		text(name, strerror(errno));
	} else {
		e = cudaHostRegister(map, BYTES, cudaHostRegisterMapped | flags);
		if (e == cudaSuccess) {
			e = cudaHostGetDevicePointer(&on_gpu, map, 0);
			cudaHostUnregister(map);
		}
		tried(name, e);
		munmap(map, BYTES);
	}
	close(fd);
}

void
try_ipc()
{
	cudaIpcMemHandle_t ipc;
	void *at = NULL;

	if (cudaMalloc(&at, BYTES) != cudaSuccess)
		return;
	tried("ipc_handle", cudaIpcGetMemHandle(&ipc, at));
	cudaFree(at);
}

} // namespace

int
main(int argc, char **argv)
{
	const int gpu = argc > 1 ? atoi(argv[1]) : 0;
	cudaDeviceProp p;
	int n = 0, version = 0;
	cudaError_t e = cudaGetDeviceCount(&n);

	if (e == cudaErrorNoDevice || e == cudaErrorInsufficientDriver ||
		(e == cudaSuccess && n == 0)) {
		fprintf(stderr, "no GPU: %s\n", cudaGetErrorString(e));
		return 77;
	}
	if (e != cudaSuccess || gpu >= n || (e = cudaSetDevice(gpu)) != cudaSuccess ||
		(e = cudaGetDeviceProperties(&p, gpu)) != cudaSuccess) {
		fprintf(stderr, "GPU %d of %d: %s\n", gpu, n, cudaGetErrorString(e));
		return 1;
	}
	printf("{");
	text("name", p.name);
	number("compute_capability", p.major + p.minor / 10.0);
	number("memory_bytes", (double)p.totalGlobalMem);
	cudaDriverGetVersion(&version);
	number("driver_api", version / 1000 + version % 1000 / 1000.0);
	number("runtime_api", CUDART_VERSION / 1000 + CUDART_VERSION % 1000 / 1000.0);
	say_attributes(gpu);
	say_clocks();
	try_register("register_memfd_4k", 0, 0);
	try_register("register_memfd_2m", MFD_HUGETLB | MFD_HUGE_2MB, 0);
	try_register("register_memfd_read_only", 0, cudaHostRegisterReadOnly);
	try_ipc();
	try_dmabuf();
	printf("}\n");
	return 0;
}
