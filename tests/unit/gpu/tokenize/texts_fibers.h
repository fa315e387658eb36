/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include "fibers.h"
#include "texts.h"

#ifdef __cplusplus
extern "C" {
#endif

/* texts.h by a block of fibers, with any view of this process. */
struct tokg_texts *tokg_texts_fibers(const struct tokg_view *view, const struct fibers_how *how);

#ifdef __cplusplus
}
#endif
