/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include <mix.h>
#include <crc32c.h>
#include "world.h"

#define GUARD 0xdeadbeefu
#define AGAIN_MAX 32 /* replies to a POLL that asks for what was sent */

struct world *
world_make(const struct tokd_engine_config *change)
{
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	w->config = (struct tokd_engine_config){.epoch = 77,
		.requests = 1,
		.packets = 256,
		.payload = TOKD_WIRE_PAYLOAD,
		.timeout_ns = 5000 * MS,
		.rto_least_ns = 5 * MS,
		.first_stream_id = 1000};
	if (change != NULL)
		w->config = *change;
	w->memory = malloc(tokd_engine_bytes(&w->config));
	assert_non_null(w->memory);
	w->e = tokd_engine_init(w->memory, &w->config);
	w->server.window = TOKD_WIRE_WINDOW;
	w->server.payload = w->config.payload;
	w->server.make_window = 16384;
	w->server.make_reply = TOKD_WIRE_PAYLOAD;
	w->delay = MS / 50;
	w->seed = 88172645463325252u;
	w->now = 1;
	return w;
}

void
server_free(struct server *s)
{
	for (uint32_t i = 0; i < s->n; i++) {
		free(s->stream[i].text);
		free(s->stream[i].has);
		free(s->stream[i].answer);
	}
}

void
world_free(struct world *w)
{
	server_free(&w->server);
	free(w->memory);
	free(w);
}

uint32_t
world_dice(struct world *w, uint32_t n)
{
	return (uint32_t)dice_throw(&w->seed) % n;
}

static size_t
each(const struct text *t)
{
	return t->r.flags & (TOKD_REQUEST_DECODE | TOKD_REQUEST_GENERATE) ? 1 : sizeof(uint32_t);
}

uint32_t
item_id(uint32_t i)
{
	return i * 2654435761u % 50257;
}

uint16_t
item_text(uint32_t i, char *text)
{
	const uint16_t len = i % 50 == 49 ? ITEM_TEXT_MAX : i % 3 == 0 ? 0 : (uint16_t)(i % 40);

	for (uint32_t j = 0; j < len; j++)
		text[j] = (char)('a' + (i + j) % 26);
	return len;
}

static void
begin(struct world *w, struct text *t, uint32_t len, uint32_t flags, uint32_t max_ids,
	uint32_t limit)
{
	t->bytes = malloc(len + 1);
	t->room = malloc(((size_t)max_ids + 1) * 4);
	assert_true(t->bytes != NULL && t->room != NULL);
	for (uint32_t i = 0; i < len; i++)
		t->bytes[i] = (uint8_t)world_dice(w, 256);
	t->r = (struct tokd_request){.text = t->bytes,
		.len = len,
		.ids = t->room,
		.max_ids = max_ids,
		.flags = flags,
		.limit = limit};
	memcpy(t->r.out + each(t) * max_ids, &(uint32_t){GUARD}, 4);
	assert_int_equal(tokd_engine_submit(w->e, &t->r), TOKD_PENDING);
}

void
text_begin(struct world *w, struct text *t, uint32_t len, uint32_t flags, uint32_t max_ids)
{
	begin(w, t, len, flags, max_ids > 0 ? max_ids : len, 0);
}

void
prompt_begin(struct world *w, struct text *t, uint32_t len, uint32_t limit, uint32_t room)
{
	begin(w, t, len, TOKD_REQUEST_GENERATE, room > 0 ? room : TOKD_GENERATE_ROOM, limit);
}

void
text_free(struct text *t)
{
	assert_memory_equal(t->r.out + each(t) * t->r.max_ids, &(uint32_t){GUARD}, 4);
	free(t->bytes);
	free(t->room);
}

void
text_right(struct text *t)
{
	assert_int_equal(t->r.status, TOKD_OK);
	if (t->r.flags & TOKD_REQUEST_DECODE) {
		assert_int_equal(t->r.n_ids, t->r.len / 4);
		for (uint32_t i = 0; i < t->r.n_ids; i++)
			assert_int_equal((uint8_t)t->r.out[i], t->bytes[4 * i]);
	} else {
		assert_int_equal(t->r.n_ids, t->r.len);
		for (uint32_t i = 0; i < t->r.n_ids; i++)
			assert_int_equal(t->room[i], t->bytes[i]);
	}
	text_free(t);
}

static struct stream *
stream_of(struct server *s, uint64_t id, bool make)
{
	struct stream *found;

	for (uint32_t i = s->n; i-- > 0;) {
		if (s->stream[i].id == id)
			return &s->stream[i];
	}
	if (!make)
		return NULL;
	assert_true(s->n < STREAMS);
	found = &s->stream[s->n++];
	*found = (struct stream){.id = id, .open = true, .last = UINT32_MAX};
	found->text = malloc(TEXT_MAX);
	found->has = calloc(TEXT_MAX / TOKD_WIRE_PAYLOAD + TOKD_WIRE_WINDOW, 1);
	assert_true(found->text != NULL && found->has != NULL);
	return found;
}

static uint32_t
reply(const struct server *s, const struct stream *st, const struct tokd_req *req, uint8_t *out,
	uint32_t first, uint32_t count, uint32_t reason)
{
	struct tokd_rep rep = {.magic = TOKD_WIRE_MAGIC,
		.version = TOKD_WIRE_VERSION,
		.type = TOKD_REPLY,
		.epoch = req->epoch,
		.stream_id = req->stream_id,
		.vocab = 5,
		.credit = s->window,
		.first = first,
		.count = count};
	const bool decodes = st != NULL && st->decodes, made = st != NULL && st->generates;
	/* Of every second stream, whatever its requests say: little-endian. */
	const size_t each = decodes || made	 ? 1
			    : req->stream_id % 2 ? sizeof(uint16_t)
						 : sizeof(uint32_t);

	if (reason != 0) {
		rep.flags = TOKD_F_FAIL;
		rep.reason = reason;
		rep.cookie = s->cookie;
		rep.retry_ms = s->retry_ms;
	} else {
		rep.ack = st->ack;
		for (uint32_t i = 0; i < 63; i++)
			rep.sack |= (uint64_t)st->has[st->ack + 1 + i] << i;
	}
	if (made) {
		rep.total = st->total;
		memcpy(out + sizeof(rep), st->answer + first, count);
	}
	if (st != NULL && st->done) {
		rep.flags |= TOKD_F_DONE;
		rep.total = st->total;
		rep.text_end = st->end;
		rep.ids_crc = st->ids_crc + s->spoil_crc;
		if (s->uncounted) {
			rep.flags |= TOKD_F_UNCOUNTED;
			rep.total = rep.ids_crc = 0;
		}
		for (uint32_t i = 0; i < count && !made; i++) {
			uint32_t id = st->text[(decodes ? 4 : 1) * (first + i)];

			memcpy(out + sizeof(rep) + each * i, &id, each);
		}
	}
	if (count > 0 && each < sizeof(uint32_t))
		rep.flags |= made ? TOKD_F_GENERATE : each == 1 ? TOKD_F_DECODE : TOKD_F_SHORT;
	memcpy(out, &rep, sizeof(rep));
	return (uint32_t)(sizeof(rep) + each * count);
}

/* The next item of the answer, or the last. */
static void
make(struct stream *st)
{
	uint8_t *to = st->answer + st->total;
	struct tokd_made made = {.id = TOKD_MADE_END};

	assert_true(st->total + sizeof(made) + ITEM_TEXT_MAX <= ANSWER_MAX);
	if (st->ends == 0 && st->made == st->prompt.limit)
		st->ends = TOKD_MADE_LENGTH;
	if (st->ends != TOKD_MADE_CANCELLED)
		made.text = item_text(st->made, (char *)to + sizeof(made));
	if (st->ends == 0)
		made.id = item_id(st->made++);
	made.end = (uint16_t)st->ends;
	memcpy(to, &made, sizeof(made));
	st->total += (uint32_t)sizeof(made) + made.text;
	if (st->ends == 0)
		return;
	st->done = true;
	st->ids_crc = tokd_crc32c(0, st->answer, st->total);
}

static bool
may_make(const struct server *s, const struct stream *st)
{
	return st->generates && !st->done && !s->make_pause &&
	       st->total - st->acked < s->make_window;
}

/* Is the text whole, and what its CRC says? */
static void
feed(struct server *s, struct stream *st, const struct tokd_req *req, const uint8_t *text)
{
	assert_int_equal(req->offset, req->packet * s->payload);
	if (!(req->flags & TOKD_F_LAST))
		assert_int_equal(req->length, s->payload);
	assert_true(req->offset + req->length <= TEXT_MAX);
	assert_int_equal(!!(req->flags & TOKD_F_FIRST), req->packet == 0);
	if (req->packet >= st->ack && req->packet - st->ack + 1 > s->most_ahead)
		s->most_ahead = req->packet - st->ack + 1;
	if (s->drops_held > 0 && req->packet == st->ack && st->has[st->ack + 1]) {
		s->drops_held--;
		memset(&st->has[st->ack + 1], 0, TOKD_WIRE_WINDOW - 1);
	}
	memcpy(st->text + req->offset, text, req->length);
	st->has[req->packet] = 1;
	if (req->flags & TOKD_F_LAST) {
		st->last = req->packet;
		st->end = req->offset + req->length;
		st->text_crc = req->text_crc;
	}
	while (st->has[st->ack])
		st->ack++;
	assert_int_equal(req->limit != 0, req->flags & TOKD_F_GENERATE && req->flags & TOKD_F_LAST);
	if (req->flags & TOKD_F_LAST)
		st->prompt = *req;
	if (st->ack > st->last && !st->done && !st->generates) {
		assert_int_equal(tokd_crc32c(0, st->text, st->end), st->text_crc);
		if (req->flags & TOKD_F_GENERATE) {
			assert_int_equal(req->flags & (TOKD_F_DECODE | TOKD_F_SHORT), 0);
			assert_true(req->flags & TOKD_F_IDS);
			st->generates = true;
			st->answer = malloc(ANSWER_MAX);
			assert_non_null(st->answer);
			return;
		}
		st->done = true;
		st->decodes = req->flags & TOKD_F_DECODE;
		assert_false(st->decodes && (st->end % 4 != 0 || req->flags & TOKD_F_SHORT));
		st->total = st->decodes ? st->end / 4 : st->end;
		for (uint32_t i = 0; i < st->total; i++) {
			uint32_t id = st->text[st->decodes ? 4 * i : i];

			st->ids_crc = tokd_crc32c(st->ids_crc, &id, st->decodes ? 1 : 4);
		}
	}
}

uint32_t
server_answer(struct server *s, const uint8_t *packet, uint32_t len, uint8_t (*out)[DATAGRAM],
	uint32_t *out_len, uint32_t max)
{
	struct tokd_req req;
	struct stream *st;
	uint32_t n = 0, first = 0, end = 0, most;
	bool was_done;

	assert_true(len >= sizeof(req));
	memcpy(&req, packet, sizeof(req));
	assert_int_equal(len, sizeof(req) + req.length);
	s->polls += req.type == TOKD_POLL;
	if (req.type == TOKD_DATA && s->refuse_first > 0) {
		s->refuse_first--;
		out_len[0] = reply(s, NULL, &req, out[0], 0, 0, s->reason);
		return 1;
	}
	if (req.type == TOKD_DATA && (req.cookie != s->cookie || s->cookie_changes) &&
		stream_of(s, req.stream_id, false) == NULL) {
		s->validates++;
		s->cookie += s->cookie_changes;
		out_len[0] = reply(s, NULL, &req, out[0], 0, 0, TOKD_R_VALIDATE);
		return 1;
	}
	st = stream_of(s, req.stream_id, req.type == TOKD_DATA);
	if (st == NULL) {
		out_len[0] = reply(s, NULL, &req, out[0], 0, 0, TOKD_R_UNKNOWN);
		return 1;
	}
	was_done = st->done;
	if (req.type == TOKD_DATA && s->window > 0)
		feed(s, st, &req, packet + sizeof(req));
	if (req.ids_ack > st->acked)
		st->acked = req.ids_ack;
	if (req.type == TOKD_DATA && st->ack == req.packet + 1 && !st->done &&
		++st->unreplied < s->reply_every)
		return 0;
	st->unreplied = 0;
	s->cancels += !!(req.flags & TOKD_F_CANCEL);
	st->failed = st->failed || (req.flags & TOKD_F_CANCEL && !st->generates);
	if (st->failed) {
		out_len[0] = reply(s, NULL, &req, out[0], 0, 0, TOKD_R_TIMEOUT);
		return 1;
	}
	if (st->generates) {
		first = end = st->total;
		if (req.type == TOKD_POLL && req.ids_end > req.ids_ack) {
			first = req.ids_ack;
			end = req.ids_end < st->total ? req.ids_end : st->total;
			if (end > first + AGAIN_MAX * s->make_reply)
				end = first + AGAIN_MAX * s->make_reply;
		}
		if (req.flags & TOKD_F_CANCEL && !st->done) {
			st->ends = TOKD_MADE_CANCELLED;
			make(st);
		}
		if (s->make_ns == 0 && first == end) {
			while (may_make(s, st))
				make(st);
			end = st->total;
		}
		s->last_acks += st->done && st->acked == st->total;
	} else if (st->done && !was_done) {
		end = st->total;
	} else if (st->done && req.type == TOKD_POLL) {
		first = req.ids_ack;
		end = req.ids_end < st->total ? req.ids_end : st->total;
		s->last_acks += req.ids_end == 0 && first == st->total;
	}
	most = st->generates ? s->make_reply : IDS_A_REPLY;
	do {
		uint32_t count = first < end ? end - first : 0;

		if (count > most)
			count = most;
		out_len[n] = reply(s, st, &req, out[n], first, count, 0);
		n++;
		first += count;
	} while (first < end && n < max);
	return n;
}

/* Put a datagram on the wire, unless it is lost there. */
static void
carry(struct world *w, const void *head, uint32_t head_len, const void *rest, uint32_t rest_len,
	bool to_server)
{
	uint32_t copies = world_dice(w, 1000) < w->twice ? 2 : 1;

	if (world_dice(w, 1000) < w->lose)
		return;
	while (copies-- > 0) {
		struct datagram *d = &w->wire[w->n_wire++];

		assert_true(w->n_wire < ON_THE_WIRE);
		d->to_server = to_server;
		d->len = head_len + rest_len;
		memcpy(d->data, head, head_len);
		if (rest_len > 0)
			memcpy(d->data + head_len, rest, rest_len);
		/* A little later for each, so that they keep their order; or much later. */
		d->due = w->now + w->delay + w->n_wire;
		if (world_dice(w, 1000) < w->reorder)
			d->due += w->delay;
	}
}

static void
carry_reply(struct world *w, const uint8_t *reply, uint32_t len)
{
	struct datagram d = {.len = len};

	memcpy(d.data, reply, len);
	if (w->spoil != NULL)
		w->spoil(w, &d);
	carry(w, d.data, d.len, NULL, 0, false);
}

static void
serve(struct world *w, const struct datagram *d)
{
	static uint8_t out[1024][DATAGRAM];
	static uint32_t out_len[1024];
	uint32_t n = server_answer(&w->server, d->data, d->len, out, out_len, 1024);

	for (uint32_t i = 0; i < n; i++)
		carry_reply(w, out[i], out_len[i]);
}

/* One id for each prompt. */
static void
make_all(struct world *w)
{
	struct server *s = &w->server;
	uint8_t out[DATAGRAM];

	s->make_at = w->now + s->make_ns;
	for (uint32_t i = 0; i < s->n; i++) {
		struct stream *st = &s->stream[i];
		uint32_t first = st->total;

		if (!may_make(s, st))
			continue;
		make(st);
		for (uint32_t end; first < st->total; first = end) {
			end = first + s->make_reply < st->total ? first + s->make_reply : st->total;
			carry_reply(w, out, reply(s, st, &st->prompt, out, first, end - first, 0));
		}
	}
}

/* Has the model something to do? */
static bool
is_making(const struct server *s)
{
	for (uint32_t i = 0; s->make_ns > 0 && i < s->n; i++) {
		if (may_make(s, &s->stream[i]))
			return true;
	}
	return false;
}

static void
send_all(struct world *w)
{
	struct tokd_packet p[7]; /* an odd number, so that bursts are cut somewhere */
	uint32_t n, text = 0;

	while ((n = tokd_engine_packets(w->e, p, 7, w->now)) > 0) {
		for (uint32_t i = 0; i < n; i++)
			carry(w, &p[i].req, sizeof(p[i].req), p[i].text, p[i].len, true);
	}
	for (uint32_t i = 0; i < w->n_wire; i++)
		text += w->wire[i].to_server && w->wire[i].len > sizeof(p[0].req);
	if (text > w->most_text)
		w->most_text = text;
}

bool
world_step(struct world *w)
{
	uint64_t next;
	uint32_t first = UINT32_MAX;

	tokd_engine_tick(w->e, w->now);
	send_all(w);
	next = tokd_engine_next(w->e);
	for (uint32_t i = 0; i < w->n_wire; i++) {
		if (w->wire[i].due < next) {
			next = w->wire[i].due;
			first = i;
		}
	}
	if (is_making(&w->server) && w->server.make_at < next) {
		w->now = w->server.make_at > w->now ? w->server.make_at : w->now;
		make_all(w);
		return true;
	}
	if (next == UINT64_MAX)
		return false;
	if (next > w->now)
		w->now = next;
	if (first != UINT32_MAX) {
		struct datagram d = w->wire[first];

		w->wire[first] = w->wire[--w->n_wire];
		if (d.to_server)
			serve(w, &d);
		else
			tokd_engine_take(w->e, d.data, d.len, w->now);
	}
	return true;
}

void
world_run(struct world *w, uint32_t n)
{
	struct tokd_request *r;

	for (uint32_t steps = 0; n > 0; steps++) {
		assert_true(steps < 10000000);
		bool more = world_step(w);

		while ((r = tokd_engine_done(w->e)) != NULL)
			n -= r->status != TOKD_PENDING;
		assert_true(more || n == 0);
	}
}

void
text_run(struct world *w, struct text *t, uint32_t len, uint32_t flags, uint32_t max_ids)
{
	text_begin(w, t, len, flags, max_ids);
	world_run(w, 1);
}
