/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by tables.c and the file formats. */
#pragma once

#include "tables.h"

/* A part's position in the file, validated. rows 0: the file does not have it. */
struct tokg_tensor {
	uint64_t rows, dim; /* a vector has one row */
	uint64_t offset;    /* in the file, bytes */
	uint32_t dtype;
};

struct tokg_table_file {
	const char *path; /* for messages */
	int fd;
	uint64_t bytes;
	struct tokg_tensor part[TOKG_PARTS];
};

#define TOKG_DIM_MAX 65536	 /* as geometry.c's */
#define TOKG_ROWS_MAX (1u << 24) /* likewise */

static inline uint32_t
tokg_element_bytes(uint32_t dtype)
{
	return dtype == TOKG_F32 ? 4 : 2;
}

/* Sets err->text; returns false. */
bool tokg_agent_wrong(struct tokg_error *err, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Reads exactly `bytes` bytes, or false and `err`. */
bool tokg_file_read(const struct tokg_table_file *f, uint64_t offset, void *to, size_t bytes,
	struct tokg_error *err);

/* Fill f->part. False and `err`, with the tensor's name. */
bool tokg_safetensors_find(struct tokg_table_file *f, struct tokg_error *err);
bool tokg_npy_find(struct tokg_table_file *f, struct tokg_error *err);

/* Converts n elements; rounds to nearest, ties to even. */
void tokg_convert(void *to, uint32_t to_dtype, const void *from, uint32_t from_dtype, size_t n);

/* Elements [first, first + n) of random table `part` of `seed`: f32 in [-1, 1). */
void tokg_random_fill(float *to, uint64_t seed, enum tokg_part part, uint64_t first, size_t n);
