/* SPDX-License-Identifier: BSD-3-Clause */
#include <rte_cycles.h>

#include "stream.h"
#include "text_port.h"
#include "datapath/token_ring_write.h"

/* Bytes of one answer; a longer one continues in the next datagram, with a whole id. */
#define ANSWER_BYTES (sizeof(struct tokd_rep) + TOKD_WIRE_PAYLOAD)
#define DECIMAL_MAX 10 /* digits of an id */

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

#define ANSWER_ERROR(w, peer, text)                                                                \
	answer_line(w, peer, "error: " text "\n", sizeof("error: " text))

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

static uint16_t
put_text(char *to, const char *text)
{
	const size_t n = strlen(text);

	memcpy(to, text, n);
	return (uint16_t)n;
}

static void
answer_error(struct tokd_worker *w, const struct tokd_peer *peer, enum tok_error_code error)
{
	char line[256];
	uint16_t used = put_text(line, "error: ");

	used += put_text(line + used, tok_error_code_text(error));
	line[used++] = '\n';
	answer_line(w, peer, line, used);
}

static void
answer_too_long(struct tokd_worker *w, const struct tokd_peer *peer, uint32_t bytes, uint32_t most,
	const char *option)
{
	char line[128];
	uint16_t used = put_text(line, "error: text too long: ");

	used += put_decimal(line + used, bytes);
	used += put_text(line + used, " bytes, at most ");
	used += put_decimal(line + used, most);
	used += put_text(line + used, " by ");
	used += put_text(line + used, option);
	used += put_text(line + used, ": shorten it, or raise the option\n");
	answer_line(w, peer, line, used);
}

/* The longest text, in bytes, whose worst case fits one record of the ring. */
static uint32_t
max_by_ring(const struct tokd_worker *w)
{
	return (uint32_t)RTE_MIN(UINT32_MAX, (tokd_ring_max(&w->ring) - sizeof(struct tokd_rec)) /
						     sizeof(uint32_t) /
						     tok_encode_bound(w->vocab[0].tok, 1, 0));
}

/* Ids separated by blanks, then a line feed, in as few datagrams as possible. */
static void
answer_ids(struct tokd_worker *w, const struct tokd_peer *peer, const uint32_t *ids, uint32_t n)
{
	char line[ANSWER_BYTES];
	uint16_t used = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (used + DECIMAL_MAX + 1u > sizeof(line)) {
			answer_line(w, peer, line, used);
			used = 0;
		}
		used += put_decimal(line + used, ids[i]);
		line[used++] = i + 1 < n ? ' ' : '\n';
	}
	if (n == 0)
		line[used++] = '\n';
	answer_line(w, peer, line, used);
}

static struct tok_result
encode(struct tokd_worker *w, const struct rte_mbuf *m, uint32_t *ids, size_t room)
{
	struct tok_result all = {0}, one;

	tok_stream_init(
		&w->text_stream, w->vocab[0].tok, w->vocab[0].cache, tokd_tok_flags(w->opt));
	for (; m != NULL; m = m->next) {
		one = tok_stream_feed(&w->text_stream, rte_pktmbuf_mtod(m, const void *),
			rte_pktmbuf_data_len(m), m->next == NULL, ids + all.produced,
			room - all.produced);
		all.status = one.status;
		all.error = one.error;
		all.consumed += one.consumed;
		all.produced += one.produced;
		if (one.status != TOK_OK)
			break;
	}
	return all;
}

static void
publish(struct tokd_worker *w, uint64_t pos, uint32_t count, uint32_t bytes, uint64_t tok_ticks)
{
	struct tokd_rec *rec = tokd_ring_at(&w->ring, pos);
	uint64_t took;

	*rec = (struct tokd_rec){
		.flags = TOKD_REC_FIRST | TOKD_REC_LAST,
		.stream_id = w->text_id++,
		.serial = w->ring.serial++,
		.t_rx = w->t_burst,
		.count = count,
		.vocab = w->vocab[0].checksum,
		.text_end = bytes,
	};
	tokd_ring_publish(&w->ring, pos);
	tokd_count_record(w);
	took = rec->t_publish - rec->t_rx;
	tokd_histogram_add(&w->time[T_WIRE_TO_RING], took);
	if (count > 0)
		tokd_histogram_add(&w->time[T_TEXT_TO_FIRST_ID], took);
	tokd_histogram_add(&w->time[T_TEXT_TO_LAST_ID], took);
	tokd_histogram_add(&w->time[T_TOKENIZER], tok_ticks);
	w->counter[C_TEXT_PORT]++;
	w->counter[C_TEXT_BYTES] += bytes;
	w->counter[C_IDS] += count;
}

void
tokd_text_rx(struct tokd_worker *w, struct rte_mbuf *m, const struct tokd_peer *peer)
{
	const uint32_t bytes = rte_pktmbuf_pkt_len(m);
	const uint32_t by_ring = max_by_ring(w), by_option = w->opt->max_text;
	const uint64_t room = tok_encode_bound(w->vocab[0].tok, bytes, 0);
	struct tok_result res;
	uint32_t *ids;
	uint64_t pos, t;

	if (unlikely(w->stopping != TOKD_RUN)) {
		tokd_drop(w, m, C_DROP_SHUTDOWN);
		return;
	}
	if (unlikely(bytes > RTE_MIN(by_option, by_ring))) {
		answer_too_long(w, peer, bytes, RTE_MIN(by_option, by_ring),
			by_option < by_ring ? "--max-text" : "--ring-size");
		tokd_drop(w, m, C_DROP_TOO_LONG);
		return;
	}
	pos = tokd_ring_reserve(&w->ring, tokd_rec_bytes(room));
	if (unlikely(pos == TOKD_RING_FULL)) {
		tokd_drop(w, m, C_DROP_RING_FULL);
		return;
	}
	ids = tokd_rec_ids(tokd_ring_at(&w->ring, pos));
	t = rte_rdtsc();
	res = encode(w, m, ids, room);
	t = rte_rdtsc() - t;
	rte_pktmbuf_free(m);
	if (unlikely(res.status != TOK_OK)) {
		w->counter[C_DROP_TEXT]++;
		if (res.error == TOK_ERROR_UTF8)
			ANSWER_ERROR(w, peer, "not UTF-8, and dpdk-tokd runs with --strict-utf8");
		else
			answer_error(w, peer, res.error);
		return;
	}
	/* The ids stay in the ring until the next reservation. */
	publish(w, pos, (uint32_t)res.produced, bytes, t);
	answer_ids(w, peer, ids, (uint32_t)res.produced);
}
