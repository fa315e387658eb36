/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOKG_ERROR_H
#define TOKG_ERROR_H

/* An error message: the thing, the value, the limit, the remedy. */
struct tokg_error {
	char text[256];
};

#endif
