/* SPDX-License-Identifier: BSD-3-Clause */
/* In place of produce_cuda.cu where there was no nvcc: there is no device to open it on, either. */
#include <stdio.h>

#include "produce.h"

struct produce *
produce_cuda_open(struct tokg_device *d, const struct produce_config *c, const void *word,
	struct tokg_error *err)
{
	snprintf(err->text, sizeof(err->text), "this program was built without CUDA");
	return NULL;
}

uint32_t
produce_cuda_workers(int index, uint32_t of_one, uint32_t others)
{
	return TOKG_WORKERS_DEFAULT;
}
