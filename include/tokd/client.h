/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libtokd-client: send texts to a dpdk-tokd and get their ids, many at once over one UDP socket.
 * doc/user/clients.md has a worked example. A client and its requests belong to one thread at a
 * time.
 *
 * Nothing is allocated after tokd_client_open(). Texts and ids stay in the caller's memory, where
 * they are read and written in place.
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

/* How a request stands, and what the functions return. Errors are negative. */
enum tokd_status {
	TOKD_PENDING = 1,      /* under way; its ids below `n_ids` are there already */
	TOKD_OK = 0,	       /* all ids are there, and their CRC32C is the appliance's */
	TOKD_E_REFUSED = -1,   /* the appliance failed or refused the text: see `reason` */
	TOKD_E_TIMEOUT = -2,   /* nothing moved for as long as the options say */
	TOKD_E_ROOM = -3,      /* there are more ids than `max_ids`: `total` so far */
	TOKD_E_IDS_CRC = -4,   /* the ids are not those that the appliance published */
	TOKD_E_NET = -5,       /* the socket cannot reach the appliance: see `error` */
	TOKD_E_FULL = -6,      /* as many requests as the client was made for are under way */
	TOKD_E_ARGUMENT = -7,  /* a text of 4 GiB or more, or an option out of its range */
	TOKD_E_CANCELLED = -8, /* tokd_client_cancel() */
};

enum tokd_request_flags {
	/* Each id as soon as it is certain: the request is also given out when new ids have come.
	 */
	TOKD_REQUEST_STREAM = 1 << 0,
};

/*
 * One text. The caller zeroes it and sets the first part; it, the text and the room for ids must
 * stay where they are until the request is given out finished, or cancelled.
 */
struct tokd_request {
	const void *text; /* UTF-8; not copied */
	size_t len;	  /* bytes, below 4 GiB */
	uint32_t *ids;	  /* room for `max_ids`; NULL: ids go to the token ring only */
	uint32_t max_ids; /* at most one a byte of UTF-8, three a byte that is not */
	uint32_t flags;	  /* enum tokd_request_flags */
	void *user;	  /* the library leaves it alone */

	/* Read by the caller. */
	enum tokd_status status;
	enum tokd_reason reason; /* TOKD_E_REFUSED; may be one that wire.h does not name */
	int error;		 /* TOKD_E_NET: errno */
	uint32_t n_ids;		 /* ids in order in `ids`; beyond lies what came early */
	uint32_t total;		 /* ids the appliance has published, as far as known */
	uint32_t packets;	 /* of text, in all */
	uint32_t arrived;	 /* of those, that the appliance is known to have */
	uint64_t stream_id;	 /* as in the token ring; another one after a resend */
	uint32_t vocab;		 /* checksum of the vocabulary used; 0: no reply yet */
	uint32_t retransmits;	 /* packets of text sent again */
	uint32_t asks;		 /* questions after missing ids, and after silence */
	uint32_t resends;	 /* times the text was begun again under a new stream id */

	/* The library's. */
	struct tokd_request *next;
	uint32_t slot;
	bool listed;
};

/* What 0 stands for is in brackets. */
struct tokd_client_options {
	uint32_t vocab;		  /* checksum of the vocabulary wanted [whichever is there] */
	uint32_t requests;	  /* under way at once, 1 to 65536 [64]; about 1.3 kB each */
	uint32_t packets;	  /* of text in flight at once, of all requests [256] */
	uint32_t timeout_ms;	  /* without any progress until a request fails [5000] */
	uint32_t rto_ms;	  /* least silence until something is sent again [5] */
	uint32_t receive_buffer;  /* bytes of the socket's; the system may give less [4 MiB] */
	uint32_t payload;	  /* bytes of text in a packet, 1 to 65443; IP cuts one that exceeds
				   * the path's MTU into fragments [TOKD_WIRE_PAYLOAD] */
	uint64_t first_stream_id; /* ids count up from here [random] */
	bool no_resend;		  /* fail where a text would be begun again, as for BUSY */
	bool no_last_ack;	  /* do not tell the appliance that the last ids have come */
	bool spin;		  /* wait and tokenize poll instead of sleeping */
};

/* What has been counted since the client was opened. */
struct tokd_client_stats {
	uint64_t sent, received; /* datagrams */
	uint64_t retransmits;	 /* packets of text sent again */
	uint64_t polls;		 /* packets without text */
	uint64_t resends;	 /* texts begun again */
	uint64_t stale;		 /* replies to requests that are over */
	uint64_t bad;		 /* datagrams that are no reply, or contradict themselves */
	uint64_t srtt_ns;	 /* smoothed round trip, 0 before the first */
};

struct tokd_client; /* opaque */

#define TOKD_ERROR_MAX 256 /* bytes that hold any message of this library */

/*
 * Make a client of the appliance at `host`, a name or an IPv4 or IPv6 address, UDP port `port`;
 * `options` NULL: all 0. The first address that a socket connects to is used.
 * NULL: `error` says why, and the remedy; errno is the system's, EINVAL for an option out of its
 * range, or EAI_... of netdb.h where the name was not resolved. Close it with tokd_client_close().
 */
TOKD_API struct tokd_client *tokd_client_open(const char *host, uint16_t port,
	const struct tokd_client_options *options, char error[TOKD_ERROR_MAX]);

/* Requests under way are forgotten: their memory is the caller's again. NULL is allowed. */
TOKD_API void tokd_client_close(struct tokd_client *c);

/*
 * Take a request on. It is sent by the next call of poll, wait or flush, so that many go out
 * together. TOKD_PENDING; TOKD_E_FULL: wait for one to finish; TOKD_E_ARGUMENT.
 */
TOKD_API enum tokd_status tokd_client_submit(struct tokd_client *c, struct tokd_request *r);

/*
 * Receive, send, and give out up to `max` requests that finished, or that have new ids and the flag
 * TOKD_REQUEST_STREAM (TOKD_PENDING). Never sleeps: call it in a loop for the lowest latency.
 * Returns how many are in `done`. It may be called late: nothing is sent again, and no request
 * fails, while datagrams that have come are unread.
 */
TOKD_API uint32_t tokd_client_poll(struct tokd_client *c, struct tokd_request **done, uint32_t max);

/* As poll, but sleeps up to `timeout_ms` until there is one; -1: as long as any is under way. */
TOKD_API uint32_t tokd_client_wait(
	struct tokd_client *c, struct tokd_request **done, uint32_t max, int timeout_ms);

/* Send what is to be sent, without receiving. */
TOKD_API void tokd_client_flush(struct tokd_client *c);

/* Forget a request that is under way. It becomes TOKD_E_CANCELLED and is not given out. */
TOKD_API void tokd_client_cancel(struct tokd_client *c, struct tokd_request *r);

/*
 * One text, and wait for its ids: their number, or an error (enum tokd_status), for which
 * tokd_client_error() has the words. timeout_ms is for the whole call; 0: only that of the options.
 * Others may be under way meanwhile; they are given out by the next poll or wait.
 */
TOKD_API int64_t tokd_client_tokenize(struct tokd_client *c, const void *text, size_t len,
	uint32_t *ids, uint32_t max_ids, uint32_t timeout_ms);

/* Why the latest tokd_client_tokenize() failed. The client's memory. */
TOKD_API const char *tokd_client_error(const struct tokd_client *c);

/* One line on a finished request: what happened, and the remedy. */
TOKD_API void tokd_client_describe(
	const struct tokd_client *c, const struct tokd_request *r, char text[TOKD_ERROR_MAX]);

/*
 * For an event loop of one's own: poll when the socket is readable (and writable, if wanted), or
 * after so many ns; UINT64_MAX: nothing is under way.
 */
TOKD_API int tokd_client_fd(const struct tokd_client *c);
TOKD_API bool tokd_client_wants_write(const struct tokd_client *c);
TOKD_API uint64_t tokd_client_next_ns(const struct tokd_client *c);

TOKD_API struct tokd_client_stats tokd_client_stats(const struct tokd_client *c);

/* A reason's name ("BUSY") and what to do about it; never NULL. */
TOKD_API const char *tokd_reason_name(enum tokd_reason reason);
TOKD_API const char *tokd_reason_remedy(enum tokd_reason reason);

#ifdef __cplusplus
}
#endif

#endif
