/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Appliances, each with a socket and an engine.
 *
 * client.c     set-up
 * client_io.c  packets
 * path.c       how long these may be
 * hosts.c      a list of hosts
 * spread.c     which appliance has a text: their health, the choice, moving texts
 */
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>

#include <tokd/client_engine.h>

#define NS_A_MS UINT64_C(1000000)
#define RX_BURST 32
#define RX_BYTES 2048 /* a reply fits an Ethernet frame */
#define TX_BURST TOKD_WIRE_WINDOW
#define MTU_LEAST 576 /* of a path: RFC 791 3.2 */
#define HOST_MAX 256  /* bytes of a host's name */
#define PEER_MAX 96   /* bytes of "host:port" in messages, truncated */

/* What to do about an errno of a socket. */
const char *client_remedy(int error);

/* What `n_ids` counts. */
static inline const char *
client_unit(const struct tokd_request *r)
{
	return r->flags & (TOKD_REQUEST_DECODE | TOKD_REQUEST_GENERATE) ? "bytes" : "ids";
}

struct host {
	char name[HOST_MAX];
	uint16_t port;
};

struct appliance {
	int fd; /* connected, non-blocking */
	bool ipv6;
	uint32_t mtu;	   /* of the path; 0: not known */
	uint32_t mtu_most; /* of the options; 0: none */
	uint64_t path_at;  /* ns; when the kernel is asked for it again */
	uint32_t payload;  /* of the options */
	bool wants_write;  /* the send buffer is full */
	bool drained;	   /* all that had come was read: time-outs may be checked */
	bool up;
	bool heard;	   /* it has answered before */
	bool refuses;	   /* the last that came from its host: nothing has the port */
	uint32_t in_a_row; /* datagrams since its receive buffer was last empty */
	uint64_t seed;	   /* of its weights */
	uint64_t asked_at; /* ns; of the first packet since it was last heard; 0: none */
	uint64_t probe_at; /* ns; of the next probe, while it is down */
	uint64_t pause;	   /* ns; before the next probe */
	struct tokd_req probe;
	struct tokd_engine *engine;
	char peer[PEER_MAX];
};

/* For messages, behind its name: that it refuses, or nothing. */
static inline const char *
client_refusal(const struct appliance *a)
{
	return a->refuses ? " refuses (nothing listens there)" : "";
}

struct tokd_client {
	uint32_t n;   /* appliances */
	int fd;	      /* of the only one, or an epoll of all */
	bool several; /* appliances */
	bool spin;
	pid_t pid; /* that opened it */
	uint32_t timeout_ms;
	uint64_t silence_most; /* ns; of an appliance; at most a quarter of the time limit */
	uint32_t requests;
	uint32_t vocab;	     /* requested */
	uint32_t unread_max; /* the most datagrams in a receive buffer */
	uint64_t sent, received, moved;
	char error[TOKD_ERROR_MAX];

	struct mmsghdr rx[RX_BURST], tx[TX_BURST];
	struct iovec rx_part[RX_BURST], tx_part[TX_BURST][2];
	struct tokd_packet packet[TX_BURST];
	uint8_t rx_data[RX_BURST][RX_BYTES];
	struct appliance appliance[];
};

static inline struct appliance *
appliance_of(struct tokd_client *c, const struct tokd_request *r)
{
	return &c->appliance[r->appliance];
}

/* client_io.c: drops all requests, and says once that their answers are not wanted any more. */
void client_leave(struct tokd_client *c);

/* hosts.c: the number of elements of a list, and the next of them; false: `error` says why. */
uint32_t hosts_count(const char *list);
bool hosts_next(const char **list, uint16_t port, struct host *host, char error[TOKD_ERROR_MAX]);

/* path.c */
/* To be called for a connected socket: learns a->mtu. */
void path_begin(struct appliance *a, const struct tokd_client_options *o);
/* Bytes of text in a packet that fits; of a reply that fits, 0: not known. */
uint32_t path_payload(const struct appliance *a);
uint32_t path_reply_max(const struct appliance *a);
/* True: the MTU of the path has changed; a->mtu has the new one. */
bool path_learn(struct appliance *a);

/* spread.c */
/* To be called for an appliance that was opened. */
void spread_join(struct appliance *a, const struct host *host, uint32_t vocab, uint64_t random);
/* tokd_engine_config.failed; `user` is the client. */
bool spread_failed(void *user, struct tokd_request *r);
/* It cannot be reached. */
void spread_down(struct appliance *a, uint64_t now);
/* A datagram is the answer to the probe. */
bool spread_is_answer(struct appliance *a, const void *datagram, size_t len);
/* It has answered texts, with whatever. */
void spread_heard(struct appliance *a);
bool spread_any_is_up(const struct tokd_client *c);
/* To be called as time passes: finds appliances that are down, and probes that are due. */
void spread_tick(struct tokd_client *c, struct appliance *a, uint64_t now);
