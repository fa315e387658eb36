/* SPDX-License-Identifier: BSD-3-Clause */
#include "kernel_mute.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/filter.h>

#include "log.h"

/* The filter comes before bind(): no datagram passes unfiltered. */
static int
bind_mute(int fd, const struct sockaddr *at, socklen_t bytes)
{
	struct sock_filter drop_all[] = {BPF_STMT(BPF_RET | BPF_K, 0)};
	const struct sock_fprog program = {.len = 1, .filter = drop_all};

	/* IP_FREEBIND, for both families: duplicate address detection may still run. */
	if (fd < 0 ||
		setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) != 0 ||
		setsockopt(fd, IPPROTO_IP, IP_FREEBIND, &(int){1}, sizeof(int)) != 0 ||
		bind(fd, at, bytes) != 0)
		return -errno;
	return 0;
}

static int
mute(struct tokd_kernel_mute *m, const struct sockaddr *at, socklen_t bytes, const void *addr,
	uint16_t port)
{
	const int fd = socket(at->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	const int rc = bind_mute(fd, at, bytes);
	char text[INET6_ADDRSTRLEN];

	if (fd >= 0)
		m->fd[m->n++] = fd;
	if (rc == 0)
		return 0;
	inet_ntop(at->sa_family, addr, text, sizeof(text));
	TOKD_LOG(port, ERR,
		"udp %s port %u: cannot bind the socket that keeps the kernel from answering: %s; "
		"%s\n",
		text, port, strerror(-rc),
		rc == -EADDRINUSE ? "end the program that has the port (ss -lunp), or give another "
				    "--udp-port or --text-port"
		: rc == -EACCES	  ? "run as root, or give ports from 1024 on"
				  : "give another address by --ip or --ip6");
	return rc;
}

int
tokd_kernel_mute_open(struct tokd_kernel_mute *m, struct in_addr ip, const struct in6_addr *ip6,
	uint32_t if_index, uint16_t port, uint16_t second)
{
	const uint16_t ports[] = {port, second};
	int rc = 0;

	m->n = 0;
	for (size_t i = 0; i < 2 && rc == 0 && ports[i] != 0; i++) {
		const struct sockaddr_in v4 = {
			.sin_family = AF_INET, .sin_port = htons(ports[i]), .sin_addr = ip};
		const struct sockaddr_in6 v6 = {.sin6_family = AF_INET6,
			.sin6_port = htons(ports[i]),
			.sin6_addr = *ip6,
			.sin6_scope_id = IN6_IS_ADDR_LINKLOCAL(ip6) ? if_index : 0};

		if (ip.s_addr != 0)
			rc = mute(m, (const struct sockaddr *)&v4, sizeof(v4), &ip, ports[i]);
		if (rc == 0 && !IN6_IS_ADDR_UNSPECIFIED(ip6))
			rc = mute(m, (const struct sockaddr *)&v6, sizeof(v6), ip6, ports[i]);
	}
	return rc;
}

void
tokd_kernel_mute_close(struct tokd_kernel_mute *m)
{
	while (m->n > 0)
		close(m->fd[--m->n]);
}
