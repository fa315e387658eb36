/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of fixed size over a non-blocking stream socket, both ends. Set-up only. */
#pragma once

#include <stddef.h>

/*
 * Continue a message of `bytes`, of which `*moved` are done. 1: complete; 0: not yet; -1 and errno
 * (ECONNRESET: the peer closed). A descriptor goes to `*fd` if that is not NULL and is -1; any
 * other is closed, with EBADMSG.
 */
int tokg_link_read(int s, void *to, size_t bytes, size_t *moved, int *fd);
int tokg_link_write(int s, const void *from, size_t bytes, size_t *moved);
/* Send a message and a descriptor (-1: none). 0, or -1 and errno (EAGAIN: it does not fit). */
int tokg_link_send_fd(int s, const void *from, size_t bytes, int fd);
/* No delay; keepalive detects a vanished host within seconds. */
void tokg_link_tcp(int s);
/* True: connected, and nothing to read; false: ended, or the peer sent unexpected bytes. */
int tokg_link_is_quiet(int s);
