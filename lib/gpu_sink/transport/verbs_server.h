/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The agent's end of the verbs transport: the region as a NIC may write it. Each producer has a
 * queue pair and a key of its own, which both die with it: nothing that was in flight can land
 * after tokg_verbs_end has returned. Set-up only: the NIC does the work, the agent's CPU none.
 */
#ifndef TOKG_VERBS_SERVER_H
#define TOKG_VERBS_SERVER_H

#include "handshake/handshake.h"
#include "transport.h"

struct tokg_verbs_server;

struct tokg_verbs_server_config {
	const struct tokg_geometry *geometry; /* copied */
	/* As struct tokg_device has them. A dma-buf is tried first, then the pointer. */
	void *region;		 /* host pointer, or NULL */
	uint64_t region_address; /* host or device pointer */
	int region_dmabuf;	 /* -1: none */
	const char *host; /* listened at: a GID of its address is preferred; NULL, "": none is */
	/* Chosen automatically when NULL or below 0. */
	const char *rdma_device;
	int rdma_port, rdma_gid;
	int traffic_class; /* of RoCE packets; below 0: 0 */
};

/*
 * NULL and `err`: no device, or no way to register the region. `path` says for the log which
 * device, port and GID were taken and how the region is registered.
 */
struct tokg_verbs_server *tokg_verbs_server_open(
	const struct tokg_verbs_server_config *c, char path[256], struct tokg_error *err);
void tokg_verbs_server_close(struct tokg_verbs_server *s);

/*
 * Makes a queue pair for `producer` towards `theirs` (hello.qp), ready to receive, and a key;
 * fills address, key and qp of the welcome. What the producer had before is ended first. False and
 * `err`: theirs is not one (the refusal's words), or the device has no more.
 */
bool tokg_verbs_grant(struct tokg_verbs_server *s, uint32_t producer, const struct tokg_qp *theirs,
	struct tokg_welcome *w, struct tokg_error *err);
/* When it returns, nothing of this producer can be written any more. Without one: nothing. */
void tokg_verbs_end(struct tokg_verbs_server *s, uint32_t producer);

#endif
