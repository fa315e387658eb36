/* SPDX-License-Identifier: BSD-3-Clause */
/* The device, port and GID that are taken where nobody names one, and why. */
#include <stdio.h>
#include <string.h>

#include "machine.h"

static bool
is_active(const struct rdma_port *p)
{
	return strcmp(p->state, "ACTIVE") == 0;
}

static const char *
rank_text(enum tokg_gid_rank rank)
{
	static const char *const text[] = {[TOKG_RANK_NONE] = "no GID",
		[TOKG_RANK_ROCE_V1] = "RoCE v1; no better GID",
		[TOKG_RANK_LINK_LOCAL] = "RoCE v2 of a link-local address; no better GID",
		[TOKG_RANK_IPV6] = "RoCE v2 of an IPv6 address; none of an IPv4 one",
		[TOKG_RANK_IPV4] = "RoCE v2 of an IPv4 address",
		[TOKG_RANK_INFINIBAND] = "InfiniBand",
		[TOKG_RANK_TOLD] = "the GID asked for"};

	return text[rank];
}

/* Of InfiniBand or RoCE, and could be opened; that is not known of a prepared machine. */
static bool
can_be_used(const struct machine *m, const struct rdma *d)
{
	return !d->iwarp && (!m->fs.live || d->opened);
}

static void
best_of_port(struct machine *m, int device, int port)
{
	const struct rdma_port *p = &m->rdma[device].ports[port];
	struct chosen *c = &m->chosen;

	for (int i = 0; i < p->n_gids; i++) {
		const enum tokg_gid_rank rank =
			tokg_gid_rank(p->gids[i].type, p->gids[i].index, p->gids[i].raw);

		if (rank <= c->rank)
			continue;
		*c = (struct chosen){
			.found = true, .device = device, .port = port, .gid = i, .rank = rank};
		snprintf(c->why, sizeof(c->why), "the first active port with %s", rank_text(rank));
	}
}

/* Of several reasons the one that lies nearest to working. */
static void
why_none(struct machine *m)
{
	struct chosen *c = &m->chosen;
	int opened = 0, active = 0;

	for (int i = 0; i < m->n_rdma; i++) {
		opened += can_be_used(m, &m->rdma[i]);
		for (int k = 0; k < m->rdma[i].n_ports; k++)
			active += can_be_used(m, &m->rdma[i]) && is_active(&m->rdma[i].ports[k]);
	}
	if (m->n_rdma == 0)
		snprintf(c->why, sizeof(c->why), "no RDMA device");
	else if (opened == 0)
		snprintf(c->why, sizeof(c->why),
			"no RDMA device of InfiniBand or RoCE can be opened");
	else if (active == 0)
		snprintf(c->why, sizeof(c->why), "no port of an RDMA device is active");
	else
		snprintf(c->why, sizeof(c->why), "no active port has a GID of RoCE or InfiniBand");
}

void
choose_rdma(struct machine *m)
{
	for (int i = 0; i < m->n_rdma; i++) {
		for (int k = 0; k < m->rdma[i].n_ports; k++) {
			if (can_be_used(m, &m->rdma[i]) && is_active(&m->rdma[i].ports[k]))
				best_of_port(m, i, k);
		}
	}
	if (!m->chosen.found)
		why_none(m);
}
