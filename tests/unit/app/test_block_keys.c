/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Keys of blocks beside the ids: those of the whole text, however it came. expect_text() compares
 * them, and test_dataplane --block-keys does so in all other tests.
 */
#include <stdlib.h>

#include "fixture.h"

#define TEXT 3000

static uint8_t text[TEXT];

static void
begin(enum tokb_scheme scheme, uint32_t block_size, int (*with)(void **))
{
	const uint32_t keys = fx_block_keys, size = fx_block_size;
	void *state = NULL;

	fx_block_keys = 1 + scheme;
	fx_block_size = block_size;
	with(&state);
	fx_block_keys = keys;
	fx_block_size = size;
	make_text(text, sizeof(text), 1);
}

static void
end(void)
{
	void *state = NULL;

	teardown(&state);
}

TEST(block_keys_are_those_of_the_whole_text_in_each_scheme)
{
	static const uint32_t cuts[] = {1, 7, 100, 1376}, sizes[] = {1, 16, 100, 4000};
	uint64_t stream = 0;

	for (int scheme = 0; scheme < TOKB_SCHEMES; scheme++) {
		for (uint32_t i = 0; i < RTE_DIM(sizes); i++) {
			begin((enum tokb_scheme)scheme, sizes[i], setup);
			for (uint32_t c = 0; c < RTE_DIM(cuts); c++) {
				ask_text(++stream, text, TEXT, cuts[c], 0);
				expect_text(stream, text, TEXT);
				drain();
			}
			end();
		}
	}
}

TEST(block_keys_are_in_the_header_of_the_ring)
{
	begin(TOKB_VLLM_XXHASH_CBOR, 32, setup);
	assert_int_equal(fx->w.ring.hdr->block_size, 32);
	assert_int_equal(fx->w.ring.hdr->key_scheme, TOKB_VLLM_XXHASH_CBOR);
	assert_int_equal(fx->w.ring.hdr->key_bytes, 16);
	end();
}

/* A router need not wait for the end of the text. */
TEST(block_keys_are_there_before_the_last_packet)
{
	struct text_ids *got = calloc(1, sizeof(*got));

	begin(TOKB_LLM_D, 16, setup);
	ask(text_packet(1, text, TEXT, 1000, 0, 0));
	gather(1, got);
	assert_int_equal(got->last_flags, 0);
	assert_int_equal(got->n_keys, got->n / 16);
	assert_true(got->n_keys > 10);
	expect_count(C_BLOCK_KEYS, got->n_keys);
	drain();
	end();
	free(got);
}

static bool
is_fed(struct request r)
{
	struct reply rep = {0};

	ask(r);
	while (next_reply(&rep))
		continue;
	return rep.rep.ack > r.req.packet || (rep.rep.flags & TOKD_F_DONE);
}

/* What was not fed has changed no key; what is fed later goes on with them. */
TEST(block_keys_go_on_after_the_ring_was_full)
{
	struct text_ids *got = calloc(1, sizeof(*got));
	uint64_t other = 100;

	begin(TOKB_VLLM_SHA256_CBOR, 1, setup_small_ring);
	reader_join(0);
	while (!fx->w.ring.full)
		ask_text(other++, text, 500, 500, 0);
	drain();
	for (uint32_t packet = 0; packet < 3; packet++) {
		const struct request r = text_packet(1, text, TEXT, 1000, 0, packet);

		for (uint32_t i = 0; !is_fed(r); i++) {
			assert_true(i < 100);
			gather(1, got);
			atomic_store(&fx->cursor[0], fx->w.ring.head);
			tokd_ring_readers(&fx->w.ring);
		}
	}
	gather(1, got);
	assert_true(fx->w.counter[C_DROP_RING_FULL] > 2);
	assert_int_equal(got->last_flags, 1);
	assert_int_equal(got->n_keys, got->n);
	expect_keys(got);
	end();
	free(got);
}

/* Each vocabulary has its model, which llm-d hashes. */
TEST(block_keys_of_another_vocabulary_have_its_model)
{
	struct request r;

	begin(TOKB_LLM_D, 4, setup);
	fx->vocab = 1;
	r = text_packet(1, text, 500, 500, 0, 0);
	r.req.vocab = fx->w.terms->vocab[1].checksum;
	ask(r);
	expect_text(1, text, 500);
	drain();
	end();
}
