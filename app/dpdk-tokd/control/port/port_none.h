/* SPDX-License-Identifier: BSD-3-Clause */
/* Why a port is not there, in words. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define TOKD_PORT_LACKS 256 /* bytes of text */

/* True, with a sentence: this process lacks capabilities that the driver needs at start. `driver`
 * may be a device's name, as in net_af_packet0. */
bool tokd_port_lacks(const char *driver, char text[TOKD_PORT_LACKS]);

/* Logs why EAL has made no port, or, if no device was named, the usual ways to get one. */
void tokd_port_explain_none(uint16_t n_queues, const char *vocab);
