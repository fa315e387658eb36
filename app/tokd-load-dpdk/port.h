/* SPDX-License-Identifier: BSD-3-Clause */
/* Sets up DPDK port 0. Functions return 0, or -1 after printing the error and its remedy. */
#pragma once

#include "frames.h"

#define PORT_ID 0

/* Configure and start the port with one queue pair. Fills in pool and mac of *f. */
int port_open(struct frames *f);
/* Wait until the link is up and the appliance has answered ARP. Fills in peer of *f. */
int port_find_peer(struct frames *f);
void port_close(void);
