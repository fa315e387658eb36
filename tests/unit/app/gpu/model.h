/* SPDX-License-Identifier: BSD-3-Clause */
/* A client with prompts, and the model that answers it: the test is both. */
#pragma once

#include "fake_gpu.h"
#include "fixture.h"

#define GENERATE (TOKD_F_IDS | TOKD_F_GENERATE)
#define PROMPT "hello world"
#define PROMPT_BYTES 11
#define IDS_MAX 60000
#define ROOM (1u << 21)
#define ANY 1000 /* limit of an answer that ends otherwise */

/* What the model made, and the bytes of the answer that the client has. */
extern uint32_t made[IDS_MAX], n_made;
extern uint8_t bytes[ROOM];
extern uint32_t n_bytes;

/* A worker with a sink and GPU_LANES lanes; with a small ring and a side store. */
int setup_generate(void **state);
int setup_generate_small(void **state);
/* No lane is kept by a text that has ended. */
int teardown_generate(void **state);
#define GENERATE_TEST(name) TEST_WITH(name, setup_generate, teardown_generate)

/* Packet `packet` of a prompt in packets of `cut` bytes. */
struct request prompt_packet(
	uint64_t stream, uint32_t cut, uint16_t flags, uint32_t limit, uint32_t packet);
/* A whole prompt, until the GPU has it and has granted tokens. */
void begin(uint64_t stream, uint16_t flags, uint32_t limit);
/* The same, of another client. */
void begin_from(uint32_t ip, uint64_t stream, uint16_t flags, uint32_t limit);
/* All lanes are used, by streams 1 to GPU_LANES: client_of() each. */
void use_all_lanes(uint32_t limit);
uint32_t client_of(uint64_t stream);
/* Its lane makes ids, and the client takes them, until the ring is full. */
void fill_ring(uint64_t stream, uint32_t lane);
/* A lane makes `n` ids, any. */
void make(uint32_t lane, uint32_t n);
/* Takes the replies that are there; of the answer, bytes from n_bytes on. Returns the last. */
struct reply take(void);
/*
 * The client has whole items: ids are the first `n` that were made, texts together are those of
 * tok_decode.
 */
void expect_items(uint32_t n, enum tokd_made_end end);
/* And this reply says so. */
void expect_done(const struct reply *last, uint32_t n, enum tokd_made_end end);
/* In the ring the prompt is a whole text, and no ABORT is behind it. Returns records behind it. */
uint32_t expect_prompt(uint64_t stream);
/* The client was told, unasked, and nothing is open. */
void expect_failed(uint64_t stream, enum tokd_reason reason);
