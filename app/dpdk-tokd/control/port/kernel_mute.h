/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * If the kernel receives the same packets and has the same address, it answers each datagram with
 * "port unreachable" (RFC 1122 4.1.3.1), unless a socket has the port. These sockets have it and
 * drop all datagrams. They also keep other programs from binding the port.
 */
#pragma once

#include <stdint.h>
#include <netinet/in.h>

#define TOKD_MUTE_MAX 4 /* two families, two ports */

struct tokd_kernel_mute {
	uint32_t n;
	int fd[TOKD_MUTE_MAX];
};

/*
 * Bind UDP sockets to `port`, and to `second` unless it is 0 (host byte order), of each address
 * that is not zero. if_index: the scope of a link-local address. Returns 0, or -errno with a
 * message logged; close *m in either case.
 */
int tokd_kernel_mute_open(struct tokd_kernel_mute *m, struct in_addr ip, const struct in6_addr *ip6,
	uint32_t if_index, uint16_t port, uint16_t second);
void tokd_kernel_mute_close(struct tokd_kernel_mute *m);
