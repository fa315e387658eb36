/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

/* An error message: the thing, the value, the limit, the remedy. */
struct tokg_error {
	char text[256];
};

/* Sets err->text; returns false. */
static inline bool __attribute__((format(printf, 2, 3)))
tokg_wrong(struct tokg_error *err, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(err->text, sizeof(err->text), format, ap);
	va_end(ap);
	return false;
}
