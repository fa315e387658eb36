/* SPDX-License-Identifier: BSD-3-Clause */
/* Jansson keeps what it could not make as NULL, and passes it on: one look at the end suffices. */
#include <stdio.h>

#include <jansson.h>

#include "pci.h"
#include "show.h"

/* NULL for what is not known. */
static json_t *
text_or_null(const char *text)
{
	return text[0] != '\0' ? json_string(text) : json_null();
}

static json_t *
number_or_null(uint64_t n)
{
	return n > 0 ? json_integer((json_int_t)n) : json_null();
}

static json_t *
known(enum known k)
{
	return k == NOT_KNOWN ? json_null() : json_boolean(k == YES);
}

static json_t *
of_pci(const struct pci *p)
{
	if (p->address[0] == '\0')
		return json_null();
	return json_pack("{so ss so si so so}", "address", json_string(p->address), "path", p->path,
		"driver", text_or_null(p->driver), "numa_node", p->node, "iommu_group",
		text_or_null(p->iommu_group), "iommu_type", text_or_null(p->iommu_type));
}

static json_t *
of_gid(const struct gid *g)
{
	char text[46];

	return json_pack("{si ss ss ss so}", "index", (int)g->index, "gid", gid_text(g, text),
		"type", gid_type_text(g->type), "scope", gid_scope(g), "netdev",
		text_or_null(g->netdev));
}

static json_t *
of_port(const struct rdma_port *p)
{
	json_t *gids = json_array();

	for (int i = 0; i < p->n_gids; i++)
		json_array_append_new(gids, of_gid(&p->gids[i]));
	return json_pack("{si so so so so si so so ss so}", "port", (int)p->number, "state",
		text_or_null(p->state), "phys_state", text_or_null(p->phys_state), "link_layer",
		text_or_null(p->link), "rate", text_or_null(p->rate), "lid", (int)p->lid, "mtu",
		number_or_null(p->mtu), "mtu_max", number_or_null(p->mtu_max), "mtu_from",
		p->mtu_from != NULL ? p->mtu_from : "nothing", "gids", gids);
}

static json_t *
of_rdma(const struct rdma *d)
{
	json_t *ports = json_array();

	for (int i = 0; i < d->n_ports; i++)
		json_array_append_new(ports, of_port(&d->ports[i]));
	return json_pack("{ss so so so so sb so so so so ss so}", "name", d->name, "firmware",
		text_or_null(d->firmware), "board", text_or_null(d->board), "model",
		text_or_null(d->model), "pci", of_pci(&d->pci), "opened", d->opened, "open_error",
		text_or_null(d->open_error), "max_qp_wr", number_or_null(d->max_qp_wr),
		"max_inline", number_or_null(d->max_inline), "dmabuf", known(d->dmabuf),
		"dmabuf_why", d->dmabuf_why, "ports", ports);
}

static json_t *
of_reasons(const struct reasons *r)
{
	json_t *list = json_array();

	for (int i = 0; i < r->n; i++)
		json_array_append_new(
			list, json_pack("{ss ss ss}", "thing", r->of[i].thing, "value",
				      r->of[i].value, "remedy", r->of[i].remedy));
	return list;
}

static json_t *
of_way(const struct way *w)
{
	static const char *const kinds[] = {"", "verbs", "cuda", "shm"};

	return json_pack("{ss ss ss so so}", "path", w->name, "kind", kinds[w->kind], "works",
		known_text(w->works), "against", of_reasons(&w->no), "not_known",
		of_reasons(&w->unknown));
}

static json_t *
of_paths(const struct paths *p)
{
	json_t *list = json_array();

	for (int i = 0; i < p->n_ways; i++)
		json_array_append_new(list, of_way(&p->ways[i]));
	return list;
}

static json_t *
of_gpu(const struct machine *m, const struct gpu *g, const struct paths *p)
{
	json_t *to = json_object();

	for (int i = 0; i < m->n_rdma; i++)
		json_object_set_new(to, m->rdma[i].name,
			json_string(pci_between_text(pci_compare(&m->rdma[i].pci, &g->pci))));
	return json_pack("{ss so so so ss sb si si ss so so so so ss}", "name", g->name, "pci",
		of_pci(&g->pci), "bar1", number_or_null(g->bar1), "bar1_free",
		g->has_bar1_free ? json_integer((json_int_t)g->bar1_free) : json_null(),
		"bar1_from", g->bar1_from, "asked", g->asked, "major", g->major, "minor", g->minor,
		"write_order", order_text(g), "gpudirect_rdma", known(g->rdma_supported), "dmabuf",
		known(g->dmabuf_supported), "to", to, "paths", of_paths(p), "taken",
		p->ways[p->taken].name);
}

static json_t *
of_huge(const struct system *s)
{
	json_t *list = json_array();

	for (int i = 0; i < s->n_huge; i++)
		json_array_append_new(list,
			json_pack("{si sI sI sI}", "node", s->huge[i].node, "kb",
				(json_int_t)s->huge[i].kb, "total", (json_int_t)s->huge[i].total,
				"free", (json_int_t)s->huge[i].free));
	return list;
}

static json_t *
of_system(const struct system *s)
{
	json_t *mounts = json_array(), *memlock = json_null();

	for (int i = 0; i < s->n_hugetlbfs; i++)
		json_array_append_new(mounts, json_string(s->hugetlbfs[i]));
	if (s->has_memlock)
		memlock = s->memlock == UINT64_MAX ? json_string("unlimited")
						   : json_integer((json_int_t)s->memlock);
	return json_pack("{so so sb sb sb sb sb sb so so so sb so so so}", "kernel",
		text_or_null(s->kernel), "nvidia_version", text_or_null(s->nvidia_version),
		"nvidia", s->nvidia, "nvidia_open", s->nvidia_open, "peer_memory", s->peermem,
		"gdrdrv", s->gdrdrv, "gdrdrv_node", s->gdrdrv_node, "mlx5_ib", s->mlx5_ib, "gdrapi",
		known(s->gdrapi), "memlock", memlock, "memlock_free", known(s->memlock_free),
		"iommu", s->iommu, "iommu_options", text_or_null(s->cmdline_iommu), "huge_pages",
		of_huge(s), "hugetlbfs", mounts);
}

static json_t *
of_chosen(const struct machine *m)
{
	const struct chosen *c = &m->chosen;
	const struct rdma_port *p;

	if (!c->found)
		return json_pack("{sn ss}", "device", "why", c->why);
	p = &m->rdma[c->device].ports[c->port];
	return json_pack("{ss si si ss}", "device", m->rdma[c->device].name, "port", (int)p->number,
		"gid", (int)p->gids[c->gid].index, "why", c->why);
}

static json_t *
of_finding(const struct finding *f)
{
	return json_pack("{ss ss ss sb}", "thing", f->thing, "value", f->value, "remedy", f->remedy,
		"problem", f->problem);
}

static json_t *
of_all(const struct machine *m, const struct options *o, const struct verdict *v)
{
	const struct paths *best = &v->paths[v->best];
	json_t *rdma = json_array(), *gpus = json_array(), *findings = json_array();

	for (int i = 0; i < m->n_rdma; i++)
		json_array_append_new(rdma, of_rdma(&m->rdma[i]));
	for (int i = 0; i < m->n_gpus; i++)
		json_array_append_new(gpus, of_gpu(m, &m->gpus[i], &v->paths[i]));
	for (int i = 0; i < v->n_findings; i++)
		json_array_append_new(findings, of_finding(&v->findings[i]));
	return json_pack("{ss sb so so so so so so ss so so so ss so}", "version", TOKD_VERSION,
		"good", verdict_is_good(v, (enum want)o->want), "rdma", rdma, "verbs_note",
		text_or_null(m->verbs_note), "chosen", of_chosen(m), "gpus", gpus, "cuda_note",
		text_or_null(m->cuda_note), "cuda_version",
		number_or_null((uint64_t)m->cuda_version), "role",
		v->role == ROLE_AGENT ? "agent" : "producer", "role_why", json_string(v->role_why),
		"system", of_system(&m->system), "paths", of_paths(best), "taken",
		best->ways[best->taken].name, "findings", findings);
}

int
show_json(const struct machine *m, const struct options *o, const struct verdict *v)
{
	json_t *all = of_all(m, o, v);
	int failed;

	if (all == NULL) {
		fputs("tokd-diag: no memory for the report\n", stderr);
		return -1;
	}
	failed = json_dumpf(all, stdout, JSON_INDENT(2)) != 0 || putchar('\n') == EOF;
	json_decref(all);
	return failed || fflush(stdout) != 0 ? -1 : 0;
}
