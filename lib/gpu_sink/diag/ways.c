/* SPDX-License-Identifier: BSD-3-Clause */
/* The ways into the memory that is embedded from, best first, and what stands against each. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "judge.h"

#define DMABUF_MAJOR 5 /* ib_uverbs takes dma-bufs from Linux 5.12 on */
#define DMABUF_MINOR 12
#define CUDA_MAPS 13030 /* from its driver on the CPU may map a dma-buf of GPU memory */

static void __attribute__((format(printf, 4, 5)))
add(struct reasons *r, const char *thing, const char *remedy, const char *value, ...)
{
	struct finding *f = &r->of[r->n];
	va_list ap;

	if (r->n == REASONS_MAX)
		return;
	r->n++;
	snprintf(f->thing, sizeof(f->thing), "%s", thing);
	snprintf(f->remedy, sizeof(f->remedy), "%s", remedy);
	va_start(ap, value);
	vsnprintf(f->value, sizeof(f->value), value, ap);
	va_end(ap);
}

static const char *
remedy_for_rdma(const struct machine *m)
{
	if (m->n_rdma == 0)
		return "put in a NIC with RDMA (ConnectX, BlueField) and load its driver (mlx5_ib); or, "
		       "to try it in software: rdma link add rxe0 type rxe netdev NETDEV";
	return "see the findings";
}

static void
need_rdma(const struct machine *m, struct way *w)
{
	if (!m->chosen.found)
		add(&w->no, "RDMA", remedy_for_rdma(m), "%s", m->chosen.why);
}

static void
need_memlock(const struct machine *m, struct way *w, const char *what, uint64_t bytes)
{
	char limit[32], need[32];

	if (memlock_is_low(m, bytes))
		add(&w->no, "locked memory",
			"LimitMEMLOCK=infinity in the unit, or ulimit -l unlimited before it starts",
			"limit %s, %s needs %s", bytes_text(m->system.memlock, limit), what,
			bytes_text(bytes, need));
	else if (!m->system.has_memlock)
		add(&w->unknown, "locked memory", "", "the limit cannot be read");
}

static void
need_driver(const struct machine *m, struct way *w)
{
	if (!m->system.nvidia)
		add(&w->no, "GPU driver", "modprobe nvidia", "the module nvidia is not loaded");
	else if (m->cuda_note[0] != '\0')
		add(&w->no, "CUDA", "", "%s", m->cuda_note);
}

/* Part of BAR1 is the driver's own: where it does not say how much is free, all of it is the limit.
 */
static void
need_bar1(const struct gpu *g, struct way *w, uint64_t region)
{
	const uint64_t room = g->has_bar1_free ? g->bar1_free : g->bar1;
	char have[32], need[32];

	if (!g->has_bar1_free && g->bar1 == 0)
		add(&w->unknown, "BAR1", "", "its size cannot be read");
	else if (room < region)
		add(&w->no, "BAR1",
			"fewer or smaller slots in tokd-gpu; Resizable BAR and Above 4G Decoding in the "
			"firmware's set-up, where the GPU has them",
			"%s of %s: %s, the GPU ring needs %s", g->has_bar1_free ? "free" : "all",
			g->name, bytes_text(room, have), bytes_text(region, need));
}

static void
need_dmabuf_of_nic(const struct machine *m, struct way *w)
{
	const struct system *s = &m->system;
	const struct rdma *d;

	if (s->kernel_major > 0 &&
		(s->kernel_major < DMABUF_MAJOR ||
			(s->kernel_major == DMABUF_MAJOR && s->kernel_minor < DMABUF_MINOR))) {
		add(&w->no, "dma-buf", "a kernel from 5.12 on, or MLNX_OFED's drivers", "kernel %s",
			s->kernel);
		return;
	}
	if (!m->chosen.found)
		return;
	d = &m->rdma[m->chosen.device];
	if (d->dmabuf == NO)
		add(&w->no, "dma-buf", "a newer kernel or rdma-core, or another NIC",
			"%s refuses it (%s)", d->name, d->dmabuf_why);
	else if (d->dmabuf == NOT_KNOWN)
		add(&w->unknown, "dma-buf", "",
			"whether %s's driver takes it is known on the machine "
			"itself alone",
			d->name);
}

static void
need_dmabuf_of_gpu(const struct machine *m, const struct gpu *g, struct way *w)
{
	static const char remedy[] = "the NVIDIA driver's open kernel modules (from 515 on), which "
				     "alone have it, with CUDA from 11.7 on";

	if (g->dmabuf_supported == NO)
		add(&w->no, "dma-buf of the GPU", remedy, "CUDA says that %s has none", g->name);
	else if (g->dmabuf_supported == NOT_KNOWN && m->system.nvidia_version[0] != '\0' &&
		 !m->system.nvidia_open)
		add(&w->no, "dma-buf of the GPU", remedy, "driver \"%s\"",
			m->system.nvidia_version);
	else if (g->dmabuf_supported == NOT_KNOWN)
		add(&w->unknown, "dma-buf of the GPU", "", "CUDA was not asked");
}

static void
verbs_dmabuf(const struct machine *m, const struct options *o, const struct gpu *g, struct way *w)
{
	need_rdma(m, w);
	need_driver(m, w);
	need_dmabuf_of_nic(m, w);
	need_dmabuf_of_gpu(m, g, w);
	need_bar1(g, w, o->region);
}

static void
verbs_peermem(const struct machine *m, const struct options *o, const struct gpu *g, struct way *w)
{
	need_rdma(m, w);
	need_driver(m, w);
	if (!m->system.peermem)
		add(&w->no, "peer memory",
			"modprobe nvidia_peermem (it needs MLNX_OFED's or DOCA's ib_core)",
			"neither nvidia_peermem nor nv_peer_mem is loaded");
	if (g->rdma_supported == NO)
		add(&w->no, "GPUDirect RDMA", "a data-center or workstation GPU",
			"CUDA says that %s has none", g->name);
	need_bar1(g, w, o->region);
}

/* Into memory of the host, where the consumer runs as threads; or seen from the producer's end. */
static void
verbs_host(const struct machine *m, const struct options *o, const struct gpu *g, struct way *w)
{
	need_rdma(m, w);
	need_memlock(m, w, "the GPU ring", o->region);
}

/* Into memory of the host that the GPU reads. */
static void
verbs_ring_host(
	const struct machine *m, const struct options *o, const struct gpu *g, struct way *w)
{
	verbs_host(m, o, g, w);
	need_driver(m, w);
}

static void
verbs_producer(const struct machine *m, const struct options *o, const struct gpu *g, struct way *w)
{
	need_rdma(m, w);
	need_memlock(m, w, "the token rings", o->ring);
	if (m->chosen.found)
		add(&w->unknown, "the agent's end", "",
			"its GPU, driver and registration show there alone: run tokd-diag there as well");
}

static void
need_gpu(const struct machine *m, const struct gpu *g, struct way *w)
{
	if (g == NULL)
		add(&w->no, "GPU", "an NVIDIA GPU in this machine; from another one, verbs",
			"no GPU of NVIDIA on the PCI bus");
	else
		need_driver(m, w);
}

/*
 * The agent's dma-buf, mapped. gdrcopy is no path: it pins memory of its own process alone, and the
 * memory is the agent's.
 */
static void
cuda_dmabuf(const struct machine *m, const struct options *o, const struct gpu *g, struct way *w)
{
	need_gpu(m, g, w);
	if (g == NULL)
		return;
	need_dmabuf_of_gpu(m, g, w);
	if (m->cuda_version == 0)
		add(&w->unknown, "mapping GPU memory", "", "which CUDA the driver has");
	else if (m->cuda_version < CUDA_MAPS)
		add(&w->no, "mapping GPU memory", "the driver of CUDA 13.3 or later",
			"the driver's CUDA is %d.%d", m->cuda_version / 1000,
			m->cuda_version % 1000 / 10);
	need_bar1(g, w, o->region);
}

static void
shm(const struct machine *m, const struct options *o, const struct gpu *g, struct way *w)
{
}

struct plan {
	const char *name;
	enum want kind;
	void (*look)(const struct machine *m, const struct options *o, const struct gpu *g,
		struct way *w);
};

static void
look(const struct machine *m, const struct options *o, struct paths *p, const struct plan *plan,
	int n)
{
	for (int i = 0; i < n && p->n_ways < WAYS_MAX; i++) {
		struct way *w = &p->ways[p->n_ways++];

		w->name = plan[i].name;
		w->kind = plan[i].kind;
		plan[i].look(m, o, p->gpu, w);
		w->works = w->no.n > 0 ? NO : w->unknown.n > 0 ? NOT_KNOWN : YES;
	}
}

static void
look_at_all(const struct machine *m, const struct options *o, enum role role, struct paths *p)
{
	static const struct plan of_producer[] = {{"verbs", WANT_VERBS, verbs_producer}};
	static const struct plan of_gpu[] = {{"verbs with dma-buf", WANT_VERBS, verbs_dmabuf},
		{"verbs with peer memory", WANT_VERBS, verbs_peermem},
		{"verbs with --ring host", WANT_VERBS, verbs_ring_host}};
	static const struct plan of_host[] = {{"verbs into host memory", WANT_VERBS, verbs_host}};
	static const struct plan of_all[] = {
		{"cuda with dma-buf", WANT_CUDA, cuda_dmabuf}, {"shm", WANT_SHM, shm}};

	if (role == ROLE_PRODUCER)
		look(m, o, p, of_producer, 1);
	else if (p->gpu != NULL)
		look(m, o, p, of_gpu, 3);
	else
		look(m, o, p, of_host, 1);
	look(m, o, p, of_all, 2);
	while (p->ways[p->taken].works == NO) /* shm always works */
		p->taken++;
}

void
judge_ways(const struct machine *m, const struct options *o, struct verdict *v)
{
	v->n_paths = m->n_gpus > 0 ? m->n_gpus : 1;
	for (int i = 0; i < v->n_paths; i++) {
		v->paths[i].gpu = m->n_gpus > 0 ? &m->gpus[i] : NULL;
		look_at_all(m, o, v->role, &v->paths[i]);
		if (v->paths[i].taken < v->paths[v->best].taken)
			v->best = i;
	}
}
