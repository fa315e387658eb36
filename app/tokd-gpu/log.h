/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <stdint.h>
#include <syslog.h>

/* One line to standard error, after the program's name. The journal gets the level, of syslog.h. */
void tokg_log_line(int level, const char *format, ...) __attribute__((format(printf, 2, 3)));
#define tokg_log(...) tokg_log_line(LOG_INFO, __VA_ARGS__)
#define tokg_log_warning(...) tokg_log_line(LOG_WARNING, __VA_ARGS__)
#define tokg_log_error(...) tokg_log_line(LOG_ERR, __VA_ARGS__)
