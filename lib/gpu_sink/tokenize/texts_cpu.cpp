/* SPDX-License-Identifier: BSD-3-Clause */
/* texts.h by one thread of the CPU, which is a block. */
#include <stdlib.h>

#include "texts.cuh"

namespace
{

struct cpu_texts {
	tokg_texts x; /* first: what the caller holds */
	tokg_view view;
	tokg_texts_plan plan;
};

void
drop(cpu_texts *c)
{
	free(c->plan.scratch);
	free(c->x.ids);
	free(c->x.result);
}

bool
cpu_put(tokg_texts *x, const uint8_t *bytes, const uint64_t *begin, uint32_t n, tokg_error *err)
{
	cpu_texts *const c = (cpu_texts *)x;
	const uint64_t scratch = tokg_texts_scratch(begin, n);

	drop(c);
	x->ids = (uint32_t *)malloc((begin[n] + 1) * sizeof(uint32_t));
	x->result = (tokg_texts_result *)malloc((n + 1ull) * sizeof(tokg_texts_result));
	c->plan = {
		&c->view, bytes, begin, n, x->ids, x->result, (uint8_t *)malloc(scratch), scratch};
	return (x->ids != NULL && x->result != NULL && c->plan.scratch != NULL) ||
	       tokg_wrong(err, "device cpu: no memory for %u texts", n);
}

bool
cpu_run(tokg_texts *x, uint64_t *ns, tokg_error *err)
{
	const uint64_t from = tokg_now();
	tokg_block b = {};

	b.n = b.lanes = b.teams = 1;
	tokg_texts_block(&((cpu_texts *)x)->plan, &b, 0, 1);
	*ns = tokg_now() - from;
	return true;
}

bool
cpu_fetch(tokg_texts *x, tokg_error *err)
{
	return true; /* they are where they were written */
}

void
cpu_close(tokg_texts *x)
{
	drop((cpu_texts *)x);
	free(x);
}

const tokg_texts_ops cpu_ops = {"CLOCK_MONOTONIC", cpu_put, cpu_run, cpu_fetch, cpu_close};

} // namespace

tokg_texts *
tokg_texts_cpu(const tok_vocab *v, uint32_t flags, tokg_error *err)
{
	const char *const why = tokg_view_refuses(v, flags);
	cpu_texts *c;

	if (why != NULL) {
		tokg_wrong(err, "vocab: a device cannot encode with it: %s", why);
		return NULL;
	}
	c = (cpu_texts *)calloc(1, sizeof(*c));
	if (c == NULL) {
		tokg_wrong(err, "device cpu: no memory");
		return NULL;
	}
	c->x.ops = &cpu_ops;
	c->view = tokg_view_here(v);
	return &c->x;
}
