/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* CRC32C (Castagnoli, RFC 3720 appendix B.4) of bytes whose beginning has the CRC `crc`; of none:
 * 0. */
uint32_t tokd_crc32c(uint32_t crc, const void *data, size_t n);
