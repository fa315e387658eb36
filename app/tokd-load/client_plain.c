/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Mode plain, for the baseline: one datagram of text, answered by one datagram of ids. Only its
 * port tells which text an answer belongs to. So each request in flight has a socket, and gets a
 * new one when its answer is no longer awaited.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "client.h"

/* Ports are used in turn, so a late answer to an old request does not meet a new one. */
#define PORT_FIRST 10000u
#define PORTS (65536u - PORT_FIRST)
#define FILES_MORE 32 /* other open files */

struct plain {
	const struct options *o;
	int epoll;	/* -1: one socket, polled directly */
	uint32_t ports; /* tried so far */
	uint8_t got[CLIENT_DATAGRAM_MAX];
};

static int
next_socket(struct plain *p)
{
	int fd = -1;

	for (uint32_t i = 0; fd < 0 && i < PORTS; i++) {
		fd = client_socket(p->o, SOCK_DGRAM, (uint16_t)(PORT_FIRST + p->ports++ % PORTS));
		if (fd < 0 && errno != EADDRINUSE)
			break;
	}
	return fd;
}

/* Replace the job's socket, if it has one, by a new one. */
static int
renew(struct client *c, struct job *job)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = job};

	if (job->fd >= 0)
		close(job->fd);
	job->fd = next_socket(c->plain);
	if (job->fd < 0)
		return -1;
	if (c->plain->epoll < 0)
		return 0;
	return epoll_ctl(c->plain->epoll, EPOLL_CTL_ADD, job->fd, &event);
}

static void
allow_files(uint32_t n)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= n)
		return;
	limit.rlim_cur = n < limit.rlim_max ? n : limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

static int
open_plain(struct client *c, const struct options *o)
{
	c->plain = calloc(1, sizeof(*c->plain));
	if (c->plain == NULL) {
		perror("tokd-load");
		return -1;
	}
	c->plain->o = o;
	c->plain->epoll = -1;
	c->plain->ports = (uint32_t)getpid();
	allow_files(c->n_jobs + FILES_MORE);
	if (c->n_jobs > 1 && (c->plain->epoll = epoll_create1(EPOLL_CLOEXEC)) < 0) {
		perror("tokd-load: epoll_create1");
		return -1;
	}
	for (uint32_t i = 0; i < c->n_jobs; i++) {
		if (renew(c, &c->job[i]) == 0)
			continue;
		fprintf(stderr, "tokd-load: socket %u of %u, one for each in flight: %s", i + 1,
			c->n_jobs, strerror(errno));
		fputs(errno == EMFILE ? "; raise ulimit -n or lower --in-flight\n" : "\n", stderr);
		return -1;
	}
	return 0;
}

static void
close_plain(struct client *c)
{
	for (uint32_t i = 0; i < c->n_jobs; i++)
		if (c->job[i].fd >= 0)
			close(c->job[i].fd);
	if (c->plain != NULL && c->plain->epoll >= 0)
		close(c->plain->epoll);
	free(c->plain);
}

static const char *
send_plain(struct client *c, struct job *job)
{
	if (job->slice->text_len > CLIENT_DATAGRAM_MAX)
		return "text exceeds a datagram";
	if (job->fd < 0)
		return "no socket is left";
	if (send(job->fd, job->slice->text, job->slice->text_len, MSG_DONTWAIT) >= 0)
		return NULL;
	/*
	 * Errors of this machine are not the server's fault. In a closed loop the time-out sends
	 * the text again, as for any lost datagram.
	 */
	if (c->plain->o->rate > 0 && (errno == EAGAIN || errno == ENOBUFS))
		return "not sent";
	return NULL;
}

static void
flush_plain(struct client *c)
{
	(void)c; /* send_plain() has sent it */
}

static bool
receive(struct client *c, struct job *job)
{
	ssize_t n = recv(job->fd, c->plain->got, sizeof(c->plain->got), MSG_DONTWAIT);

	if (n < 0 || job->slice == NULL)
		return false;
	client_take_ids(c, job, c->plain->got, (size_t)n);
	return true;
}

static uint32_t
poll_plain(struct client *c, struct job *done[CLIENT_BURST])
{
	struct epoll_event event[CLIENT_BURST];
	uint32_t n = 0;
	int ready;

	if (c->plain->epoll < 0) {
		done[0] = c->job;
		return receive(c, c->job);
	}
	ready = epoll_wait(c->plain->epoll, event, CLIENT_BURST, 0);
	for (int i = 0; i < ready; i++) {
		struct job *job = event[i].data.ptr;

		if (receive(c, job))
			done[n++] = job;
	}
	return n;
}

static void
give_up_plain(struct client *c, struct job *job)
{
	(void)renew(c, job); /* if it fails, send_plain() returns the error */
}

const struct client_mode client_plain = {
	open_plain, close_plain, send_plain, flush_plain, poll_plain, give_up_plain};
