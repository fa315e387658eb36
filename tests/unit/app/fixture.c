/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include <rte_eal.h>
#include <rte_eth_ring.h>
#include <rte_malloc.h>

#include "fixture.h"
#include "control/port/port.h"
#include "control/vocabs/terms.h"
#include "control/worker_open.h"
#include "control/zero_copy_open.h"
#include "vocabulary.h"

#define RX_DESC 256
#define TX_DESC 256
#define MBUF_ROOM (JUMBO_TEXT + 200)
#define OUR_IP RTE_IPV4(10, 0, 0, 1)

struct fixture *fx;
struct rte_mempool *fx_pool;
uint64_t fx_counted[C_COUNT];
bool fx_zero_copy, fx_wipe;
uint32_t fx_block_keys, fx_block_size;
uint32_t fx_streams = STREAMS, fx_names = NAMES_BYTES, fx_cache = 256;
char fx_memory[16] = "128";
char fx_pages[16] = "--no-huge";
const char *fx_vocab;

struct rte_ring *fx_tx;
static struct rte_ring *rx;
static uint16_t port;
static struct tokd_vocabs vocabs = {.node = SOCKET_ID_ANY, .n = 2};
static const struct tokd_addr our_ip6 = {.byte = {0x20, 0x01, 0x0d, 0xb8, [13] = 0xaa, 0xbb, 1}};
static const struct rte_ether_addr our_mac = {{2, 0, 0, 0, 0, 1}};

int
fixture_start(int argc, char **argv)
{
	char *eal[] = {argv[0], fx_pages, "--no-pci", "--no-shconf", "-m", fx_memory, "-l", "0",
		"--no-telemetry", "--log-level=lib.eal:error", "--log-level=user1:error", NULL};
	const struct tokd_options opt = {
		.mbufs = POOL_MBUFS, .mbuf_room = MBUF_ROOM, .wipe = fx_wipe};
	const struct rte_eth_conf conf = {0};
	const struct tokd_port p = {0};
	struct tok_error err;
	int rc;

	if (rte_eal_init(RTE_DIM(eal) - 1, eal) < 0)
		return -1;
	fx_pool = tokd_port_pool(&p, &opt, 0, SOCKET_ID_ANY);
	rx = rte_ring_create("rx", 1024, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
	fx_tx = rte_ring_create("tx", 1024, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
	if (fx_pool == NULL || rx == NULL || fx_tx == NULL)
		return -1;
	rc = rte_eth_from_rings("test", &rx, 1, &fx_tx, 1, 0);
	if (rc < 0)
		return -1;
	port = (uint16_t)rc;
	if (rte_eth_dev_configure(port, 1, 1, &conf) < 0 ||
		rte_eth_rx_queue_setup(port, 0, RX_DESC, 0, NULL, fx_pool) < 0 ||
		rte_eth_tx_queue_setup(port, 0, TX_DESC, 0, NULL) < 0 ||
		rte_eth_dev_start(port) < 0)
		return -1;
	vocabs.tok[0] = fx_vocab != NULL ? tok_vocab_load(fx_vocab, NULL, &err)
					 : vocabulary_make(VOCABULARY_MERGES);
	vocabs.tok[1] = vocabulary_make(4);
	return vocabs.tok[0] == NULL || vocabs.tok[1] == NULL ? -1 : 0;
}

void
fixture_stop(void)
{
	for (uint32_t i = 0; i < vocabs.n; i++)
		tok_vocab_free(vocabs.tok[i]);
	rte_eth_dev_stop(port);
	rte_eth_dev_close(port);
	rte_ring_free(rx);
	rte_ring_free(fx_tx);
	rte_mempool_free(fx_pool);
	rte_eal_cleanup();
}

static void
ring_make(struct tokd_ring *r, uint32_t bytes)
{
	uint8_t *mem = aligned_alloc(4096, TOKD_RING_HDR_BYTES + bytes);

	assert_non_null(mem);
	memset(mem, 0, TOKD_RING_HDR_BYTES);
	/* What stands there before the first record must not matter. */
	memset(mem + TOKD_RING_HDR_BYTES, 0xa5, bytes);
	r->hdr = (struct tokd_ring_hdr *)mem;
	r->data = mem + TOKD_RING_HDR_BYTES;
	r->mask = bytes - 1;
	r->limit = bytes;
}

struct tokd_terms *
fixture_terms(struct tokd_vocabs *v)
{
	struct tok_error err;
	struct tokd_terms *t = tokd_terms_create(&fx->opt, v, 0, &err);

	assert_non_null(t);
	return t;
}

static int
setup_with(uint32_t ring_bytes, uint32_t side_bytes, bool zero_copy)
{
	const struct tokd_port p = {
		.id = port, .rx_desc = RX_DESC, .tx_desc = TX_DESC, .zero_copy = TOKD_ZC_COPIES};

	fx = calloc(1, sizeof(*fx));
	fx->opt = (struct tokd_options){
		.ip = RTE_BE32(OUR_IP),
		.udp_port = TOKD_WIRE_PORT,
		.streams = fx_streams,
		.max_text = 1 << 20,
		.stream_timeout_ms = 1000000,
		.done_timeout_ms = 1000000,
		.names_bytes = fx_names,
		.rx_desc = RX_DESC,
		.tx_desc = TX_DESC,
		.mbufs = POOL_MBUFS,
		.mbuf_room = MBUF_ROOM,
		.cache_entries = fx_cache,
		.fragments = FRAGMENTS,
		.side_bytes = side_bytes,
		.wipe = fx_wipe,
		.block_keys = fx_block_keys,
		.block_size = fx_block_size,
		.block_seed = "0",
		.block_model = "one,two",
	};
	fx->w = (struct tokd_worker){
		.port = port,
		.pool = fx_pool,
		.terms = fixture_terms(&vocabs),
		.ip = fx->opt.ip,
		.ip6 = our_ip6,
		.udp_port = RTE_BE16(TOKD_WIRE_PORT),
		.text_port = RTE_BE16(TEXT_PORT),
		.mac = our_mac,
		.mtu = RTE_ETHER_MTU,
		.opt = &fx->opt,
		.stop = &fx->stop,
		.node = SOCKET_ID_ANY,
	};
	ring_make(&fx->w.ring, ring_bytes);
	assert_int_equal(tokd_worker_init(&fx->w, &p), 0);
	fx->w.feed_ticks = UINT64_MAX; /* what a turn does depends on no clock */
	if (zero_copy) {
		fx->opt.zero_copy_ids = 1;
		assert_int_equal(tokd_zero_copy_open(&fx->w, &p), 0);
		assert_non_null(fx->w.zc.pool);
	}
	fx->validated = true;
	fx->w.t_burst = rte_rdtsc();
	fx->w.turn_kind = C_CYCLES_IDLE;
	return 0;
}

int
setup(void **state)
{
	return setup_with(RING_BYTES, 0, fx_zero_copy);
}

int
setup_small_ring(void **state)
{
	return setup_with(SMALL_RING_BYTES, 0, fx_zero_copy);
}

int
setup_small_ring_and_side_store(void **state)
{
	return setup_with(SMALL_RING_BYTES, SIDE_BYTES, fx_zero_copy);
}

int
setup_zero_copy(void **state)
{
	return setup_with(RING_BYTES, 0, true);
}

int
setup_small_ring_zero_copy(void **state)
{
	return setup_with(SMALL_RING_BYTES, 0, true);
}

/* Every block is free, or belongs to one record of one stream. */
static void
expect_side_store_whole(void)
{
	const struct tokd_side *d = &fx->w.side;
	uint32_t used = 0, n_free = 0;

	for (uint32_t i = 0; i <= fx->w.streams->n; i++) {
		const struct tokd_stream *s = &fx->w.streams->stream[i];

		for (uint32_t r = s->rec_tail; s->state != TOKD_STREAM_FREE && r != s->rec_head;
			r++) {
			const struct tokd_stream_rec *rec = &s->rec[r % TOKD_STREAM_RECS];

			if (rec->pos & TOKD_REC_IN_SIDE)
				used += (tokd_stream_bytes(s, rec->count) + TOKD_SIDE_BLOCK - 1) /
					TOKD_SIDE_BLOCK;
		}
	}
	for (uint32_t b = d->free; n_free < d->n_free; b = d->next[b])
		n_free++;
	assert_int_equal(used + n_free, d->n);
}

int
teardown(void **state)
{
	atomic_store(&fx->stop, TOKD_STOP);
	tokd_worker_run(&fx->w);
	drain();
	for (uint32_t c = 0; c < C_COUNT; c++)
		fx_counted[c] += fx->w.counter[c];
	assert_int_equal(fx->w.n_held, 0);
	assert_int_equal(tokd_worker_open_streams(&fx->w), 0);
	expect_side_store_whole();
	assert_int_equal(fx->w.zc.n_out, 0);
	tokd_worker_free(&fx->w); /* with the fragments it still has */
	tokd_zero_copy_close(&fx->w);
	assert_int_equal(fx->w.terms->users, 1);
	tokd_terms_free(fx->w.terms);
	assert_int_equal(rte_mempool_avail_count(fx_pool), POOL_MBUFS);
	free(fx->w.ring.hdr);
	free(fx);
	fx = NULL;
	return 0;
}

void
put(struct rte_mbuf *m)
{
	assert_int_equal(rte_ring_enqueue(rx, m), 0);
}

void
run(void)
{
	do {
		tokd_worker_turn(&fx->w);
	} while (!rte_ring_empty(rx) || tokd_drr_waits(&fx->w.drr));
}

void
receive(struct rte_mbuf *m)
{
	put(m);
	run();
}

struct rte_mbuf *
next_frame(void)
{
	void *m;

	if (rte_ring_dequeue(fx_tx, &m) != 0)
		return NULL;
	rte_mbuf_sanity_check(m, 1);
	assert_int_equal(rte_pktmbuf_linearize(m), 0); /* lets go of what points into the ring */
	return m;
}

struct rte_mbuf *
expect_frame(void)
{
	struct rte_mbuf *m = next_frame();

	assert_non_null(m);
	return m;
}

uint32_t
drain(void)
{
	struct rte_mbuf *m;
	uint32_t n = 0;

	while ((m = next_frame()) != NULL) {
		rte_pktmbuf_free(m);
		n++;
	}
	return n;
}

uint32_t
whole(const void *text, uint32_t n, uint32_t *ids, uint32_t room)
{
	struct tok_result r =
		tok_encode(fx->w.terms->vocab[fx->vocab].tok, NULL, text, n, 0, ids, room);

	assert_int_equal(r.status, TOK_OK);
	assert_int_equal(r.consumed, n);
	return (uint32_t)r.produced;
}

void
reader_join(uint32_t i)
{
	struct tokd_reader *rd = &fx->w.ring.reader[i];

	rd->cursor = &fx->cursor[i];
	atomic_store(&rd->state, TOKD_READER_JOIN);
	tokd_ring_readers(&fx->w.ring);
	assert_int_equal(rd->state, TOKD_READER_ACTIVE);
	assert_int_equal(rd->start, fx->w.ring.head);
	fx->cursor[i] = rd->start;
}

void
make_text(uint8_t *text, uint32_t n, uint32_t seed)
{
	static const char *const words[] = {"hello", " world", " the", "ing", " ", "  ", "\n", "a",
		"b", " token", "1234", "'s", "\xc3\xa9", "\xe4\xb8\xad\xe6\x96\x87", "!?", "lo"};
	uint32_t i = 0;

	while (i < n) {
		const char *p;

		seed = seed * 1664525 + 1013904223;
		p = words[seed >> 28];
		while (*p != 0 && i < n)
			text[i++] = (uint8_t)*p++;
	}
}
