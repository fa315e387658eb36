/* SPDX-License-Identifier: BSD-3-Clause */
/* Set-up helpers of both ends. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "ring/error.h"

/* Copies text of another process, with unprintable bytes replaced. */
void tokg_printable(char *to, size_t room, const char *from, size_t bytes);
