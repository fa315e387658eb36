/* SPDX-License-Identifier: BSD-3-Clause */
/* New terms while texts are open: a text keeps those that it began with. */
#include "fixture.h"
#include "control/vocabs/terms.h"

static const char text[] = "hello world the token";
#define CUT 6

/* The fixture's vocabularies, beginning with number `first`, which is followed by `n - 1` others.
 */
static struct tokd_vocabs
vocabs_from(uint32_t first, uint32_t n)
{
	struct tokd_vocabs v = {.node = SOCKET_ID_ANY, .n = n};

	for (uint32_t i = 0; i < n; i++)
		v.tok[i] = (struct tok_vocab *)(uintptr_t)fx->w.terms->vocab[(first + i) % 2].tok;
	return v;
}

/* Returns the terms before, which an open text still uses. */
static struct tokd_terms *
reload(struct tokd_vocabs *v)
{
	struct tokd_terms *was = fx->w.terms;

	atomic_store(&fx->w.next_terms, fixture_terms(v));
	run();
	assert_ptr_equal(fx->w.terms, fx->w.next_terms);
	assert_int_equal(fx->w.ring.hdr->vocab, fx->w.terms->vocab[0].checksum);
	assert_false(tokd_terms_are_left(was));
	return was;
}

static void
free_left(struct tokd_terms *t)
{
	assert_true(tokd_terms_are_left(t));
	tokd_terms_free(t);
}

static void
send_packet(uint64_t stream, uint32_t i, uint32_t vocab)
{
	struct request r = text_packet(stream, text, sizeof(text), CUT, TOKD_F_IDS, i);

	r.req.vocab = vocab;
	ask(r);
}

/* All but the last packet. Returns the number of that. */
static uint32_t
send_beginning(uint32_t vocab)
{
	const uint32_t last = text_packets(sizeof(text), CUT) - 1;

	for (uint32_t i = 0; i < last; i++)
		send_packet(1, i, vocab);
	drain();
	return last;
}

static void
expect_done(const uint32_t *ids, uint32_t n)
{
	const struct reply r = expect_reply();

	assert_true(r.rep.flags & TOKD_F_DONE);
	assert_int_equal(r.rep.total, n);
	assert_memory_equal(r.ids, ids, n * sizeof(ids[0]));
}

FIXTURE_TEST(reload_lets_a_text_end_with_the_vocabulary_it_began_with)
{
	struct tokd_vocabs swapped = vocabs_from(1, 2);
	uint32_t ids[2][4 * sizeof(text)], n[2];
	struct tokd_terms *was;
	uint32_t last;

	for (fx->vocab = 0; fx->vocab < 2; fx->vocab++)
		n[fx->vocab] = whole(text, sizeof(text), ids[fx->vocab], (uint32_t)RTE_DIM(ids[0]));
	last = send_beginning(0);
	was = reload(&swapped);
	fx->vocab = 1; /* where the default of before is now */
	send_packet(1, last, 0);
	expect_done(ids[0], n[0]);
	free_left(was);
	/* Its answer stays. */
	send_packet(1, last, 0);
	assert_int_equal(expect_reply().rep.total, n[0]);
	expect_count(C_STREAMS_OPENED, 1);
	fx->vocab = 0;
	ask_text(2, text, sizeof(text), sizeof(text), TOKD_F_IDS);
	expect_done(ids[1], n[1]);
}

FIXTURE_TEST(reload_without_a_vocabulary_ends_its_texts_and_refuses_new_ones)
{
	const uint32_t gone = fx->w.terms->vocab[1].checksum;
	struct tokd_vocabs first = vocabs_from(0, 1);
	struct tokd_terms *was;
	uint32_t last;

	fx->vocab = 1;
	last = send_beginning(gone);
	was = reload(&first);
	fx->w.terms->vocab[1].checksum = gone; /* not served: what replies are compared with */
	for (int i = 0; i < 2; i++) {
		send_packet(1, last, gone);
		assert_true(expect_reply().rep.flags & TOKD_F_DONE);
	}
	free_left(was);
	fx->vocab = 0;
	send_packet(2, 0, gone);
	expect_fail(TOKD_R_VOCAB);
}

FIXTURE_TEST(reload_of_a_limit_is_for_texts_that_begin_then)
{
	const uint64_t open_ticks = fx->w.streams->open_ticks;
	struct tokd_vocabs all = vocabs_from(0, 2);
	const uint32_t last = send_beginning(0);
	struct tokd_terms *was;

	fx->opt.max_text = CUT;
	fx->opt.stream_timeout_ms /= 2;
	was = reload(&all);
	send_packet(1, last, 0);
	assert_true(expect_reply().rep.flags & TOKD_F_DONE);
	free_left(was);
	send_packet(2, 1, 0);
	expect_fail(TOKD_R_TEXT_TOO_LONG);
	assert_int_equal(fx->w.streams->open_ticks, open_ticks / 2);
}
