/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Mode tokd: the wire protocol of include/tokd/wire.h, from the client's side. Replies are taken
 * in order of their ids; one that comes early is let go, and asked for after a time-out.
 */
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <tokd/wire.h>

#include "client.h"
#include "crc32c.h"

#define REPLY_MAX 2048 /* bytes of a reply: an Ethernet frame's */
#define BURST 16       /* replies taken by one call */
static_assert(TOKD_WIRE_WINDOW == 64, "sack and the packet masks here are 64 bits");

struct request {
	struct client *c;
	const struct slice *slice;
	struct answer *answer;
	uint64_t stream_id;
	uint32_t text_crc;
	uint32_t n_packets;
	uint32_t next;	/* packets below were sent at least once */
	uint32_t limit; /* packets below may be sent */
	uint32_t ack;	/* packets below are fed */
	uint64_t sack;	/* bit i: packet ack + 1 + i is held */
	uint32_t have;	/* ids below have arrived */
	uint32_t total; /* ids there are, as far as known */
	uint32_t asked; /* `have` when the server was last told of it by a POLL */
	uint32_t ids_crc;
	bool done;  /* `total` and `ids_crc` are final */
	bool moved; /* a reply brought something new */
};

static struct tokd_req
header(const struct request *r)
{
	return (struct tokd_req){
		.magic = TOKD_WIRE_MAGIC,
		.version = TOKD_WIRE_VERSION,
		.epoch = r->c->epoch,
		.stream_id = r->stream_id,
		.ids_ack = r->have,
	};
}

static struct tokd_req
data_header(const struct request *r, uint32_t packet)
{
	struct tokd_req req = header(r);
	uint32_t left = r->slice->text_len - packet * TOKD_WIRE_PAYLOAD;
	bool last = packet == r->n_packets - 1;

	req.type = TOKD_DATA;
	req.flags = TOKD_F_IDS | (packet == 0 ? TOKD_F_FIRST : 0) | (last ? TOKD_F_LAST : 0);
	req.packet = packet;
	req.offset = packet * TOKD_WIRE_PAYLOAD;
	req.length = last ? left : TOKD_WIRE_PAYLOAD;
	req.text_crc = last ? r->text_crc : 0;
	return req;
}

static uint32_t
crc32c(const void *data, size_t n)
{
	return tokd_crc32c_end(tokd_crc32c_add(TOKD_CRC32C_INIT, data, n));
}

/* Send the packets whose bits are set, bit 0 being `first`. What the kernel refuses is lost. */
static uint32_t
send_data(const struct request *r, uint32_t first, uint64_t which)
{
	struct mmsghdr message[TOKD_WIRE_WINDOW];
	struct iovec part[TOKD_WIRE_WINDOW][2];
	struct tokd_req req[TOKD_WIRE_WINDOW];
	uint32_t n = 0;

	for (; which != 0; which &= which - 1, n++) {
		uint32_t packet = first + (uint32_t)__builtin_ctzll(which);

		req[n] = data_header(r, packet);
		part[n][0] = (struct iovec){&req[n], sizeof(req[n])};
		part[n][1] = (struct iovec){
			(void *)(uintptr_t)(r->slice->text + req[n].offset), req[n].length};
		message[n] = (struct mmsghdr){.msg_hdr = {.msg_iov = part[n], .msg_iovlen = 2}};
	}
	for (uint32_t sent = 0; sent < n;) {
		int k = sendmmsg(r->c->fd, message + sent, n - sent, 0);

		if (k <= 0)
			break;
		sent += (uint32_t)k;
	}
	return n;
}

static void
send_new(struct request *r)
{
	uint32_t end = r->limit < r->n_packets ? r->limit : r->n_packets;

	while (r->next < end) {
		uint32_t n = end - r->next < TOKD_WIRE_WINDOW ? end - r->next : TOKD_WIRE_WINDOW;

		send_data(r, r->next, n == 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1);
		r->next += n;
	}
}

static void
send_poll(struct request *r)
{
	struct tokd_req req = header(r);

	req.type = TOKD_POLL;
	req.ids_end = r->total > r->have ? r->total : 0;
	r->asked = r->have;
	(void)send(r->c->fd, &req, sizeof(req), 0);
}

/* Nothing came for a while: send what is not known to have arrived, or ask. */
static void
send_again(struct request *r)
{
	uint32_t in_flight = r->next - r->ack; /* at most a window: credit never exceeds it */

	if (in_flight > 0) {
		uint64_t mask = in_flight >= 64 ? UINT64_MAX : (UINT64_C(1) << in_flight) - 1;

		r->answer->retransmits += send_data(r, r->ack, mask & ~(r->sack << 1));
	}
	if (in_flight == 0 || r->total > r->have) {
		send_poll(r);
		r->answer->retransmits++;
	}
}

static bool
is_ours(const struct request *r, const struct tokd_rep *rep, size_t len)
{
	return len >= sizeof(*rep) && rep->magic == TOKD_WIRE_MAGIC &&
	       rep->version == TOKD_WIRE_VERSION && rep->type == TOKD_REPLY &&
	       rep->epoch == r->c->epoch && rep->stream_id == r->stream_id &&
	       len == sizeof(*rep) + (size_t)4 * rep->count;
}

static void
take_ids(struct request *r, const struct tokd_rep *rep, const uint8_t *ids)
{
	uint32_t end = rep->first + rep->count, skip;

	if (rep->first > r->have || end <= r->have)
		return;
	if (end > r->c->max_ids) {
		r->answer->failure = "more ids than are right";
		return;
	}
	skip = r->have - rep->first;
	memcpy(r->c->ids + r->have, ids + (size_t)4 * skip, (size_t)4 * (end - r->have));
	r->have = end;
	r->moved = true;
}

static void
take_reply(struct request *r, const uint8_t *packet, size_t len)
{
	struct tokd_rep rep = {0};

	memcpy(&rep, packet, len < sizeof(rep) ? len : sizeof(rep));
	if (!is_ours(r, &rep, len))
		return;
	if (rep.flags & TOKD_F_FAIL) {
		r->answer->reason = rep.reason;
		r->answer->failure = "refused";
		return;
	}
	take_ids(r, &rep, packet + sizeof(rep));
	if (rep.ack < r->ack || rep.ack > r->next || rep.credit > TOKD_WIRE_WINDOW)
		return; /* overtaken by a later one, or not to be believed */
	if (rep.ack > r->ack || rep.sack != r->sack || rep.total > r->total)
		r->moved = true;
	r->ack = rep.ack;
	r->sack = rep.sack;
	r->limit = rep.ack + rep.credit;
	r->total = rep.total;
	if (rep.flags & TOKD_F_DONE) {
		r->moved |= !r->done;
		r->done = true;
		r->ids_crc = rep.ids_crc;
	}
}

static void
receive(struct request *r)
{
	static uint8_t packet[BURST][REPLY_MAX];
	struct mmsghdr message[BURST];
	struct iovec part[BURST];
	int n;

	for (uint32_t i = 0; i < BURST; i++) {
		part[i] = (struct iovec){packet[i], sizeof(packet[i])};
		message[i] = (struct mmsghdr){.msg_hdr = {.msg_iov = &part[i], .msg_iovlen = 1}};
	}
	n = recvmmsg(r->c->fd, message, BURST, MSG_DONTWAIT, NULL);
	for (int i = 0; i < n; i++)
		take_reply(r, packet[i], message[i].msg_len);
}

/* Until all ids are there, or nothing moved for CLIENT_TRIES time-outs. */
static void
exchange(struct request *r)
{
	uint64_t since = now_ns();
	uint32_t quiet = 0;

	send_new(r);
	while (r->answer->failure == NULL && !(r->done && r->have == r->total)) {
		receive(r);
		if (r->moved) {
			r->moved = false;
			quiet = 0;
			send_new(r);
			/* Out of credit: only ids known to have arrived can free some. */
			if (r->ack == r->next && r->next < r->n_packets && r->have > r->asked)
				send_poll(r);
			since = now_ns();
		} else if (spin(since, r->c->timeout_ns)) {
			if (++quiet == CLIENT_TRIES) {
				r->answer->failure = "no answer";
				return;
			}
			send_again(r);
			since = now_ns();
		}
	}
}

void
client_tokd(struct client *c, const struct slice *slice, uint64_t stream_id, struct answer *answer)
{
	struct request r = {
		.c = c,
		.slice = slice,
		.answer = answer,
		.stream_id = stream_id,
		.text_crc = crc32c(slice->text, slice->text_len),
		/* An empty text is one packet without any. */
		.n_packets =
			slice->text_len == 0 ? 1 : (slice->text_len - 1) / TOKD_WIRE_PAYLOAD + 1,
		.limit = TOKD_WIRE_WINDOW,
	};

	*answer = (struct answer){0};
	exchange(&r);
	answer->n_ids = r.have;
	if (answer->failure == NULL && crc32c(c->ids, (size_t)4 * r.have) != r.ids_crc)
		answer->failure = "CRC32C of the ids is wrong";
}
