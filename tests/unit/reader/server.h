/* SPDX-License-Identifier: BSD-3-Clause */
/* A control socket that answers as a test wants, and one ring whose every byte the test writes. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

#include <tokd/ring.h>

#include "test.h"

#define SERVER_DATA 4096

struct server {
	char folder[64], path[96];
	int listener, reader; /* -1: none */
	bool accepts, answers;
	bool in_a_hurry; /* answers and closes, whatever was asked */
	struct tokd_attach_rep rep;
	size_t rep_bytes;
	int fds[1 + TOKD_RINGS_MAX + 1];
	int n_fds;
	int cursor_fd, ring_fd;
	struct tokd_ring_hdr *hdr;
	uint64_t *cursor;
	uint64_t head;
	pthread_t thread;
};

/* cmocka's: *state is a struct server that does all as ring.h says. */
int server_setup(void **state);
int server_teardown(void **state);

/* Take one reader, on a thread, as things stand in *s; server_join waits until it was taken. */
void server_start(struct server *s);
void server_join(struct server *s);

/* A memfd with these seals. */
int server_memfd(off_t bytes, int seals);

/* Publish a record of `count` ids; returns it, for the test to change. */
struct tokd_rec *server_publish(struct server *s, uint32_t count);
