/* SPDX-License-Identifier: BSD-3-Clause */
/* What an operator should know beside the path: what is here and does not work, and what is slow.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "judge.h"
#include "pci.h"

#define HEADER_BYTES 64 /* of a slot: goes inline */
#define MTU_BEST 4096

static void __attribute__((format(printf, 5, 6)))
add(struct verdict *v, bool problem, const char *thing, const char *remedy, const char *value, ...)
{
	struct finding *f = &v->findings[v->n_findings];
	va_list ap;

	if (v->n_findings == FINDINGS_MAX)
		return;
	v->n_findings++;
	f->problem = problem;
	snprintf(f->thing, sizeof(f->thing), "%s", thing);
	snprintf(f->remedy, sizeof(f->remedy), "%s", remedy);
	va_start(ap, value);
	vsnprintf(f->value, sizeof(f->value), value, ap);
	va_end(ap);
}

/* Has it a GID that would be taken? */
static bool
has_address(const struct rdma_port *p)
{
	for (int i = 0; i < p->n_gids; i++) {
		if (tokg_gid_rank(p->gids[i].type, p->gids[i].index, p->gids[i].raw) !=
			TOKG_RANK_NONE)
			return true;
	}
	return false;
}

/* Where one port is chosen, what is wrong with the others has no weight. */
static void
judge_ports(const struct machine *m, const struct rdma *d, struct verdict *v)
{
	const bool weighs = !m->chosen.found;
	char thing[80];

	for (int i = 0; i < d->n_ports; i++) {
		const struct rdma_port *p = &d->ports[i];

		snprintf(thing, sizeof(thing), "%s port %u", d->name, p->number);
		if (strcmp(p->state, "ACTIVE") != 0)
			add(v, weighs, thing,
				"cable, module, and the port at the other end; ip link set up its network "
				"device",
				"%s (physically %s), must be ACTIVE",
				p->state[0] != '\0' ? p->state : "state not known",
				p->phys_state[0] != '\0' ? p->phys_state : "not known");
		else if (!has_address(p))
			add(v, weighs, thing,
				strcmp(p->link, "Ethernet") == 0
					? "give its network device an IPv4 address, and set it up"
					: "is a subnet manager running (opensm)?",
				"%d GIDs, none of RoCE or InfiniBand", p->n_gids);
	}
	if (d->n_ports == 0)
		add(v, weighs, d->name, "is its driver loaded whole?", "it has no port");
	if (d->ports_left_out > 0)
		add(v, false, d->name, "name the port with --rdma-port",
			"%d more ports, not looked at", d->ports_left_out);
}

static void
judge_devices(const struct machine *m, struct verdict *v)
{
	if (m->verbs_note[0] != '\0')
		add(v, m->n_rdma > 0, "verbs", "modprobe ib_uverbs; is rdma-core installed?", "%s",
			m->verbs_note);
	for (int i = 0; i < m->n_rdma; i++) {
		const struct rdma *d = &m->rdma[i];

		if (d->open_error[0] != '\0')
			add(v, !m->chosen.found, d->name,
				"is ib_uverbs loaded, the provider's library installed (ibverbs-providers), "
				"and may this user open /dev/infiniband/uverbs*?",
				"cannot be opened: %s", d->open_error);
		if (d->iwarp)
			add(v, !m->chosen.found, d->name, "a device of InfiniBand or RoCE",
				"is of iWARP, which is not supported");
		else
			judge_ports(m, d, v);
	}
	if (m->rdma_left_out > 0)
		add(v, false, "RDMA", "name the device with --rdma-device",
			"%d more devices, not looked at", m->rdma_left_out);
}

static void
judge_chosen(const struct machine *m, struct verdict *v)
{
	const struct rdma *d = &m->rdma[m->chosen.device];
	const struct rdma_port *p = &d->ports[m->chosen.port];

	if (m->chosen.rank == TOKG_RANK_ROCE_V1)
		add(v, true, d->name,
			"a driver and firmware with RoCE v2 (cma_roce_mode), and an IPv4 address on its "
			"network device",
			"RoCE v1 is all there is: no router and few fabrics pass it on");
	if (m->chosen.rank == TOKG_RANK_LINK_LOCAL)
		add(v, false, d->name, "give its network device an IPv4 address",
			"a link-local GID is the best there is: no router passes it on");
	if (p->mtu > 0 && p->mtu < MTU_BEST)
		add(v, false, d->name,
			"ip link set dev NETDEV mtu 4200 at both ends and in the switches between",
			"RDMA's MTU is %u, %u goes", p->mtu, MTU_BEST);
	if (d->opened && d->max_inline < HEADER_BYTES)
		add(v, false, d->name, "",
			"takes %u bytes inline, a slot's header has %d: it is read "
			"from memory by the NIC",
			d->max_inline, HEADER_BYTES);
}

static void
judge_memlock(const struct machine *m, const struct options *o, struct verdict *v)
{
	const bool host = m->n_gpus == 0 || v->role == ROLE_PRODUCER;
	const uint64_t need = v->role == ROLE_PRODUCER ? o->ring : o->region;
	char limit[32], wants[32];

	if (!m->chosen.found || !host || !memlock_is_low(m, need))
		return;
	add(v, true, "locked memory",
		"LimitMEMLOCK=infinity in the unit, or ulimit -l unlimited before it starts",
		"limit %s, verbs register %s", bytes_text(m->system.memlock, limit),
		bytes_text(need, wants));
}

static void
judge_gpu(const struct machine *m, const struct gpu *g, const struct options *o, struct verdict *v)
{
	char have[32], need[32];

	if (!m->system.nvidia)
		add(v, true, g->name, "install the NVIDIA driver; modprobe nvidia",
			"at %s, its driver is not loaded", g->pci.address);
	if (g->bar1 > 0 && g->bar1 < o->region)
		add(v, true, g->name,
			"fewer or smaller slots in tokd-gpu; Resizable BAR and Above 4G Decoding in the "
			"firmware's set-up, where the GPU has them",
			"BAR1 is %s, the GPU ring takes %s", bytes_text(g->bar1, have),
			bytes_text(o->region, need));
	if (g->asked && g->order < ORDER_OWNER)
		add(v, false, g->name, "none is needed: each header waits for its payload (STRICT)",
			"CUDA does not promise the order of RDMA's writes (%d)", g->order);
}

/* Of the NIC that is taken and a GPU: what is between them. */
static void
judge_between(const struct machine *m, const struct gpu *g, struct verdict *v)
{
	const struct rdma *d = &m->rdma[m->chosen.device];
	const enum pci_between between = pci_compare(&d->pci, &g->pci);
	char thing[80], bridge[16];

	snprintf(thing, sizeof(thing), "%s and %s", d->name, g->pci.address);
	if (between >= PCI_SAME_NODE)
		add(v, false, thing, "use a NIC and a GPU of one root, by --rdma-device",
			"%s lie between them", pci_between_text(between));
	if (between == PCI_SAME_SWITCH && pci_redirects(&m->fs, &g->pci, bridge))
		add(v, false, thing,
			"switch ACS off in the firmware's set-up, or setpci -s BRIDGE ECAP_ACS+6.w=0; not "
			"where virtual machines share the switch",
			"bridge %s sends their traffic up to the root (ACS)", bridge);
	if (strncmp(d->pci.iommu_type, "DMA", 3) == 0 || strncmp(g->pci.iommu_type, "DMA", 3) == 0)
		add(v, false, thing, "iommu=pt on the kernel's command line",
			"the IOMMU translates (%s, %s)",
			d->pci.iommu_type[0] != '\0' ? d->pci.iommu_type : "no group",
			g->pci.iommu_type[0] != '\0' ? g->pci.iommu_type : "no group");
}

static void
judge_nearer(const struct machine *m, const struct gpu *g, struct verdict *v)
{
	const enum pci_between now = pci_compare(&m->rdma[m->chosen.device].pci, &g->pci);

	for (int i = 0; i < m->n_rdma && now != PCI_NOT_KNOWN; i++) {
		const enum pci_between other = pci_compare(&m->rdma[i].pci, &g->pci);

		if (i == m->chosen.device || other == PCI_NOT_KNOWN || other >= now)
			continue;
		for (int k = 0; k < m->rdma[i].n_ports; k++) {
			if (strcmp(m->rdma[i].ports[k].state, "ACTIVE") == 0 &&
				has_address(&m->rdma[i].ports[k])) {
				add(v, false, m->rdma[i].name, "choose it by --rdma-device",
					"is nearer to %s than %s is: %s", g->pci.address,
					m->rdma[m->chosen.device].name, pci_between_text(other));
				return;
			}
		}
	}
}

/* Where the NIC reaches one GPU, that it does not reach others has no weight. */
static void
judge_gpu_writes(const struct machine *m, struct verdict *v)
{
	bool weighs = true;

	if (!m->chosen.found || !m->system.nvidia)
		return;
	for (int i = 0; i < v->n_paths; i++)
		weighs &= v->paths[i].ways[0].works == NO && v->paths[i].ways[1].works == NO;
	for (int i = 0; i < v->n_paths; i++) {
		const struct paths *p = &v->paths[i];

		if (p->ways[0].works == NO && p->ways[1].works == NO)
			add(v, weighs, "GPUDirect RDMA",
				"see what stands against the paths; or tokd-gpu --ring host",
				"%s cannot write into the memory of the GPU at %s, by dma-buf or peer "
				"memory",
				m->rdma[m->chosen.device].name, p->gpu->pci.address);
	}
}

static void
judge_huge_pages(const struct machine *m, struct verdict *v)
{
	uint64_t total = 0;

	for (int i = 0; i < m->system.n_huge; i++)
		total += m->system.huge[i].total;
	if (total == 0)
		add(v, false, "huge pages",
			"reserve some (nr_hugepages), or start dpdk-tokd with --no-huge",
			"none are reserved on any node");
	else if (m->system.n_hugetlbfs == 0)
		add(v, false, "hugetlbfs", "mount -t hugetlbfs none /dev/hugepages, or --in-memory",
			"not mounted: EAL finds no huge pages");
}

void
judge_findings(const struct machine *m, const struct options *o, struct verdict *v)
{
	judge_devices(m, v);
	if (m->chosen.found)
		judge_chosen(m, v);
	judge_memlock(m, o, v);
	if (v->role == ROLE_AGENT && m->n_gpus > 0) {
		for (int i = 0; i < m->n_gpus; i++)
			judge_gpu(m, &m->gpus[i], o, v);
		for (int i = 0; i < m->n_gpus && m->chosen.found; i++) {
			judge_between(m, &m->gpus[i], v);
			judge_nearer(m, &m->gpus[i], v);
		}
		judge_gpu_writes(m, v);
	}
	judge_huge_pages(m, v);
}
