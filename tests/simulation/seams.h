/* SPDX-License-Identifier: BSD-3-Clause */
/* What the seams must know (seams.c). */
#pragma once

#include <stdint.h>

/* The client that makes the next calls of libtokd-client; a reader: SEAMS_READER. */
#define SEAMS_READER UINT32_MAX
void seams_client(uint32_t i);
