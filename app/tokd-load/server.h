/* SPDX-License-Identifier: BSD-3-Clause */
/* IP:PORT as the value of an option. */
#pragma once

#include <opt.h>

/* `check` of struct opt_def; the field is a struct sockaddr_in. */
bool server_check(const struct opt_def *, const char *text, void *field, struct opt_error *err);
