/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The agent's end of the verbs transport: the registered region. Each producer has its own queue
 * pair and key, destroyed by tokg_verbs_end. Set-up only: the NIC does the transfers.
 */
#pragma once

#include "handshake/handshake.h"
#include "transport.h"

struct tokg_verbs_server;

struct tokg_verbs_server_config {
	const struct tokg_geometry *geometry; /* copied */
	/* As in struct tokg_device. The dma-buf is tried first, then the pointer. */
	void *region;		 /* host pointer, or NULL */
	uint64_t region_address; /* host or device pointer */
	int region_dmabuf;	 /* -1: none */
	const char *host;	 /* listening address, whose GID is preferred; NULL or "": none */
	/* Chosen automatically if NULL or below 0. */
	const char *rdma_device;
	int rdma_port, rdma_gid;
	uint8_t rdma_tclass, rdma_sl; /* traffic class and service level of what is sent */
};

/*
 * NULL and `err`: no device, or the region cannot be registered. `path`, for the log: device, port,
 * GID and the kind of registration.
 */
struct tokg_verbs_server *tokg_verbs_server_open(
	const struct tokg_verbs_server_config *c, char path[256], struct tokg_error *err);
void tokg_verbs_server_close(struct tokg_verbs_server *s);

/*
 * Makes a queue pair for `producer` towards `theirs` (hello.qp), ready to receive, and a key; fills
 * address, key and qp of the welcome. Ends the producer's former ones first. False and `err`:
 * `theirs` is invalid, or the device has no more.
 */
bool tokg_verbs_grant(struct tokg_verbs_server *s, uint32_t producer, const struct tokg_qp *theirs,
	struct tokg_welcome *w, struct tokg_error *err);
/*
 * After it returns, this producer can no longer write; what the NIC has sent to a GPU may still
 * land. Does nothing without a queue pair. False and `err`: the device does not destroy it.
 */
bool tokg_verbs_end(struct tokg_verbs_server *s, uint32_t producer, struct tokg_error *err);
