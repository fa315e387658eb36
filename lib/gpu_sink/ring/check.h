/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include "gpu_check.h"

/* The check word of hdr, ignoring hdr->check, and of its padded payload. */
uint32_t tokg_check_of(const struct tokg_hdr *hdr, const void *payload);
