/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <stdint.h>

/* One line to standard error, after the program's name. The journal gets the level. */
void tokg_log(const char *format, ...) __attribute__((format(printf, 1, 2)));
void tokg_log_warning(const char *format, ...) __attribute__((format(printf, 1, 2)));
void tokg_log_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* CLOCK_MONOTONIC. */
uint64_t tokg_now_ns(void);
