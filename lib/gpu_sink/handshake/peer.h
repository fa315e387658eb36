/* SPDX-License-Identifier: BSD-3-Clause */
/* The two ends of a connection: the worker that produces, and the agent that owns the GPU ring. */
#ifndef TOKG_PEER_H
#define TOKG_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "ring/error.h"

#define TOKG_ADDRESSES 4

/* What the worker brings. */
struct tokg_source {
	void *base;   /* the token ring's data: every payload lies in it */
	size_t bytes; /* of that, and of the mapping; huge-page aligned where it has huge pages */
	int fd;	      /* its memfd */
	uint32_t worker;
	uint64_t instance; /* of dpdk-tokd: with worker it names a producer */
	uint32_t n_vocabs;
	const uint32_t *vocab; /* checksums; hdr.vocab indexes it */
	const uint32_t *n_ids; /* of each */
	int node;	       /* NUMA node for its own memory, -1: any */
};

/*
 * Where the agent is and how to reach it: "shm[:PATH]", "cuda[:PATH]", "verbs:HOST[:PORT]". Parsed
 * once. rdma_*: chosen automatically when NULL or below 0.
 */
struct tokg_target {
	enum { TOKG_SHM = 1, TOKG_CUDA, TOKG_VERBS } kind;
	char address[108]; /* path of a unix socket, or host */
	uint16_t port;
	const char *rdma_device;
	int rdma_port, rdma_gid, rdma_traffic_class;
	bool strict; /* STRICT whatever the GPU promises */
	/* verbs: what the host's name says, once it was asked */
	uint32_t n_at;
	socklen_t at_len[TOKG_ADDRESSES];
	struct sockaddr_storage at[TOKG_ADDRESSES];
};
bool tokg_target_parse(struct tokg_target *t, const char *text, struct tokg_error *err);
/*
 * Ask for the host's addresses, unless they are known. Takes what name services take: at start,
 * where tokg_transport_open is to keep to its time later.
 */
bool tokg_target_resolve(struct tokg_target *t, struct tokg_error *err);

#endif
