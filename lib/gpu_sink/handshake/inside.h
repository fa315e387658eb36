/* SPDX-License-Identifier: BSD-3-Clause */
/* Set-up helpers of both ends. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ring/error.h"

/* Sets err->text; returns false. */
bool tokg_wrong(struct tokg_error *err, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Copies text of another process, with unprintable bytes replaced. */
void tokg_printable(char *to, size_t room, const char *from, size_t bytes);
uint64_t tokg_now_ms(void); /* CLOCK_MONOTONIC */
