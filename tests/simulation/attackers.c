/* SPDX-License-Identifier: BSD-3-Clause */
/* What the attackers of attacks.c send. */
#include <string.h>

#include <crc32c.h>

#include "sim.h"

#define ID_BYTES 100 /* bytes of text that give as many ids */
#define HOSTS 256    /* of MANY_HOSTS: a /24 that receives what is sent to it */
#define PORT 20000

static const uint8_t bytes[ID_BYTES] = "................"; /* an id a byte */

/* The cookie that each of HOSTS was told. */
static uint64_t cookie[HOSTS];

void
attack_takes(struct world *w, uint32_t ip, const uint8_t *payload, uint32_t len)
{
	struct tokd_rep rep;

	if (w->plan.attack != MANY_HOSTS || len < sizeof(rep))
		return;
	memcpy(&rep, payload, sizeof(rep));
	if (rep.reason == TOKD_R_VALIDATE)
		cookie[ip % HOSTS] = rep.cookie;
}

/* A first packet of a text that never ends. */
static struct tokd_req
beginning(uint64_t i)
{
	return (struct tokd_req){.magic = TOKD_WIRE_MAGIC,
		.version = TOKD_WIRE_VERSION,
		.type = TOKD_DATA,
		.flags = TOKD_F_FIRST,
		.epoch = HOSTILE_EPOCH,
		.stream_id = i,
		.length = 8};
}

/* A whole text with its ids, or a question for them. */
static void
make_whole(struct tokd_req *req, uint64_t text, bool question)
{
	req->stream_id = text;
	req->type = question ? TOKD_POLL : TOKD_DATA;
	req->flags = question ? 0 : TOKD_F_FIRST | TOKD_F_LAST | TOKD_F_IDS;
	req->length = question ? 0 : ID_BYTES;
	req->ids_end = question ? ID_BYTES : 0;
}

struct packet *
attack_frame(struct world *w)
{
	const uint64_t i = w->hostile_frames;
	const uint32_t trickled = w->plan.attack == TRICKLE_MORE ? 65536 : TRICKLED;
	struct tokd_req req = beginning(i);
	uint32_t ip = HOSTILE_IP;

	switch (w->plan.attack) {
	case TRICKLE_STREAMS:
	case TRICKLE_MORE:
		req.stream_id = i % trickled;
		req.packet = req.offset = (uint32_t)(i / trickled);
		req.flags = req.packet == 0 ? TOKD_F_FIRST : 0;
		req.length = 1;
		break;
	case STORM: /* a text that ended, asked for again and again */
		make_whole(&req, 0, i > 0);
		break;
	case REPEAT_5000:
	case REPEAT_20000: /* honest texts of others */
		req.flags = TOKD_F_FIRST | TOKD_F_LAST;
		break;
	case AMPLIFY: /* a text, then questions for its ids */
		ip += (uint32_t)(i / 8);
		make_whole(&req, i / 8, i % 8 != 0);
		break;
	case MANY_HOSTS:
		if (i == 0)
			memset(cookie, 0, sizeof(cookie));
		ip += (uint32_t)(i % HOSTS);
		req.cookie = cookie[i % HOSTS];
		break;
	case FORGED_TEXTS:
	case FORGED_OVERLOAD:
		ip += (uint32_t)(i % (1 << 20));
		make_whole(&req, i, false);
		break;
	case WRONG_COOKIES:
		req.cookie = dice_throw(&w->dice);
		/* fallthrough */
	default:
		ip += (uint32_t)(i % (1 << 20));
		break;
	}
	if (req.flags & TOKD_F_LAST)
		req.text_crc = tokd_crc32c(0, bytes, req.length);
	return frame_make(w, ip, PORT, &req, sizeof(req), bytes, req.length);
}

/*
 * By turns it asks for the victim's ids, which makes replies go to it; acknowledges them; and sends
 * a piece of text that does not fit, which fails the text. Its frames have an address of its own in
 * Ethernet alone.
 */
void
attack_overhears(struct world *w, const struct client *c, const struct tokd_req *theirs)
{
	struct tokd_req req = *theirs;
	struct rte_ether_hdr *eth;
	struct packet *p;

	if (w->plan.attack != SNIFFER || c != &w->client[0])
		return;
	req.type = w->hostile_frames % 3 == 2 ? TOKD_DATA : TOKD_POLL;
	req.flags &= ~(uint16_t)(TOKD_F_FIRST | TOKD_F_LAST);
	req.packet += req.type == TOKD_DATA;
	req.offset = req.length = req.type == TOKD_DATA ? 8 : 0; /* no packet begins there */
	req.ids_ack = w->hostile_frames % 3 == 1 ? 1 : 0;
	req.ids_end = ID_BYTES;
	p = frame_make(w, c->ip, c->port, &req, sizeof(req), bytes, req.length);
	eth = (struct rte_ether_hdr *)p->bytes;
	eth->src_addr = frame_mac(HOSTILE_IP);
	w->hostile_frames++;
	w->hostile_bytes += p->len;
	world_put(w, w->now + w->plan.network.delay + 2 * US, TO_APPLIANCE, 0, p);
}
