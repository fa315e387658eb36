/* SPDX-License-Identifier: BSD-3-Clause */
/* Replies that point into the token ring: net_ring keeps them, as a device would, until we free. */
#include "fixture.h"

#define TEXT 200

static uint8_t text[TEXT];
static uint32_t want[TEXT], n_want;

/* A text of its own for each stream; each packet in a burst of its own, and so a record each. */
static void
send_own_text(uint64_t stream, uint32_t cut)
{
	make_text(text, TEXT, (uint32_t)stream);
	n_want = whole(text, TEXT, want, RTE_DIM(want));
	for (uint32_t i = 0; i < text_packets(TEXT, cut); i++)
		ask(text_packet(stream, text, TEXT, cut, TOKD_F_IDS, i));
}

TEST_WITH(zero_copy_points_into_the_ring, setup_zero_copy, teardown)
{
	struct rte_mbuf *m;
	void *p = NULL;

	send_own_text(1, TEXT);
	assert_int_equal(rte_ring_dequeue(fx_tx, &p), 0);
	m = p;
	assert_int_equal(m->nb_segs, 2);
	assert_int_equal(m->next->data_len, 4 * n_want);
	assert_int_equal(m->pkt_len, m->data_len + m->next->data_len);
	assert_ptr_equal(
		rte_pktmbuf_mtod(m->next, void *), tokd_rec_ids(tokd_ring_at(&fx->w.ring, 0)));
	assert_memory_equal(rte_pktmbuf_mtod(m->next, void *), want, 4 * n_want);
	assert_int_equal(fx->w.zc.n_out, 1);
	rte_pktmbuf_free(m);
	assert_int_equal(fx->w.zc.n_out, 0);
	expect_count(C_REPLY_IN_PLACE, 4 * n_want);
	expect_count(C_REPLY_COPIED, 0);
}

TEST_WITH(zero_copy_is_for_replies_with_ids_enough, setup_zero_copy, teardown)
{
	make_text(text, TEXT, 1);
	fx->w.zc.min = whole(text, TEXT, want, RTE_DIM(want));
	send_own_text(1, TEXT);
	expect_count(C_REPLY_IN_PLACE, 4 * n_want);
	fx->w.zc.min++;
	ask_text(2, text, TEXT, TEXT, TOKD_F_IDS);
	expect_count(C_REPLY_IN_PLACE, 4 * n_want);
	expect_count(C_REPLY_COPIED, 4 * n_want);
}

TEST_WITH(zero_copy_of_too_many_records_is_a_copy, setup_zero_copy, teardown)
{
	struct reply r;

	/* One reply: their ids do not fill a packet before. */
	send_own_text(1, TEXT / TOKD_ZC_SEGS + 1);
	r = expect_reply();
	assert_memory_equal(r.ids, want, 4 * n_want);
	expect_count(C_REPLY_IN_PLACE, 4 * n_want);
	send_own_text(2, TEXT / (TOKD_ZC_SEGS + 1));
	assert_int_equal(fx->w.zc.n_out, 0);
	r = expect_reply();
	assert_memory_equal(r.ids, want, 4 * n_want);
	expect_count(C_REPLY_COPIED, 4 * n_want);
}

TEST_WITH(zero_copy_without_an_mbuf_is_a_copy, setup_small_ring_zero_copy, teardown)
{
	uint32_t left = fx->w.zc.n;
	struct reply r;

	for (uint64_t s = 1; left > 0; s++, left--)
		send_own_text(s, TEXT);
	expect_count(C_REPLY_COPIED, 0);
	assert_int_equal(fx->w.zc.n_out, fx->w.zc.n);
	send_own_text(100, TEXT);
	expect_count(C_REPLY_COPIED, 4 * n_want);
	while (next_reply(&r)) {
		make_text(text, TEXT, (uint32_t)r.rep.stream_id);
		n_want = whole(text, TEXT, want, RTE_DIM(want));
		assert_int_equal(r.rep.count, n_want);
		assert_memory_equal(r.ids, want, 4 * n_want);
	}
}

/* The driver keeps the first packet: the ring's tail comes to its record, and no further. */
TEST_WITH(zero_copy_holds_the_ring_until_the_driver_is_done, setup_small_ring_zero_copy, teardown)
{
	struct rte_mbuf *kept;
	uint64_t other = 10;
	void *p = NULL;

	send_own_text(1, TEXT);
	assert_int_equal(rte_ring_dequeue(fx_tx, &p), 0);
	kept = p;
	while (fx->w.counter[C_DROP_RING_FULL] == 0 && other < 10000) {
		ask_text(other++, "hello world", 11, 100, 0);
		drain();
	}
	assert_true(fx->w.ring.full);
	assert_int_equal(fx->w.ring.tail, 0);
	assert_memory_equal(rte_pktmbuf_mtod(kept->next, void *), want, 4 * n_want);
	rte_pktmbuf_free(kept);
	tokd_housekeeping(&fx->w, rte_rdtsc());
	assert_false(fx->w.ring.full);
	assert_true(fx->w.ring.tail > 0);
	send_own_text(2, TEXT);
	assert_int_equal(expect_reply().rep.count, n_want);
}
