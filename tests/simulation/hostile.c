/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sources that mean harm, with addresses that are not theirs: texts that begin and never end,
 * questions about texts that are not there, frames changed at random. They name no stream of a good
 * client: who reads the wire can do that, and the protocol does not keep it from him.
 */
#include <string.h>

#include <crc32c.h>

#include "sim.h"

#define SOURCES 4000
#define FIRST_SUBNET 256 /* of IPv6: not that of the clients */
#define CHANGES 4	 /* bytes of a frame */

static struct packet *
forged(struct world *w)
{
	const uint8_t *text = w->check.text[world_dice(w, TEXTS)].bytes;
	const uint32_t len = world_dice(w, 64);
	const bool poll = world_dice(w, 4) == 0;
	struct tokd_req req = {.magic = TOKD_WIRE_MAGIC,
		.version = TOKD_WIRE_VERSION,
		.type = poll ? TOKD_POLL : TOKD_DATA,
		.epoch = HOSTILE_EPOCH | world_dice(w, 16),
		.stream_id = world_dice(w, 64),
		.ids_ack = world_dice(w, 8),
		.ids_end = poll ? world_dice(w, 100) : 0};
	uint32_t ip;

	if (!poll) {
		req.packet = world_dice(w, 3);
		req.flags = (uint16_t)(world_dice(w, 128) & ~(uint32_t)TOKD_F_FIRST);
		req.flags |= req.packet == 0 ? TOKD_F_FIRST : 0;
		req.flags &= TOKD_F_FIRST | TOKD_F_LAST | TOKD_F_IDS | TOKD_F_STREAM | TOKD_F_SHORT;
		req.length = RTE_MIN(len, w->check.text[0].len);
		text = w->check.text[0].bytes;
		req.offset = req.packet * 16;
		req.text_crc = tokd_crc32c(0, text, req.length);
	}
	ip = world_dice(w, SOURCES);
	ip += w->plan.six && ip % 2 != 0 ? SIX_IP + FIRST_SUBNET : HOSTILE_IP;
	return frame_make(w, ip, (uint16_t)(1024 + world_dice(w, 60000)), &req, sizeof(req), text,
		req.length);
}

/* At random, behind right checksums; but the epoch stays one of nobody's. */
static void
change(struct world *w, struct packet *p)
{
	const uint32_t head = frame_headers(p);
	struct tokd_req *req = (struct tokd_req *)(p->bytes + head);

	for (uint32_t i = world_dice(w, CHANGES) + 1; i > 0; i--)
		p->bytes[head + world_dice(w, p->len - head)] ^= (uint8_t)(1 + world_dice(w, 255));
	req->epoch |= HOSTILE_EPOCH;
	if (world_dice(w, 8) == 0)
		p->len -= world_dice(w, p->len / 2);
	else
		frame_seal(p);
}

void
hostile_turn(struct world *w)
{
	struct packet *p;

	if (w->plan.attack != SIM_ATTACKS) {
		p = attack_frame(w);
	} else {
		p = forged(w);
		world_fault(w, FORGERIES);
		if (world_dice(w, 3) == 0) {
			world_fault(w, CHANGED_FORGERIES);
			change(w, p);
		}
	}
	if (w->calm_at != NEVER) {
		packet_drop(w, p);
		return;
	}
	w->hostile_frames++;
	w->hostile_bytes += p->len;
	world_put(w, w->now + 10 * US, TO_APPLIANCE, 0, p);
	world_put(w, w->now + SECOND / w->plan.hostile_hz, HOSTILE, 0, NULL);
}
