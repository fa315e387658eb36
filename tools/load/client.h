/* SPDX-License-Identifier: BSD-3-Clause */
/* One request at a time over one socket: what the modes share. */
#ifndef TOKD_LOAD_CLIENT_H
#define TOKD_LOAD_CLIENT_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include <tokd/client.h>

#include "slices.h"

#define CLIENT_TRIES 20 /* time-outs without any progress until a request has failed */

struct client {
	struct tokd_client *tokd; /* tokd */
	int fd;			  /* plain, tcp: connected */
	uint64_t timeout_ns;	  /* plain: silence until sending again; tcp: until it fails */
	uint8_t *got;		  /* plain, tcp: what is received; CLIENT_DATAGRAM_MAX or more */
	size_t room;		  /* tcp: bytes of `got` */
	bool broken;		  /* tcp: nothing more can come in order */
	uint32_t flags;		  /* tokd: enum tokd_request_flags */
	uint32_t max_ids;	  /* room in `ids` */
	uint32_t *ids;		  /* of the request under way, and of the last one */
};

struct answer {
	uint64_t first_at;    /* when the first ids were there before the last; else 0 */
	uint32_t n_ids;	      /* in client.ids */
	uint32_t retransmits; /* packets that were sent again, and questions after missing ids */
	uint32_t reason;      /* tokd, refused: enum tokd_reason */
	const char *failure;  /* NULL: the ids are complete and their checksum, if any, is right */
};

/* A UDP datagram's text and ids end here: RFC 768's length field, less both headers. */
#define CLIENT_DATAGRAM_MAX 65507

/*
 * Send one text and spin until its ids are there. The caller takes the time around the call, so
 * all that belongs to a request is in it: checksums, sending, waiting, sending again.
 */
typedef void client_request(struct client *c, const struct slice *slice, struct answer *answer);
client_request client_tokd;
client_request client_plain;
client_request client_tcp;

static inline uint64_t
now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_RAW, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/*
 * One turn of waiting, begun at `since`. True once it has lasted for `limit` ns. Late answers may
 * hang on the kernel's threads of this very CPU (ksoftirqd), which a tight loop can starve.
 */
#define SPIN_ALONE_NS 1000000
static inline bool
spin(uint64_t since, uint64_t limit)
{
	uint64_t waited = now_ns() - since;

	if (waited > SPIN_ALONE_NS)
		sched_yield();
	return waited >= limit;
}

#endif
