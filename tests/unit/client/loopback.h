/* SPDX-License-Identifier: BSD-3-Clause */
/* world.c's server at a port of loopback, in a thread. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "world.h"

struct loopback {
	int fd;
	uint16_t port;
	_Atomic bool stop, dead; /* dead: it reads and says nothing */
	bool deaf;		 /* to all of a text but its first `takes` packets; not to probes */
	uint32_t takes, epoch;	 /* epoch: of texts */
	_Atomic uint32_t answered; /* packets */
	pthread_t thread;
	struct server *server;
};

/* A socket on loopback. Where the family is not there the test is skipped. */
void server_start(struct loopback *f, int family);
void server_start_at(struct loopback *f, int family, uint16_t port); /* 0: any */
/* Answer from now on. */
void server_go(struct loopback *f);
/* Its port is closed then. */
void server_end(struct loopback *f);
