/* SPDX-License-Identifier: BSD-3-Clause */
/* RDMA devices as sysfs has them: what there is also where verbs cannot be asked. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>

#include "pci.h"

#define IB "/sys/class/infiniband"

/* "4: ACTIVE" */
static void
after_colon(char *text)
{
	const char *colon = strchr(text, ':');

	if (colon != NULL) {
		colon += 1 + strspn(colon + 1, " ");
		memmove(text, colon, strlen(colon) + 1);
	}
}

/*
 * What the kernel makes of a netdev's MTU (iboe_get_mtu): the greatest of RDMA's that fits with its
 * headers. 0: none does.
 */
static uint32_t
mtu_of_netdev(uint64_t mtu)
{
	const uint64_t headers = 40 + 8 + 12 + 4 + 28 + 4; /* GRH, UDP, BTH, XRC, atomic, ICRC */

	for (uint32_t n = 4096; n >= 256; n /= 2) {
		if (mtu >= n + headers)
			return n;
	}
	return 0;
}

static enum tokg_gid_type
type_of(const char *text, const char *link)
{
	if (strcmp(text, "RoCE v2") == 0)
		return TOKG_GID_ROCE_V2;
	if (strcmp(text, "IB/RoCE v1") == 0)
		return strcmp(link, "Ethernet") == 0 ? TOKG_GID_ROCE_V1 : TOKG_GID_IB;
	return TOKG_GID_OTHER;
}

static bool
is_zero(const uint8_t raw[16])
{
	static const uint8_t none[16];

	return memcmp(raw, none, 16) == 0;
}

/* A place that is not used reads as zeros; its type cannot be read. */
static void
find_gids(const struct fs *fs, struct rdma_port *port, const char *path)
{
	struct fs_names at = fs_list(fs, "%s/gids", path);
	char text[64];

	port->gids = calloc(RDMA_GIDS_MAX, sizeof(*port->gids));
	for (int i = 0; port->gids != NULL && i < at.n && port->n_gids < RDMA_GIDS_MAX; i++) {
		struct gid *gid = &port->gids[port->n_gids];

		if (!fs_line(fs, text, sizeof(text), "%s/gids/%s", path, at.name[i]) ||
			inet_pton(AF_INET6, text, gid->raw) != 1 || is_zero(gid->raw))
			continue;
		gid->index = (uint32_t)strtoul(at.name[i], NULL, 10);
		fs_line(fs, text, sizeof(text), "%s/gid_attrs/types/%s", path, at.name[i]);
		gid->type = type_of(text, port->link);
		fs_line(fs, gid->netdev, sizeof(gid->netdev), "%s/gid_attrs/ndevs/%s", path,
			at.name[i]);
		port->n_gids++;
	}
	fs_names_free(&at);
}

/* Verbs know better, where they can be asked. */
static void
find_mtu(const struct fs *fs, struct rdma_port *port)
{
	uint64_t mtu;

	for (int i = 0; i < port->n_gids; i++) {
		if (fs_is_name(port->gids[i].netdev) &&
			fs_u64(fs, &mtu, "/sys/class/net/%s/mtu", port->gids[i].netdev)) {
			port->mtu = mtu_of_netdev(mtu);
			port->mtu_from = "netdev";
			return;
		}
	}
}

static void
find_port(const struct fs *fs, struct rdma_port *port, const char *device, const char *number)
{
	char path[PATH_MAX];
	uint64_t lid;

	snprintf(path, sizeof(path), IB "/%s/ports/%s", device, number);
	port->number = (uint32_t)strtoul(number, NULL, 10);
	fs_line(fs, port->state, sizeof(port->state), "%s/state", path);
	after_colon(port->state);
	fs_line(fs, port->phys_state, sizeof(port->phys_state), "%s/phys_state", path);
	after_colon(port->phys_state);
	fs_line(fs, port->link, sizeof(port->link), "%s/link_layer", path);
	fs_line(fs, port->rate, sizeof(port->rate), "%s/rate", path);
	if (fs_u64(fs, &lid, "%s/lid", path) && lid <= UINT16_MAX)
		port->lid = (uint32_t)lid;
	find_gids(fs, port, path);
	find_mtu(fs, port);
}

static void
find_device(const struct fs *fs, struct rdma *d, const char *name)
{
	struct fs_names ports = fs_list(fs, IB "/%s/ports", name);
	char link[PATH_MAX], type[32];

	snprintf(d->name, sizeof(d->name), "%s", name);
	fs_line(fs, d->firmware, sizeof(d->firmware), IB "/%s/fw_ver", name);
	fs_line(fs, d->board, sizeof(d->board), IB "/%s/board_id", name);
	fs_line(fs, d->model, sizeof(d->model), IB "/%s/hca_type", name);
	fs_line(fs, type, sizeof(type), IB "/%s/node_type", name);
	d->iwarp = strstr(type, "RNIC") != NULL;
	snprintf(link, sizeof(link), IB "/%s/device", name);
	pci_find(fs, &d->pci, link);
	for (int i = 0; i < ports.n; i++) {
		if (d->n_ports == RDMA_PORTS_MAX)
			d->ports_left_out++;
		else
			find_port(fs, &d->ports[d->n_ports++], name, ports.name[i]);
	}
	fs_names_free(&ports);
}

void
find_rdma(struct machine *m)
{
	struct fs_names names = fs_list(&m->fs, IB);

	for (int i = 0; i < names.n; i++) {
		if (m->n_rdma == RDMA_MAX)
			m->rdma_left_out++;
		else
			find_device(&m->fs, &m->rdma[m->n_rdma++], names.name[i]);
	}
	fs_names_free(&names);
}
