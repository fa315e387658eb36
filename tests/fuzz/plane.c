/* SPDX-License-Identifier: BSD-3-Clause */
#include <netinet/in.h>
#include <sanitizer/asan_interface.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_ip.h>
#include <rte_udp.h>

#include "control/port/port.h"
#include "control/tables/tables.h"
#include "control/vocabs/terms.h"
#include "control/worker_open.h"
#include "control/zero_copy_open.h"
#include "eal.h"
#include "fuzz.h"
#include "datapath/loop/housekeeping.h"
#include "gpu.h"
#include "plane.h"
#include "datapath/token_ring_write.h"
#include "vocabulary.h"
/* For the parts of a turn: a whole one would take the time from the TSC. */
#include "datapath/loop/worker_loop.c"

#define RING_BYTES (64u << 10)
#define SIDE_BYTES (8u << 10)
#define STREAMS 12
#define FRAGMENTS 4
#define DESC 32
#define TX_RING 64 /* less than TOKD_TX_MAX: a full one is met */
#define REPLY_MBUFS 511
#define REPLY_ROOM (TOKD_WIRE_PAYLOAD + 200)
#define FRAME_MBUFS 1023
#define TIMEOUT_MS 10000
#define BLOCK_SIZE 3
#define KEY_BYTES 32 /* SHA-256 */
#define END_TURNS 64 /* of housekeeping, until everything has ended */

const struct rte_ether_addr plane_mac = {{2, 0, 0, 0, 0, 1}};
const struct tokd_addr plane_ip6 = {.byte = {0x20, 0x01, 0x0d, 0xb8, [13] = 0xaa, 0xbb, 1}};

static struct plane planes[2];
static struct rte_mempool *reply_pool, *frame_pool;
static struct rte_ring *tx;
static uint16_t port;
static uint64_t ms_ticks;

static void
port_start(void)
{
	const struct rte_eth_conf conf = {0};
	struct rte_ring *rx =
		rte_ring_create("rx", 64, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
	int rc;

	tx = rte_ring_create("tx", TX_RING, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
	reply_pool = rte_pktmbuf_pool_create(
		"replies", REPLY_MBUFS, 0, 0, RTE_PKTMBUF_HEADROOM + REPLY_ROOM, SOCKET_ID_ANY);
	frame_pool = rte_pktmbuf_pool_create(
		"frames", FRAME_MBUFS, 0, 0, RTE_PKTMBUF_HEADROOM + PLANE_FRAME_MAX, SOCKET_ID_ANY);
	MUST(rx != NULL && tx != NULL && reply_pool != NULL && frame_pool != NULL);
	rc = rte_eth_from_rings("fuzz", &rx, 1, &tx, 1, 0);
	MUST(rc >= 0);
	port = (uint16_t)rc;
	MUST(rte_eth_dev_configure(port, 1, 1, &conf) == 0 &&
		rte_eth_rx_queue_setup(port, 0, DESC, 0, NULL, frame_pool) == 0 &&
		rte_eth_tx_queue_setup(port, 0, DESC, 0, NULL) == 0 &&
		rte_eth_dev_start(port) == 0);
}

/* Keys of all ids at once. */
static struct tokb *keys;

static void before_reuse(void *plane, uint64_t from, uint64_t to);

static void
plane_start(struct plane *p, bool second, struct tokd_vocabs *vocabs)
{
	uint8_t *mem = aligned_alloc(4096, TOKD_RING_HDR_BYTES + RING_BYTES);
	struct tok_error error;
	const struct tokd_port on = {
		.id = port, .rx_desc = DESC, .tx_desc = DESC, .zero_copy = TOKD_ZC_COPIES};

	MUST(mem != NULL);
	memset(mem, 0, TOKD_RING_HDR_BYTES + RING_BYTES);
	p->opt = (struct tokd_options){
		.ip = RTE_BE32(PLANE_IP),
		.udp_port = TOKD_WIRE_PORT,
		.streams = STREAMS,
		.max_text = PLANE_MAX_TEXT,
		.stream_timeout_ms = TIMEOUT_MS,
		.done_timeout_ms = TIMEOUT_MS,
		.names_bytes = 1 << 10,
		.mbufs = REPLY_MBUFS,
		.mbuf_room = REPLY_ROOM,
		.cache_entries = 256,
		.fragments = FRAGMENTS,
		.side_bytes = second ? 0 : SIDE_BYTES,
		.strict_utf8 = second,
		.zero_copy_ids = second, /* of one id or more; the other plane copies */
		.block_keys = second ? 1 + TOKB_VLLM_SHA256_CBOR : 0,
		.block_size = BLOCK_SIZE,
	};
	p->w = (struct tokd_worker){
		.port = port,
		.pool = reply_pool,
		.terms = tokd_terms_create(&p->opt, vocabs, second, &error),
		.ip = p->opt.ip,
		.ip6 = plane_ip6,
		.vlan = second ? PLANE_VLAN : 0,
		.udp_port = RTE_BE16(TOKD_WIRE_PORT),
		.text_port = RTE_BE16(PLANE_TEXT_PORT),
		.mac = plane_mac,
		.mtu = second ? 1280 : RTE_ETHER_MTU,
		/* UDP's alone, as net_virtio does. */
		.rx_cksum = second ? RTE_MBUF_F_RX_L4_CKSUM_MASK : 0,
		.tx_cksum = second ? RTE_MBUF_F_TX_UDP_CKSUM : 0,
		.opt = &p->opt,
		.stop = &p->stop,
		.index = second,
		.node = SOCKET_ID_ANY,
		.ring = {.hdr = (struct tokd_ring_hdr *)mem,
			.data = mem + TOKD_RING_HDR_BYTES,
			.mask = RING_BYTES - 1,
			.limit = RING_BYTES},
	};
	MUST(p->w.terms != NULL && tokd_worker_init(&p->w, &on) == 0);
	p->w.feed_ticks = second ? 1 : UINT64_MAX; /* one piece a turn; no limit */
	p->w.ring.before_reuse = before_reuse;
	MUST(p->w.ring.owner == p); /* the worker is what a plane begins with */
	MUST(tokd_zero_copy_open(&p->w, &on) == 0);
}

void
planes_start(void)
{
	static struct tokd_vocabs vocabs = {.node = SOCKET_ID_ANY, .n = 2};

	eal_start();
	port_start();
	vocabs.tok[0] = vocabulary_make_special(VOCABULARY_MERGES);
	vocabs.tok[1] = vocabulary_make(4);
	MUST(vocabs.tok[0] != NULL && vocabs.tok[1] != NULL);
	keys = tokb_create(
		&(struct tokb_options){TOKB_VLLM_SHA256_CBOR, .block_size = BLOCK_SIZE}, NULL);
	MUST(keys != NULL);
	ms_ticks = rte_get_tsc_hz() / 1000;
	for (uint32_t i = 0; i < RTE_DIM(planes); i++) {
		plane_start(&planes[i], i == 1, &vocabs);
		plane_end(&planes[i]);
	}
}

struct plane *
plane_get(uint32_t second)
{
	return &planes[second & 1];
}

/* ---- frames in ---- */

/* Its answer, made in place, is by an option of 8 bytes longer. */
static bool
is_solicitation(const uint8_t *bytes, uint32_t n)
{
	for (uint32_t l2 = 14; l2 <= 18; l2 += 4) {
		if (n > l2 + 40 && bytes[l2 + 6] == IPPROTO_ICMPV6 && bytes[l2 + 40] == 135)
			return true;
	}
	return false;
}

static struct rte_mbuf *
segment(const uint8_t *bytes, uint32_t n)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(frame_pool);
	const uint32_t more = is_solicitation(bytes, n) ? 8 : 0;
	uint8_t *room;

	if (m == NULL)
		return NULL;
	room = (uint8_t *)m->buf_addr + m->data_off;
	ASAN_UNPOISON_MEMORY_REGION(room, rte_pktmbuf_tailroom(m));
	if (n > 0)
		memcpy(rte_pktmbuf_append(m, (uint16_t)n), bytes, n);
	ASAN_POISON_MEMORY_REGION(room + n + more, rte_pktmbuf_tailroom(m) - more);
	return m;
}

struct rte_mbuf *
plane_frame(const uint8_t *bytes, uint32_t n, uint32_t first, uint32_t cut)
{
	const uint32_t head = cut == 0 ? n : RTE_MIN(first, n);
	struct rte_mbuf *m = segment(bytes, head);

	for (uint32_t at = head; m != NULL && at < n; at += cut) {
		struct rte_mbuf *next = segment(bytes + at, RTE_MIN(cut, n - at));

		if (next == NULL || rte_pktmbuf_chain(m, next) != 0) {
			rte_pktmbuf_free(next);
			rte_pktmbuf_free(m);
			return NULL;
		}
	}
	return m;
}

void
plane_put(struct plane *p, struct rte_mbuf *m)
{
	if (m == NULL)
		return;
	p->burst[p->n_burst++] = m;
	if (p->n_burst == TOKD_BURST)
		plane_run(p);
}

/* ---- what came of them ---- */

static uint32_t
n_keys(const struct plane *p, const struct tokd_rec *rec)
{
	const uint32_t block_size = p->w.ring.block_size;

	if (block_size == 0 || rec->kind == TOKD_REC_TEXT)
		return 0;
	return tokd_rec_keys(rec->first, rec->count, block_size);
}

/* The keys of a text's last record stand for all of its ids. */
static void
see_last_keys(const struct plane *p, const struct tokd_rec *rec, const struct plane_stream *s)
{
	static uint8_t want[PLANE_IDS_MAX / BLOCK_SIZE * KEY_BYTES];
	const uint32_t n = n_keys(p, rec);

	tokb_reset(keys);
	MUST(tokb_feed(keys, s->id, s->n, want) == s->n / BLOCK_SIZE);
	MUST(memcmp(&want[(s->n / BLOCK_SIZE - n) * KEY_BYTES],
		     (const uint8_t *)rec + tokd_rec_bytes(rec->count), n * KEY_BYTES) == 0);
}

static void
see_record(struct plane *p, const struct tokd_rec *rec)
{
	const uint32_t *ids = (const uint32_t *)(rec + 1);
	struct plane_stream *s;

	MUST((rec->flags & ~(TOKD_REC_FIRST | TOKD_REC_LAST | TOKD_REC_ABORT | TOKD_REC_KEYS)) ==
		0);
	MUST(!(rec->flags & TOKD_REC_KEYS) == (n_keys(p, rec) == 0));
	MUST(rec->bytes == tokd_rec_bytes(tokd_rec_words(rec->kind, rec->count)) +
				   tokd_rec_keys_bytes(&p->w.ring, n_keys(p, rec)));
	MUST(rec->vocab == p->w.terms->vocab[0].checksum ||
		rec->vocab == p->w.terms->vocab[1].checksum);
	MUST(!(rec->flags & TOKD_REC_ABORT) == (rec->reason == TOKD_R_NONE));
	p->ids += rec->kind == TOKD_REC_TOKENS ? rec->count : 0;
	p->records++;
	if (rec->kind == TOKD_REC_TEXT && p->w.sink != NULL)
		gpu_record(&p->w, rec, (const uint8_t *)ids);
	if (rec->serial >= PLANE_GATHERED || rec->kind == TOKD_REC_TEXT)
		return;
	s = &p->stream[rec->serial];
	/* A stream's records follow each other without gap, from FIRST to LAST or ABORT. */
	MUST(!s->over && s->begun == !(rec->flags & TOKD_REC_FIRST) && rec->first == s->n);
	s->begun = true;
	s->over = rec->flags & (TOKD_REC_LAST | TOKD_REC_ABORT);
	for (uint32_t i = 0; i < rec->count && s->n + i < PLANE_IDS_MAX; i++)
		s->id[s->n + i] = ids[i];
	s->n += rec->count;
	if ((rec->flags & TOKD_REC_LAST) && s->n < PLANE_IDS_MAX && p->whole != NULL)
		p->whole(p, rec, s->id);
	if ((rec->flags & TOKD_REC_LAST) && s->n < PLANE_IDS_MAX && p->w.ring.block_size != 0)
		see_last_keys(p, rec, s);
}

/* Records lead from the last look to the head. */
static void
walk(struct plane *p)
{
	const struct tokd_ring *r = &p->w.ring;

	while (p->read_pos != r->head) {
		const struct tokd_rec *rec = tokd_ring_at(r, p->read_pos);
		const uint64_t at = p->read_pos & r->mask;

		MUST(rec->bytes >= sizeof(*rec) && rec->bytes % TOKD_RING_ALIGN == 0);
		MUST(rec->bytes <= r->head - p->read_pos && at + rec->bytes <= r->mask + 1);
		MUST(rec->kind >= TOKD_REC_TOKENS && rec->kind <= TOKD_REC_TEXT);
		if (rec->kind != TOKD_REC_PAD)
			see_record(p, rec);
		p->read_pos += rec->bytes;
	}
}

/* A burst may publish more than a lap: what goes is looked at before. */
static void
before_reuse(void *plane, uint64_t from, uint64_t to)
{
	struct plane *p = plane;

	walk(p);
	tokd_spill_before_reuse(&p->w, from, to);
}

/* Positions are consistent. */
static void
look_at_ring(struct plane *p)
{
	const struct tokd_ring *r = &p->w.ring;

	MUST(r->hdr->head == r->head && r->hdr->tail == r->tail);
	MUST(r->tail <= r->head && r->head - r->tail <= r->mask + 1);
	MUST(r->limit == r->tail + r->mask + 1);
	walk(p);
	for (uint32_t i = 0; i < PLANE_READERS; i++) {
		const struct tokd_reader *rd = &r->reader[i];

		MUST(rd->state != TOKD_READER_ACTIVE ||
			(r->tail <= rd->seen && rd->seen <= r->head));
	}
}

static void
check_reply(const struct plane *p, const struct rte_mbuf *m, uint32_t at)
{
	struct tokd_rep rep;
	size_t each;

	MUST(rte_pktmbuf_data_len(m) >= at + sizeof(rep));
	memcpy(&rep, rte_pktmbuf_mtod_offset(m, const void *, at), sizeof(rep));
	MUST(rep.magic == TOKD_WIRE_MAGIC && rep.type == TOKD_REPLY);
	each = rep.flags & (TOKD_F_DECODE | TOKD_F_GENERATE) ? 1
	       : rep.flags & TOKD_F_SHORT		     ? sizeof(uint16_t)
							     : sizeof(uint32_t);
	MUST(rte_pktmbuf_data_len(m) == at + sizeof(rep) + each * rep.count);
	MUST(rep.credit <= TOKD_WIRE_WINDOW && rep.reason < TOKD_R_MAX);
	/* Without FAIL it is why there is no credit. */
	MUST(rep.flags & TOKD_F_FAIL || rep.reason == TOKD_R_NONE ||
		((rep.reason == TOKD_R_RING || rep.reason == TOKD_R_LANES) && rep.credit == 0));
	MUST(rep.count == 0 || (uint64_t)rep.first + rep.count <= rep.total);
}

/* What leaves is well-formed, if it is a reply. */
static void
check_frame(const struct plane *p, const struct rte_mbuf *m)
{
	const uint32_t l2 =
		sizeof(struct rte_ether_hdr) + (p->w.vlan != 0 ? sizeof(struct rte_vlan_hdr) : 0);
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *);
	const struct rte_ipv4_hdr *ip = rte_pktmbuf_mtod_offset(m, const struct rte_ipv4_hdr *, l2);
	const struct rte_udp_hdr *udp = (const struct rte_udp_hdr *)(ip + 1);

	MUST(m->nb_segs > 1 || rte_pktmbuf_data_len(m) == rte_pktmbuf_pkt_len(m));
	MUST(rte_is_same_ether_addr(&eth->src_addr, &plane_mac));
	MUST(m->pool != reply_pool || rte_pktmbuf_pkt_len(m) <= l2 + p->w.mtu);
	if (m->pool != reply_pool || ip->version_ihl != RTE_IPV4_VHL_DEF)
		return; /* answered in place, or IPv6, whose headers are longer */
	MUST(rte_be_to_cpu_16(ip->total_length) + l2 == rte_pktmbuf_pkt_len(m));
	MUST(rte_ipv4_cksum(ip) == 0);
	if (p->w.tx_cksum == 0)
		MUST(rte_ipv4_udptcp_cksum(ip, udp) == 0xffff);
	if (udp->src_port == p->w.udp_port)
		check_reply(p, m, l2 + sizeof(*ip) + sizeof(*udp));
}

static void
drain_port(struct plane *p)
{
	void *sent;

	while (rte_ring_dequeue(tx, &sent) == 0) {
		struct rte_mbuf *m = sent;

		if (m->next != NULL && RTE_MBUF_HAS_EXTBUF(m->next))
			MUST(rte_pktmbuf_linearize(m) == 0); /* ids in the ring */
		check_frame(p, m);
		rte_pktmbuf_free(m);
	}
}

void
plane_run(struct plane *p)
{
	const uint16_t n = (uint16_t)p->n_burst;

	p->n_burst = 0;
	p->w.t_burst = p->now++;
	p->w.stopping = p->stop;
	begin(&p->w);
	take_frames(&p->w, p->burst, n);
	answer(&p->w);
	tokd_tx_flush(&p->w);
	drain_port(p);
	if (p->w.sink != NULL) {
		gpu_turns(&p->w);
		drain_port(p);
	}
	look_at_ring(p);
	MUST(p->w.n_tx == 0 && p->w.n_touched == 0);
	/* Held packets leave room in the pool for those that are to come. */
	MUST(rte_mempool_in_use_count(frame_pool) <=
		p->w.held_max + p->opt.fragments * RTE_LIBRTE_IP_FRAG_MAX_FRAG);
}

void
plane_wait(struct plane *p, uint64_t ms)
{
	p->now += ms * ms_ticks;
	p->w.t_burst = p->now;
	tokd_housekeeping(&p->w, p->now);
	look_at_ring(p);
}

void
plane_starve(struct plane *p)
{
	struct rte_mbuf *all[REPLY_MBUFS];
	uint32_t n = rte_mempool_avail_count(reply_pool);

	MUST(rte_pktmbuf_alloc_bulk(reply_pool, all, n) == 0);
	plane_run(p);
	rte_pktmbuf_free_bulk(all, n);
}

/* ---- the end of an input ---- */

/* The library has no way to empty a table. */
static void
renew_frags(struct plane *p)
{
	tokd_frags_free(p->w.frags);
	p->w.frags = tokd_frags_create(FRAGMENTS, p->w.index, p->w.node, p->w.tsc_hz);
	MUST(p->w.frags != NULL);
}

/* All that were not open. */
static bool
are_gone(const struct tokd_streams *t)
{
	return TAILQ_EMPTY(&t->aborting) && TAILQ_EMPTY(&t->finished);
}

static void
end_streams(struct plane *p)
{
	struct tokd_worker *w = &p->w;

	for (uint32_t i = 0; i < TOKD_READERS_MAX; i++) {
		if (w->ring.reader[i].state != TOKD_READER_FREE)
			w->ring.reader[i].state = TOKD_READER_LEAVE;
	}
	tokd_ring_readers(&w->ring);
	tokd_shutdown(w);
	drain_port(p);
	look_at_ring(p);
	if (w->sink != NULL) {
		gpu_ended(w);
		gpu_close(w);
	}
	for (uint32_t i = 0; i < END_TURNS && !are_gone(w->streams); i++)
		plane_wait(p, 2 * TIMEOUT_MS);
	MUST(TAILQ_EMPTY(&w->streams->open) && are_gone(w->streams));
}

static void
check_counters(const struct plane *p)
{
	const uint64_t *c = p->w.counter;

	MUST(c[C_STREAMS_OPENED] == c[C_STREAMS_DONE] + c[C_STREAMS_FAILED]);
	MUST(c[C_IDS] == p->ids && c[C_RECORDS] == p->records);
	MUST(c[C_RING_UNREAD] <= c[C_RECORDS]);
}

/* As if the ring had just been made. */
static void
renew_ring(struct plane *p)
{
	struct tokd_ring *r = &p->w.ring;

	r->head = r->tail = r->serial = r->wanted = 0;
	r->hdr->head = r->hdr->tail = 0;
	r->limit = r->mask + 1;
	r->full = false;
	memset(r->reader, 0, sizeof(r->reader));
	p->w.reply_head = 0;
	p->read_pos = p->ids = p->records = 0;
	for (uint32_t i = 0; i < PLANE_GATHERED; i++)
		p->stream[i].begun = p->stream[i].over = p->stream[i].n = 0;
}

void
plane_end(struct plane *p)
{
	struct tokd_worker *w = &p->w;

	plane_run(p);
	end_streams(p);
	MUST(w->n_held == 0 && tokd_worker_open_streams(w) == 0);
	MUST(w->side.n_free == w->side.n);
	check_counters(p);
	if (w->counter[C_RX_FRAGMENTS] > 0)
		renew_frags(p);
	MUST(rte_mempool_full(reply_pool) && rte_mempool_full(frame_pool));
	renew_ring(p);
	/* Else the names of one input would be used up for the next. */
	memset(w->streams->names.bucket, 0,
		w->streams->names.n_buckets * sizeof(*w->streams->names.bucket));
	memset(w->refused, 0, sizeof(w->refused));
	w->refused_until = 0;
	memset(w->counter, 0, sizeof(w->counter));
	w->text_id = 0;
	p->stop = TOKD_RUN;
	/* Small against the real TSC, which publishing reads: time never goes back. */
	p->now = ms_ticks;
}
