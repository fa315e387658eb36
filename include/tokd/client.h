/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libtokd-client: sends texts to one or several dpdk-tokd, and gets their ids or a model's answers;
 * or sends ids and gets their text. Many requests at a time, over one UDP socket for each
 * dpdk-tokd. doc/user/clients.md has an example. A client and its requests belong to one thread at
 * a time.
 *
 * Allocates nothing after tokd_client_open(). Texts and ids stay in the caller's memory.
 */
#ifndef TOKD_CLIENT_H
#define TOKD_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tokd/wire.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TOKD_API __attribute__((visibility("default")))

/* Status of a request, and return values. Errors are negative. */
enum tokd_status {
	TOKD_PENDING = 1,      /* in progress; ids below `n_ids` have arrived */
	TOKD_OK = 0,	       /* all ids have arrived; their CRC32C is correct */
	TOKD_E_REFUSED = -1,   /* the appliance failed or refused the text: see `reason` */
	TOKD_E_TIMEOUT = -2,   /* no progress within the time limit */
	TOKD_E_ROOM = -3,      /* more ids, or bytes of text, than `max_ids`: `total` so far */
	TOKD_E_IDS_CRC = -4,   /* the CRC32C of the ids is wrong */
	TOKD_E_NET = -5,       /* the socket cannot reach the appliance: see `error` */
	TOKD_E_FULL = -6,      /* too many requests are in progress: see options.requests */
	TOKD_E_ARGUMENT = -7,  /* text or ids of 4 GiB or more, or option out of range */
	TOKD_E_CANCELLED = -8, /* tokd_client_cancel() */
	TOKD_E_ANSWER = -9,    /* GENERATE: what came is not an answer */
};

enum tokd_request_flags {
	/* Ids as soon as they are certain: the request is also returned when new ids arrive. */
	TOKD_REQUEST_STREAM = 1 << 0,
	/*
	 * Decode: `text` points to `len` bytes of ids, 4 each. Bytes of text are written to `out`:
	 * max_ids, n_ids and total count them. With STREAM they end with a whole character.
	 */
	TOKD_REQUEST_DECODE = 1 << 1,
	/* With DECODE or GENERATE: special tokens give no text. */
	TOKD_REQUEST_SKIP_SPECIAL = 1 << 2,
	/*
	 * Generate: a model on the appliance's GPU continues the text by at most `limit` ids. `out`
	 * is where the answer passes through, TOKD_GENERATE_ROOM bytes: tokd_client_made() takes
	 * the ids and their text from there. As with STREAM the request is also returned when there
	 * are new ones. If they are not taken, the model pauses, for this text only.
	 */
	TOKD_REQUEST_GENERATE = 1 << 3,
};

/* With GENERATE: `max_ids` that is enough for any answer. An item may take up half of it. */
#define TOKD_GENERATE_ROOM (2 * (8 + 65535))

/*
 * One text. The caller zeroes it and sets the first part. It, the text and `ids` must stay valid
 * until the request is returned finished, or cancelled.
 */
struct tokd_request {
	const void *text; /* UTF-8; not copied */
	size_t len;	  /* bytes, below 4 GiB */
	union {
		uint32_t *ids; /* for `max_ids` ids; NULL: ids go to the token ring only */
		char *out;     /* DECODE, GENERATE: for `max_ids` bytes */
	};
	uint32_t max_ids; /* room; TOKD_E_ROOM if there are more. One a byte of text is enough for
			   * valid UTF-8 and a byte-level vocabulary, three for invalid UTF-8 */
	uint32_t flags;	  /* enum tokd_request_flags */
	uint32_t limit;	  /* GENERATE: the most ids to make, 1 to TOKD_GENERATE_MOST */
	void *user;	  /* not used by the library */

	/* Read by the caller. */
	enum tokd_status status;
	enum tokd_reason reason; /* TOKD_E_REFUSED; perhaps unknown to wire.h. TOKD_E_TIMEOUT,
				  * TOKD_PENDING: TOKD_R_RING if the appliance's ring is full,
				  * TOKD_R_LANES if its GPU is busy with other texts */
	int error;		 /* TOKD_E_NET: errno; TOKD_R_ID: index of that id; TOKD_R_VERSION:
				  * the version that the appliance speaks */
	uint32_t n_ids;		 /* valid ids in `ids`, from the first on; GENERATE: bytes of the
				  * answer that have arrived, and are whole items */
	uint32_t total;		 /* ids published by the appliance, as far as known */
	uint32_t made;		 /* GENERATE: ids that have arrived, taken or not */
	uint32_t packets;	 /* packets of text */
	uint32_t arrived;	 /* of these, received by the appliance */
	uint64_t stream_id;	 /* as in the token ring; changes with a resend */
	uint32_t vocab;		 /* checksum of the vocabulary used; 0: no reply yet */
	uint32_t retransmits;	 /* packets of text sent again */
	uint32_t asks;		 /* POLLs for missing ids, and after silence */
	uint32_t resends;	 /* restarts of the text */
	bool uncounted;		 /* TOKD_OK: the GPU tokenizes the text; `total` is unknown */

	/* Private. */
	struct tokd_request *next;
	uint64_t since; /* ns; its time limit runs from then; 0: from its first packet */
	uint32_t slot;
	uint32_t hash;
	uint32_t avoid; /* bit i: appliance i has failed it */
	uint32_t base;	/* index of out[0] */
	uint32_t taken; /* bytes of the answer */
	uint8_t appliance;
	uint8_t moves;
	bool listed;
	bool ended; /* the last item has arrived */
};

/* 0 means the default, in brackets. */
struct tokd_client_options {
	uint32_t vocab;		 /* checksum of the vocabulary [the appliance's first] */
	uint32_t requests;	 /* limit in progress, 1 to 65536 [64]; about 1.5 kB each, for each
				  * appliance */
	uint32_t packets;	 /* the most packets of text in flight to an appliance [256]; losses
				  * lower it for a time: doc/reference/protocol.md, Congestion */
	uint32_t timeout_ms;	 /* a request fails after this time without progress [5000] */
	uint32_t rto_ms;	 /* the least time until a retransmission [5] */
	uint32_t receive_buffer; /* of the socket, bytes; the system may limit it [4 MiB] */
	uint32_t payload; /* bytes of text per packet, 1 to 65443; IP fragments packets longer
			   * than the MTU [TOKD_WIRE_PAYLOAD, or what fits the path] */
	uint32_t mtu;	  /* of the path, bytes of an IP packet, 576 to 65535; replies keep to it,
			   * too [the system's for the route, also when it changes] */
	uint64_t first_stream_id; /* ids count up from here [random] */
	bool no_resend;		  /* fail instead of restarting a text, as after BUSY */
	bool no_last_ack;	  /* do not acknowledge the last ids */
	bool spin;		  /* wait and tokenize spin instead of sleeping */
};

/* Counters since the client was opened. */
struct tokd_client_stats {
	uint64_t sent, received; /* datagrams */
	uint64_t retransmits;	 /* packets of text sent again */
	uint64_t polls;		 /* packets without text */
	uint64_t resends;	 /* texts restarted */
	uint64_t moved;		 /* texts restarted at another appliance */
	uint64_t stale;		 /* replies to finished requests */
	uint64_t bad;		 /* invalid datagrams */
	uint64_t srtt_ns;	 /* smoothed round-trip time; 0: none yet. Of several appliances the
				  * longest */
	uint32_t appliances, healthy; /* all, and those that are not known to be down */
};

struct tokd_client; /* opaque */

#define TOKD_ERROR_MAX 256 /* enough for any message of this library */
#define TOKD_APPLIANCES_MAX 32

/*
 * A client of the appliances `hosts`: HOST[:PORT], separated by commas. HOST is a name, an IPv4 or
 * IPv6 address; [HOST]:PORT for IPv6. `port`: UDP port of hosts without one. `options` NULL: all
 * defaults. Uses the first address of a host that a socket connects to. NULL: `error` has reason
 * and remedy; errno is the system's, EINVAL for an argument out of range, or EAI_... of netdb.h for
 * an unresolved name. Close it with tokd_client_close().
 *
 * Several appliances must give the same ids, so options.vocab must be set. A text goes to a healthy
 * appliance, always the same one while the set of healthy ones does not change. The texts of one
 * that fails move to others, within the time limit. doc/user/clients.md describes it.
 */
TOKD_API struct tokd_client *tokd_client_open(const char *hosts, uint16_t port,
	const struct tokd_client_options *options, char error[TOKD_ERROR_MAX]);

/*
 * Cancels requests in progress; the caller may then reuse their memory. For each with GENERATE it
 * sends one packet that tells the appliance to stop, and does not wait: if that is lost, the lane
 * is free after --stream-timeout. A forked child may close its copy; that sends nothing. NULL is
 * allowed.
 */
TOKD_API void tokd_client_close(struct tokd_client *c);

/*
 * Adds a request. The next call of poll, wait or flush sends it, together with others. Returns
 * TOKD_PENDING; TOKD_E_FULL: wait for one to finish; TOKD_E_ARGUMENT.
 */
TOKD_API enum tokd_status tokd_client_submit(struct tokd_client *c, struct tokd_request *r);

/*
 * Receives, sends, and returns up to `max` requests in `done` that have finished, or have new ids
 * with TOKD_REQUEST_STREAM (TOKD_PENDING). Returns their number. Never sleeps: call it in a loop
 * for the lowest latency. A late call does no harm: nothing is sent again and no request fails
 * while received datagrams are unread.
 */
TOKD_API uint32_t tokd_client_poll(struct tokd_client *c, struct tokd_request **done, uint32_t max);

/*
 * As poll, but sleeps up to `timeout_ms` until there is one; -1: while any is in progress, or an
 * appliance has to hear that one was cancelled.
 */
TOKD_API uint32_t tokd_client_wait(
	struct tokd_client *c, struct tokd_request **done, uint32_t max, int timeout_ms);

/* Sends without receiving. */
TOKD_API void tokd_client_flush(struct tokd_client *c);

/*
 * Cancels a request in progress: TOKD_E_CANCELLED. poll and wait will not return it, and its memory
 * is the caller's. With GENERATE this tells the appliance to stop; the next calls repeat it until
 * it has answered, or for less than two seconds.
 */
TOKD_API void tokd_client_cancel(struct tokd_client *c, struct tokd_request *r);

/*
 * GENERATE: takes the next item of the answer. False: no more have arrived. What was taken is
 * acknowledged now and then, by this call. `text`: of `made->text` bytes, in r->out; valid until
 * the next call for this client. The last item has `end`, no id, and perhaps text: bytes that no id
 * completed to a character. Take all items each time the request is returned, even if it has
 * failed: what has arrived is right.
 */
TOKD_API bool tokd_client_made(
	struct tokd_client *c, struct tokd_request *r, struct tokd_made *made, const char **text);

/*
 * Sends one text and waits for its ids. Returns their number, or an error (enum tokd_status),
 * described by tokd_client_error(). timeout_ms limits the whole call; 0: only the limit of the
 * options. Other requests may be in progress; the next poll or wait returns them.
 */
TOKD_API int64_t tokd_client_tokenize(struct tokd_client *c, const void *text, size_t len,
	uint32_t *ids, uint32_t max_ids, uint32_t timeout_ms);

/*
 * The same for the text of `n` ids: up to `room` bytes, which are not terminated. flags:
 * TOKD_REQUEST_SKIP_SPECIAL, or 0.
 */
TOKD_API int64_t tokd_client_detokenize(struct tokd_client *c, const uint32_t *ids, size_t n,
	uint32_t flags, char *text, uint32_t room, uint32_t timeout_ms);

/* The error of the last tokd_client_tokenize() or _detokenize(). The client's memory. */
TOKD_API const char *tokd_client_error(const struct tokd_client *c);

/* Describes a finished request in one line, with the remedy. */
TOKD_API void tokd_client_describe(
	const struct tokd_client *c, const struct tokd_request *r, char text[TOKD_ERROR_MAX]);

/*
 * For event loops: call poll when the descriptor is readable (and writable, if wanted), or after
 * tokd_client_next_ns; UINT64_MAX: nothing is in progress, and no appliance is down.
 */
TOKD_API int tokd_client_fd(const struct tokd_client *c);
TOKD_API bool tokd_client_wants_write(const struct tokd_client *c);
TOKD_API uint64_t tokd_client_next_ns(const struct tokd_client *c);

TOKD_API struct tokd_client_stats tokd_client_stats(const struct tokd_client *c);

/* A reason's name ("BUSY") and remedy; never NULL. */
TOKD_API const char *tokd_reason_name(enum tokd_reason reason);
TOKD_API const char *tokd_reason_remedy(enum tokd_reason reason);

#ifdef __cplusplus
}
#endif

#endif
