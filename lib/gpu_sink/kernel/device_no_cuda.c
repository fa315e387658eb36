/* SPDX-License-Identifier: BSD-3-Clause */
/* In place of device_cuda.cu where there was no nvcc. */
#include <stdio.h>

#include "device.h"

bool
tokg_device_cuda_there(int index, struct tokg_error *why)
{
	snprintf(why->text, sizeof(why->text),
		"device cuda:%d: this program was built without CUDA: install nvcc and build again, "
		"or use the device cpu",
		index);
	return false;
}

struct tokg_device *
tokg_device_cuda(const struct tokg_device_config *c, struct tokg_error *why)
{
	tokg_device_cuda_there(c->index, why);
	return NULL;
}
