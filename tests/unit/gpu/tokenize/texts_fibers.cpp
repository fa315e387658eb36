/* SPDX-License-Identifier: BSD-3-Clause */
/* texts.h by a block of fibers. */
#include <stdlib.h>
#include <string.h>

#include "block.h"
#include "texts.cuh"
#include "texts_fibers.h"

namespace
{

struct fiber_texts {
	tokg_texts x; /* first: what the caller holds */
	tokg_view view;
	tokg_texts_plan plan;
	fibers_how how;
};

bool
put(tokg_texts *x, const uint8_t *bytes, const uint64_t *begin, uint32_t n, tokg_error *err)
{
	fiber_texts *const c = (fiber_texts *)x;
	const uint64_t scratch = tokg_texts_scratch(begin, n);

	free(x->ids);
	free(x->result);
	free(c->plan.scratch);
	x->ids = (uint32_t *)malloc((begin[n] + 1) * sizeof(uint32_t));
	x->result = (tokg_texts_result *)calloc(n + 1, sizeof(tokg_texts_result));
	c->plan = {
		&c->view, bytes, begin, n, x->ids, x->result, (uint8_t *)malloc(scratch), scratch};
	memset(c->plan.scratch, 0xa5, scratch); /* nothing may depend on what it was */
	return true;
}

void
thread(uint32_t tid, void *arg)
{
	const fiber_texts *const c = (const fiber_texts *)arg;
	tokg_block b = fibers_block(tid, c->how.n);

	tokg_texts_block(&c->plan, &b, 0, 1);
}

bool
run(tokg_texts *x, uint64_t *ns, tokg_error *err)
{
	fiber_texts *const c = (fiber_texts *)x;

	*ns = 0;
	c->how.seed++;
	return fibers_run(&c->how, thread, c, err->text);
}

bool
fetch(tokg_texts *x, tokg_error *err)
{
	return true;
}

void
close(tokg_texts *x)
{
	free(x->ids);
	free(x->result);
	free(((fiber_texts *)x)->plan.scratch);
	free(x);
}

const tokg_texts_ops ops = {"none", put, run, fetch, close};

} // namespace

tokg_texts *
tokg_texts_fibers(const tokg_view *view, const fibers_how *how)
{
	static_assert(sizeof(tokg_error) >= FIBERS_TEXT, "a report fits");
	fiber_texts *const c = (fiber_texts *)calloc(1, sizeof(*c));

	c->x.ops = &ops;
	c->view = *view;
	c->how = *how;
	return &c->x;
}
