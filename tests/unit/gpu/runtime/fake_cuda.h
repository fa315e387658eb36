/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CUDA's runtime as the host sees it, without a GPU: memory is the host's, and a kernel that was
 * launched runs until *stop is not 0. A call that would wait for that kernel fails the test, and so
 * does one that a capture does not allow.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct fake_cuda {
	const uint32_t *stop_of_ring; /* of the test */
	const uint32_t *stop;	      /* of a kernel that was launched; NULL: none runs */
	bool old_driver;	      /* does not know MPS, nor the order of writes */
	bool no_register;	      /* memory of the host cannot be registered */
	int last;		      /* what cudaGetLastError would return */
	/* What there is now: */
	uint32_t allocations, streams, graphs, executables;
	/* Since the beginning: */
	uint32_t launches, uploads;
};

extern struct fake_cuda fake;
