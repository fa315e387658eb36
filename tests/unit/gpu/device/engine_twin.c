/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libtokd-engine-cuda as its kernels are, on the CPU and in host memory: for a test of its binding
 * in Python (tests/unit/python/embeddings/test_engine_cuda.py).
 */
#include <tokd/engine_cuda.h>

int
tokd_engine_put_cuda(const struct tokd_engine *e, const uint64_t *lanes, const uint32_t *ids,
	uint32_t n, uint8_t *taken, void *stream)
{
	(void)stream;
	tokd_engine_put_all(e, lanes, ids, n, taken);
	return 0;
}

int
tokd_engine_end_cuda(
	const struct tokd_engine *e, const uint64_t *lanes, uint32_t n, uint32_t how, void *stream)
{
	(void)stream;
	for (uint32_t i = 0; i < n; i++)
		tokd_engine_end(e, lanes[i], how);
	return 0;
}

/* A stream that does not exist fails. */
int
tokd_engine_look_cuda(const struct tokd_engine *e, const uint64_t *lanes, uint32_t n,
	struct tokd_lane_look *looks, void *stream)
{
	for (uint32_t i = 0; i < n; i++)
		looks[i] = tokd_engine_look(e, lanes[i]);
	return stream == NULL ? 0 : 400;
}
