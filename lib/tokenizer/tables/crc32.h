/* SPDX-License-Identifier: BSD-3-Clause */
/* Checksums of files and models. Set-up only. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * CRC-32 of ISO 3309 (RFC 1952, section 8), as zlib's crc32(): of `n` bytes after those that `crc`
 * is of, which is 0 at the beginning.
 */
uint32_t tok_crc32(uint32_t crc, const void *bytes, size_t n);
