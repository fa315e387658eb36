/* SPDX-License-Identifier: BSD-3-Clause */
/* Values of options. What is wrong is printed, with the option, the value and the remedy: -1. */
#ifndef TOKD_MICRO_VALUES_H
#define TOKD_MICRO_VALUES_H

#include <stdint.h>
#include <netinet/in.h>

int value_bad(const char *option, const char *value, const char *remedy);
int value_number(
	const char *option, const char *text, uint64_t least, uint64_t most, uint64_t *number);
/* IP:PORT */
int value_server(const char *option, const char *text, struct sockaddr_in *server);

#endif
