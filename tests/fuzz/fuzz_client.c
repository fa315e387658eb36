/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What an appliance, or somebody else, answers to libtokd-client's engine. The ids of a text are
 * its bytes here, and the answer to every prompt is the same: a request that got only true answers
 * and is done has those and no others.
 */
#include <string.h>

#include <crc32c.h>
#include "engine.h"
#include "fuzz.h"

#define STEPS_MAX 64
#define REQUESTS 4
#define PACKETS 24
#define TEXT_MAX (5u * TOKD_WIRE_PAYLOAD)
#define IDS_A_REPLY 344
#define GUARD 0xdeadbeefu
#define SENT_MAX 8 /* streams seen on the wire */
#define ITEMS 60   /* of an answer, besides its end */
#define ITEM_TEXT 99
#define ROOM_LEAST (2 * (sizeof(struct tokd_made) + ITEM_TEXT))

struct text {
	struct tokd_request r;
	bool used, lied_to;
	uint8_t *room; /* and a guard behind */
};

static const struct tokd_engine_config config = {.epoch = 77,
	.requests = REQUESTS,
	.packets = PACKETS,
	.payload = TOKD_WIRE_PAYLOAD,
	.timeout_ns = 5000 * NS_A_MS,
	.rto_least_ns = 5 * NS_A_MS,
	.first_stream_id = 1000};

static struct tokd_engine *engine;
static struct text texts[REQUESTS + 1]; /* one more than there is room for */
static uint8_t bytes[TEXT_MAX];
static uint8_t made[(ITEMS + 1) * (sizeof(struct tokd_made) + ITEM_TEXT)];
static uint32_t n_made, made_crc; /* bytes */
static uint64_t stream[SENT_MAX];
static uint32_t n_streams;
static uint64_t now;

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	engine = malloc(tokd_engine_bytes(&config));
	MUST(engine != NULL);
	for (uint32_t i = 0; i < TEXT_MAX; i++)
		bytes[i] = (uint8_t)(i * 2654435761u >> 24);
	for (uint32_t i = 0; i <= ITEMS; i++) {
		const struct tokd_made item = {.id = i < ITEMS ? i : TOKD_MADE_END,
			.text = (uint16_t)(i * 37 % (ITEM_TEXT + 1)),
			.end = i < ITEMS ? TOKD_MADE_MORE : TOKD_MADE_LENGTH};

		memcpy(made + n_made, &item, sizeof(item));
		memset(made + n_made + sizeof(item), 'a' + (int)(i % 26), item.text);
		n_made += (uint32_t)sizeof(item) + item.text;
	}
	made_crc = tokd_crc32c(0, made, n_made);
	return 0;
}

/* ---- the caller's side ---- */

static void
forget(struct text *t)
{
	const uint32_t guard = GUARD;

	MUST(t->room == NULL || memcmp(t->room + (size_t)t->r.max_ids * id_bytes(&t->r), &guard,
					sizeof(guard)) == 0);
	free(t->room);
	*t = (struct text){0};
}

static void
submit(struct input *in)
{
	const uint8_t how = (uint8_t)input_take(in, 1);
	struct text *t = texts;
	enum tokd_status status;

	while (t->used && t < &texts[REQUESTS])
		t++;
	if (t->used)
		return;
	t->r.text = bytes;
	t->r.len = (how >> 4) * (TEXT_MAX / 15);
	t->r.flags = how & 1 ? TOKD_REQUEST_STREAM : 0;
	if (how & 8) {
		t->r.flags = TOKD_REQUEST_GENERATE;
		t->r.limit = ITEMS;
		t->r.max_ids = how & 4 ? ROOM_LEAST : TOKD_GENERATE_ROOM;
	} else if (how & 2) {
		t->r.max_ids = how & 4 ? (uint32_t)t->r.len / 2 : (uint32_t)t->r.len;
	}
	if (how & (8 | 2)) {
		const size_t n = (size_t)t->r.max_ids * id_bytes(&t->r);

		t->room = malloc(n + sizeof(uint32_t));
		MUST(t->room != NULL);
		memcpy(t->room + n, &(uint32_t){GUARD}, sizeof(uint32_t));
		t->r.out = (char *)t->room;
	}
	status = tokd_engine_submit(engine, &t->r);
	MUST(status == TOKD_PENDING || status == TOKD_E_FULL);
	t->used = status == TOKD_PENDING;
	if (!t->used)
		forget(t);
}

static void
check_done(const struct text *t)
{
	const struct tokd_request *r = &t->r;

	MUST(r->status != TOKD_PENDING || streams(r));
	MUST((r->status == TOKD_E_REFUSED) == (r->reason != TOKD_R_NONE) || t->lied_to ||
		r->status == TOKD_PENDING);
	if (r->ids == NULL)
		return;
	MUST(r->status != TOKD_E_ANSWER || t->lied_to);
	MUST(r->n_ids <= r->max_ids || generates(r));
	if (r->status == TOKD_OK)
		MUST(r->n_ids == r->total);
	if (t->lied_to)
		return;
	if (generates(r))
		return; /* read_items() looks */
	for (uint32_t i = 0; i < r->n_ids; i++)
		MUST(r->ids[i] == bytes[i]);
	MUST(r->status != TOKD_OK || r->n_ids == r->len);
}

/* Up to `most` items of an answer. */
static void
read_items(struct text *t, uint32_t most)
{
	struct tokd_made item;
	const char *text;

	for (uint32_t at = t->r.taken;
		most-- > 0 && tokd_engine_made(engine, &t->r, &item, &text, now); at = t->r.taken) {
		MUST((const uint8_t *)text + item.text <= t->room + t->r.max_ids);
		if (t->lied_to)
			continue;
		MUST(memcmp(made + at, &item, sizeof(item)) == 0);
		MUST(memcmp(made + at + sizeof(item), text, item.text) == 0);
	}
}

static void
take_done(uint32_t items)
{
	struct tokd_request *r;

	while ((r = tokd_engine_done(engine)) != NULL) {
		struct text *t = (struct text *)r;

		MUST(t->used);
		check_done(t);
		if (generates(r))
			read_items(t, items);
		if (r->status != TOKD_PENDING)
			forget(t);
	}
}

/* ---- the wire ---- */

static void
see(const struct tokd_packet *p)
{
	uint32_t i = 0, payload = 0;

	/* A text keeps its cuts, also on a new path. */
	for (uint32_t k = 0; k < REQUESTS; k++) {
		const struct slot *s = &engine->slot[k];

		if (s->r != NULL && s->stream_id == p->req.stream_id)
			payload = s->payload;
	}
	MUST(p->len <= payload && p->req.length == p->len);
	MUST(p->req.type == TOKD_POLL || p->req.reply_max == engine->config.reply_max);
	MUST(p->len == 0 || memcmp(p->text, bytes + p->req.offset, p->len) == 0);
	while (i < n_streams && stream[i] != p->req.stream_id)
		i++;
	if (i == n_streams)
		stream[n_streams++ % SENT_MAX] = p->req.stream_id;
	n_streams = n_streams < SENT_MAX ? n_streams : SENT_MAX;
}

static void
send_some(struct input *in)
{
	const uint8_t how = (uint8_t)input_take(in, 1);
	struct tokd_packet out[16];
	const uint32_t n = tokd_engine_packets(engine, out, 1 + how % 16, now);

	MUST(n <= 1u + how % 16);
	for (uint32_t i = 0; i < n; i++)
		see(&out[i]);
	if (n > 0 && (how & 0x80))
		tokd_engine_unsent(engine, &out[n - 1]);
}

/* The request whose stream that is now. */
static struct text *
text_of(uint64_t stream_id)
{
	for (uint32_t i = 0; i <= REQUESTS; i++) {
		if (texts[i].used && texts[i].r.status == TOKD_PENDING &&
			texts[i].r.stream_id == stream_id)
			return &texts[i];
	}
	return NULL;
}

struct reply {
	struct tokd_rep rep;
	uint32_t ids[IDS_A_REPLY];
};

/* What is told of an answer, as far as it is made; nothing before the prompt is complete. */
static void
tell_made(struct input *in, struct reply *reply, bool whole, bool items)
{
	struct tokd_rep *rep = &reply->rep;

	rep->total = whole ? (uint32_t)input_take(in, 2) % (n_made + 1) : 0;
	if (rep->total == n_made)
		rep->flags |= TOKD_F_DONE;
	rep->ids_crc = made_crc;
	if (!items || rep->total == 0)
		return;
	rep->flags |= TOKD_F_GENERATE;
	rep->first = (uint32_t)input_take(in, 2) % rep->total;
	rep->count = rep->total - rep->first < sizeof(reply->ids) ? rep->total - rep->first
								  : (uint32_t)sizeof(reply->ids);
	memcpy(reply->ids, made + rep->first, rep->count);
}

/* As true as `how` says: it goes on from what has been acknowledged. */
static void
answer(struct input *in)
{
	const uint8_t how = (uint8_t)input_take(in, 1), which = (uint8_t)input_take(in, 1);
	const uint64_t id = n_streams > 0 ? stream[which % n_streams] : config.first_stream_id;
	struct text *t = text_of(id);
	const uint32_t len = t != NULL ? (uint32_t)t->r.len : 1;
	const uint32_t payload = engine->config.payload;
	const uint32_t packets = len == 0 ? 1 : (len - 1) / payload + 1;
	const bool prompt = t != NULL && generates(&t->r);
	const size_t each = prompt ? 1 : how & 32 ? sizeof(uint16_t) : sizeof(uint32_t);
	struct reply reply = {0};
	struct tokd_rep *rep = &reply.rep;
	uint8_t *copy;
	size_t n;

	*rep = (struct tokd_rep){.magic = TOKD_WIRE_MAGIC,
		.version = TOKD_WIRE_VERSION,
		.type = TOKD_REPLY,
		.epoch = config.epoch,
		.stream_id = id,
		.vocab = 5,
		.ack = (uint32_t)input_take(in, 1) % (packets + 1),
		.credit = how & 1 ? TOKD_WIRE_WINDOW : (uint32_t)input_take(in, 1) % 65};
	if (how & 2)
		rep->sack = input_take(in, 1);
	rep->total = rep->ack == packets ? len : rep->ack * payload;
	rep->text_end = rep->total;
	if (rep->total > len)
		rep->total = rep->text_end = len;
	if (prompt) {
		tell_made(in, &reply, rep->ack == packets, how & 4);
	} else if (rep->ack == packets) {
		rep->flags |= TOKD_F_DONE;
		for (uint32_t i = 0; i < len; i++)
			rep->ids_crc = tokd_crc32c(rep->ids_crc, &(uint32_t){bytes[i]}, 4);
	}
	if ((how & 4) && !prompt) {
		rep->first = rep->total == 0 ? 0 : (uint32_t)input_take(in, 2) % rep->total;
		rep->count = rep->total - rep->first < IDS_A_REPLY ? rep->total - rep->first
								   : IDS_A_REPLY;
		rep->flags |= how & 32 ? TOKD_F_SHORT : 0;
		for (uint32_t i = 0; i < rep->count; i++)
			memcpy((uint8_t *)reply.ids + i * each, &(uint32_t){bytes[rep->first + i]},
				each);
	}
	if (how & 8) { /* refused */
		rep->flags |= TOKD_F_FAIL;
		rep->reason = 1 + (uint32_t)input_take(in, 1) % TOKD_R_MAX;
	}
	n = sizeof(*rep) + rep->count * each;
	if (how & 16) { /* not even true */
		for (uint32_t i = 0; i < 2; i++) {
			const uint32_t at = (uint32_t)input_take(in, 1) % sizeof(reply);

			((uint8_t *)&reply)[at] ^= (uint8_t)input_take(in, 1);
		}
		n = how & 32 ? sizeof(*rep) + each * rep->count : n;
		n = n < sizeof(reply) ? n : sizeof(reply);
	}
	if (how & 64)
		n = n * (uint32_t)input_take(in, 1) / 255;
	t = text_of(rep->stream_id);
	if (t != NULL && (how & 16))
		t->lied_to = true;
	copy = malloc(n > 0 ? n : 1);
	MUST(copy != NULL);
	memcpy(copy, &reply, n);
	tokd_engine_take(engine, copy, n, now);
	free(copy);
}

/* ---- what must hold between calls ---- */

static void
check_engine(void)
{
	uint32_t flight = 0, pending = 0, cancelling = 0, used = 0;

	for (uint32_t i = 0; i < REQUESTS; i++) {
		const struct slot *s = &engine->slot[i];

		cancelling += s->cancels > 0;
		MUST(s->cancels == 0 || s->r == NULL);
		if (s->r == NULL)
			continue;
		pending++;
		flight += in_flight(s);
		MUST(s->ack <= s->next && s->next <= s->n && s->next - s->ack <= WINDOW);
		if (s->pausing)
			continue; /* it begins anew, and forgets what was held and lost */
		/* Only a text whose answer may have begun keeps its cuts on a new path. */
		MUST(s->payload == engine->config.payload || has_begun(s->r) ||
			(generates(s->r) && s->ack == s->n));
		MUST((s->sacked & s->lost) == 0);
		MUST(((s->sacked | s->lost) & ~low_bits(s->next - s->ack)) == 0);
		MUST(s->n_early <= EARLY_MAX);
	}
	for (uint32_t i = 0; i <= REQUESTS; i++)
		used += texts[i].used && texts[i].r.status == TOKD_PENDING;
	MUST(engine->flight == flight);
	MUST(tokd_engine_pending(engine) == pending && pending == used);
	MUST(engine->cancelling == cancelling && engine->pending == pending + cancelling);
	MUST(engine->n_free == REQUESTS - engine->pending);
}

static void
step(struct input *in)
{
	const uint8_t what = (uint8_t)input_take(in, 1);
	struct text *t = &texts[(what >> 4) % (REQUESTS + 1)];

	switch (what & 7) {
	case 0:
		submit(in);
		break;
	case 1:
		send_some(in);
		break;
	case 2: /* from 64 us to 2 s */
		now += UINT64_C(65536) << (what >> 4);
		tokd_engine_tick(engine, now);
		break;
	case 3:
		take_done(what >> 3);
		break;
	case 4:
		if ((what & 8) && t->used && t->r.status == TOKD_PENDING) {
			tokd_engine_cancel(engine, &t->r);
			MUST(t->r.status == TOKD_E_CANCELLED);
			forget(t);
		}
		break;
	case 5:
		if (what == 0xff - 2)
			tokd_engine_fail_all(engine, TOKD_E_NET, 111);
		else if (what & 8)
			tokd_engine_path(engine, TOKD_WIRE_PAYLOAD >> (what >> 6), what, now);
		break;
	default:
		answer(in);
		break;
	}
	check_engine();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, data + size};

	tokd_engine_init(engine, &config);
	now = 1;
	n_streams = 0;
	for (uint32_t i = 0; i < STEPS_MAX && input_more(&in); i++)
		step(&in);
	tokd_engine_fail_all(engine, TOKD_E_NET, 111);
	take_done(UINT32_MAX);
	MUST(engine->pending == 0 && engine->flight == 0);
	for (uint32_t i = 0; i <= REQUESTS; i++)
		MUST(!texts[i].used);
	return 0;
}
