/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Encode many texts on a device at once, each by a block of threads: for tests and measurements of
 * text.h. Two kinds of device: a GPU, and one thread of the CPU, from one source (texts.cuh).
 */
#pragma once

#include "ring/error.h"
#include "text.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tokg_texts_result {
	uint32_t status; /* enum tokg_text_status */
	uint32_t n_ids;
	uint64_t ns; /* by the device's clock */
};

struct tokg_texts;

struct tokg_texts_ops {
	const char *clock; /* that `ns` is of */
	/* Copy n texts to the device. Text i is bytes[begin[i] .. begin[i + 1]). */
	bool (*put)(struct tokg_texts *x, const uint8_t *bytes, const uint64_t *begin, uint32_t n,
		struct tokg_error *err);
	/* Encode them; *ns becomes the time that it took on the device, from the first to the last.
	 */
	bool (*run)(struct tokg_texts *x, uint64_t *ns, struct tokg_error *err);
	/* Copy the ids and the results to this host. */
	bool (*fetch)(struct tokg_texts *x, struct tokg_error *err);
	void (*close)(struct tokg_texts *x);
};

struct tokg_texts {
	const struct tokg_texts_ops *ops;
	/* After `fetch`. A text has at most one id per byte: those of text i begin at begin[i]. */
	uint32_t *ids;
	struct tokg_texts_result *result;
};

/* NULL with *err: no memory or device, or the vocabulary is refused (tokg_view_refuses). */
struct tokg_texts *tokg_texts_cpu(
	const struct tok_vocab *v, uint32_t flags, struct tokg_error *err);
struct tokg_texts *tokg_texts_cuda(
	const struct tok_vocab *v, uint32_t flags, int index, struct tokg_error *err);

#ifdef __cplusplus
}
#endif
