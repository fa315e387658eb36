/* SPDX-License-Identifier: BSD-3-Clause */
#include "verbs_server.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "transport_inside.h"
#include "verbs_qp.h"

/* Not IBV_ACCESS_RELAXED_ORDERING: a header must not pass its payload. */
#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

struct tokg_verbs_server {
	struct tokg_rdma rdma;
	uint64_t bytes;
	void *pointer;
	int dmabuf;	   /* -1: by pointer */
	struct ibv_cq *cq; /* required by queue pairs; never used */
	struct ibv_qp *qp[TOKG_PRODUCERS_MAX];
	struct ibv_mr *mr[TOKG_PRODUCERS_MAX];
};

static struct ibv_mr *
register_region(const struct tokg_verbs_server *s)
{
	if (s->dmabuf >= 0)
		return ibv_reg_dmabuf_mr(s->rdma.pd, 0, s->bytes, (uint64_t)(uintptr_t)s->pointer,
			s->dmabuf, ACCESS);
	return ibv_reg_mr(s->rdma.pd, s->pointer, s->bytes, ACCESS);
}

/* Tries once how the region can be registered, to fail at start. */
static bool
try_region(struct tokg_verbs_server *s, char how[96], struct tokg_error *err)
{
	struct ibv_mr *mr = register_region(s);
	const int dmabuf_errno = errno;

	snprintf(how, 96, "by dma-buf");
	if (mr == NULL && s->dmabuf >= 0) {
		s->dmabuf = -1;
		mr = register_region(s);
		snprintf(how, 96, "by pointer (dma-buf: %.60s)", strerror(dmabuf_errno));
	} else if (s->dmabuf < 0) {
		snprintf(how, 96, "by pointer");
	}
	if (mr == NULL) {
		tokg_rdma_no_mr(err, "the GPU ring", s->bytes);
		return false;
	}
	ibv_dereg_mr(mr);
	return true;
}

static bool
address_of(const char *host, uint8_t gid[16])
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
	struct addrinfo *list;
	bool found;

	if (host == NULL || host[0] == '\0' || getaddrinfo(host, NULL, &hints, &list) != 0)
		return false;
	found = tokg_rdma_address(list->ai_addr, gid);
	freeaddrinfo(list);
	return found;
}

struct tokg_verbs_server *
tokg_verbs_server_open(
	const struct tokg_verbs_server_config *c, char path[256], struct tokg_error *err)
{
	uint8_t address[16];
	const struct tokg_rdma_wish wish = {.device = c->rdma_device,
		.port = c->rdma_port,
		.gid = c->rdma_gid,
		.tclass = c->rdma_tclass,
		.sl = c->rdma_sl,
		.address = address_of(c->host, address) ? address : NULL};
	struct tokg_verbs_server *s = calloc(1, sizeof(*s));
	char how[96];

	if (s == NULL) {
		tokg_wrong(err, "cannot allocate the verbs transport");
		return NULL;
	}
	/* The region begins with the dma-buf; a NIC maps whole host pages. */
	s->bytes = tokg_align(c->geometry->region_bytes, (uint64_t)sysconf(_SC_PAGESIZE));
	s->pointer = c->region != NULL ? c->region : (void *)(uintptr_t)c->region_address;
	s->dmabuf = c->region_dmabuf;
	if (!tokg_rdma_open(&s->rdma, &wish, err)) {
		free(s);
		return NULL;
	}
	s->cq = ibv_create_cq(s->rdma.context, 1, NULL, NULL, 0);
	if (s->cq == NULL)
		tokg_wrong(err, "%s: a completion queue: %s", s->rdma.name, strerror(errno));
	if (s->cq == NULL || !try_region(s, how, err)) {
		tokg_verbs_server_close(s);
		return NULL;
	}
	snprintf(path, 256, "verbs: %s; region registered %s", s->rdma.text, how);
	return s;
}

void
tokg_verbs_server_close(struct tokg_verbs_server *s)
{
	struct tokg_error ignored;

	if (s == NULL)
		return;
	for (uint32_t i = 0; i < TOKG_PRODUCERS_MAX; i++)
		tokg_verbs_end(s, i, &ignored);
	if (s->cq != NULL)
		ibv_destroy_cq(s->cq);
	tokg_rdma_close(&s->rdma);
	free(s);
}

bool
tokg_verbs_grant(struct tokg_verbs_server *s, uint32_t producer, const struct tokg_qp *theirs,
	struct tokg_welcome *w, struct tokg_error *err)
{
	struct tokg_error ignored;

	if (producer >= TOKG_PRODUCERS_MAX)
		return tokg_wrong(
			err, "producer %u: must be at most %u", producer, TOKG_PRODUCERS_MAX - 1);
	if (!tokg_qp_proved(&s->rdma, theirs, err) || !tokg_verbs_end(s, producer, err))
		return false;
	s->mr[producer] = register_region(s);
	if (s->mr[producer] == NULL) {
		tokg_rdma_no_mr(err, "the GPU ring", s->bytes);
		return false;
	}
	s->qp[producer] = tokg_qp_make(
		&s->rdma, s->cq, 1, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ, &w->qp, err);
	if (s->qp[producer] == NULL ||
		!tokg_qp_connect(&s->rdma, s->qp[producer], &w->qp, theirs, false, err)) {
		tokg_verbs_end(s, producer, &ignored);
		return false;
	}
	w->address = (uint64_t)(uintptr_t)s->pointer;
	w->key = s->mr[producer]->rkey;
	return true;
}

bool
tokg_verbs_end(struct tokg_verbs_server *s, uint32_t producer, struct tokg_error *err)
{
	int rc;

	if (producer >= TOKG_PRODUCERS_MAX)
		return true;
	if (s->qp[producer] != NULL && (rc = ibv_destroy_qp(s->qp[producer])) != 0)
		return tokg_wrong(err, "%s: queue pair of producer %u cannot be destroyed: %s",
			s->rdma.name, producer, strerror(rc));
	s->qp[producer] = NULL;
	if (s->mr[producer] != NULL)
		ibv_dereg_mr(s->mr[producer]);
	s->mr[producer] = NULL;
	return true;
}
