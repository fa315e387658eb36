/* SPDX-License-Identifier: BSD-3-Clause */
/* Errors of set-up, in the sources that are C++. */
#pragma once

#include <stdarg.h>
#include <stdio.h>

#include "ring/error.h"

/* Sets err->text; returns -1. */
static inline int __attribute__((format(printf, 2, 3)))
tokg_wrong(struct tokg_error *err, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(err->text, sizeof(err->text), format, ap);
	va_end(ap);
	return -1;
}
