/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The plain-text port. A datagram becomes the only DATA packet of a stream, and is fed, deferred,
 * published and timed out like any other; what its sender hears is text.
 */
#include <crc32c.h>

#include "reply.h"
#include "text_port.h"
#include "datapath/token_ring_write.h"

#define ANSWER_MAX (sizeof(struct tokd_rep) + TOKD_WIRE_PAYLOAD) /* bytes */
#define DECIMAL_MAX 10						 /* digits of an id */
#define HEADERS 28						 /* of a datagram: IPv4 and UDP */

static void
answer_line(struct tokd_worker *w, const struct tokd_peer *peer, const char *line, uint16_t bytes)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(w->pool);

	if (unlikely(m == NULL)) {
		w->counter[C_TX_NO_MBUF]++;
		return;
	}
	memcpy(rte_pktmbuf_append(m, bytes), line, bytes);
	tokd_net_send(w, m, peer);
}

/*
 * May a text of `received` bytes be answered by `n` datagrams of `bytes` in all? Its sender cannot
 * return a cookie: nobody here is ever validated. Headers count, or short texts would get no
 * answer.
 */
static bool
is_within_limit(struct tokd_worker *w, uint32_t received, uint64_t bytes, uint64_t n)
{
	if (bytes + n * HEADERS <= TOKD_UNVALIDATED_FACTOR * ((uint64_t)received + HEADERS))
		return true;
	w->counter[C_REPLY_LIMITED]++;
	return false;
}

static uint16_t
put_decimal(char *to, uint32_t v)
{
	char digit[DECIMAL_MAX];
	uint16_t n = 0;

	do {
		digit[n++] = (char)('0' + v % 10);
		v /= 10;
	} while (v != 0);
	for (uint16_t i = 0; i < n; i++)
		to[i] = digit[n - 1 - i];
	return n;
}

static uint32_t
digits_of(uint32_t v)
{
	static const uint32_t power[] = {
		10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000, 1000000000};
	uint32_t n = 1;

	while (n < DECIMAL_MAX && v >= power[n - 1])
		n++;
	return n;
}

static uint16_t
put_text(char *to, const char *text)
{
	const size_t n = strlen(text);

	memcpy(to, text, n);
	return (uint16_t)n;
}

static void
answer_error(
	struct tokd_worker *w, const struct tokd_peer *peer, const char *error, uint32_t received)
{
	char line[256];
	uint16_t used = put_text(line, "error: ");

	used += put_text(line + used, error);
	line[used++] = '\n';
	if (is_within_limit(w, received, used, 1))
		answer_line(w, peer, line, used);
}

void
tokd_text_refuse(struct tokd_worker *w, const struct tokd_peer *peer, enum tokd_reason reason,
	uint32_t received)
{
	static const char *const why[TOKD_R_MAX] = {
		[TOKD_R_BUSY] = "too many texts at once: send it again",
		[TOKD_R_UTF8] = "not UTF-8, and dpdk-tokd runs with --strict-utf8",
		[TOKD_R_EXPIRED] = "the ids are no longer available: send the text again",
		[TOKD_R_SHUTDOWN] = "dpdk-tokd is shutting down",
		[TOKD_R_SHARE] = "too many texts of one source at once: send it again later",
		[TOKD_R_SINK] = "the GPU could not embed the ids: see dpdk-tokd's log",
		[TOKD_R_VALIDATE] = "too many texts at once: send it again, or use tokd-client",
		[TOKD_R_RING] = "the token ring is full: send the text again", /* fits 5 bytes */
	};

	answer_error(w, peer, why[reason] != NULL ? why[reason] : "dpdk-tokd refused the text",
		received);
}

static void
answer_too_long(struct tokd_worker *w, const struct tokd_peer *peer, uint32_t bytes)
{
	char line[128];
	uint16_t used = put_text(line, "error: text too long: ");

	used += put_decimal(line + used, bytes);
	used += put_text(line + used, " bytes, at most ");
	used += put_decimal(line + used, w->terms->max_text);
	used += put_text(line + used, " by --max-text: shorten it, or raise the option\n");
	if (is_within_limit(w, bytes, used, 1))
		answer_line(w, peer, line, used);
}

/* Bytes of the ids in decimal, each with what follows it. */
static uint64_t
bytes_of_ids(const struct tokd_worker *w, const struct tokd_stream *s)
{
	uint32_t ids[TOKD_REPLY_IDS], n;
	uint64_t bytes = s->total;

	for (uint32_t first = 0; first < s->total; first += n) {
		n = RTE_MIN(s->total - first, (uint32_t)TOKD_REPLY_IDS);
		tokd_reply_ids_copy(w, s, first, n, ids);
		for (uint32_t i = 0; i < n; i++)
			bytes += digits_of(ids[i]);
	}
	return bytes;
}

/* Bytes of the text: its only packet had a header that the sender did not send. */
static uint32_t
received(const struct tokd_stream *s)
{
	return (uint32_t)(s->received - sizeof(struct tokd_req));
}

/* Bytes of one answer; a longer one continues in the next datagram, with a whole id. */
static uint32_t
answer_room(const struct tokd_stream *s)
{
	return (uint32_t)sizeof(struct tokd_rep) + s->reply_room;
}

/* Ids separated by blanks, then a line feed, in as few datagrams as possible. */
static void
answer_ids(struct tokd_worker *w, const struct tokd_stream *s)
{
	uint32_t ids[TOKD_REPLY_IDS], n;
	const uint32_t room = answer_room(s);
	char line[ANSWER_MAX];
	uint16_t used = 0;

	for (uint32_t first = 0; first < s->total; first += n) {
		n = RTE_MIN(s->total - first, (uint32_t)TOKD_REPLY_IDS);
		tokd_reply_ids_copy(w, s, first, n, ids);
		for (uint32_t i = 0; i < n; i++) {
			if (used + DECIMAL_MAX + 1u > room) {
				answer_line(w, &s->peer, line, used);
				used = 0;
			}
			used += put_decimal(line + used, ids[i]);
			line[used++] = first + i + 1 < s->total ? ' ' : '\n';
		}
	}
	if (s->total == 0)
		line[used++] = '\n';
	answer_line(w, &s->peer, line, used);
}

static void
answer_failed(struct tokd_worker *w, const struct tokd_stream *s)
{
	if (s->error == TOK_ERROR_NONE) {
		tokd_text_refuse(w, &s->peer, s->reason, received(s));
		return;
	}
	w->counter[C_DROP_TEXT]++;
	if (s->error == TOK_ERROR_UTF8)
		tokd_text_refuse(w, &s->peer, TOKD_R_UTF8, received(s));
	else
		answer_error(w, &s->peer, tok_error_code_text(s->error), received(s));
}

void
tokd_text_reply(struct tokd_worker *w, struct tokd_stream *s)
{
	uint64_t bytes;

	if (!s->due || s->deferred)
		return;
	s->due = false;
	if (s->state == TOKD_STREAM_OPEN) /* nobody sends its packet again */
		tokd_stream_fail(w, s, s->backpressured ? TOKD_R_RING : TOKD_R_BUSY);
	if (s->state == TOKD_STREAM_DONE && !tokd_reply_ids_available(w, s, 0, s->total)) {
		tokd_text_refuse(w, &s->peer, TOKD_R_EXPIRED, received(s));
		return;
	}
	if (s->state == TOKD_STREAM_FAILED) {
		answer_failed(w, s);
		return;
	}
	w->counter[C_TEXT_PORT]++;
	bytes = bytes_of_ids(w, s);
	if (likely(is_within_limit(
		    w, received(s), bytes, bytes / (answer_room(s) - DECIMAL_MAX) + 1)))
		answer_ids(w, s);
	else
		answer_error(w, &s->peer, "answer above 3 bytes a byte received: use tokd-client",
			received(s));
	s->sent = s->total;
	tokd_stream_ids_ack(w, s, s->total);
	tokd_stream_renew(w, s);
}

/* Bytes that the first piece may need in the ring. */
static uint64_t
first_piece(const struct tokd_worker *w, uint32_t bytes)
{
	const size_t ids =
		tok_encode_bound(w->terms->vocab[0].tok, RTE_MIN(bytes, TOKD_PIECE_MAX), 0);

	return RTE_MIN(tokd_rec_most(&w->ring, TOKD_REC_TOKENS, ids), tokd_ring_max(&w->ring));
}

void
tokd_text_rx(struct tokd_worker *w, struct rte_mbuf *m, const struct tokd_peer *peer)
{
	const uint32_t bytes = rte_pktmbuf_pkt_len(m);
	struct tokd_req req = {
		.magic = TOKD_WIRE_MAGIC,
		.version = TOKD_WIRE_VERSION,
		.type = TOKD_DATA,
		.flags = TOKD_F_FIRST | TOKD_F_LAST | TOKD_F_IDS,
		.length = bytes,
	};
	void *head;

	if (unlikely(bytes > w->terms->max_text)) {
		answer_too_long(w, peer, bytes);
		tokd_drop(w, m, C_DROP_TOO_LONG);
		return;
	}
	/* Nobody sends it again: it does not wait for a full ring in the table of streams. */
	if (unlikely(tokd_ring_reserve(&w->ring, first_piece(w, bytes)) == TOKD_RING_FULL)) {
		tokd_text_refuse(w, peer, TOKD_R_RING, bytes);
		tokd_drop(w, m, C_DROP_RING_FULL);
		return;
	}
	req.stream_id = w->text_id++;
	for (const struct rte_mbuf *seg = m; seg != NULL; seg = seg->next)
		req.text_crc = tokd_crc32c(req.text_crc, rte_pktmbuf_mtod(seg, const void *),
			rte_pktmbuf_data_len(seg));
	head = rte_pktmbuf_prepend(m, sizeof(req));
	if (unlikely(head == NULL)) {
		tokd_drop(w, m, C_DROP_SEGMENTS);
		return;
	}
	memcpy(head, &req, sizeof(req));
	tokd_stream_rx(w, m, peer);
}
