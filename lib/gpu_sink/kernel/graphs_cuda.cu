/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The consumer on a GPU as graphs that the GPU launches; schedule.cuh has the hot path. A module of
 * its own: device_cuda.cu must load where launches by the GPU are not allowed.
 *
 * What a device graph must be: CUDA programming guide, 4.2.6.1.1: kernels of one device, without
 * dynamic parallelism. It is instantiated for launches by the device (4.2.6.1) and uploaded
 * (4.2.6.1.2) before the scheduler begins. None is cooperative, which under MPS would be refused.
 */
#include <stdlib.h>

#include "device_cuda.h"

struct tokg_graphs {
	cudaGraphExec_t scheduler, child[TOKG_GRAPHS][TOKG_LAUNCHES];
	void **on_gpu; /* child[][] */
};

/* The children leave as much room on a multiprocessor as the persistent kernel does. */
template <bool TEXT>
__global__ void
__launch_bounds__(TOKG_BLOCK, TEXT ? 1 : 2)
	tokg_graph_check(const __grid_constant__ tokg_consumer c, struct tokg_child *child)
{
	__shared__ alignas(16) uint8_t bytes[sizeof(tokg_hand)];
	tokg_block b = tokg_block_here(TEXT);

	tokg_child_check(&c, &b, child, (tokg_hand *)bytes, blockIdx.x, gridDim.x);
}

__global__ void
__launch_bounds__(TOKG_BLOCK, 2)
	tokg_graph_rows(const __grid_constant__ tokg_consumer c, struct tokg_child *child)
{
	__shared__ alignas(16) uint8_t bytes[sizeof(tokg_hand)];
	tokg_block b = tokg_block_here(false);

	tokg_child_rows(&c, &b, child, (tokg_hand *)bytes, blockIdx.x, gridDim.x);
}

__global__ void
__launch_bounds__(TOKG_BLOCK, 2)
	tokg_graph_step(const __grid_constant__ tokg_consumer c, struct tokg_schedule *g)
{
	tokg_block b = tokg_block_here(false);

	tokg_step(&c, &b, g);
}

__global__ void
__launch_bounds__(TOKG_BLOCK, 2) tokg_graph_schedule(
	const __grid_constant__ tokg_consumer c, struct tokg_schedule *g, void *const *graphs)
{
	__shared__ alignas(16) uint8_t bytes[sizeof(tokg_scheduler)];
	tokg_block b = tokg_block_here(false);

	tokg_schedule_run(&c, &b, g, (tokg_scheduler *)bytes, graphs);
}

namespace
{

/* A kernel of a graph that is captured. */
struct node {
	const void *kernel;
	uint32_t blocks;
	void **arguments;
};

/* The runtime may load a kernel when it is launched first, which would be in a capture. */
bool
kernels_load(struct tokg_cuda *c, const struct node *nodes, uint32_t n, struct tokg_error *err)
{
	cudaFuncAttributes ignored;

	for (uint32_t i = 0; i < n; i++)
		if (!tokg_cuda_good(c, cudaFuncGetAttributes(&ignored, nodes[i].kernel),
			    "loading a kernel of a graph", err))
			return false;
	return true;
}

/* The kernels one after the other. */
bool
graph_make(struct tokg_cuda *c, const struct node *nodes, uint32_t n, cudaGraphExec_t *to,
	struct tokg_error *err)
{
	cudaGraph_t graph = NULL;
	cudaError_t ended, e;

	if (!kernels_load(c, nodes, n, err))
		return false;
	e = cudaStreamBeginCapture(c->kernel, cudaStreamCaptureModeThreadLocal);
	if (e != cudaSuccess)
		return tokg_cuda_good(c, e, "capturing a graph", err);
	for (uint32_t i = 0; i < n && e == cudaSuccess; i++)
		e = cudaLaunchKernel(nodes[i].kernel, dim3(nodes[i].blocks), dim3(TOKG_BLOCK),
			nodes[i].arguments, 0, c->kernel);
	ended = cudaStreamEndCapture(c->kernel, &graph);
	if (e == cudaSuccess)
		e = ended;
	if (e == cudaSuccess)
		e = cudaGraphInstantiate(to, graph, cudaGraphInstantiateFlagDeviceLaunch);
	if (e == cudaSuccess)
		e = cudaGraphUpload(*to, c->kernel);
	if (graph != NULL)
		cudaGraphDestroy(graph);
	return tokg_cuda_good(c, e, "making a graph that the GPU launches", err);
}

void
graphs_end(struct tokg_graphs *g)
{
	for (auto &of_kind : g->child)
		for (cudaGraphExec_t &one : of_kind) {
			if (one != NULL)
				cudaGraphExecDestroy(one);
			one = NULL;
		}
	if (g->scheduler != NULL)
		cudaGraphExecDestroy(g->scheduler);
	g->scheduler = NULL;
}

bool
children_make(struct tokg_cuda *c, struct tokg_error *err)
{
	const void *const check = c->consumer.text_view != NULL
					  ? (const void *)tokg_graph_check<true>
					  : (const void *)tokg_graph_check<false>;
	struct tokg_graphs *const g = c->graphs;

	for (uint32_t i = 0; i < TOKG_LAUNCHES; i++) {
		struct tokg_child *child = &c->schedule->child[i];
		void *of_embed[] = {&c->consumer, &child};
		void *of_step[] = {&c->consumer, &c->schedule};
		const struct node embed[] = {{check, TOKG_TAKEN, of_embed},
			{(const void *)tokg_graph_rows, c->workers, of_embed}};
		const struct node step = {(const void *)tokg_graph_step, 1, of_step};

		if (!graph_make(c, embed, 2, &g->child[TOKG_GRAPH_EMBED][i], err) ||
			(c->d.geometry.lanes > 0 &&
				!graph_make(c, &step, 1, &g->child[TOKG_GRAPH_STEP][i], err)))
			return false;
	}
	return tokg_cuda_good(c,
		cudaMemcpyAsync(
			g->on_gpu, g->child, sizeof(g->child), cudaMemcpyHostToDevice, c->kernel),
		"copying the graphs' handles", err);
}

bool
graphs_get(struct tokg_cuda *c, struct tokg_error *err)
{
	if (c->graphs != NULL)
		return true;
	c->graphs = (struct tokg_graphs *)calloc(1, sizeof(*c->graphs));
	if (c->graphs == NULL)
		return tokg_wrong(err, "device cuda:%d: no memory for graphs", c->index);
	return tokg_cuda_good(c, cudaMalloc((void **)&c->graphs->on_gpu, sizeof(c->graphs->child)),
		"memory for the graphs' handles", err);
}

} // namespace

bool
tokg_graphs_start(struct tokg_cuda *c, struct tokg_error *err)
{
	if (!graphs_get(c, err))
		return false;
	graphs_end(c->graphs); /* of the incarnation before */

	void *of_scheduler[] = {&c->consumer, &c->schedule, &c->graphs->on_gpu};
	const struct node node = {(const void *)tokg_graph_schedule, 1, of_scheduler};

	return children_make(c, err) && graph_make(c, &node, 1, &c->graphs->scheduler, err) &&
	       tokg_cuda_good(c, cudaStreamSynchronize(c->kernel), "uploading the graphs", err) &&
	       tokg_cuda_good(c, cudaGraphLaunch(c->graphs->scheduler, c->kernel),
		       "starting the scheduler", err);
}

bool
tokg_graphs_ended(struct tokg_cuda *c, struct tokg_error *err)
{
	const struct tokg_schedule *const s = (const struct tokg_schedule *)c->staging;

	if (!tokg_cuda_good(c,
		    cudaMemcpyAsync(c->staging, c->schedule,
			    offsetof(struct tokg_schedule, steps_ended), cudaMemcpyDeviceToHost,
			    c->kernel),
		    "reading the scheduler's counts", err) ||
		!tokg_cuda_good(
			c, cudaStreamSynchronize(c->kernel), "reading the scheduler's counts", err))
		return false;
	c->d.launches = s->launches[TOKG_GRAPH_EMBED] + s->launches[TOKG_GRAPH_STEP];
	c->d.executions = s->executions;
	return s->failed == 0 ||
	       tokg_wrong(err,
		       "device cuda:%d: the scheduler could not launch a graph: %s: use --launch "
		       "persistent",
		       c->index, cudaGetErrorString((cudaError_t)s->failed));
}

const void *
tokg_graphs_kernel(void)
{
	return (const void *)tokg_graph_rows;
}

void
tokg_graphs_free(struct tokg_cuda *c)
{
	if (c->graphs == NULL)
		return;
	graphs_end(c->graphs);
	cudaFree(c->graphs->on_gpu);
	free(c->graphs);
}
