/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "texts.h"
#include "tok.h"

/* texts.h on the device that TOKD_GPU_DEVICE names: cpu, which it is if unset, or cuda:N. */
static inline struct tokg_texts *
texts_on_device(const struct tok_vocab *v, struct tokg_error *err)
{
	const char *const name = getenv("TOKD_GPU_DEVICE");

	if (name == NULL || strcmp(name, "cpu") == 0)
		return tokg_texts_cpu(v, TOK_ADDED_AS_TEXT, err);
	return tokg_texts_cuda(v, TOK_ADDED_AS_TEXT, atoi(name + strlen("cuda:")), err);
}
