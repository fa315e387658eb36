/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels of an external engine: a thread for a lane. The CPU's twin of put is tokd_engine_put_all.
 */
#include <tokd/engine_cuda.h>

#define THREADS 128

namespace
{

__device__ uint32_t
number()
{
	return blockIdx.x * THREADS + threadIdx.x;
}

__global__ void
put(const __grid_constant__ tokd_engine e, const uint64_t *lanes, const uint32_t *ids, uint32_t n,
	uint8_t *taken)
{
	const uint32_t i = number();

	if (i < n)
		taken[i] = tokd_engine_put(&e, lanes[i], ids[i]);
}

__global__ void
end(const __grid_constant__ tokd_engine e, const uint64_t *lanes, uint32_t n, uint32_t how)
{
	const uint32_t i = number();

	if (i < n)
		tokd_engine_end(&e, lanes[i], how);
}

__global__ void
look(const __grid_constant__ tokd_engine e, const uint64_t *lanes, uint32_t n,
	struct tokd_lane_look *looks)
{
	const uint32_t i = number();

	if (i < n)
		looks[i] = tokd_engine_look(&e, lanes[i]);
}

/* No launch has no blocks. */
uint32_t
blocks_of(uint32_t n)
{
	return n > 0 ? (n + THREADS - 1) / THREADS : 1;
}

} // namespace

extern "C" int
tokd_engine_put_cuda(const struct tokd_engine *e, const uint64_t *lanes, const uint32_t *ids,
	uint32_t n, uint8_t *taken, void *stream)
{
	put<<<blocks_of(n), THREADS, 0, (cudaStream_t)stream>>>(*e, lanes, ids, n, taken);
	return cudaGetLastError();
}

extern "C" int
tokd_engine_end_cuda(
	const struct tokd_engine *e, const uint64_t *lanes, uint32_t n, uint32_t how, void *stream)
{
	end<<<blocks_of(n), THREADS, 0, (cudaStream_t)stream>>>(*e, lanes, n, how);
	return cudaGetLastError();
}

extern "C" int
tokd_engine_look_cuda(const struct tokd_engine *e, const uint64_t *lanes, uint32_t n,
	struct tokd_lane_look *looks, void *stream)
{
	look<<<blocks_of(n), THREADS, 0, (cudaStream_t)stream>>>(*e, lanes, n, looks);
	return cudaGetLastError();
}
