/* SPDX-License-Identifier: BSD-3-Clause */
/* tokd-diag: look, judge, show. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drivers.h"
#include "judge.h"
#include "show.h"

bool
machine_new(struct machine *m)
{
	m->rdma = calloc(RDMA_MAX, sizeof(*m->rdma));
	m->gpus = calloc(GPU_MAX, sizeof(*m->gpus));
	return m->rdma != NULL && m->gpus != NULL;
}

void
machine_free(struct machine *m)
{
	for (int i = 0; i < m->n_rdma; i++) {
		for (int k = 0; k < m->rdma[i].n_ports; k++)
			free(m->rdma[i].ports[k].gids);
	}
	free(m->rdma);
	free(m->gpus);
}

static void
look_around(struct machine *m)
{
	find_system(m);
	find_rdma(m);
	ask_verbs(m);
	choose_rdma(m);
	find_gpus(m);
	ask_cuda(m);
}

static int
report(struct machine *m, const struct options *o)
{
	static struct verdict v; /* too large for a stack */

	look_around(m);
	judge(m, o, &v);
	if ((o->json ? show_json(m, o, &v) : show_text(m, &v)) != 0) {
		fprintf(stderr, "tokd-diag: standard output: %s\n", strerror(errno));
		return EXIT_NOT;
	}
	return verdict_is_good(&v, (enum want)o->want) ? EXIT_WORKS : EXIT_NOT;
}

int
main(int argc, char **argv)
{
	static struct machine m;
	struct options o;
	int parsed = options_parse(&o, argc, argv), code = EXIT_NOT;

	if (parsed != 0)
		return parsed > 0 ? EXIT_WORKS : EXIT_USAGE;
	if (o.drivers)
		return drivers_exec(&o);
	if (!fs_open(&m.fs, o.root)) {
		fprintf(stderr, "tokd-diag: --root %s: %s; give a folder with sys and proc in it\n",
			o.root, strerror(errno));
		return EXIT_USAGE;
	}
	if (machine_new(&m))
		code = report(&m, &o);
	else
		fputs("tokd-diag: no memory\n", stderr);
	machine_free(&m);
	return code;
}
