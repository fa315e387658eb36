/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A deterministic simulation: clients, a network and one worker of the appliance in one thread, in
 * virtual time, from one seed. The clients, the appliance's data path and control socket, and the
 * readers are the product's own code; what they ask of the system is answered by seams.c.
 *
 *   plan.c       a seed to a plan: sizes, rates of faults
 *   world.c      events in order of time, until all requests have ended
 *   network.c    loses, doubles, delays, spoils frames
 *   appliance.c  the worker, its turns, crashes and restarts
 *   clients.c    processes with libtokd-client; their requests
 *   sink.c       a GPU sink whose tokd-gpu was stopped
 *   generator.c  a tokd-gpu that continues texts
 *   answers.c    what it made, at clients and in the ring
 *   readers.c    processes with libtokd-reader: good, slow, stopped
 *   hostile.c    forged and mutated frames
 *   attacks.c    the plans of attacks, their limits and their table; attackers.c: their frames
 *   overload.c   more requests than the appliance can serve
 *   bottleneck.c a link that takes less than clients send
 *   checker.c    what must hold
 *   seams.c      clock, random numbers, sockets, port; the rules that can be broken
 */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <rte_byteorder.h>
#include <rte_ip.h>

#include <tok.h>
#include <tokd/client.h>
#include <tokd/reader.h>
#include <tokd/ring.h>
#include <tokd/wire.h>

#include <mix.h>
#include "datapath/worker.h"
#include "readers/attach.h"

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)
#define SECOND UINT64_C(1000000000)
#define NEVER UINT64_MAX
#define SIM_TSC_HZ SECOND /* one tick is a ns */

/* What the worker's CPU takes, in ns: stands for a machine, is none. */
#define TX_CALL_NS 500
#define FEED_NS 300 /* a call of the tokenizer */
struct cost {
	uint32_t frame; /* received or sent */
	uint32_t byte;	/* of text */
};
#define COST                                                                                       \
	{                                                                                          \
		150, 4                                                                             \
	} /* where nothing else is said */

#define FRAME_MAX 1536
#define CLIENTS_MAX 256
#define READERS_SIM_MAX 4
#define LANES_SIM_MAX 8
#define IN_FLIGHT 64		/* requests of a client in progress */
#define TEXTS 48		/* distinct texts of a world */
#define SMALL_TEXTS (TEXTS / 2) /* of an attack: the others are for greedy clients */
#define GREEDY_BYTES 8192
#define GOOD_REQUESTS_BESIDE_GREEDY 1000 /* in 2 s: the greedy ones last longer */
#define TRICKLED 4096			 /* streams held open by one socket */
#define SERVER_IP RTE_IPV4(10, 0, 0, 1)
#define SIX_IP RTE_IPV4(10, 6, 0, 0)	   /* /16: hosts with IPv6, see network.c */
#define HOSTILE_IP RTE_IPV4(172, 16, 0, 0) /* /12 */
#define HOSTILE_EPOCH 0xbad00000u	   /* and above: texts that nobody checks */

enum sim_rule {
	RULES_KEPT,
	NO_CRC,
	NO_ONCE,
	NO_CURSOR,
	NO_FEED,
	NO_TIMER,
	NO_SKIP,
	NO_ID,
	SIM_RULES
};
extern const char *const sim_rule_name[SIM_RULES];

/* Each with one good client beside it; SIM_ATTACKS: none, a world of a seed. */
enum sim_attack {
	AT_REST,
	FORGED_FIRST,
	FORGED_MORE,
	FORGED_MOST,
	TRICKLE_STREAMS,
	TRICKLE_MORE,
	STORM,
	GREEDY,
	GREEDY_BESIDE,
	TRICKLE_READER,
	READER_AGAIN,
	STOPPED_SINK,
	REPEAT_5000,
	REPEAT_20000,
	AMPLIFY,
	MANY_HOSTS,
	WRONG_COOKIES,
	FORGED_TEXTS,
	FORGED_OVERLOAD,
	SNIFFER,
	OVERLOAD, /* no attack: more requests than can be served (overload.c) */
	SIM_ATTACKS
};

/* What the simulation did, or saw happen. */
enum sim_fault {
	FRAMES_LOST,
	FRAMES_TWICE,
	FRAMES_LATE,
	FRAMES_FLIPPED,
	FRAMES_SPOILT,
	FRAMES_CUT,   /* by a partition */
	FRAMES_NO_RX, /* no descriptor was free, or the appliance down */
	FRAMES_NO_TX,
	PARTITIONS,
	KILLS, /* of the appliance */
	DRAINS,
	CLIENT_KILLS,
	STALLS,
	CLOCK_JUMPS,
	SLOW_READS,
	READER_DROPS,
	FORGERIES,
	CHANGED_FORGERIES,
	GENERATOR_KILLS,
	GENERATOR_RESTARTS, /* of its consumer */
	GENERATOR_BREAKS,   /* of its connection */
	BAD_IDS,	    /* outside the vocabulary, or even the table */
	BAD_GRANTS,	    /* ids that were not granted */
	CANCELS,
	SLOW_CALLERS, /* who let an answer wait */
	SKIPPED,      /* special tokens of an answer */
	SIM_FAULTS
};
extern const char *const sim_fault_name[SIM_FAULTS];

/* Of 10,000 packets so many. */
struct network_plan {
	uint32_t lose, twice, late, flip, spoil;
	uint64_t delay, jitter, late_by; /* ns; `late` packets take up to late_by more */
	uint64_t twice_by;		 /* and the second of two up to this */
	/* Of the link that all frames to the appliance share: bits a second, 0: no limit; and how
	 * many frames of full length wait for it, others are dropped. */
	uint64_t link, waiting;
};

/* Mean ns between; NEVER. */
struct fault_plan {
	uint64_t partition, crash, client_crash, stall, clock_jump, generator;
};

struct plan {
	uint64_t seed;
	enum sim_rule broken;
	enum sim_attack attack;
	bool trace;
	uint32_t clients, requests; /* of each client */
	uint32_t in_flight;	    /* requests of a client at a time; 0: IN_FLIGHT */
	uint64_t begin;		    /* of the first */
	uint64_t pause;		    /* mean ns between a client's requests */
	bool no_resend;		    /* a refused text is not tried again */
	uint64_t open_loop_until;   /* 0: a client with IN_FLIGHT in progress waits */
	uint32_t text_most;
	uint32_t streams, rx_desc;
	uint64_t ring_bytes, side_bytes, names_bytes;
	uint32_t stream_ms, done_ms, reader_ms;
	struct cost cost;
	struct network_plan network;
	struct fault_plan fault;
	uint32_t readers, slow_readers; /* of the readers so many are slow or stop */
	uint64_t slow_pause;
	uint32_t hostile_hz; /* frames a second */
	uint32_t tx_refused; /* of 10,000 batches */
	bool six;	     /* every second client has IPv6 */
	bool one_address;    /* the others have one address together */
	uint32_t lanes;	     /* the most that a tokd-gpu has; 0: no text is continued */
	uint32_t limit_most; /* of an answer */
	uint32_t stop_id;
	bool shed;	   /* --sink-full */
	bool skip_special; /* half of the answers leave out special tokens */
	uint32_t bad_ids;  /* of 10,000 ids that are made */
};

struct packet {
	struct packet *next;
	uint32_t len;
	uint8_t bytes[FRAME_MAX];
};

enum event_kind {
	TO_APPLIANCE,
	TO_CLIENT,
	TURN,
	CONTROL,
	CLIENT,
	SUBMIT,
	READER,
	HOSTILE,
	PARTITION,
	CRASH,
	CLIENT_CRASH,
	STALL,
	CLOCK_JUMP,
	GENERATOR,
	EVENTS
};

struct event {
	uint64_t at, order; /* equal times: in order of making */
	enum event_kind kind;
	uint32_t who;
	struct packet *p;
};

struct queue {
	struct packet *first, **end;
	uint32_t n;
};

struct text {
	uint8_t *bytes;
	uint32_t len, n_ids;
	uint32_t *ids;	  /* of tok_encode */
	uint8_t *decoded; /* of tok_decode: the bytes, if they are UTF-8 */
	uint32_t n_decoded;
};

/* What a request is to bring: ids of a text, or the text of ids. */
struct want {
	const void *items;
	uint32_t n, each; /* of so many bytes each */
};

/* Items of an answer, as far as they came. */
struct answer {
	uint32_t prompt;       /* ids of the text */
	uint32_t last, before; /* the newest two */
	uint32_t n;
	uint8_t end; /* enum tokd_made_end */
	bool begun, wrong;
};

/* One request of a client, from submitting to its end. */
struct ask {
	struct tokd_request r;
	uint32_t text, client;
	uint64_t begun, ended; /* ended 0: in progress */
	uint32_t in_ring;      /* completed under so many names */
	bool gone;	       /* its client crashed */
	/* with GENERATE */
	bool slow, cancelled;
	uint64_t cancel_at, take_at;
	struct answer answer;
	uint32_t *made; /* its ids */
	uint8_t *said;	/* their text */
	uint32_t n_said, said_room;
	bool answered; /* a ring has the whole answer */
};

struct client {
	struct tokd_client *c;
	uint32_t ip; /* of SIX_IP: IPv6 */
	uint16_t port;
	uint64_t stalled_until, ahead; /* of its clock */
	uint64_t wake_at;
	struct queue rx;
	uint32_t left;
	bool killed; /* it sends nothing any more */
	uint64_t first_id;
	struct ask *ask[IN_FLIGHT]; /* by tokd_request.slot */
};

enum reader_way { READS_ALL, READS_SLOWLY, STOPS, HOLDS };

struct reader {
	struct tokr *r;
	enum reader_way way;
	uint64_t next; /* record of its instance, in order; NEVER: any */
	uint64_t seen;
};

struct appliance {
	bool up;
	struct tokd_worker w;
	struct tokd_options opt;
	struct tokd_attach attach;
	_Atomic uint32_t stop;
	uint64_t cpu_now;    /* the worker's clock in its turn */
	uint64_t busy_until; /* end of its turn */
	uint64_t turn_at;    /* of the next; NEVER */
	uint64_t stalled_until;
	uint64_t tsc_ahead;
	uint64_t up_again_at;
	struct queue rx;
	uint64_t instance; /* counts up */
	uint64_t walked;   /* ring position up to which the checker has looked */
	uint64_t sum[C_COUNT];
	uint64_t bytes_to[2]; /* to good clients, to others */
};

struct key {
	uint64_t stream_id;
	uint32_t epoch;
	uint32_t ask_1;	  /* index of the ask, from 1; 0: free */
	uint64_t done_in; /* instance in whose ring it was completed */
};

/* A stream of the ring, by its serial. */
struct serial {
	uint32_t n;
	bool begun, over, wrong;
	struct answer answer;
};

/* A record as it was published. */
struct record {
	uint64_t pos, hash;
};

/* Of one instance, in order. */
struct ring_log {
	struct record *record;
	uint64_t n, room;
};
#define INSTANCES_MAX 128

struct checker {
	struct ring_log log[INSTANCES_MAX];
	struct text text[TEXTS];
	struct ask *ask;
	uint32_t n_asks;
	struct key *key;
	uint32_t n_keys, keys_room; /* a power of two */
	struct serial *serial;
	uint64_t n_serials, serials_room;
	uint64_t ok, refused[TOKD_R_MAX], timeout, ids_crc, other, gone;
	uint64_t records, ids, complete, again; /* again: under another name of the same request */
	uint64_t twice;
	uint64_t answers[TOKD_MADE_CANCELLED + 1]; /* in rings, by end */
	uint64_t cut, tokens, tokens_in_ring;	   /* answers that failed; ids at clients */
	uint64_t read, drops, drops_seen; /* records; readers dropped, and those who noticed */
	uint64_t faults;
	char fault[256]; /* the first */
	uint64_t *took;	 /* ns of each request that ended well */
};

struct world {
	struct plan plan;
	uint64_t now, order, dice;
	uint64_t trace_hash, n_events;
	uint64_t calm_at; /* faults have ended then; NEVER: not yet */
	uint64_t cut_until;
	uint64_t link_until;		 /* its queue is empty then */
	uint64_t link_frames, link_wait; /* ns, of all frames together */
	uint64_t over_at;   /* all requests have ended, and lanes are still used since */
	bool last_ones;	    /* each client makes its last requests, in the calm */
	uint32_t n_pending; /* requests to be made, or in progress */
	struct event *heap;
	uint32_t n_heap, heap_room;
	struct packet *spare;
	struct appliance a;
	struct client client[CLIENTS_MAX];
	struct reader reader[READERS_SIM_MAX];
	struct checker check;
	uint64_t hostile_frames, hostile_bytes;
	uint64_t count[SIM_FAULTS];
	uint64_t not_sent; /* too many were in progress */
};

extern struct world *sim; /* the one that runs, for the seams */
extern struct tok_vocab *sim_vocab;
extern const char *sim_socket;

/* plan.c */
struct plan plan_of_seed(uint64_t seed);

/* world.c */
struct world *world_run(const struct plan *plan); /* the caller frees it by world_free() */
void world_free(struct world *w);
void world_put(struct world *w, uint64_t at, enum event_kind kind, uint32_t who, struct packet *p);
void world_trace(struct world *w, const char *what, uint64_t a, uint64_t b, uint64_t c);
uint32_t world_dice(struct world *w, uint32_t below);
/* True `of` times in 10,000. */
bool world_chance(struct world *w, uint32_t of);
/* Counts it. */
void world_fault(struct world *w, enum sim_fault fault);
/* Exponentially distributed, in steps, around `mean`. */
uint64_t world_wait(struct world *w, uint64_t mean);
struct packet *packet_take(struct world *w);
void packet_drop(struct world *w, struct packet *p);
void queue_put(struct queue *q, struct packet *p);
struct packet *queue_get(struct queue *q);
void queue_empty(struct world *w, struct queue *q);

/* network.c */
/* A frame of one of our clients, or of `ip`, with n bytes at `payload`. */
struct packet *frame_make(struct world *w, uint32_t ip, uint16_t port, const void *head,
	uint32_t head_len, const void *body, uint32_t body_len);
void frame_seal(struct packet *p);
void network_to_appliance(struct world *w, struct packet *p);
void network_to_clients(struct world *w, struct packet *p);
/* The UDP payload of a frame that a host at `ip`, `port` accepts; NULL. */
const uint8_t *frame_payload(const struct packet *p, uint32_t ip, uint16_t port, uint32_t *len);
struct rte_ether_addr frame_mac(uint32_t ip);
/* Bytes before the UDP payload of a whole frame. */
uint32_t frame_headers(const struct packet *p);
/* The IPv6 address of a host of SIX_IP, or of the appliance. */
struct tokd_addr network_six(uint32_t ip);

/* appliance.c */
void appliance_boot(struct world *w);
void appliance_start(struct world *w);
void appliance_stop(struct world *w, bool drain);
void appliance_takes(struct world *w, struct packet *p);
void appliance_turn(struct world *w);
void appliance_control(struct world *w);

/* sink.c */
void sink_make(struct appliance *a);
void sink_control(struct appliance *a);

/* generator.c */
void generator_make(struct world *w);
/* Something happens to it. Returns when it comes back: `again`; 0: it goes on. */
uint64_t generator_fault(struct world *w, bool again);
/* Nothing is posted, and no lane used. */
bool generator_is_idle(const struct world *w);

/* answers.c */
void answer_ask(struct world *w, struct ask *k);
void answer_free(struct ask *k);
/* Its client was woken, and perhaps takes some. Returns when it must be woken for it; NEVER. */
uint64_t answer_take(struct world *w, struct client *c, struct ask *k);
void answer_ended(struct world *w, struct ask *k);
/* A record behind the last one of a prompt. False: it is not of an answer. */
bool answer_record(struct world *w, struct serial *s, struct ask *k, const struct tokd_rec *rec,
	const uint8_t *items);
/* The appliance has drained: no text has a lane. */
void answers_shut_down(struct world *w);
/* No text is continued any more; false: wait for it. */
bool answers_are_over(struct world *w);

/* clients.c */
void client_start(struct world *w, uint32_t i);
void client_crash(struct world *w, uint32_t i);
void client_forgets(struct world *w, struct client *c, struct ask *k);
void client_takes(struct world *w, uint32_t i, struct packet *p);
void client_wakes(struct world *w, uint32_t i);
void client_submits(struct world *w, uint32_t i);

/* readers.c */
void reader_attach(struct world *w, uint32_t i);
void reader_turn(struct world *w, uint32_t i);
void reader_detach(struct world *w, uint32_t i);

/* hostile.c */
void hostile_turn(struct world *w);

/* attacks.c */
struct plan plan_of_attack(enum sim_attack attack);
extern const char *const sim_attack_name[SIM_ATTACKS];
/* Prints rows of the table, of one attack or of all (SIM_ATTACKS). With `check` returns how many of
 * them are not within their limits. */
uint32_t attacks_run(enum sim_attack which, bool check, bool trace);

/* attackers.c */
struct packet *attack_frame(struct world *w);
/* The attacker at `ip` gets a reply. */
void attack_takes(struct world *w, uint32_t ip, const uint8_t *payload, uint32_t len);
/* It reads the wire: the good client has sent a packet. */
void attack_overhears(struct world *w, const struct client *c, const struct tokd_req *req);

/* overload.c: prints a table. Not 0: the limits kept are not those that are expected. */
uint32_t overload_run(void);

/* bottleneck.c: prints a table for links that take less than clients send, of each seed. Returns
 * faults. */
uint32_t bottleneck_run(uint64_t first, uint64_t last);

/* checker.c */
void check_start(struct world *w);
void check_free(struct world *w);
void check_fault(struct world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void check_sent(struct world *w, struct client *c, const struct tokd_req *req);
void check_ended(struct world *w, struct ask *k);
struct want check_want(const struct world *w, const struct ask *k);
void check_record(struct world *w, const struct tokd_rec *rec, const void *ids);
void check_new_ring(struct world *w);
/* A reader has used and released a record: as it was published, and the next one. */
void check_read(struct world *w, struct reader *r, const struct tokr_record *rec, uint64_t hash);
void check_dropped(struct world *w);
uint64_t check_hash(const struct tokr_record *rec);
void check_end(struct world *w);
