/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A device with a ring, tables whose values say where they stand, and a producer by hand. The
 * device is the one of TOKD_GPU_DEVICE, "cpu" unless given, and as post_device makes it.
 */
#pragma once

#include <stdbool.h>

#include "test.h"
#include "ring/check.h"
#include "device.h"
#include "ring/geometry.h"

#define N_IDS 100
#define N_POSITIONS 5000

struct bench {
	struct tokg_device_config config;
	struct tokg_device *d;
	float *word, *position;
	uint64_t ticket[TOKG_SCAN_MAX]; /* last one posted, per slot */
	uint64_t entries;		/* read from the outbox so far */
	bool gpu;
};

/* fp32, checked, WORD, 2 x 4 slots of 4096 bytes, dim 8; `change` may alter the configuration. */
void bench_open(struct bench *b, void (*change)(struct tokg_device_config *c));
/* Opened, incarnation 1 started, every producer granted epoch 7. */
void bench_start(struct bench *b, void (*change)(struct tokg_device_config *c));
void bench_close(struct bench *b);
/* That which runs stops, within 10 s; another one starts. */
void bench_stop(struct bench *b, enum tokg_stop how);
void bench_run(struct bench *b, uint32_t incarnation);
void bench_grant(struct bench *b, uint32_t producer, uint32_t epoch);

/* A test at a bench `b` that is started with `change`, and closed. */
#define BENCH_TEST(name, change)                                                                   \
	static void name##_at(struct bench *b);                                                    \
	TEST(name)                                                                                 \
	{                                                                                          \
		struct bench b;                                                                    \
		bench_start(&b, change);                                                           \
		name##_at(&b);                                                                     \
		bench_close(&b);                                                                   \
	}                                                                                          \
	static void name##_at(struct bench *b)

/* A header that is right for so many ids at position 0 of the outputs. */
struct tokg_hdr bench_hdr(const struct bench *b, uint32_t tokens);
/* Gives it its ticket and check word, and posts it. */
void bench_post(
	struct bench *b, uint32_t producer, uint32_t slot, struct tokg_hdr h, const void *payload);
/* As it is, but for the ticket. */
void bench_post_raw(
	struct bench *b, uint32_t producer, uint32_t slot, struct tokg_hdr h, const void *payload);
/* Posts it; `status` is what it must be done with. */
void bench_done(struct bench *b, uint32_t producer, uint32_t slot, struct tokg_hdr h,
	const void *payload, enum tokg_status status);
/* Waits up to 60 s, on a GPU 20: the status with which the slot was done. */
uint32_t bench_status(struct bench *b, uint32_t producer, uint32_t slot);
/* The next entry of the outbox; waits as long. */
struct tokg_out_entry bench_entry(struct bench *b);
bool bench_has_entry(const struct bench *b);
/* n rows at position `out_off` of the producer's outputs, which do not wrap. */
void bench_rows(const struct bench *b, uint32_t producer, uint64_t out_off, uint32_t n, float *to);
/* On a GPU: ends the test as skipped, before anything is opened. `reason` is printed. */
void bench_skip_on_gpu(const char *reason);
uint64_t bench_word(const struct bench *b, uint64_t offset);
/* Waits up to 10 s until the bits of `mask` of this word are those of `word`. */
void bench_comes(const struct bench *b, uint64_t offset, uint64_t mask, uint64_t word);
void bench_nap(void); /* 1 ms */
