/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A worker: one lcore, one RX and one TX queue, one token ring, its own streams and counters.
 * Workers share only the read-only vocabularies. A pair with zero_copy.h, whose state of a worker
 * it holds.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include <rte_ether.h>
#include <rte_mbuf.h>

#include <tok.h>
#include <tokd/wire.h>

#include "counters.h"
#include "histogram.h"
#include "net_addr.h"
#include "options/options.h"
#include "side_store.h"
#include "drr.h"
#include "terms.h"
#include "token_ring.h"
#include "zero_copy.h"

#define TOKD_GATHER_MAX (3 * TOKD_WIRE_PAYLOAD)

struct tokd_allow;     /* net_allow.h */
struct tokd_answers;   /* generate.h */
struct tokd_frags;     /* net_frag.h */
struct tokd_gpu_texts; /* gpu_text.h */
struct tokd_sink;      /* gpu_sink.h */
struct tokd_sources;   /* source.h */
struct tokd_stream;    /* stream.h */
struct tokd_streams;   /* stream.h */

/* Run; refuse new streams and finish open ones; leave the loop now. */
enum tokd_stop { TOKD_RUN = 0, TOKD_DRAIN, TOKD_STOP };

#define TOKD_NO_TURN 0

/* The last reply of a text. */
struct tokd_last_reply {
	uint16_t at;	    /* index into tx */
	uint64_t t_publish; /* TSC when the text's last record was published */
};

struct tokd_worker {
	/* hot */
	uint16_t port, queue;
	struct rte_mempool *pool; /* mbufs for RX and for replies */
	struct tokd_streams *streams;
	struct tokd_sources *sources;
	const struct tokd_allow *allow; /* NULL: everybody */
	struct tokd_ring ring;
	struct tokd_side side;
	struct tokd_zero_copy zc;
	struct tokd_sink *sink;		     /* NULL: none */
	struct tokd_answers *answers;	     /* NULL: the same */
	struct tokd_gpu_texts *gpu_texts;    /* NULL: without --pipeline gpu */
	struct tokd_terms *terms;	     /* of the texts that begin now */
	uint32_t ip;			     /* network byte order; 0: no IPv4 */
	struct tokd_addr ip6;		     /* ::, no IPv6 */
	struct tokd_addr solicited;	     /* solicited-node group of ip6 */
	struct rte_ether_addr solicited_mac; /* of that group; zero: no IPv6 */
	uint16_t vlan;			     /* 0: untagged */
	struct tokd_frags *frags;	     /* NULL: fragments are dropped */
	uint16_t udp_port, text_port;	     /* network byte order; text_port 0: none */
	struct rte_ether_addr mac;
	uint16_t mtu;	     /* of the port: bytes of an IP packet */
	bool kernel_answers; /* the kernel has the addresses and answers ARP, ND and ping */
	bool rx_cksum_trust; /* --rx-checksum=trust: UDP checksums are not verified */
	bool wipe;	     /* --wipe */
	uint64_t rx_cksum;   /* masks of the mbuf flags in which the device tells its results */
	uint64_t tx_cksum;   /* flags of the checksums that the device computes: IPv4, UDP */
	uint64_t tsc_hz;
	uint64_t
		feed_ticks; /* for the tokenizer: for new packets a turn, and for those that wait */
	uint64_t delay_most;   /* ticks that a text of a source over its share may wait */
	uint64_t t_burst;      /* TSC when the current burst was received */
	_Atomic uint64_t turn; /* of the loop; TOKD_NO_TURN outside it. Read by any thread */
	const struct tokd_options *opt;
	_Atomic uint32_t *stop;			 /* enum tokd_stop, set by the control thread */
	_Atomic(struct tokd_terms *) next_terms; /* the same: from the next turn on */
	uint64_t counter[C_COUNT]; /* written by this worker only, by plain stores of words */
	/* the current burst */
	uint32_t stopping;  /* *stop, read once per turn */
	uint64_t fed_ticks; /* in the tokenizer, of drr.slice */
	uint16_t n_follow;  /* frames of it after the one in work */
	uint16_t n_tx, n_touched, n_gathered;
	struct rte_mbuf *tx[TOKD_TX_MAX];	 /* sent at its end */
	struct tokd_stream *touched[TOKD_BURST]; /* answered at its end */
	/* Their packets are held until the burst's frames were taken. */
	struct tokd_stream *gathered[TOKD_BURST];
	uint64_t reply_head; /* ring head when touched streams were last answered */
	uint16_t n_last;
	struct tokd_last_reply last[TOKD_TX_MAX]; /* in tx */
	/* across bursts */
	struct tokd_drr drr;	   /* whose text is fed next */
	uint32_t n_held, held_max; /* mbufs of early packets, of all streams; limit */
	struct tokd_refused {
		uint64_t name, until; /* TSC */
	} refused[256];		      /* by name: refused.h */
	uint64_t refused_until;	      /* the latest of these */
	uint32_t turns;		      /* since housekeeping */
	uint32_t turn_kind;	      /* counter for the cycles of this turn */
	uint64_t t_housekeeping;
	uint64_t t_wipe;		 /* of the last tokd_wipe() */
	uint8_t gather[TOKD_GATHER_MAX]; /* text of several packets, fed at once */
	/* the plain-text port */
	uint64_t text_id; /* of its next text */
	/* set-up */
	uint32_t index, lcore;
	int node;
	/* Times of stages; written like the counters. */
	struct tokd_histogram time[T_COUNT];
};

/* The loop (worker_loop.c), for rte_eal_remote_launch. Returns 0 after TOKD_STOP. */
int tokd_worker_run(void *worker);

/* One turn of the loop: RX burst, TX burst, sometimes housekeeping. */
void tokd_worker_turn(struct tokd_worker *w);

/* Open streams, for draining. Any thread. */
uint32_t tokd_worker_open_streams(const struct tokd_worker *w);

/* As it is now. Any thread. */
static inline uint64_t
tokd_worker_counter(const struct tokd_worker *w, int c)
{
	return __atomic_load_n(&w->counter[c], __ATOMIC_RELAXED);
}
