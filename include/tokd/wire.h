/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The wire protocol of dpdk-tokd, over UDP. doc/reference/protocol.md explains it; this file
 * defines it. All fields and ids are little-endian. A header of 64 bytes is followed by `length`
 * bytes of text, or by `count` ids of 4 bytes (with TOKD_F_SHORT: 2). With TOKD_F_DECODE the client
 * sends ids of 4 bytes and gets text: then fields that speak of text mean these ids, as bytes, and
 * fields that speak of ids mean the bytes of the text.
 */
#ifndef TOKD_WIRE_H
#define TOKD_WIRE_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define TOKD_WIRE_MAGIC 0x444b4f54u /* "TOKD" */
#define TOKD_WIRE_VERSION 1
#define TOKD_WIRE_PORT 9000
/* The most packets of a stream in flight, and before the first reply. */
#define TOKD_WIRE_WINDOW 64
/* Bytes of text or ids that fit an MTU of 1500, with IPv4 and IPv6. */
#define TOKD_WIRE_PAYLOAD 1376
/* A reply_max below this counts as this. It fits the 576 bytes that every path takes (RFC 791 3.2).
 */
#define TOKD_WIRE_REPLY_LEAST 512

enum tokd_wire_type {
	TOKD_DATA = 1,	/* client: a piece of text */
	TOKD_POLL = 2,	/* client: no text; acknowledges ids, asks for missing ones, probes */
	TOKD_REPLY = 3, /* server: state of the stream, with ids if requested */
};

enum tokd_wire_flags {
	TOKD_F_FIRST = 1 << 0,	/* DATA: packet number 0. REPLY: has the first id */
	TOKD_F_LAST = 1 << 1,	/* DATA: the text ends here; text_crc is valid */
	TOKD_F_IDS = 1 << 2,	/* DATA: replies must carry ids (the same in all packets) */
	TOKD_F_STREAM = 1 << 3, /* DATA: send ids at once, not only full replies */
	TOKD_F_DONE = 1 << 4,	/* REPLY: all text is fed; total and ids_crc are final */
	TOKD_F_FAIL = 1 << 5,	/* REPLY: the stream failed or was refused; see reason */
	/* DATA, the same in all packets: ids in replies may have 2 bytes. REPLY: these have. */
	TOKD_F_SHORT = 1 << 6,
	/* DATA, the same in all packets: decode. REPLY: has text */
	TOKD_F_DECODE = 1 << 7,
	/* DATA, the same in all packets, with DECODE: special tokens give no text */
	TOKD_F_SKIP_SPECIAL = 1 << 8,
	/* REPLY, with DONE, without IDS: the GPU tokenizes the text; total and ids_crc are 0 */
	TOKD_F_UNCOUNTED = 1 << 9,
	/*
	 * DATA, the same in all packets, with IDS: a model on the GPU continues the text. REPLY:
	 * has bytes of the answer: struct tokd_made
	 */
	TOKD_F_GENERATE = 1 << 10,
	TOKD_F_CANCEL = 1 << 11, /* POLL of a stream with GENERATE: end the answer */
};

/*
 * With GENERATE the answer is a sequence of these, without padding, each followed by its text.
 * Fields that speak of ids mean the bytes of the answer. In the last one `end` is not 0.
 */
struct tokd_made {
	uint32_t id;   /* TOKD_MADE_END in the last one */
	uint16_t text; /* bytes of text that this id completes; whole characters, or 0 */
	uint16_t end;  /* enum tokd_made_end */
};
static_assert(sizeof(struct tokd_made) == 8, "wire answer is ABI");
#define TOKD_MADE_END UINT32_MAX
#define TOKD_GENERATE_MOST (1u << 20) /* ids of an answer; a larger `limit` is refused */

enum tokd_made_end {
	TOKD_MADE_MORE = 0,
	TOKD_MADE_STOP,	     /* the model ended the text */
	TOKD_MADE_LENGTH,    /* `limit` ids were made */
	TOKD_MADE_CANCELLED, /* as the client asked */
};

enum tokd_reason {
	TOKD_R_NONE = 0,
	TOKD_R_VERSION = 1,	  /* protocol version not supported */
	TOKD_R_VOCAB = 2,	  /* no vocabulary with that checksum is loaded */
	TOKD_R_LENGTH = 3,	  /* length field and datagram disagree, or FIRST/LAST misplaced */
	TOKD_R_OFFSET = 4,	  /* byte offset does not continue the text */
	TOKD_R_TEXT_TOO_LONG = 5, /* text exceeds the server's limit */
	TOKD_R_TEXT_CRC = 6,	  /* text_crc differs from the text received */
	TOKD_R_ID_REUSED = 7,	  /* stream id names a finished stream of another text */
	TOKD_R_BUSY = 8,	  /* no stream for it: try again after retry_ms */
	TOKD_R_TIMEOUT = 9,	  /* no progress within the time limit */
	TOKD_R_UTF8 = 10,	  /* not UTF-8, with --strict-utf8 */
	TOKD_R_CARRY = 11,	  /* too many uncertain ids */
	TOKD_R_EXPIRED = 12,	  /* requested ids are no longer available: send under a new id */
	TOKD_R_SHUTDOWN = 13,	  /* the server is shutting down */
	TOKD_R_UNKNOWN = 14,	  /* no such stream (it ended long ago, or never began) */
	TOKD_R_SINK = 15,	  /* the ids could not be embedded (--sink) */
	TOKD_R_VALIDATE = 16,	  /* the server must first see that the address is the client's */
	TOKD_R_SHARE = 17,	  /* given up: its source had more open texts than others */
	TOKD_R_RING = 18,  /* the token ring is full; without FAIL, beside credit 0: only wait */
	TOKD_R_ID = 19,	   /* decode: not in the vocabulary, the id at byte `text_end` */
	TOKD_R_LANES = 20, /* no lane of the GPU is free; never with FAIL: only wait */
	TOKD_R_MAX
};

/* Client to server: DATA and POLL. */
struct tokd_req {
	uint32_t magic;	    /* TOKD_WIRE_MAGIC */
	uint8_t version;    /* TOKD_WIRE_VERSION */
	uint8_t type;	    /* enum tokd_wire_type */
	uint16_t flags;	    /* enum tokd_wire_flags */
	uint32_t epoch;	    /* random, chosen once per client process */
	uint32_t vocab;	    /* checksum of the vocabulary; 0: the server's default */
	uint64_t stream_id; /* chosen by the client, unique within its epoch */
	uint32_t packet;    /* DATA: packet number within the stream, from 0 without gaps */
	uint32_t length;    /* DATA: bytes of text in this packet; POLL: 0 */
	uint32_t offset;    /* DATA: of those bytes in the text */
	uint32_t text_crc;  /* DATA with LAST: CRC32C of the whole text */
	uint32_t ids_ack;   /* all ids below this index have arrived */
	union {
		uint32_t ids_end;   /* POLL: ids in [ids_ack, ids_end) are missing, send them
				     * again; 0: none */
		uint32_t reply_max; /* DATA: the longest reply that fits the path, bytes of UDP
				     * payload; 0: not known */
	};
	uint64_t cookie;   /* of the server's latest VALIDATE; 0: none yet */
	uint32_t limit;	   /* DATA with LAST, with GENERATE: the most ids to make, 1 to
			    * TOKD_GENERATE_MOST; else 0 */
	uint32_t reserved; /* 0; a request must not be smaller than a refusal */
};
static_assert(sizeof(struct tokd_req) == 64, "wire request is ABI");
static_assert(offsetof(struct tokd_req, stream_id) == 16, "wire request is ABI");
static_assert(offsetof(struct tokd_req, packet) == 24, "wire request is ABI");
static_assert(offsetof(struct tokd_req, offset) == 32, "wire request is ABI");
static_assert(offsetof(struct tokd_req, ids_ack) == 40, "wire request is ABI");
static_assert(offsetof(struct tokd_req, reply_max) == 44, "wire request is ABI");
static_assert(offsetof(struct tokd_req, cookie) == 48, "wire request is ABI");

/*
 * Server to client. In a reply with TOKD_R_VERSION, these are the same in all versions of the
 * protocol: size, magic, version, type, FAIL, epoch, stream_id, reason and `speaks`.
 */
struct tokd_rep {
	uint32_t magic;	    /* TOKD_WIRE_MAGIC */
	uint8_t version;    /* that of the request */
	uint8_t type;	    /* TOKD_REPLY */
	uint16_t flags;	    /* enum tokd_wire_flags */
	uint32_t epoch;	    /* the client's */
	uint32_t vocab;	    /* checksum of the vocabulary used */
	uint64_t stream_id; /* the client's */
	uint32_t ack;	    /* every packet numbered below this is fed */
	uint32_t credit;    /* packets numbered below ack + credit may be sent; 0: wait and POLL */
	union {
		uint64_t sack;	 /* bit i: packet ack + 1 + i is held; what is clear below a set
				    bit is missing */
		uint64_t cookie; /* VALIDATE: for the following packets; not 0 */
	};
	uint32_t first;	  /* index of the first id in this packet */
	uint32_t count;	  /* ids in this packet */
	uint32_t total;	  /* ids published so far; final with DONE */
	uint32_t ids_crc; /* DONE: CRC32C over all ids of the stream, 4 bytes each, little-endian;
			   * of text, over its bytes */
	uint32_t reason;  /* FAIL: enum tokd_reason; credit 0: TOKD_R_RING, TOKD_R_LANES, or 0 */
	union {
		uint32_t text_end; /* bytes of text fed so far; with DONE the length of the text */
		uint32_t retry_ms; /* BUSY: when to try again; 0: not known */
		uint8_t speaks;	   /* VERSION: which the server speaks; 0: see `version` */
	};
};
static_assert(sizeof(struct tokd_rep) == 64, "wire reply is ABI");
static_assert(offsetof(struct tokd_rep, stream_id) == 16, "wire reply is ABI");
static_assert(offsetof(struct tokd_rep, ack) == 24, "wire reply is ABI");
static_assert(offsetof(struct tokd_rep, sack) == 32, "wire reply is ABI");
static_assert(offsetof(struct tokd_rep, first) == 40, "wire reply is ABI");
static_assert(offsetof(struct tokd_rep, reason) == 56, "wire reply is ABI");
static_assert(offsetof(struct tokd_rep, speaks) == 60, "wire reply is ABI");

#endif
