/* SPDX-License-Identifier: BSD-3-Clause */
/* One attacker and one good client, by the product's defaults: what does the good one get? */
#include <string.h>

#include <crc32c.h>

#include "sim.h"

#define MBIT UINT64_C(1000000)
#define TRICKLED 4096 /* streams held open by one socket */
#define TRICKLE_S 8   /* between two bytes of a stream */
#define ID_BYTES 100  /* bytes of text that give as many ids */

const char *const sim_attack_name[SIM_ATTACKS] = {[AT_REST] = "rest",
	[FORGED_FIRST] = "forged-0.9",
	[FORGED_MORE] = "forged-4.6",
	[TRICKLE_STREAMS] = "trickle-streams",
	[STORM] = "storm",
	[GREEDY] = "greedy",
	[TRICKLE_READER] = "trickle-reader",
	[STOPPED_SINK] = "stopped-sink",
	[REPEAT_5000] = "repeat-5000",
	[REPEAT_20000] = "repeat-20000",
	[AMPLIFY] = "amplify"};

static uint32_t
hz(uint64_t bits, uint32_t payload)
{
	return (uint32_t)(bits / (8 * (14 + 20 + 8 + sizeof(struct tokd_req) + payload)));
}

struct plan
plan_of_attack(enum sim_attack attack)
{
	struct plan p = {.seed = 1,
		.attack = attack,
		.clients = 1,
		.requests = 1000,
		.begin = 12 * SECOND, /* by then the attack has had its effect */
		.pause = 10 * MS,
		.text_most = 560,
		.streams = 4096,
		.rx_desc = 1024,
		.ring_bytes = 16 << 20,
		.side_bytes = 4 << 20,
		.stream_ms = 10000,
		.done_ms = 10000,
		.reader_ms = 1000,
		.network = {.delay = 10 * US, .jitter = US},
		.fault = {NEVER, NEVER, NEVER, NEVER, NEVER},
		.slow_pause = 700 * MS};

	switch (attack) {
	case FORGED_FIRST:
		p.hostile_hz = hz(9 * MBIT / 10, 8);
		break;
	case FORGED_MORE:
		p.hostile_hz = hz(46 * MBIT / 10, 8);
		break;
	case TRICKLE_STREAMS:
		p.hostile_hz = TRICKLED / TRICKLE_S;
		break;
	case STORM:
		p.hostile_hz = hz(10 * MBIT, 0);
		break;
	case GREEDY: /* each keeps its limit of requests in progress, of 8 KB */
		p.clients = 65;
		p.begin = SECOND;
		break;
	case TRICKLE_READER:
		p.ring_bytes = 256 << 10;
		p.readers = p.slow_readers = 1;
		break;
	case STOPPED_SINK:
		p.ring_bytes = 256 << 10;
		break;
	case REPEAT_5000:
	case REPEAT_20000:
		p.hostile_hz = attack == REPEAT_5000 ? 5000 : 20000;
		p.network.twice = 10000;
		p.network.twice_by = 2 * SECOND;
		break;
	case AMPLIFY:
		p.hostile_hz = 1000;
		break;
	default:
		break;
	}
	return p;
}

struct packet *
attack_frame(struct world *w)
{
	static const uint8_t bytes[ID_BYTES] = "................"; /* an id a byte */
	const uint64_t i = w->hostile_frames;
	struct tokd_req req = {.magic = TOKD_WIRE_MAGIC,
		.version = TOKD_WIRE_VERSION,
		.type = TOKD_DATA,
		.flags = TOKD_F_FIRST,
		.epoch = HOSTILE_EPOCH,
		.stream_id = i,
		.length = 8};
	uint32_t ip = RTE_IPV4(172, 16, 0, 0) + (uint32_t)(i % (1 << 20));

	switch (w->plan.attack) {
	case TRICKLE_STREAMS:
		ip = RTE_IPV4(172, 16, 0, 0);
		req.stream_id = i % TRICKLED;
		req.packet = req.offset = (uint32_t)(i / TRICKLED);
		req.flags = req.packet == 0 ? TOKD_F_FIRST : 0;
		req.length = 1;
		break;
	case STORM: /* a text that ended, asked for again and again */
		ip = RTE_IPV4(172, 16, 0, 0);
		req.stream_id = 0;
		req.type = i == 0 ? TOKD_DATA : TOKD_POLL;
		req.flags = i == 0 ? TOKD_F_FIRST | TOKD_F_LAST | TOKD_F_IDS : 0;
		req.length = i == 0 ? ID_BYTES : 0;
		req.ids_end = i == 0 ? 0 : ID_BYTES;
		break;
	case REPEAT_5000:
	case REPEAT_20000: /* honest texts of others */
		ip = RTE_IPV4(172, 16, 0, 0);
		req.flags = TOKD_F_FIRST | TOKD_F_LAST;
		break;
	case AMPLIFY: /* a text, then questions for its ids */
		ip = RTE_IPV4(172, 16, 0, 0) + (uint32_t)(i / 8);
		req.stream_id = i / 8;
		req.type = i % 8 == 0 ? TOKD_DATA : TOKD_POLL;
		req.flags = i % 8 == 0 ? TOKD_F_FIRST | TOKD_F_LAST | TOKD_F_IDS : 0;
		req.length = i % 8 == 0 ? ID_BYTES : 0;
		req.ids_end = i % 8 == 0 ? 0 : ID_BYTES;
		break;
	default:
		break;
	}
	if (req.flags & TOKD_F_LAST)
		req.text_crc = tokd_crc32c(0, bytes, req.length);
	return frame_make(w, ip, 20000, &req, sizeof(req), bytes, req.length);
}
