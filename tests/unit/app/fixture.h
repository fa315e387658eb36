/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A worker under test: the real one, on a net_ring port, with a token ring in ordinary memory and
 * a small vocabulary. A test puts frames in, runs turns of the loop, and looks at the frames that
 * come out and at the records in the ring.
 */
#pragma once

#include <rte_arp.h>
#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_icmp.h>
#include <rte_ip.h>
#include <rte_ring.h>
#include <rte_udp.h>

#include <tok.h>
#include <tokd/wire.h>

#include "test.h"
#include "control/vocabs/vocabs.h"
#include <crc32c.h>
#include "datapath/loop/housekeeping.h"
#include "datapath/stream/reply.h"
#include "datapath/stream/stream.h"
#include "datapath/token_ring_write.h"
#include "datapath/worker.h"

#define POOL_MBUFS 1023
#define JUMBO_TEXT 8900
#define RING_BYTES (1u << 20)
#define SMALL_RING_BYTES (64u << 10)
#define STREAMS 16
#define NAMES_BYTES (64u << 10)
#define FRAGMENTS 8
#define TEXT_PORT 9001
#define SIDE_BYTES (8u << 10)
#define EPOCH 0xabcd1234u

/* Of each fixture, MB of EAL's memory, a vocabulary's file: set before fixture_start(). */
extern uint32_t fx_streams, fx_names, fx_cache;
extern char fx_memory[16], fx_pages[16];
extern const char *fx_vocab; /* NULL: a small one */

/* What the application is started with, once. */
int fixture_start(int argc, char **argv);
void fixture_stop(void);

/* Per test: a fresh worker. Teardown fails if an mbuf is missing. */
int setup(void **state);
int setup_small_ring(void **state);
int setup_small_ring_and_side_store(void **state);
int setup_zero_copy(void **state);
int setup_small_ring_zero_copy(void **state);
int teardown(void **state);
/* What a reload would make of `v`, with the fixture's options. */
struct tokd_terms *fixture_terms(struct tokd_vocabs *v);
#define FIXTURE_TEST(name) TEST_WITH(name, setup, teardown)

struct fixture {
	struct tokd_worker w;
	struct tokd_options opt;
	_Atomic uint32_t stop;
	_Atomic uint64_t cursor[TOKD_READERS_MAX];
	uint64_t read_pos; /* of the test's own look at the ring */
	uint32_t vocab;	   /* index of the one that replies, records and whole() are of */
	bool validated;	   /* requests that have no cookie get the right one */
};
extern struct fixture *fx;
extern struct rte_mempool *fx_pool;
extern struct rte_ring *fx_tx; /* what the port has sent */

/* --wipe. Set before fixture_start(). */
extern bool fx_wipe;

/* --block-keys and --block-size. Set before a fixture is made. */
extern uint32_t fx_block_keys, fx_block_size;

/* Replies are sent from the ring: however few ids they have. Set before a fixture is made. */
extern bool fx_zero_copy;

/* Sum over all tests so far of each counter. */
extern uint64_t fx_counted[C_COUNT];

/* ---- frames in ---- */

struct request {
	struct tokd_req req;
	const void *text;
	uint32_t n;  /* bytes at text */
	uint32_t ip; /* host order; 0: the default client */
	uint16_t port;
};

/* The headers of a frame as a pointer each, to be spoilt by a test. */
struct frame {
	struct rte_mbuf *m;
	struct rte_ether_hdr *eth;
	struct rte_ipv4_hdr *ip;
	struct rte_udp_hdr *udp;
	uint8_t *payload;
};

struct request data_request(uint64_t stream, uint32_t packet, uint32_t offset, const void *text,
	uint32_t n, uint16_t flags);
struct request poll_request(uint64_t stream, uint32_t ids_ack, uint32_t ids_end);
struct frame make_frame(struct request r);
/* Compute both checksums anew after a change. */
void seal_frame(struct frame *f);
struct rte_mbuf *raw_frame(const void *bytes, uint32_t n);
/* The same bytes in segments of at most `cut` bytes after a first one of `first`. */
struct rte_mbuf *cut_frame(struct rte_mbuf *m, uint32_t first, uint32_t cut);
/* The right cookie for its sender, now. */
uint64_t cookie_of(struct request r);
void put(struct rte_mbuf *m);
void send_request(struct request r);
/* A whole text in packets of `cut` bytes, cut >= 1; returns how many packets. */
uint32_t send_text(uint64_t stream, const void *text, uint32_t n, uint32_t cut, uint16_t flags);
/* Packet `packet` of that text. */
struct request text_packet(uint64_t stream, const void *text, uint32_t n, uint32_t cut,
	uint16_t flags, uint32_t packet);
uint32_t text_packets(uint32_t n, uint32_t cut);

/* ---- turns ---- */

/* Until the RX queue is empty. */
void run(void);
/* And before that: a frame, a request, a whole text. */
void receive(struct rte_mbuf *m);
void ask(struct request r);
void ask_text(uint64_t stream, const void *text, uint32_t n, uint32_t cut, uint16_t flags);

/* ---- frames out ---- */

struct reply {
	struct tokd_rep rep;
	uint32_t frame_bytes;
	uint32_t udp_payload;
	uint32_t ids[TOKD_WIRE_PAYLOAD]; /* or bytes of text */
};

/* The next frame out, or NULL; the caller frees it. */
struct rte_mbuf *next_frame(void);
/* It is there. */
struct rte_mbuf *expect_frame(void);
/* The next reply out, checked for form; false if there is none. */
bool next_reply(struct reply *r);
/* Drop what has been sent so far; returns how many frames. */
uint32_t drain(void);
/* There is exactly one reply, with these. */
void expect_fail(enum tokd_reason reason);
/* That is the only reply to this. */
void expect_refusal(struct request r, enum tokd_reason reason);
struct reply expect_reply(void);
void expect_nothing(void);
void expect_count(enum tokd_counter c, uint64_t n);

/* ---- ids ---- */

struct text_ids {
	uint32_t n, first_flags, last_flags, aborts, reason, text_end;
	uint32_t records;
	uint32_t answers, answer; /* records behind a prompt, and their bytes */
	uint64_t serial;
	uint32_t n_keys;
	uint32_t id[1u << 17];
	uint8_t key[32u << 17];
};
/* Read every record since the last call; those of `stream` are gathered and checked for order.
 * Bytes of text become an id each. */
void gather(uint64_t stream, struct text_ids *got);
/* Its keys are those that libtokd-block-keys gives for all its ids at once. */
void expect_keys(const struct text_ids *got);
/* Ids of the whole text by tok_encode. */
uint32_t whole(const void *text, uint32_t n, uint32_t *ids, uint32_t room);
/* The records of `stream` since the last call are those of the text, FIRST to LAST; so are the keys
 * of their blocks. */
void expect_text(uint64_t stream, const void *text, uint32_t n);
uint32_t crc32c_of(const void *p, uint32_t n);

/* ---- readers ---- */
void reader_join(uint32_t i);

/* A text that is not too regular; the same for the same seed. */
void make_text(uint8_t *text, uint32_t n, uint32_t seed);
