/* SPDX-License-Identifier: BSD-3-Clause */
/* In place of host_engine_cuda.cu where there was no nvcc: there is no device for it, either. */
#include <stdio.h>

#include "host_engine.h"

struct host_engine *
host_engine_cuda(const struct host_engine_place *p, struct tokg_error *err)
{
	snprintf(err->text, sizeof(err->text), "this program was built without CUDA");
	return NULL;
}
