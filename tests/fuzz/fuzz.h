/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the fuzz targets share. An input is read front to back as small numbers that steer the
 * target; where it ends, zeros follow. So every input means something, and most changes of a byte
 * change one step.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* libFuzzer's. */
int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What must hold after every input: the fuzzer keeps the input that broke it. */
#define MUST(condition)                                                                            \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: %s: %s does not hold\n", __FILE__, __LINE__,       \
				__func__, #condition);                                             \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

struct input {
	const uint8_t *at, *end;
};

static inline bool
input_more(const struct input *in)
{
	return in->at < in->end;
}

/* The next `bytes` bytes, little-endian. */
static inline uint64_t
input_take(struct input *in, uint32_t bytes)
{
	uint64_t v = 0;

	for (uint32_t i = 0; i < bytes && in->at < in->end; i++)
		v |= (uint64_t)*in->at++ << (8 * i);
	return v;
}

/* At most `n` bytes as they stand; how many. */
static inline uint32_t
input_bytes(struct input *in, uint32_t n, const uint8_t **bytes)
{
	const size_t left = (size_t)(in->end - in->at);
	const uint32_t taken = left < n ? (uint32_t)left : n;

	*bytes = in->at;
	in->at += taken;
	return taken;
}

/* A struct tok_mem of blocks of just their size: the sanitizer sees a step beside them. */
static inline void *
plain_alloc(void *ctx, size_t bytes, size_t align)
{
	void *p = NULL;

	MUST(posix_memalign(&p, align < sizeof(p) ? sizeof(p) : align, bytes) == 0);
	memset(p, 0, bytes);
	return p;
}

static inline void
plain_free(void *ctx, void *p, size_t bytes)
{
	free(p);
}
