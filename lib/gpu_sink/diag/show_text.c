/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdio.h>

#include "pci.h"
#include "show.h"

#define GIDS_SHOWN 16

static void
show_pci(const struct pci *pci)
{
	if (pci->address[0] == '\0') {
		printf(", not on PCI");
		return;
	}
	printf(", PCI %s", pci->address);
	if (pci->driver[0] != '\0')
		printf(", driver %s", pci->driver);
	if (pci->node >= 0)
		printf(", NUMA node %d", pci->node);
	if (pci->iommu_group[0] != '\0')
		printf(", IOMMU group %s (%s)", pci->iommu_group,
			pci->iommu_type[0] != '\0' ? pci->iommu_type : "type not known");
}

static void
show_port(const struct machine *m, const struct rdma *d, int index)
{
	const struct rdma_port *p = &d->ports[index];
	const struct chosen *c = &m->chosen;
	const bool taken = c->found && &m->rdma[c->device] == d && c->port == index;
	char text[46];

	printf("    port %u: %s, %s, %s", p->number, p->state, p->link, p->rate);
	if (p->mtu > 0)
		printf(", MTU %u", p->mtu);
	if (p->mtu_max > 0)
		printf(" of %u", p->mtu_max);
	if (p->lid > 0)
		printf(", LID %u", p->lid);
	putchar('\n');
	for (int i = 0; i < p->n_gids; i++) {
		const struct gid *g = &p->gids[i];

		if (i >= GIDS_SHOWN && !(taken && c->gid == i))
			continue;
		printf("    %s GID %u: %s %s, %s%s%s\n", taken && c->gid == i ? "->" : "  ",
			g->index, gid_text(g, text), gid_type_text(g->type), gid_scope(g),
			g->netdev[0] != '\0' ? ", " : "", g->netdev);
	}
	if (p->n_gids > GIDS_SHOWN)
		printf("       %d GIDs in all: see --json\n", p->n_gids);
}

static void
show_rdma(const struct machine *m)
{
	puts("RDMA devices");
	if (m->n_rdma == 0)
		puts("  none. A NIC with RDMA (ConnectX, BlueField) with its driver (mlx5_ib) gives "
		     "one; to try it in\n  software: rdma link add rxe0 type rxe netdev NETDEV");
	for (int i = 0; i < m->n_rdma; i++) {
		const struct rdma *d = &m->rdma[i];

		printf("  %s: firmware %s, %s", d->name,
			d->firmware[0] != '\0' ? d->firmware : "not known",
			d->model[0] != '\0' ? d->model : "model not known");
		show_pci(&d->pci);
		putchar('\n');
		if (d->opened)
			printf("    max_qp_wr %u, inline %u bytes, dma-buf %s (%s)\n", d->max_qp_wr,
				d->max_inline, known_text(d->dmabuf), d->dmabuf_why);
		for (int k = 0; k < d->n_ports; k++)
			show_port(m, d, k);
	}
	if (m->chosen.found)
		printf("  -> %s port %u GID %u: %s\n", m->rdma[m->chosen.device].name,
			m->rdma[m->chosen.device].ports[m->chosen.port].number,
			m->rdma[m->chosen.device].ports[m->chosen.port].gids[m->chosen.gid].index,
			m->chosen.why);
	else if (m->n_rdma > 0)
		printf("  -> none: %s\n", m->chosen.why);
}

static void
show_gpus(const struct machine *m)
{
	char text[32];

	puts("GPUs");
	if (m->n_gpus == 0)
		puts("  none of NVIDIA on the PCI bus");
	for (int i = 0; i < m->n_gpus; i++) {
		const struct gpu *g = &m->gpus[i];

		printf("  %s", g->name);
		show_pci(&g->pci);
		putchar('\n');
		printf("    BAR1 %s", g->bar1 > 0 ? bytes_text(g->bar1, text) : "not known");
		if (g->has_bar1_free)
			printf(" (%s free)", bytes_text(g->bar1_free, text));
		if (g->asked)
			printf(", compute capability %d.%d", g->major, g->minor);
		printf(", dma-buf %s, order of RDMA's writes: %s\n",
			known_text(g->dmabuf_supported), order_text(g));
		for (int k = 0; k < m->n_rdma; k++)
			printf("    to %s: %s\n", m->rdma[k].name,
				pci_between_text(pci_compare(&m->rdma[k].pci, &g->pci)));
	}
	if (m->cuda_note[0] != '\0')
		printf("  CUDA: %s\n", m->cuda_note);
}

static void
show_system(const struct system *s)
{
	char text[32];

	printf("System\n  kernel %s; modules:%s%s%s%s%s\n",
		s->kernel[0] != '\0' ? s->kernel : "not known", s->mlx5_ib ? " mlx5_ib" : "",
		s->nvidia ? " nvidia" : "", s->peermem ? " peer memory" : "",
		s->gdrdrv ? " gdrdrv" : "",
		s->mlx5_ib || s->nvidia || s->peermem || s->gdrdrv ? ""
								   : " none of those asked for");
	if (s->nvidia_version[0] != '\0')
		printf("  NVIDIA driver: %s\n", s->nvidia_version);
	printf("  locked memory: %s%s\n",
		!s->has_memlock		   ? "not known"
		: s->memlock == UINT64_MAX ? "unlimited"
					   : bytes_text(s->memlock, text),
		s->memlock_free == YES ? "; CAP_IPC_LOCK: it does not bind" : "");
	printf("  IOMMU: %s%s%s\n", s->iommu ? "in use" : "none", s->cmdline_iommu[0] ? ", " : "",
		s->cmdline_iommu);
	for (int i = 0; i < s->n_huge; i++)
		printf("  node %d: %" PRIu64 " huge pages of %s, %" PRIu64 " free\n",
			s->huge[i].node, s->huge[i].total, bytes_text(s->huge[i].kb << 10, text),
			s->huge[i].free);
	for (int i = 0; i < s->n_hugetlbfs; i++)
		printf("  hugetlbfs at %s\n", s->hugetlbfs[i]);
}

static void
show_finding(const char *lead, const struct finding *f)
{
	printf("%s%s: %s%s%s\n", lead, f->thing, f->value, f->remedy[0] != '\0' ? "; " : "",
		f->remedy);
}

static void
show_ways(const struct verdict *v, const struct paths *p)
{
	printf("Paths for %s (%s)", v->role == ROLE_AGENT ? "tokd-gpu" : "dpdk-tokd", v->role_why);
	if (v->n_paths > 1)
		printf(", %s at %s", p->gpu->name, p->gpu->pci.address);
	puts(", best first");
	for (int i = 0; i < p->n_ways; i++) {
		const struct way *w = &p->ways[i];

		printf("%s %s: %s\n", i == p->taken ? "->" : "  ", w->name,
			w->works == NO	  ? "not possible"
			: w->works == YES ? "possible"
					  : "nothing known is against it");
		for (int k = 0; k < w->no.n; k++)
			show_finding("     no: ", &w->no.of[k]);
		for (int k = 0; k < w->unknown.n; k++)
			show_finding("     not known: ", &w->unknown.of[k]);
	}
}

int
show_text(const struct machine *m, const struct verdict *v)
{
	show_rdma(m);
	show_gpus(m);
	show_system(&m->system);
	for (int i = 0; i < v->n_paths; i++)
		show_ways(v, &v->paths[i]);
	puts("Findings");
	if (v->n_findings == 0)
		puts("  none");
	for (int i = 0; i < v->n_findings; i++)
		show_finding(v->findings[i].problem ? "  PROBLEM " : "  note ", &v->findings[i]);
	return fflush(stdout) != 0 || ferror(stdout) ? -1 : 0;
}
