/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* An error message: the thing, the value, the limit, the remedy. */
struct tokg_error {
	char text[256];
};
