/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tables of tokd-gpu: read from a safetensors or .npy file, or computed from a seed. Set-up
 * only.
 */
#pragma once

#include <stdbool.h>

#include "kernel/device.h"

/* Also their numbers in random tables: doc/reference/file-formats.md. */
enum tokg_part { TOKG_WORD, TOKG_POSITION, TOKG_TYPE, TOKG_GAMMA, TOKG_BETA, TOKG_PARTS };

struct tokg_table_set {
	struct tokg_tables tables; /* points into `part` */
	void *part[TOKG_PARTS];
};

#define TOKG_RANDOM_ELEMENTS_MAX (1ull << 30) /* of one random table */
#define TOKG_RANDOM_POSITIONS 1024	      /* default: GPT-2's */

/*
 * `spec`: a path, or "random:ROWSxDIM[:SEED[:POSITIONS]]". kind, dtype: 0 for all parts that the
 * file has, and for its element type (random: word, f32). The file is read, not mapped: if it
 * shrinks meanwhile, that is an error, not a SIGBUS. False and `err`; call tokg_tables_free in any
 * case.
 */
bool tokg_tables_load(struct tokg_table_set *set, const char *spec, uint32_t kind, uint32_t dtype,
	struct tokg_error *err);
void tokg_tables_free(struct tokg_table_set *set);

/* "f32", "word+position", ...; NULL or 0: unknown. */
const char *tokg_kind_name(uint32_t kind);
const char *tokg_dtype_name(uint32_t dtype);
uint32_t tokg_kind_of(const char *name);
uint32_t tokg_dtype_of(const char *name);
