/* SPDX-License-Identifier: BSD-3-Clause */
#include "log.h"

#include <stdarg.h>
#include <stdio.h>
#include <syslog.h>
#include <time.h>

#include "notify.h"

static void
say(int level, const char *format, va_list ap)
{
	char line[512], prefix[8] = "";

	vsnprintf(line, sizeof(line), format, ap);
	if (tokd_notify_is_journal())
		snprintf(prefix, sizeof(prefix), "<%d>", level);
	fprintf(stderr, "%stokd-gpu: %s\n", prefix, line);
}

void
tokg_log(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	say(LOG_INFO, format, ap);
	va_end(ap);
}

void
tokg_log_warning(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	say(LOG_WARNING, format, ap);
	va_end(ap);
}

void
tokg_log_error(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	say(LOG_ERR, format, ap);
	va_end(ap);
}

uint64_t
tokg_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
