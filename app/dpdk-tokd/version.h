/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <stdio.h>

/* What --version shows: what this was built from and with, and the drivers EAL would load. */
void tokd_version_print(FILE *to);
