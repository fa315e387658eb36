/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Extends a CRC32C (RFC 3720 B.4; 0 at the start) by `n` bytes. */
uint32_t client_crc32c(uint32_t crc, const void *data, size_t n);
