/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests under way, as the modes send them and take their answers. client_tokd.c, client_plain.c
 * and client_tcp.c are the modes; loop.c says when what is sent, and for how long it is waited for.
 */
#ifndef TOKD_LOAD_CLIENT_H
#define TOKD_LOAD_CLIENT_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include <tokd/client.h>

#include "options.h"
#include "slices.h"

#define CLIENT_TRIES 20 /* closed loop: time-outs without progress until a request has failed */
#define CLIENT_BURST 32 /* answers taken at once */
/* A UDP datagram's text and ids end here: RFC 768's length field, less both headers. */
#define CLIENT_DATAGRAM_MAX 65507
#define CLIENT_SOCKET_BUFFER (4 << 20) /* bytes; a whole window of replies with room to spare */

/* Room for a request, and the request while it is under way. */
struct job {
	const struct slice *slice; /* NULL: none is under way */
	uint64_t index;
	uint64_t intended_ns, sent_ns, deadline_ns;
	uint64_t first_ns; /* when ids were there before the last of them; 0: that was not seen */
	struct job *older, *newer; /* among those under way, in the order of their deadlines */

	/* Of the answer. */
	uint32_t n_ids;
	uint32_t *ids;	      /* client.max_ids */
	uint32_t retransmits; /* packets that were sent again, and questions after missing ids */
	uint32_t reason;      /* tokd, refused: enum tokd_reason */
	const char *failure;  /* NULL: the ids are complete and their checksum, if any, is right */

	/* The mode's own. */
	struct tokd_request r; /* tokd */
	int fd;		       /* plain: connected */
};

struct client {
	const struct client_mode *mode;
	struct job *job;
	uint32_t n_jobs;
	uint32_t max_ids; /* room for a few wrong ids more, so that too many are seen to be wrong */

	struct tokd_client *tokd;
	uint32_t tokd_flags; /* enum tokd_request_flags */
	struct plain *plain;
	struct tcp *tcp;
};

struct client_mode {
	/* Once, before anything is timed. Prints why not: -1. */
	int (*open)(struct client *c, const struct options *o);
	void (*close)(struct client *c);
	/* The job's slice is to be sent. What is wrong, or NULL: it is under way. */
	const char *(*send)(struct client *c, struct job *job);
	/* All that was given to send() goes out now. */
	void (*flush)(struct client *c);
	/* Jobs that ended, CLIENT_BURST at most: answered, or with a failure. Never waits. */
	uint32_t (*poll)(struct client *c, struct job *done[CLIENT_BURST]);
	/* The answer is not waited for any more; when it comes, it is nobody's. */
	void (*give_up)(struct client *c, struct job *job);
};

extern const struct client_mode client_tokd, client_plain, client_tcp;

/* Prints why not: -1. client_close() is called in any case. */
int client_open(struct client *c, const struct options *o, const struct slices *slices);
void client_close(struct client *c);

/* A socket that is connected, or -1 and errno. `port`: its own; 0: any. */
int client_socket(const struct options *o, int type, uint16_t port);

/* Ids that have come as bytes: copied to the job, or its failure. */
void client_take_ids(const struct client *c, struct job *job, const uint8_t *bytes, size_t n);

static inline uint64_t
now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_RAW, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

#endif
