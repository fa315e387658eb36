/* SPDX-License-Identifier: BSD-3-Clause */
/* Set-up of DPDK port 0. What fails is printed, with the remedy: -1. */
#ifndef TOKD_LOAD_PORT_H
#define TOKD_LOAD_PORT_H

#include "frames.h"

#define PORT_ID 0

/* Configured and started, with one queue pair: pool and mac of *f are filled in. */
int port_open(struct frames *f);
/* Until the link is up and the appliance has answered ARP: peer of *f is filled in. */
int port_find_peer(struct frames *f);
void port_close(void);

#endif
