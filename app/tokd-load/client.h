/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests in flight, and the interface of the modes that send them and receive their answers:
 * client_tokd.c, client_plain.c, client_tcp.c and client_echo.c. loop.c decides when requests start
 * and time out.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include <tokd/client.h>

#include "options.h"
#include "slices.h"

#define CLIENT_TRIES 20 /* closed loop: a request fails after this many time-outs */
#define CLIENT_BURST 32 /* most answers taken at once */
/* Largest payload of a UDP datagram: RFC 768's length field, less both headers. */
#define CLIENT_DATAGRAM_MAX 65507
#define CLIENT_SOCKET_BUFFER (4 << 20) /* bytes; a whole window of replies with room to spare */

/* A place for a request, and the request while it is in flight. */
struct job {
	const struct slice *slice; /* NULL: the place is free */
	uint64_t index;
	uint64_t intended_ns, sent_ns, deadline_ns;
	uint64_t first_ns; /* when the first ids were seen before the last ones; 0: not seen */
	struct job *older, *newer; /* list of requests in flight, in the order of their deadlines */

	/* The answer. */
	uint32_t n_ids;
	uint32_t *ids;	      /* [client.max_ids] */
	uint32_t retransmits; /* packets sent again, and requests for missing ids */
	uint32_t reason;      /* tokd, if refused: enum tokd_reason */
	const char *failure;  /* NULL: the ids are complete and their checksum, if any, is right */

	/* Used by one mode. */
	struct tokd_request r; /* tokd */
	int fd;		       /* plain: connected */
};

struct client {
	const struct client_mode *mode;
	struct job *job;
	uint32_t n_jobs;
	uint32_t max_ids; /* more than a correct answer has, so that surplus ids are noticed */

	struct tokd_client *tokd;
	uint32_t tokd_flags; /* enum tokd_request_flags */
	struct plain *plain;
	struct tcp *tcp;
	struct echo *echo;
};

struct client_mode {
	/* Called once, before anything is timed. On error prints a message and returns -1. */
	int (*open)(struct client *c, const struct options *o);
	void (*close)(struct client *c);
	/* Send the job's slice. Returns NULL, or what is wrong. */
	const char *(*send)(struct client *c, struct job *job);
	/* Transmit everything that was passed to send(). */
	void (*flush)(struct client *c);
	/* Return finished jobs, CLIENT_BURST at most: answered or failed. Never waits. */
	uint32_t (*poll)(struct client *c, struct job *done[CLIENT_BURST]);
	/* Stop waiting for the answer. If it still comes, it is discarded. */
	void (*give_up)(struct client *c, struct job *job);
};

extern const struct client_mode client_tokd, client_plain, client_tcp, client_echo;

/* On error prints a message and returns -1. Call client_close() in any case. */
int client_open(struct client *c, const struct options *o, const struct slices *slices);
void client_close(struct client *c);

/* A connected socket, or -1 with errno set. `port`: local port; 0: any. */
int client_socket(const struct options *o, int type, uint16_t port);

/* Copy received ids to the job, or set its failure. */
void client_take_ids(const struct client *c, struct job *job, const uint8_t *bytes, size_t n);

static inline uint64_t
now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_RAW, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
