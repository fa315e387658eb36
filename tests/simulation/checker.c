/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What must hold. A request that ends well has the ids of tok_encode for its whole text, and so has
 * the token ring; every record in order, and none of a text that is over. A text is completed once
 * under its name. A reader gets the records as they were published, without gap. A request ends,
 * and with an error only if the world has a fault that explains it; in the calm all end well.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

#define WORDS 12
#define DECODED_A_BYTE 3 /* U+FFFD of one that is no UTF-8 */

static const char *const word[WORDS] = {"hello", " world", " the", " token", "ing", " 12345",
	"\n\n", "      ", "caf\xc3\xa9", "\xe4\xbd\xa0\xe5\xa5\xbd",
	"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "\xff\xfe"};

void
check_fault(struct world *w, const char *fmt, ...)
{
	va_list ap;

	if (w->check.faults++ > 0)
		return;
	va_start(ap, fmt);
	vsnprintf(w->check.fault, sizeof(w->check.fault), fmt, ap);
	va_end(ap);
	world_trace(w, "FAULT", w->check.faults, 0, 0);
}

/* ---- texts ---- */

static uint32_t
text_len(struct world *w)
{
	const uint32_t most = w->plan.text_most;

	switch (world_dice(w, 6)) {
	case 0:
		return world_dice(w, 16); /* or none */
	case 1:
		return world_dice(w, most);
	case 2: /* at the border of packets */
		return TOKD_WIRE_PAYLOAD * (1 + world_dice(w, 3)) - 1 + world_dice(w, 3);
	default:
		return 1 + world_dice(w, 1200);
	}
}

static void
make_text(struct world *w, struct text *t, uint32_t len)
{
	size_t room;
	struct tok_result r;

	t->len = len;
	t->bytes = malloc(t->len + 64);
	if (t->bytes == NULL)
		abort();
	for (uint32_t at = 0; at < t->len;) {
		const char *s = word[world_dice(w, WORDS)];
		const uint32_t n = RTE_MIN((uint32_t)strlen(s), t->len - at);

		memcpy(t->bytes + at, s, n);
		at += n;
	}
	room = tok_encode_bound(sim_vocab, t->len, 0);
	t->ids = malloc((room + 1) * sizeof(uint32_t));
	if (t->ids == NULL)
		abort();
	r = tok_encode(sim_vocab, NULL, t->bytes, t->len, 0, t->ids, room);
	if (r.status != TOK_OK)
		abort();
	t->n_ids = (uint32_t)r.produced;
	t->decoded = malloc(DECODED_A_BYTE * t->len + 1);
	if (t->decoded == NULL)
		abort();
	r = tok_decode(sim_vocab, t->ids, t->n_ids, t->decoded, DECODED_A_BYTE * t->len);
	if (r.status != TOK_OK)
		abort();
	t->n_decoded = (uint32_t)r.produced;
}

void
check_start(struct world *w)
{
	struct checker *c = &w->check;
	const size_t asks = (size_t)w->plan.clients * (w->plan.requests + 16);

	for (uint32_t i = 0; i < TEXTS; i++)
		make_text(w, &c->text[i],
			w->plan.attack == SIM_ATTACKS ? RTE_MIN(text_len(w), w->plan.text_most)
			: i < SMALL_TEXTS	      ? w->plan.text_most
						      : GREEDY_BYTES);
	c->ask = calloc(asks, sizeof(*c->ask));
	c->took = malloc(asks * sizeof(*c->took));
	c->keys_room = 4096;
	c->key = calloc(c->keys_room, sizeof(*c->key));
	if (c->ask == NULL || c->took == NULL || c->key == NULL)
		abort();
}

void
check_free(struct world *w)
{
	struct checker *c = &w->check;

	for (uint32_t i = 0; i < TEXTS; i++) {
		free(c->text[i].bytes);
		free(c->text[i].ids);
		free(c->text[i].decoded);
	}
	for (uint32_t i = 0; i < c->n_asks; i++) {
		free(c->ask[i].r.ids);
		answer_free(&c->ask[i]);
	}
	for (uint32_t i = 0; i < INSTANCES_MAX; i++)
		free(c->log[i].record);
	free(c->ask);
	free(c->took);
	free(c->key);
	free(c->serial);
}

/* ---- names of streams ---- */

static struct key *
find_key(struct checker *c, uint32_t epoch, uint64_t stream_id)
{
	uint64_t dice = stream_id ^ (uint64_t)epoch << 32;

	for (uint64_t at = dice_throw(&dice);; at++) {
		struct key *k = &c->key[at & (c->keys_room - 1)];

		if (k->ask_1 == 0 || (k->epoch == epoch && k->stream_id == stream_id))
			return k;
	}
}

static void
more_keys(struct checker *c)
{
	struct key *before = c->key;
	const uint32_t n = c->keys_room;

	c->keys_room *= 2;
	c->key = calloc(c->keys_room, sizeof(*c->key));
	if (c->key == NULL)
		abort();
	for (uint32_t i = 0; i < n; i++) {
		if (before[i].ask_1 != 0)
			*find_key(c, before[i].epoch, before[i].stream_id) = before[i];
	}
	free(before);
}

/* A client sends a packet: of text, its name belongs to the request in its slot. */
void
check_sent(struct world *w, struct client *client, const struct tokd_req *req)
{
	struct checker *c = &w->check;
	struct ask *k = client->ask[(req->stream_id - client->first_id) % IN_FLIGHT];
	struct key *key;

	world_trace(w, req->type == TOKD_DATA ? "sends text" : "asks", client->ip & 0xff,
		req->stream_id, req->packet);
	if (req->type != TOKD_DATA)
		return;
	if (k == NULL || k->r.stream_id != req->stream_id) {
		check_fault(w, "a client sends text of no request");
		return;
	}
	key = find_key(c, req->epoch, req->stream_id);
	if (key->ask_1 != 0)
		return;
	*key = (struct key){req->stream_id, req->epoch, (uint32_t)(k - c->ask) + 1, 0};
	if (++c->n_keys > c->keys_room / 2)
		more_keys(c);
}

/* ---- the ring ---- */

static uint64_t
mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * UINT64_C(0x9e3779b97f4a7c15);
	return h ^ h >> 32;
}

uint64_t
check_hash(const struct tokr_record *rec)
{
	uint64_t h = mix(rec->stream_id, rec->serial);

	h = mix(h, (uint64_t)rec->first << 32 | rec->count);
	h = mix(h, (uint64_t)rec->flags << 32 | rec->reason);
	h = mix(h, (uint64_t)rec->epoch << 32 | rec->text_end);
	for (uint32_t i = 0; i < rec->count; i++)
		h = mix(h, rec->ids[i]);
	return h;
}

void
check_new_ring(struct world *w)
{
	w->check.n_serials = 0;
	if (w->a.instance >= INSTANCES_MAX)
		check_fault(w, "more than %u restarts", INSTANCES_MAX);
}

static void
remember(struct world *w, const struct tokd_rec *rec, const void *ids)
{
	struct ring_log *log = &w->check.log[w->a.instance % INSTANCES_MAX];
	const struct tokr_record as_read = {.ids = ids,
		.count = rec->count,
		.first = rec->first,
		.flags = rec->flags,
		.reason = rec->reason,
		.stream_id = rec->stream_id,
		.serial = rec->serial,
		.epoch = rec->epoch,
		.text_end = rec->text_end};

	if (log->n == log->room) {
		log->room = log->room == 0 ? 1024 : 2 * log->room;
		log->record = realloc(log->record, log->room * sizeof(*log->record));
		if (log->record == NULL)
			abort();
	}
	log->record[log->n++] = (struct record){w->a.walked, check_hash(&as_read)};
}

static struct serial *
serial_of(struct checker *c, uint64_t serial)
{
	if (serial >= c->serials_room) {
		const uint64_t n = RTE_MAX(UINT64_C(1024), 2 * serial);

		c->serial = realloc(c->serial, n * sizeof(*c->serial));
		if (c->serial == NULL)
			abort();
		c->serials_room = n;
	}
	for (; c->n_serials <= serial; c->n_serials++)
		c->serial[c->n_serials] = (struct serial){0};
	return &c->serial[serial];
}

struct want
check_want(const struct world *w, const struct ask *k)
{
	const struct text *t = &w->check.text[k->text];

	if (k->r.flags & TOKD_REQUEST_DECODE)
		return (struct want){t->decoded, t->n_decoded, 1};
	return (struct want){t->ids, t->n_ids, sizeof(*t->ids)};
}

static void
complete(struct world *w, struct key *key, const struct serial *s)
{
	struct ask *k = &w->check.ask[key->ask_1 - 1];
	const struct want want = check_want(w, k);

	w->check.complete++;
	if (s->wrong || s->n != want.n)
		check_fault(w, "wrong ids in the ring: stream %" PRIu64 " of client %u, of %u",
			key->stream_id, k->client, want.n);
	if (key->done_in == w->a.instance) {
		w->check.twice++;
		if (w->plan.attack == SIM_ATTACKS)
			check_fault(w, "twice in the ring: stream %" PRIu64 " of client %u",
				key->stream_id, k->client);
		return;
	}
	key->done_in = w->a.instance;
	w->check.again += k->in_ring++ > 0;
}

void
check_record(struct world *w, const struct tokd_rec *rec, const void *ids)
{
	struct checker *c = &w->check;
	struct serial *s = serial_of(c, rec->serial);
	struct key *key = find_key(c, rec->epoch, rec->stream_id);

	if (rec->kind == TOKD_REC_TOKENS) /* readers skip the others */
		remember(w, rec, ids);
	world_trace(w, "record", rec->flags, rec->stream_id, rec->serial);
	c->records++;
	c->ids += rec->count;
	if (answer_record(w, s, key->ask_1 != 0 ? &c->ask[key->ask_1 - 1] : NULL, rec, ids))
		return;
	if (s->over || s->begun == ((rec->flags & TOKD_REC_FIRST) != 0) || rec->first != s->n)
		check_fault(w, "record %" PRIu64 " of serial %" PRIu64 " is out of order",
			c->records, rec->serial);
	s->begun = true;
	s->over = rec->flags & (TOKD_REC_LAST | TOKD_REC_ABORT);
	if (key->ask_1 == 0) {
		if (rec->epoch < HOSTILE_EPOCH)
			check_fault(w, "a record of nobody: epoch %u, stream %" PRIu64, rec->epoch,
				rec->stream_id);
		s->n += rec->count;
		return;
	}
	const struct want want = check_want(w, &c->ask[key->ask_1 - 1]);

	if (rec->first + rec->count > want.n || (want.each == 1) != (rec->kind == TOKD_REC_TEXT) ||
		memcmp(ids, (const uint8_t *)want.items + want.each * rec->first,
			want.each * rec->count) != 0)
		s->wrong = true;
	s->n += rec->count;
	/* Ids of a text that was spoilt on its way may be there, but never LAST. */
	if (s->wrong && w->plan.network.spoil == 0)
		check_fault(w, "wrong ids in the ring, at %u", rec->first);
	if (rec->flags & TOKD_REC_LAST)
		complete(w, key, s);
}

void
check_read(struct world *w, struct reader *r, const struct tokr_record *rec, uint64_t hash)
{
	const struct ring_log *log = &w->check.log[rec->instance % INSTANCES_MAX];

	w->check.read++;
	if (r->next == NEVER) {
		uint64_t lo = 0, n = log->n;

		for (; n > 1; n -= n / 2)
			lo += log->record[lo + n / 2].pos <= rec->position ? n / 2 : 0;
		r->next = lo;
	}
	if (r->next >= log->n || log->record[r->next].pos != rec->position)
		check_fault(w, "a reader missed a record before position %" PRIu64, rec->position);
	else if (log->record[r->next].hash != hash)
		check_fault(w, "a reader saw another record at %" PRIu64 " than was published",
			rec->position);
	r->next++;
}

/* Records are lost to a reader only if the appliance has dropped it. */
void
check_dropped(struct world *w)
{
	if (++w->check.drops_seen > w->check.drops + w->a.attach.counts.dropped)
		check_fault(w, "records were lost to a reader that was not dropped");
}

/* ---- ends ---- */

/* What the faults of this world explain. */
static bool
is_explained(const struct world *w, const struct ask *k)
{
	const struct plan *p = &w->plan;
	const bool generator = p->fault.generator != NEVER || p->bad_ids > 0;
	const bool time = p->fault.partition != NEVER || p->fault.stall != NEVER ||
			  p->fault.clock_jump != NEVER || p->slow_readers > 0 ||
			  p->fault.crash != NEVER || (p->lanes > 0 && generator);
	const bool generate = k->r.flags & TOKD_REQUEST_GENERATE;
	const bool no_lane = generate && k->r.arrived < k->r.packets;
	/* Answers are kept for less time than a client takes to ask again. */
	bool forgotten = p->done_ms < 10000 && k->begun < w->calm_at;

	/*
	 * Ids of the texts in progress, which take turns, fit neither ring nor side store: also in
	 * the calm. A text has about a byte of ids a byte.
	 */
	const bool no_room = (generate && p->side_bytes < 1 << 20) ||
			     p->side_bytes + p->ring_bytes / 2 <
				     UINT64_C(1) * p->text_most * p->clients * IN_FLIGHT / 4;

	/* Others needed its place; an answer that has begun is not begun again. */
	if (generate && w->check.n_keys > p->streams && k->begun < w->calm_at)
		forgotten = true;
	if (k->r.status == TOKD_E_REFUSED && k->r.reason == TOKD_R_EXPIRED)
		return forgotten || no_room;
	/* Its sink is given up because it held the ring for too long. */
	if (generate && p->shed && k->r.status == TOKD_E_REFUSED && k->r.reason == TOKD_R_SINK)
		return true;
	/* There is no queue for lanes: others may be first each time. Also in the calm. */
	if (no_lane && k->r.status == TOKD_E_REFUSED && k->r.reason == TOKD_R_TIMEOUT)
		return true;
	if (k->begun >= w->calm_at)
		return false;
	if (generate && k->r.status == TOKD_E_ANSWER)
		return p->network.spoil > 0;
	if (k->r.status == TOKD_E_TIMEOUT)
		return time || no_lane || (generate && forgotten); /* UNKNOWN may be lost */
	/* A spoilt text may have more ids than the true one, and is given up before its end. */
	if (k->r.status == TOKD_E_IDS_CRC || k->r.status == TOKD_E_ROOM)
		return p->network.spoil > 0;
	if (k->r.status != TOKD_E_REFUSED)
		return false;
	switch (k->r.reason) {
	case TOKD_R_ID:
	case TOKD_R_TEXT_CRC:
		return p->network.spoil > 0;
	case TOKD_R_UNKNOWN: /* so many texts that failed for want of room are forgotten soon */
		return forgotten || no_room || p->fault.crash != NEVER;
	case TOKD_R_SINK: /* or it seems dead, by a clock that jumps */
		return generate && (generator || p->fault.clock_jump != NEVER);
	case TOKD_R_VALIDATE: /* each start has another cookie */
	case TOKD_R_SHUTDOWN:
		return p->fault.crash != NEVER;
	case TOKD_R_TIMEOUT:
		return time;
	/*
	 * For as long as the client's time limit: by a clock that jumps; or as packets are held
	 * that a full ring cannot take, or that lie behind gaps.
	 */
	case TOKD_R_BUSY:
		if (p->fault.clock_jump != NEVER || p->slow_readers > 0)
			return true;
		/* fall through */
	case TOKD_R_SHARE:
		return p->hostile_hz > 0 || p->streams < p->clients * IN_FLIGHT;
	default:
		return false;
	}
}

static void
count_end(struct checker *c, const struct tokd_request *r)
{
	if (r->status == TOKD_E_REFUSED)
		c->refused[r->reason < TOKD_R_MAX ? r->reason : 0]++;
	else if (r->status == TOKD_E_TIMEOUT)
		c->timeout++;
	else if (r->status == TOKD_E_IDS_CRC)
		c->ids_crc++;
	else
		c->other++;
}

void
check_ended(struct world *w, struct ask *k)
{
	const struct want want = check_want(w, k);
	const struct tokd_request *r = &k->r;

	world_trace(w, "ended", k->client, (uint64_t)-r->status, r->reason);
	if (r->status != TOKD_OK) {
		count_end(&w->check, r);
		if (w->plan.attack == SIM_ATTACKS && !is_explained(w, k))
			check_fault(w,
				"a request of client %u ended with status %d, reason %s: stream "
				"%" PRIu64 "%s",
				k->client, r->status, tokd_reason_name(r->reason), r->stream_id,
				r->flags & TOKD_REQUEST_GENERATE ? ", GENERATE" : "");
		return;
	}
	w->check.took[w->check.ok++] = w->now - k->begun;
	if (r->ids != NULL && !(r->flags & TOKD_REQUEST_GENERATE) &&
		(r->n_ids != want.n || memcmp(r->out, want.items, want.each * want.n) != 0))
		check_fault(w, "wrong ids at client %u, of %u", k->client, want.n);
}

/* After the last event: what ended well is in a ring, too. */
void
check_end(struct world *w)
{
	struct checker *c = &w->check;

	for (uint32_t i = 0; i < c->n_asks; i++) {
		const struct ask *k = &c->ask[i];

		const bool is_there =
			k->in_ring > 0 && (k->answered || !(k->r.flags & TOKD_REQUEST_GENERATE));

		if (!k->gone && k->r.status == TOKD_OK && !is_there && c->faults == 0)
			check_fault(w, "a request of client %u ended well, but no ring has it",
				k->client);
	}
}
