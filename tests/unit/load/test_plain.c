/* SPDX-License-Identifier: BSD-3-Clause */
/* What becomes of a datagram that this machine does not take, by the errors that send(2) can give.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/socket.h>

#include "test.h"
#include "client.h"

#define JOBS 2u

static int error; /* of the next send(); 0: it is the kernel's */

ssize_t __real_send(int fd, const void *buf, size_t n, int flags);
ssize_t __wrap_send(int fd, const void *buf, size_t n, int flags);

ssize_t
__wrap_send(int fd, const void *buf, size_t n, int flags)
{
	if (error == 0)
		return __real_send(fd, buf, n, flags);
	errno = error;
	error = 0;
	return -1;
}

struct world {
	int server;
	struct options o;
	struct slices slices;
	struct slice slice;
	struct client c;
};

static void
set_up(struct world *w, uint64_t rate)
{
	struct sockaddr_in address = {.sin_family = AF_INET};
	const struct timeval patience = {.tv_sec = 10};
	socklen_t length = sizeof(address);

	memset(w, 0, sizeof(*w));
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	w->server = socket(AF_INET, SOCK_DGRAM, 0);
	assert_int_equal(bind(w->server, (const void *)&address, sizeof(address)), 0);
	assert_int_equal(getsockname(w->server, (void *)&address, &length), 0);
	assert_int_equal(
		setsockopt(w->server, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
	w->o = (struct options){
		.server = address, .mode = MODE_PLAIN, .in_flight = JOBS, .rate = rate};
	w->slice.text = (const uint8_t *)"text";
	w->slice.text_len = 4;
	error = 0;
	assert_int_equal(client_open(&w->c, &w->o, &w->slices), 0);
	w->c.job[0].slice = &w->slice;
}

static void
tear_down(struct world *w)
{
	client_close(&w->c);
	close(w->server);
}

static const char *
send_with(struct world *w, int given)
{
	error = given;
	return w->c.mode->send(&w->c, &w->c.job[0]);
}

TEST(test_an_open_loop_did_not_send_it)
{
	struct world w;
	char got[8];

	set_up(&w, 1000);
	assert_string_equal(send_with(&w, EAGAIN), "not sent");
	assert_string_equal(send_with(&w, ENOBUFS), "not sent");
	assert_int_equal(recv(w.server, got, sizeof(got), MSG_DONTWAIT), -1);
	/* The server is to blame for these, or nobody. */
	assert_null(send_with(&w, ECONNREFUSED));
	assert_null(send_with(&w, 0));
	assert_int_equal(recv(w.server, got, sizeof(got), 0), 4);
	tear_down(&w);
}

TEST(test_a_closed_loop_sends_it_again_later)
{
	struct world w;
	char got[8];

	set_up(&w, 0);
	assert_null(send_with(&w, EAGAIN));
	assert_null(send_with(&w, ENOBUFS));
	assert_null(send_with(&w, 0));
	assert_int_equal(recv(w.server, got, sizeof(got), 0), 4);
	tear_down(&w);
}
