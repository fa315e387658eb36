/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include <mix.h>

#include "model.h"

uint32_t made[IDS_MAX], n_made;
uint8_t bytes[ROOM];
uint32_t n_bytes;
static uint64_t seed;

int
setup_generate(void **state)
{
	n_made = n_bytes = 0;
	seed = 1;
	setup(state);
	give_lanes(GPU_LANES);
	return 0;
}

int
setup_generate_small(void **state)
{
	n_made = n_bytes = 0;
	seed = 1;
	setup_small_ring_and_side_store(state);
	give_lanes(GPU_LANES);
	return 0;
}

/* No lane is kept by a text that has ended. */
int
teardown_generate(void **state)
{
	tokd_shutdown(&fx->w);
	assert_true(TAILQ_EMPTY(&fx->w.answers->ready));
	for (uint32_t i = 0; i <= fx->w.streams->n; i++)
		assert_int_equal(fx->w.streams->stream[i].lane, 0);
	turns(8);
	for (uint32_t i = 0; i < GPU_LANES; i++) {
		if (is_cancelled(i))
			end_lane(i, TOKG_END_CANCELLED);
	}
	embed(TOKG_OK);
	turns(20);
	if (atomic_load(&fx->w.sink->state) == TOKD_SINK_RUNNING)
		assert_int_equal(tokg_sink_lanes_used(fx->w.sink->sink), 0);
	tokd_sink_close(&fx->w);
	return teardown(state);
}

struct request
prompt_packet(uint64_t stream, uint32_t cut, uint16_t flags, uint32_t limit, uint32_t packet)
{
	struct request r = text_packet(stream, PROMPT, PROMPT_BYTES, cut, GENERATE | flags, packet);

	if (r.req.flags & TOKD_F_LAST)
		r.req.limit = limit;
	return r;
}

void
begin(uint64_t stream, uint16_t flags, uint32_t limit)
{
	begin_from(0, stream, flags, limit);
}

/* A whole prompt, until the GPU has it and has granted tokens. */
void
begin_from(uint32_t ip, uint64_t stream, uint16_t flags, uint32_t limit)
{
	struct request r = prompt_packet(stream, PROMPT_BYTES, flags, limit, 0);
	struct reply rep;

	r.ip = ip;
	ask(r);
	assert_true(next_reply(&rep));
	assert_int_equal(rep.rep.flags, 0);
	assert_int_equal(rep.rep.ack, 1);
	assert_int_equal(rep.rep.total + rep.rep.count, 0);
	assert_int_equal(rep.rep.text_end, PROMPT_BYTES);
	turns(20);
	embed(TOKG_OK);
	turns(20);
	expect_nothing();
}

uint32_t
client_of(uint64_t stream)
{
	return RTE_IPV4(10, 0, 1, (uint32_t)stream);
}

void
use_all_lanes(uint32_t limit)
{
	for (uint64_t i = 1; i <= GPU_LANES; i++)
		begin_from(client_of(i), i, TOKD_F_STREAM, limit);
}

void
fill_ring(uint64_t stream, uint32_t lane)
{
	while (may_make(lane) > 0) {
		make(lane, RTE_MIN(may_make(lane), 40u));
		turns(8);
		take();
		ask(poll_request(stream, n_bytes, 0));
		drain();
	}
	assert_true(fx->w.ring.full);
}

/* Any id; they need be no UTF-8. */
void
make(uint32_t lane, uint32_t n)
{
	const uint32_t n_ids = tok_vocab_info(fx->w.terms->vocab[0].tok).n_ids;

	for (; n > 0; n--) {
		made[n_made] = (uint32_t)dice_throw(&seed) % n_ids;
		make_token(lane, made[n_made++]);
	}
}

/* The replies that are there; of the answer, bytes from n_bytes on. */
struct reply
take(void)
{
	struct reply r, last = {0};

	while (next_reply(&r)) {
		assert_int_equal(!(r.rep.flags & TOKD_F_GENERATE), r.rep.count == 0);
		assert_false(r.rep.flags & TOKD_F_DECODE);
		if (r.rep.count > 0)
			assert_int_equal(r.rep.first, n_bytes);
		for (uint32_t i = 0; i < r.rep.count; i++)
			bytes[n_bytes++] = (uint8_t)r.ids[i];
		last = r;
	}
	return last;
}

/* Whole items: ids are the first `n` that were made, texts together are those of tok_decode. */
void
expect_items(uint32_t n, enum tokd_made_end end)
{
	static uint8_t text[ROOM], want[ROOM];
	struct tokd_made item = {0};
	uint32_t at = 0, i = 0, n_text = 0;
	struct tok_result r;

	for (; at < n_bytes; i++) {
		assert_true(at + sizeof(item) <= n_bytes);
		memcpy(&item, bytes + at, sizeof(item));
		at += sizeof(item);
		assert_true(at + item.text <= n_bytes);
		memcpy(text + n_text, bytes + at, item.text);
		at += item.text;
		n_text += item.text;
		if (item.end != TOKD_MADE_MORE)
			break;
		assert_int_equal(item.id, made[i]);
	}
	assert_int_equal(at, n_bytes);
	assert_int_equal(i, n);
	assert_int_equal(item.end, end);
	r = tok_decode(fx->w.terms->vocab[0].tok, made, n, want, ROOM);
	assert_int_equal(r.status, TOK_OK);
	if (end == TOKD_MADE_MORE) { /* what is held back can be a part of a character */
		assert_in_range(r.produced, n_text, n_text + 3);
	} else {
		assert_int_equal(item.id, TOKD_MADE_END);
		assert_int_equal(r.produced, n_text);
	}
	assert_memory_equal(text, want, n_text);
}

void
expect_done(const struct reply *last, uint32_t n, enum tokd_made_end end)
{
	assert_int_equal(last->rep.flags & (TOKD_F_DONE | TOKD_F_FAIL), TOKD_F_DONE);
	assert_int_equal(last->rep.total, n_bytes);
	assert_int_equal(last->rep.text_end, PROMPT_BYTES);
	assert_int_equal(last->rep.ids_crc, crc32c_of(bytes, n_bytes));
	expect_items(n, end);
}

/* In the ring the prompt is a whole text, and no ABORT is behind it. Returns records behind it. */
uint32_t
expect_prompt(uint64_t stream)
{
	struct text_ids *got = calloc(1, sizeof(*got));
	uint32_t want[32], answers;

	gather(stream, got);
	answers = got->answers;
	assert_int_equal(got->n, whole(PROMPT, PROMPT_BYTES, want, RTE_DIM(want)));
	assert_memory_equal(got->id, want, 4 * got->n);
	assert_int_equal(got->first_flags, 1);
	assert_int_equal(got->last_flags, 1);
	assert_int_equal(got->aborts, 0);
	free(got);
	return answers;
}

void
expect_failed(uint64_t stream, enum tokd_reason reason)
{
	struct reply last = take();

	assert_int_equal(last.rep.flags, TOKD_F_FAIL);
	assert_int_equal(last.rep.reason, reason);
	expect_prompt(stream);
	assert_int_equal(tokd_worker_open_streams(&fx->w), 0);
}
