/* SPDX-License-Identifier: BSD-3-Clause */
#include "request_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "small_vocab.h"
#include "texts_made.h"
#include "unicode/utf8.h"

#define MERGES 100

const struct tok_vocab *
request_text_vocab(void)
{
	static struct small_vocab small;
	uint64_t seed = 1;

	if (small.v == NULL)
		small_vocab_make(&small, &seed, "ab'st \n1eT\xc3\xa9", MERGES);
	return small.v;
}

struct request_text
request_text(uint64_t request)
{
	struct texts_made made = {.seed = request};
	struct request_text t;
	uint32_t ids[4 * REQUEST_TEXT_BYTES + 64]; /* as many as tok_encode asks for */
	struct tok_result r;

	t.n = (uint32_t)texts_next(&made, t.bytes, sizeof(t.bytes));
	if (t.n > REQUEST_TEXT_MALFORMED && tok_utf8_scan(t.bytes, t.n).valid < t.n)
		t.n = REQUEST_TEXT_MALFORMED;
	t.well_formed = tok_utf8_scan(t.bytes, t.n).valid == t.n;
	r = tok_encode(request_text_vocab(), NULL, t.bytes, t.n, TOK_ADDED_AS_TEXT, ids,
		sizeof(ids) / sizeof(*ids));
	if (r.status != TOK_OK || r.produced > REQUEST_TEXT_IDS) {
		printf("Bail out! the text of request %llu has no ids, or too many\n",
			(unsigned long long)request);
		exit(1);
	}
	t.n_ids = (uint32_t)r.produced;
	memcpy(t.ids, ids, sizeof(*ids) * t.n_ids);
	return t;
}
