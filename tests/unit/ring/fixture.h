/* SPDX-License-Identifier: BSD-3-Clause */
/* Rings, an attach socket, and a reader that connects to it, all in this process. */
#pragma once

#include <stdbool.h>

#include "test.h"
#include "unix_socket.h"
#include "readers/attach.h"
#include "datapath/token_ring.h"

#define N_RINGS 3
#define RING_BYTES (64u << 10)
#define READER_TIMEOUT_MS 100

struct fixture {
	char folder[64], path[96];
	struct tokd_ring rings[N_RINGS];
	struct tokd_ring *ring[N_RINGS];
	struct tokd_attach a;
	_Atomic bool workers_stop; /* for a thread of workers */
};

/* What a reader holds after attaching. */
struct reader {
	int fd; /* control socket */
	struct tokd_attach_rep rep;
	int n_fds;
	int fds[DESCRIPTORS_MAX];
	uint64_t *cursor;
	const struct tokd_ring_hdr *hdr[N_RINGS];
};

/* EAL without huge pages, once per program; then the tests. What main() ends with. */
int fixture_run(char **argv);

/* cmocka's setup and teardown: *state is a struct fixture with its socket open. */
int setup(void **state);
int teardown(void **state);

/* One look of the control thread, and one of every worker if `workers`. */
void turn(struct fixture *f, bool workers);
/* Turn until `done`, for at most a few seconds. False: it never was. */
bool turn_until(struct fixture *f, bool workers, bool (*done)(struct fixture *f));
bool nobody_attached(struct fixture *f);

/* Publish a record of `count` ids that are their own indices, of stream 7; it must fit. */
void publish(struct tokd_ring *r, uint32_t count);

int connect_to(const struct fixture *f);
struct tokd_attach_req good_request(void);
/* Send `bytes` of a request, turn, and take the answer; false when there is none. */
bool ask(struct fixture *f, struct reader *r, const void *request, size_t bytes);
/* The whole of it: connect, ask, map. False: refused, r->rep has the reason. */
bool try_attach(struct fixture *f, struct reader *r);
void attach(struct fixture *f, struct reader *r);
void detach(struct reader *r);
