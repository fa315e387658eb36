/* SPDX-License-Identifier: BSD-3-Clause */
#include "reader.h"

uint32_t
take(struct world *w, struct text *t, struct reader *reader, uint32_t most)
{
	char expected[ITEM_TEXT_MAX];
	struct tokd_made made;
	const char *text;
	uint32_t n = 0;

	for (; n < most && tokd_engine_made(w->e, &t->r, &made, &text, w->now); n++) {
		assert_int_equal(reader->end, 0);
		reader->end = made.end;
		if (made.end == TOKD_MADE_CANCELLED)
			continue;
		assert_int_equal(made.text, item_text(reader->n, expected));
		assert_memory_equal(text, expected, made.text);
		assert_int_equal(made.id, made.end ? TOKD_MADE_END : item_id(reader->n++));
	}
	return n;
}

void
read_all(struct world *w, struct text *t, struct reader *reader)
{
	struct tokd_request *r;

	while (t->r.status == TOKD_PENDING) {
		assert_true(world_step(w));
		while ((r = tokd_engine_done(w->e)) != NULL)
			assert_true(take(w, t, reader, UINT32_MAX) > 0 || r->status != 1);
	}
	assert_int_equal(take(w, t, reader, UINT32_MAX), 0);
}

void
answer_right(struct text *t, const struct reader *reader)
{
	assert_int_equal(t->r.status, TOKD_OK);
	assert_int_equal(reader->end, TOKD_MADE_LENGTH);
	assert_int_equal(reader->n, t->r.limit);
	assert_int_equal(t->r.made, t->r.limit);
	assert_int_equal(t->r.n_ids, t->r.total);
	text_free(t);
}

void
finish_cancels(struct world *w)
{
	for (uint32_t steps = 0; world_step(w); steps++)
		assert_true(steps < 100000);
}
