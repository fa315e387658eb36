/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of fixed size over a non-blocking stream socket, either end. Set-up only. */
#ifndef TOKG_LINK_H
#define TOKG_LINK_H

#include <stddef.h>

/*
 * What is left of a message of `bytes`, of which `*moved` are there. 1: whole; 0: not yet; -1 and
 * errno (ECONNRESET: the other side closed). A descriptor that comes along goes to `*fd` if that is
 * not NULL and holds -1; any other is closed, and it is EBADMSG.
 */
int tokg_link_read(int s, void *to, size_t bytes, size_t *moved, int *fd);
int tokg_link_write(int s, const void *from, size_t bytes, size_t *moved);
/* A whole message and a descriptor (-1: none). 0 or -1 and errno (EAGAIN: it does not fit). */
int tokg_link_send_fd(int s, const void *from, size_t bytes, int fd);
/* No delay, and a host that vanished is noticed within seconds. */
void tokg_link_tcp(int s);
/* 1: the connection stands and nothing has come; 0: it has ended, or more came than is allowed. */
int tokg_link_stands(int s);

#endif
