/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A GPU with lanes for a plane: the product's sink, and behind it an engine in plain memory that
 * does what the input says, also what it may not. The ids of every answer in the token ring are
 * those that the engine made for it, and their texts those of tok_decode.
 */
#pragma once

#include "fuzz.h"
#include "plane.h"

/* The worker has it until gpu_close(). */
void gpu_open(struct tokd_worker *w);
void gpu_close(struct tokd_worker *w);
/* Ids are made, an answer ends, or something breaks. */
void gpu_step(const struct tokd_worker *w, struct input *in);
/* Some turns without packets. */
void gpu_turns(struct tokd_worker *w);
/* A record of kind TEXT. */
void gpu_record(const struct tokd_worker *w, const struct tokd_rec *rec, const uint8_t *items);
/* All streams have ended: no lane is kept. */
void gpu_ended(const struct tokd_worker *w);
