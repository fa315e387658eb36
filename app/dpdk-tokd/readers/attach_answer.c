/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "attach.h"

int
tokd_attach_answer(const struct tokd_attach *a, int fd, const uint64_t *start,
	const int *descriptors, uint32_t n_descriptors)
{
	struct tokd_attach_rep rep = {
		.magic = TOKD_ATTACH_MAGIC,
		.version = TOKD_RING_VERSION,
		.n_rings = a->n_rings,
		.instance = a->instance,
	};
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int) * (1 + TOKD_RINGS_MAX))];
	} control = {0};
	const size_t fd_bytes = sizeof(int) * n_descriptors;
	struct iovec iov = {&rep, sizeof(rep)};
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = CMSG_SPACE(fd_bytes),
	};
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);

	memcpy(rep.start, start, sizeof(*start) * a->n_rings);
	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(fd_bytes);
	memcpy(CMSG_DATA(cmsg), descriptors, fd_bytes);
	if (sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		return -errno;
	return 0;
}

void
tokd_attach_say(int fd, const char *reason)
{
	struct tokd_attach_rep rep = {.magic = TOKD_ATTACH_MAGIC, .version = TOKD_RING_VERSION};

	snprintf(rep.message, sizeof(rep.message), "%s", reason);
	(void)!send(fd, &rep, sizeof(rep), MSG_NOSIGNAL | MSG_DONTWAIT);
}
