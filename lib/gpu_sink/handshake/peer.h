/* SPDX-License-Identifier: BSD-3-Clause */
/* The two ends of a connection: the worker that produces, and the agent that owns the GPU ring. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "ring/error.h"

#define TOKG_ADDRESSES 4

/* The worker. */
struct tokg_source {
	void *base;   /* the token ring's mapping: every payload is in it */
	size_t bytes; /* of the mapping; a multiple of its page size */
	int fd;	      /* its memfd */
	uint32_t worker;
	uint64_t instance; /* of dpdk-tokd: identifies a producer, with worker */
	uint32_t n_vocabs;
	const uint32_t *vocab; /* checksums; hdr.vocab indexes it */
	const uint32_t *n_ids; /* of each */
	/* TEXT slots are posted: encoded with this vocabulary and these flags. 0: none. */
	uint32_t text_vocab, text_flags;
	uint64_t shed_below; /* serial: for the hello */
	int node;	     /* NUMA node for memory, -1: any */
};

/*
 * The agent's address and transport: "shm[:PATH]", "cuda[:PATH]", "verbs:HOST[:PORT]". Parsed once.
 * rdma_*: chosen automatically if NULL or below 0.
 */
struct tokg_target {
	enum { TOKG_SHM = 1, TOKG_CUDA, TOKG_VERBS } kind;
	char address[108]; /* path of a unix socket, or host */
	uint16_t port;
	const char *rdma_device;
	int rdma_port, rdma_gid;
	uint8_t rdma_tclass, rdma_sl; /* traffic class and service level of what is sent */
	/* verbs: addresses of the host, once resolved */
	uint32_t n_at;
	socklen_t at_len[TOKG_ADDRESSES];
	struct sockaddr_storage at[TOKG_ADDRESSES];
};
bool tokg_target_parse(struct tokg_target *t, const char *text, struct tokg_error *err);
/*
 * Resolves the host's name, unless it is resolved. May take as long as the name service: call it at
 * start, so that tokg_transport_open keeps its time limit later.
 */
bool tokg_target_resolve(struct tokg_target *t, struct tokg_error *err);
