/* SPDX-License-Identifier: BSD-3-Clause */
/* Set-up of --allow. */
#pragma once

#include "datapath/net_allow.h"

/* `text`: of --allow. Returns 0, or -errno with a message logged; close it in either case. */
int tokd_allow_open(struct tokd_allow *a, const char *text, int node);
void tokd_allow_close(struct tokd_allow *a);
