/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <arpa/inet.h>
#include <sys/socket.h>

#include "loopback.h"

static bool
hears(struct loopback *f, const struct tokd_req *req)
{
	if (req->type == TOKD_DATA)
		f->epoch = req->epoch;
	if (!f->deaf || req->epoch != f->epoch)
		return true;
	return req->type == TOKD_DATA && req->packet < f->takes;
}

static void *
serve(void *arg)
{
	uint8_t(*out)[DATAGRAM] = malloc(1024 * sizeof(*out));
	uint32_t out_len[1024];
	struct loopback *f = arg;

	while (!f->stop) {
		alignas(struct tokd_req) uint8_t packet[65507];
		struct sockaddr_storage peer;
		socklen_t peer_len = sizeof(peer);
		ssize_t len = recvfrom(
			f->fd, packet, sizeof(packet), 0, (struct sockaddr *)&peer, &peer_len);
		uint32_t n;

		/* A time-out: to look whether it shall stop. */
		if (len < 0 || f->dead || !hears(f, (const struct tokd_req *)packet))
			continue;
		n = server_answer(f->server, packet, (uint32_t)len, out, out_len, 1024);
		for (uint32_t i = 0; i < n; i++)
			(void)sendto(
				f->fd, out[i], out_len[i], 0, (struct sockaddr *)&peer, peer_len);
		f->answered++;
	}
	free(out);
	return NULL;
}

void
server_start_at(struct loopback *f, int family, uint16_t port)
{
	struct sockaddr_in6 a6 = {.sin6_family = AF_INET6,
		.sin6_addr = IN6ADDR_LOOPBACK_INIT,
		.sin6_port = htons(port)};
	struct sockaddr_in a4 = {.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons(port)};
	bool six = family == AF_INET6;
	struct sockaddr *a = six ? (void *)&a6 : (void *)&a4;
	socklen_t len = six ? sizeof(a6) : sizeof(a4);
	struct timeval soon = {.tv_usec = 20000};

	*f = (struct loopback){.fd = socket(family, SOCK_DGRAM, 0)};
	if (f->fd < 0 || bind(f->fd, a, len) != 0)
		test_skip("no loopback of family %d: %s", family, strerror(errno));
	assert_int_equal(getsockname(f->fd, a, &len), 0);
	f->port = ntohs(six ? a6.sin6_port : a4.sin_port);
	setsockopt(f->fd, SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof(soon));
	f->server = calloc(1, sizeof(*f->server));
	assert_non_null(f->server);
	f->server->window = TOKD_WIRE_WINDOW;
	f->server->payload = TOKD_WIRE_PAYLOAD;
	f->server->make_window = 16384;
	f->server->make_reply = TOKD_WIRE_PAYLOAD;
}

void
server_start(struct loopback *f, int family)
{
	server_start_at(f, family, 0);
}

void
server_go(struct loopback *f)
{
	assert_int_equal(pthread_create(&f->thread, NULL, serve, f), 0);
}

void
server_end(struct loopback *f)
{
	f->stop = true;
	pthread_join(f->thread, NULL);
	close(f->fd);
	server_free(f->server);
	free(f->server);
}
