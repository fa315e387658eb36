/* SPDX-License-Identifier: BSD-3-Clause */
/* The text of a request that is posted as bytes. It follows from the request's number. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "tok.h"

#ifdef __cplusplus
extern "C" {
#endif

#define REQUEST_TEXT_BYTES 250	  /* at most */
#define REQUEST_TEXT_MALFORMED 80 /* at most, of which each byte may be three ids */
#define REQUEST_TEXT_IDS 256	  /* fewer in each text: a slot has room for all */

struct request_text {
	uint8_t bytes[REQUEST_TEXT_BYTES];
	uint32_t ids[REQUEST_TEXT_IDS]; /* libtok's */
	uint32_t n, n_ids;
	bool well_formed; /* else a consumer leaves it to the CPU */
};

/* The vocabulary of all texts. Call it before others do. */
const struct tok_vocab *request_text_vocab(void);

struct request_text request_text(uint64_t request);

#ifdef __cplusplus
}
#endif
