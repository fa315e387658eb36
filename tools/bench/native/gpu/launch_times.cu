/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gpu_launch_times MODE cuda:N out=FILE [NAME=NUMBER]...
 *
 * What a launch of a graph costs, without a ring. A graph of one thread launches 100 children of
 * one thread, each when the one before has begun, then launches itself, 100 times. By globaltimer:
 *
 * fire and forget   from before the launch until the child's first instruction; and the call alone
 * tail              from before the launch, with no child left, until the next execution's first
 *                   instruction
 *
 * And by CLOCK_MONOTONIC: the host launches such a child and waits for it; and the host makes a
 * graph and begins its upload. A consumer does that at its start for 120 graphs of each kind. Also
 * how much of the GPU's memory 100 such graphs take, as far as nobody else takes some meanwhile.
 * Prints and writes as gpu_measure does; MODE and numbers are those of its callers.
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <unistd.h>
#include <vector>

#include "block/words.cuh"

#define CHILDREN 100 /* of one execution; at most 120 */
#define EXECUTIONS 100
#define HOST_LAUNCHES 2000
#define WARM_NS 300000000ull   /* before the first launch: a GPU's clock rises from idle */
#define LIMIT_NS 1000000000ull /* of a wait for a child */

struct times {
	cudaGraphExec_t child[CHILDREN];
	uint64_t begun[CHILDREN]; /* when the child began; 0: it has not */
	uint64_t executions, tail_at, failed, step;
	uint64_t fire[EXECUTIONS * CHILDREN], call[EXECUTIONS * CHILDREN], tail[EXECUTIONS];
};

/* Spins for WARM_NS. The smallest step of globaltimer that was seen meanwhile. */
__global__ void
warm_kernel(uint64_t *step)
{
	const uint64_t began = tokg_now();
	uint64_t least = WARM_NS;

	for (uint64_t now = began, last = began; now - began < WARM_NS; last = now) {
		now = tokg_now();
		if (now != last && now - last < least)
			least = now - last;
	}
	*step = least;
}

__global__ void
child_kernel(uint64_t *begun)
{
	tokg_own_st_release(begun, tokg_now());
}

__global__ void
parent_kernel(struct times *t)
{
	const uint64_t began = tokg_now(), e = t->executions++;

	if (e > 0)
		t->tail[e - 1] = began - t->tail_at;
	for (uint32_t i = 0; e < EXECUTIONS && i < CHILDREN && t->failed == 0; i++) {
		uint64_t from, called, begun = 0;

		tokg_own_st(&t->begun[i], 0);
		tokg_own_fence();
		from = tokg_now();
		t->failed = cudaGraphLaunch(t->child[i], cudaStreamGraphFireAndForget);
		called = tokg_now();
		while (t->failed == 0 && (begun = tokg_own_ld_acquire(&t->begun[i])) == 0)
			if (tokg_now() - from > LIMIT_NS)
				t->failed = cudaErrorLaunchTimeout;
		t->fire[e * CHILDREN + i] = begun - from;
		t->call[e * CHILDREN + i] = called - from;
	}
	if (e == EXECUTIONS || t->failed != 0)
		return;
	for (const uint64_t now = tokg_now(); tokg_now() - now < 20000;) /* children end */
		continue;
	t->tail_at = tokg_now();
	t->failed = cudaGraphLaunch(cudaGetCurrentGraphExec(), cudaStreamGraphTailLaunch);
}

namespace
{

cudaStream_t stream;
FILE *out;
uint32_t n_series;

void
good(cudaError_t e, const char *what)
{
	if (e == cudaSuccess)
		return;
	fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(e));
	exit(1);
}

cudaGraphExec_t
graph_of(const void *kernel, void *argument)
{
	void *arguments[] = {&argument};
	cudaGraphExec_t made;
	cudaGraph_t graph;

	good(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capturing");
	good(cudaLaunchKernel(kernel, dim3(1), dim3(1), arguments, 0, stream), "capturing");
	good(cudaStreamEndCapture(stream, &graph), "capturing");
	good(cudaGraphInstantiate(&made, graph, cudaGraphInstantiateFlagDeviceLaunch),
		"a graph that the GPU launches");
	good(cudaGraphUpload(made, stream), "uploading a graph");
	good(cudaGraphDestroy(graph), "a graph");
	return made;
}

void
series(const char *name, const char *clock, const uint64_t *ns, uint64_t n)
{
	printf("%s{\"name\": \"%s\", \"clock\": \"%s\", \"ns_per_tick\": 1, \"n\": %llu}",
		n_series++ > 0 ? ", " : "", name, clock, (unsigned long long)n);
	if (fwrite(ns, sizeof(*ns), n, out) != n)
		good(cudaErrorUnknown, "the samples cannot be written");
}

size_t
memory_left()
{
	size_t left, all;

	good(cudaMemGetInfo(&left, &all), "how much memory is left");
	return left;
}

uint64_t
host_ns()
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

std::vector<uint64_t>
host_launches(cudaGraphExec_t graph)
{
	std::vector<uint64_t> ns;

	for (int i = 0; i < HOST_LAUNCHES; i++) {
		const uint64_t from = host_ns();

		good(cudaGraphLaunch(graph, stream), "a launch by the host");
		good(cudaStreamSynchronize(stream), "a launch by the host");
		ns.push_back(host_ns() - from);
	}
	return ns;
}

} // namespace

int
main(int argc, char **argv)
{
	const char *const limit = getenv("TOKD_GPU_LIMIT_S");
	static struct times said;
	std::vector<uint64_t> by_host, made;
	struct times *t;
	size_t had, left;

	if (argc < 4 || strncmp(argv[2], "cuda:", 5) != 0 || strncmp(argv[3], "out=", 4) != 0 ||
		(out = fopen(argv[3] + 4, "wb")) == NULL) {
		fprintf(stderr, "usage: gpu_launch_times MODE cuda:N out=FILE\n");
		return 2;
	}
	alarm(limit != NULL ? (unsigned)atoi(limit) : 60); /* no kernel stays on the GPU */
	good(cudaSetDevice(atoi(argv[2] + 5)), "choosing the GPU");
	good(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "a stream");
	good(cudaMalloc((void **)&t, sizeof(*t)), "memory");
	had = memory_left();
	for (uint32_t i = 0; i < CHILDREN; i++) {
		const uint64_t from = host_ns();

		said.child[i] = graph_of((const void *)child_kernel, &t->begun[i]);
		made.push_back(host_ns() - from);
	}
	good(cudaStreamSynchronize(stream), "uploading graphs");
	left = memory_left();
	good(cudaMemcpyAsync(t, &said, sizeof(said), cudaMemcpyDefault, stream), "copying");
	warm_kernel<<<1, 1, 0, stream>>>(&t->step);
	good(cudaGetLastError(), "warming");
	good(cudaStreamSynchronize(stream), "warming");
	by_host = host_launches(said.child[0]);
	good(cudaGraphLaunch(graph_of((const void *)parent_kernel, t), stream), "the parent");
	good(cudaMemcpyAsync(&said, t, sizeof(said), cudaMemcpyDefault, stream), "copying");
	good(cudaStreamSynchronize(stream), "the parent");
	good((cudaError_t)said.failed, "a launch by the GPU");
	printf("{\"ring\": \"-\", \"executions\": %llu, \"globaltimer_step_ns\": %llu, "
	       "\"graphs\": %d, \"graphs_bytes\": %zu, \"series\": [",
		(unsigned long long)said.executions, (unsigned long long)said.step, CHILDREN,
		had > left ? had - left : 0);
	series("fire and forget to begun", "globaltimer", said.fire, EXECUTIONS * CHILDREN);
	series("fire and forget, the call", "globaltimer", said.call, EXECUTIONS * CHILDREN);
	series("tail to begun", "globaltimer", said.tail, EXECUTIONS);
	series("host to ended", "CLOCK_MONOTONIC", by_host.data(), by_host.size());
	series("captured, made, upload begun", "CLOCK_MONOTONIC", made.data(), made.size());
	printf("]}\n");
	return fclose(out) == 0 ? 0 : 1;
}
