/* SPDX-License-Identifier: BSD-3-Clause */
#include "log.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include "notify.h"

void
tokg_log_line(int level, const char *format, ...)
{
	char line[512], prefix[8] = "";
	va_list ap;

	va_start(ap, format);
	vsnprintf(line, sizeof(line), format, ap);
	va_end(ap);
	if (tokd_notify_is_journal())
		snprintf(prefix, sizeof(prefix), "<%d>", level);
	fprintf(stderr, "%stokd-gpu: %s\n", prefix, line);
}
