/* SPDX-License-Identifier: BSD-3-Clause */
#include "verbs_device.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "transport_inside.h"
#include "verbs_rank.h"

#define GIDS_MAX 256

struct candidate {
	enum tokg_gid_rank rank;
	struct ibv_device *device;
	uint8_t port;
	struct ibv_gid_entry gid;
	bool others; /* devices with one as good */
};

/* enum tokg_gid_type of libibverbs' own, which calls InfiniBand's and RoCE v1's apart. */
static enum tokg_gid_type
type_of(uint32_t type)
{
	switch (type) {
	case IBV_GID_TYPE_IB:
		return TOKG_GID_IB;
	case IBV_GID_TYPE_ROCE_V1:
		return TOKG_GID_ROCE_V1;
	case IBV_GID_TYPE_ROCE_V2:
		return TOKG_GID_ROCE_V2;
	}
	return TOKG_GID_OTHER;
}

static enum tokg_gid_rank
rank_of(const struct ibv_gid_entry *g, const struct tokg_rdma_wish *wish)
{
	if (wish->gid >= 0)
		return (uint32_t)wish->gid == g->gid_index ? TOKG_RANK_CHOSEN : TOKG_RANK_NONE;
	if (wish->address != NULL && g->gid_type == IBV_GID_TYPE_ROCE_V2 &&
		memcmp(g->gid.raw, wish->address, 16) == 0)
		return TOKG_RANK_CHOSEN;
	return tokg_gid_rank(type_of(g->gid_type), g->gid_index, g->gid.raw);
}

static void
look_at_device(struct ibv_device *device, const struct tokg_rdma_wish *wish, struct candidate *best)
{
	struct ibv_gid_entry gids[GIDS_MAX];
	struct ibv_context *x = ibv_open_device(device);
	ssize_t n = x != NULL ? ibv_query_gid_table(x, gids, GIDS_MAX, 0) : 0;

	for (ssize_t i = 0; i < n; i++) {
		const enum tokg_gid_rank rank = rank_of(&gids[i], wish);
		struct ibv_port_attr port;

		if (rank == TOKG_RANK_NONE || rank < best->rank ||
			(wish->port >= 0 && (uint32_t)wish->port != gids[i].port_num) ||
			ibv_query_port(x, (uint8_t)gids[i].port_num, &port) != 0 ||
			port.state != IBV_PORT_ACTIVE)
			continue;
		if (rank == best->rank)
			best->others |= device != best->device;
		else
			*best = (struct candidate){
				rank, device, (uint8_t)gids[i].port_num, gids[i], false};
	}
	if (x != NULL)
		ibv_close_device(x);
}

/* Names of all devices, for a message. */
static void
names_of(struct ibv_device **list, int n, char *to, size_t room)
{
	size_t at = 0;

	to[0] = '\0';
	for (int i = 0; i < n && at + 2 < room; i++)
		at += (size_t)snprintf(to + at, room - at, "%s%s", i > 0 ? ", " : "",
			ibv_get_device_name(list[i]));
}

static bool
choose(struct ibv_device **list, int n, const struct tokg_rdma_wish *wish, struct candidate *best,
	struct tokg_error *err)
{
	char names[128];
	bool named = false;

	memset(best, 0, sizeof(*best));
	for (int i = 0; i < n; i++) {
		if (list[i]->transport_type != IBV_TRANSPORT_IB ||
			(wish->device != NULL &&
				strcmp(wish->device, ibv_get_device_name(list[i])) != 0))
			continue;
		named = true;
		look_at_device(list[i], wish, best);
	}
	if (best->rank != TOKG_RANK_NONE)
		return true;
	names_of(list, n, names, sizeof(names));
	if (n == 0)
		return tokg_wrong(err, "no RDMA device on this host (ibv_devices lists none)");
	if (!named)
		return tokg_wrong(err,
			"no RDMA device \"%.40s\" with RC (InfiniBand, RoCE); devices: %.100s",
			wish->device != NULL ? wish->device : "", names);
	return tokg_wrong(err,
		"no active port with such a GID (port %d, GID %d; -1: any) on %.100s: see "
		"ibv_devinfo -v",
		wish->port, wish->gid, wish->device != NULL ? wish->device : names);
}

static bool
open_chosen(struct tokg_rdma *d, const struct candidate *c, struct tokg_error *err)
{
	const char *name = ibv_get_device_name(c->device);
	struct ibv_port_attr port;
	struct ibv_device_attr device;
	char gid[INET6_ADDRSTRLEN];

	d->context = ibv_open_device(c->device);
	if (d->context == NULL)
		return tokg_wrong(err, "%s: cannot open it: %s", name, strerror(errno));
	d->name = ibv_get_device_name(d->context->device);
	d->pd = ibv_alloc_pd(d->context);
	if (d->pd == NULL || ibv_query_port(d->context, c->port, &port) != 0 ||
		ibv_query_device(d->context, &device) != 0)
		return tokg_wrong(err, "%s: %s", name, strerror(errno));
	d->port = c->port;
	d->roce = port.link_layer == IBV_LINK_LAYER_ETHERNET;
	d->gid_index = c->gid.gid_index;
	d->gid = c->gid.gid;
	d->lid = port.lid;
	d->mtu = port.active_mtu;
	d->wr_max = device.max_qp_wr > 0 ? (uint32_t)device.max_qp_wr : 1;
	snprintf(d->text, sizeof(d->text), "%.30s port %u, GID %u %s%s%s", name, d->port,
		d->gid_index, inet_ntop(AF_INET6, d->gid.raw, gid, sizeof(gid)),
		!d->roce				  ? ""
		: c->gid.gid_type == IBV_GID_TYPE_ROCE_V2 ? " (RoCE v2)"
							  : " (RoCE v1)",
		c->others ? ", first of several: -d chooses" : "");
	return true;
}

bool
tokg_rdma_open(struct tokg_rdma *d, const struct tokg_rdma_wish *wish, struct tokg_error *err)
{
	struct ibv_device **list;
	struct candidate best;
	bool ok;
	int n = 0;

	memset(d, 0, sizeof(*d));
	d->tclass = wish->tclass;
	d->sl = wish->sl;
	list = ibv_get_device_list(&n);
	if (list == NULL)
		return tokg_wrong(
			err, "RDMA devices of this host: %s: modprobe ib_uverbs", strerror(errno));
	ok = choose(list, n, wish, &best, err) && open_chosen(d, &best, err);
	ibv_free_device_list(list);
	if (!ok)
		tokg_rdma_close(d);
	return ok;
}

bool
tokg_rdma_address(const struct sockaddr *from, uint8_t gid[16])
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	if (from->sa_family == AF_INET6) {
		memcpy(gid, &((const struct sockaddr_in6 *)(const void *)from)->sin6_addr, 16);
		return true;
	}
	if (from->sa_family != AF_INET)
		return false;
	memcpy(gid, mapped, sizeof(mapped));
	memcpy(gid + sizeof(mapped), &((const struct sockaddr_in *)(const void *)from)->sin_addr,
		4);
	return true;
}

void
tokg_rdma_close(struct tokg_rdma *d)
{
	if (d->pd != NULL)
		ibv_dealloc_pd(d->pd);
	if (d->context != NULL)
		ibv_close_device(d->context);
	d->pd = NULL;
	d->context = NULL;
}

void
tokg_rdma_no_mr(struct tokg_error *err, const char *what, uint64_t bytes)
{
	const int code = errno;
	struct rlimit limit;

	if (code != ENOMEM || getrlimit(RLIMIT_MEMLOCK, &limit) != 0 ||
		limit.rlim_cur == RLIM_INFINITY)
		tokg_wrong(err, "registering %s of %" PRIu64 " bytes: %s", what, bytes,
			strerror(code));
	else
		tokg_wrong(err,
			"registering %s of %" PRIu64
			" bytes: %s: the limit of locked memory is %" PRIu64
			": raise it (ulimit -l, LimitMEMLOCK=)",
			what, bytes, strerror(code), (uint64_t)limit.rlim_cur);
}
