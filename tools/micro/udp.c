/* SPDX-License-Identifier: BSD-3-Clause */
/* A datagram there and back by the kernel's sockets, at both ends of which a thread spins: what a
 * network costs before anything is done with its bytes. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/socket.h>

#include "micro.h"

#define WARM_UP 100u

static int
fail(const char *what)
{
	fprintf(stderr, "tokd-micro: %s: %s\n", what, strerror(errno));
	return 1;
}

int
micro_echo(const struct micro_options *o)
{
	static uint8_t data[MICRO_DATAGRAM_MAX];
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (const void *)&o->address, sizeof(o->address)) != 0)
		return fail("--listen");
	printf("ready:\n");
	fflush(stdout);
	for (;;) {
		struct sockaddr_in from;
		socklen_t len = sizeof(from);
		const ssize_t n =
			recvfrom(fd, data, sizeof(data), MSG_DONTWAIT, (void *)&from, &len);

		/* What cannot be sent is lost, as on any network: the other end says so. */
		if (n >= 0)
			(void)sendto(fd, data, (size_t)n, MSG_DONTWAIT, (void *)&from, len);
		else if (errno != EAGAIN && errno != EINTR)
			return fail("the socket");
	}
}

/* Of request `number`: no two are equal. */
static void
fill(uint8_t *data, uint64_t bytes, uint64_t number)
{
	for (uint64_t i = 0; i < bytes; i += sizeof(number)) {
		const uint64_t word = number + i * MICRO_STEP;

		memcpy(data + i, &word, sizeof(word));
	}
}

/* 1: `sent` is back; 0: it does not come; below 0: something else did. What came late is left. */
static int
wait_for(int fd, const struct micro_options *o, const uint8_t *sent, uint64_t begin)
{
	static uint8_t got[MICRO_DATAGRAM_MAX];

	while (micro_now() - begin < o->timeout_ms * 1000000) {
		const ssize_t n = recv(fd, got, sizeof(got), MSG_DONTWAIT);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (n < 0)
			return -fail("the socket");
		if ((uint64_t)n == o->bytes && memcmp(got, sent, o->bytes) == 0)
			return 1;
		if ((uint64_t)n != o->bytes || memcmp(got, sent, sizeof(uint64_t)) == 0) {
			fputs("tokd-micro: what came back is not what was sent\n", stderr);
			return -1;
		}
	}
	return 0;
}

int
micro_ping(const struct micro_options *o)
{
	static uint8_t sent[MICRO_DATAGRAM_MAX];
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	uint64_t lost = 0, n = 0, *ns = calloc(o->count, sizeof(*ns));

	if (ns == NULL || fd < 0 || connect(fd, (const void *)&o->address, sizeof(o->address)) != 0)
		return fail("--connect");
	for (uint64_t i = 0; i < o->count + WARM_UP; i++) {
		uint64_t begin, end;
		int back;

		fill(sent, o->bytes, i);
		begin = micro_now();
		if (send(fd, sent, o->bytes, 0) != (ssize_t)o->bytes)
			return fail("--connect");
		back = wait_for(fd, o, sent, begin);
		end = micro_now();
		if (back < 0)
			return 1;
		if (i < WARM_UP)
			continue;
		if (back == 0)
			lost++;
		else
			ns[n++] = end - begin;
	}
	printf("{\"lost\": %" PRIu64 ", \"ns\": [", lost);
	for (uint64_t i = 0; i < n; i++)
		printf("%s%" PRIu64, i > 0 ? ", " : "", ns[i]);
	puts("]}");
	return 0;
}
