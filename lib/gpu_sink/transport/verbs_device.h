/* SPDX-License-Identifier: BSD-3-Clause */
/* RDMA device, port and GID: chosen automatically, or as configured. Both ends, set-up only. */
#pragma once

#include <infiniband/verbs.h>
#include <sys/socket.h>

#include "transport.h"

struct tokg_rdma_wish {
	const char *device;	/* NULL: any */
	int port, gid;		/* below 0: any */
	const uint8_t *address; /* 16 bytes: of the interface towards the peer; or NULL */
	uint8_t tclass, sl;	/* of what is sent */
};

struct tokg_rdma {
	struct ibv_context *context;
	struct ibv_pd *pd;
	const char *name; /* the context's */
	uint8_t port;
	bool roce;
	uint32_t gid_index;
	union ibv_gid gid;
	uint16_t lid;
	enum ibv_mtu mtu;
	uint8_t tclass, sl;
	uint32_t wr_max; /* work requests of a queue */
	char text[128];	 /* for the log */
};

/*
 * Chooses an active port and its best GID: RoCE v2 before v1; wish->address first, then IPv4, IPv6,
 * link-local. False and `err`, with the devices.
 */
bool tokg_rdma_open(struct tokg_rdma *d, const struct tokg_rdma_wish *wish, struct tokg_error *err);
void tokg_rdma_close(struct tokg_rdma *d);

/* An address as in a GID: IPv4 mapped to IPv6. False: another family. */
bool tokg_rdma_address(const struct sockaddr *from, uint8_t gid[16]);

/* The error of a failed registration (errno), with limit and remedy. */
void tokg_rdma_no_mr(struct tokg_error *err, const char *what, uint64_t bytes);
