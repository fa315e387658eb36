/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A data plane to throw frames at: the real worker, with a token ring in ordinary memory, an
 * Ethernet port made of rings, and a clock that the input moves. Frames lie in a pool of their own,
 * whose memory behind each frame AddressSanitizer guards.
 */
#pragma once

#include "datapath/stream/stream.h"
#include "datapath/worker.h"

#define PLANE_IP RTE_IPV4(10, 0, 0, 1)
#define PLANE_TEXT_PORT 9001
#define PLANE_VLAN 100 /* of the second plane; the first has none */
#define PLANE_READERS 2
#define PLANE_FRAME_MAX 4500 /* bytes of one segment */
#define PLANE_MAX_TEXT (64u << 10)

/* Ids as the records of one stream brought them. */
#define PLANE_GATHERED 48 /* streams of one input that are followed */
#define PLANE_IDS_MAX 1024

struct plane_stream {
	uint32_t n;
	bool begun, over;
	uint32_t id[PLANE_IDS_MAX];
};

struct plane {
	struct tokd_worker w;
	struct tokd_options opt;
	_Atomic uint32_t stop;
	_Atomic uint64_t cursor[PLANE_READERS];
	uint64_t now; /* TSC as the worker is told */
	uint64_t read_pos;
	uint64_t ids, records; /* as counted from the ring */
	struct plane_stream stream[PLANE_GATHERED];
	/*
	 * A stream's last record has come: are these the ids of its text? NULL: nobody knows. Only
	 * for streams with fewer ids than PLANE_IDS_MAX.
	 */
	void (*whole)(const struct plane *p, const struct tokd_rec *rec, const uint32_t *ids);
	uint32_t n_burst;
	struct rte_mbuf *burst[TOKD_BURST];
};

extern const struct rte_ether_addr plane_mac;
extern const struct tokd_addr plane_ip6;

/* Both planes, once per program. The second has a VLAN, checksum offloads, strict UTF-8 and keys of
 * blocks. */
void planes_start(void);
struct plane *plane_get(uint32_t second);

/* A frame of these bytes, in segments of `first` and then `cut` bytes (0: one); NULL: no mbuf. */
struct rte_mbuf *plane_frame(const uint8_t *bytes, uint32_t n, uint32_t first, uint32_t cut);
/* Put a frame into the burst; a full burst is run. */
void plane_put(struct plane *p, struct rte_mbuf *m);
/* Hand the burst to the worker, and check what it left behind. */
void plane_run(struct plane *p);
/* As much time passes, and housekeeping comes. */
void plane_wait(struct plane *p, uint64_t ms);
/* The next burst finds no mbufs for replies. */
void plane_starve(struct plane *p);

/* End all streams: every mbuf is back, nothing is left of the input. */
void plane_end(struct plane *p);
