/* SPDX-License-Identifier: BSD-3-Clause */
/* Replaces texts_cuda.cu in a build without nvcc. */
#include "texts.h"

struct tokg_texts *
tokg_texts_cuda(const struct tok_vocab *v, uint32_t flags, int index, struct tokg_error *err)
{
	tokg_wrong(err,
		"device cuda:%d: this program was built without CUDA: install nvcc and build again, "
		"or use the device cpu",
		index);
	return NULL;
}
