/* SPDX-License-Identifier: BSD-3-Clause */
/* Replaces device_cuda.cu in a build without nvcc. */
#include <stdio.h>

#include "device.h"

bool
tokg_device_cuda_built(int index, struct tokg_error *err)
{
	snprintf(err->text, sizeof(err->text),
		"device cuda:%d: this program was built without CUDA: install nvcc and build again, "
		"or use the device cpu",
		index);
	return false;
}

bool
tokg_device_cuda_there(int index, struct tokg_error *err)
{
	return tokg_device_cuda_built(index, err);
}

struct tokg_device *
tokg_device_cuda(const struct tokg_device_config *c, struct tokg_error *err)
{
	tokg_device_cuda_built(c->index, err);
	return NULL;
}
