/* SPDX-License-Identifier: BSD-3-Clause */
/* A producer and its NIC, whose writes land as they like. */
#include "stress.h"

namespace stress
{

uint64_t *
producer::word(uint64_t offset)
{
	return (uint64_t *)((uint8_t *)w->d->region + offset);
}

/* Tickets go on; slot, positions and `released` begin anew. */
void
producer::begin()
{
	for (uint32_t s = 0; s < SLOTS; s++) {
		slot[s].out = false;
		slot[s].ticket = w->load(
			tokg_hdr_at(&w->g, producer, s) + offsetof(struct tokg_hdr, ticket));
	}
	room.clear();
	again.clear();
	strict_waits = false;
	posted = position = used = released = 0;
	breaking = 0;
	state = LIVES;
}

bool
producer::flying(uint32_t s)
{
	for (const piece &x : wire)
		if (x.slot == s)
			return true;
	return false;
}

/* Pieces of a slot's header or payload, to the wire; without injection to the ring at once. */
void
producer::write(uint32_t s, bool header)
{
	const uint64_t at =
		header ? tokg_hdr_at(&w->g, producer, s) : tokg_payload_at(&w->g, producer, s);
	const uint64_t n = header ? 8 : tokg_align(slot[s].hdr.bytes, TOKG_LINE) / 8;
	uint64_t words[8];

	memcpy(words, &slot[s].hdr, sizeof(words));
	for (uint64_t i = 0; i < n; i++) {
		const uint64_t v = header ? words[i] : slot[s].payload[i];

		if (INJECT)
			wire.push_back({word(at) + i, v, s, header});
		else if (header && i == 7)
			__atomic_store_n(word(at) + i, v, __ATOMIC_RELEASE);
		else
			put(word(at) + i, v);
	}
}

/* So many pieces come to memory. */
void
producer::land(uint32_t n)
{
	for (; n > 0 && !wire.empty(); n--) {
		const size_t i = w->o.any_order ? r.below((uint32_t)wire.size()) : 0;

		__atomic_store_n(wire[i].to, wire[i].value,
			w->o.any_order ? __ATOMIC_RELAXED : __ATOMIC_RELEASE);
		wire.erase(wire.begin() + (ptrdiff_t)i);
	}
}

/* What was not posted before: some ids, a BATCH of such, or a text. */
text
producer::next_text()
{
	const uint32_t most = r.below(4) == 0 ? 1 + r.below(4) : 1;
	text t = {};

	t.request = next_request;
	t.raw = is_text(t.request);
	t.n = 1;
	while (t.n < most && !t.raw && !is_text(t.request + (uint64_t)t.n * PRODUCERS))
		t.n++;
	for (uint32_t i = 0; i < t.n; i++)
		t.tokens[i] = t.raw	? request_text(t.request).n
			      : t.n > 1 ? r.below(40)
					: 1 + r.below(MOST_IDS);
	return t;
}

static void
put_ids(uint64_t request, uint32_t n, void *to)
{
	uint32_t *const ids = (uint32_t *)to;

	if (is_text(request))
		memcpy(ids, request_text(request).ids, 4 * n);
	else
		for (uint32_t k = 0; k < n; k++)
			ids[k] = id_of(request, k);
}

static uint32_t
put_record(uint64_t request, uint32_t n, uint8_t *to)
{
	struct tokd_rec rec = {};

	rec.bytes = (uint32_t)tokg_align(sizeof(rec) + 4 * n, TOKD_RING_ALIGN);
	rec.kind = TOKD_REC_TOKENS;
	rec.flags = TOKD_REC_FIRST | TOKD_REC_LAST;
	rec.serial = request;
	rec.count = n;
	memcpy(to, &rec, sizeof(rec));
	put_ids(request, n, to + sizeof(rec));
	return rec.bytes;
}

/* Writes a slot's payload; its bytes. */
uint32_t
producer::fill(uint32_t s)
{
	uint8_t *const to = (uint8_t *)slot[s].payload.data();
	const text &t = slot[s].t;
	uint32_t off = 0;

	if (t.raw) {
		memcpy(to, request_text(t.request).bytes, t.tokens[0]);
		return t.tokens[0];
	}
	if (t.n == 1) {
		put_ids(t.request, t.tokens[0], to);
		return 4 * t.tokens[0];
	}
	for (uint32_t i = 0; i < t.n; i++)
		off += put_record(t.request + (uint64_t)i * PRODUCERS, t.tokens[i], to + off);
	return off;
}

bool
producer::post()
{
	const uint32_t s = (uint32_t)(posted % SLOTS);
	const bool is_again = !again.empty();
	uint64_t bytes = 0;
	uint32_t total = 0;

	if (slot[s].out || strict_waits || over || is_spent() ||
		(!is_again && n_posted >= w->o.slots))
		return false;
	const text t = is_again ? again.front() : next_text();

	for (uint32_t i = 0; i < t.n; i++) {
		bytes += tokg_out_bytes(t.tokens[i], w->g.row_bytes);
		total += t.raw ? 0 : t.tokens[i];
	}
	/* Rows of a slot do not wrap: the rest is given up. */
	const uint64_t rest = OUT_BYTES - (position & (OUT_BYTES - 1));
	const uint64_t skip = rest < bytes ? rest : 0;

	if (used + skip + bytes > OUT_BYTES)
		return false;
	if (is_again)
		again.pop_front();
	else
		next_request += t.n * PRODUCERS;
	slot[s].t = t;
	slot[s].out = true;
	slot[s].ticket++;
	slot[s].payload.assign(w->g.slot_bytes / 8, 0);
	struct tokg_hdr &h = slot[s].hdr;

	h = {};
	h.request = t.request;
	h.kind = TOKG_KIND_WORD;
	h.bytes = fill(s);
	h.tokens = total;
	h.epoch = epoch;
	h.out_off = position + skip;
	h.flags = t.n > 1 ? TOKG_BATCH : TOKG_FIRST | TOKG_LAST;
	h.flags |= (t.raw ? TOKG_TEXT : 0) | (t.strict ? TOKG_STRICT : 0);
	h.ticket = slot[s].ticket;
	h.check = w->o.check ? tokg_check_of(&h, slot[s].payload.data()) : 0;
	position += skip + bytes;
	used += skip + bytes;
	room.push_back(skip + bytes);
	posted++;
	n_posted++;
	write(s, false);
	if (t.strict) {
		strict_waits = true;
		strict_slot = s;
	} else {
		write(s, true);
	}
	return true;
}

/* A slot is done. */
void
producer::end(uint32_t s, uint32_t status)
{
	text &t = slot[s].t;

	slot[s].out = false;
	if (status == TOKG_CPU) {
		const struct request_text left = request_text(t.request);

		if (!t.raw || left.well_formed)
			wrong("request %" PRIu64 " was left to the CPU", t.request);
		t.raw = t.strict = false;
		t.tokens[0] = left.n_ids;
		again.push_back(t);
		n_left++;
		return;
	}
	if (status != TOKG_OK && !t.strict) {
		t.strict = true;
		again.push_back(t);
		n_again++;
		return;
	}
	if (status != TOKG_OK)
		n_failed++;
	for (uint32_t i = 0; i < t.n; i++)
		w->ended[t.request + (uint64_t)i * PRODUCERS] = (uint8_t)status;
}

/* One READ. Of a slot with writes in flight it says nothing: they are before it. */
void
producer::read_back()
{
	const uint64_t now =
		w->load(tokg_back_at(&w->g, producer) + offsetof(struct tokg_back, released));

	for (; released < now && !room.empty(); released++) {
		used -= room.front();
		room.pop_front();
	}
	for (uint32_t s = 0; s < SLOTS; s++) {
		if (!slot[s].out || flying(s))
			continue;
		const uint64_t done = w->load(tokg_done_at(&w->g, producer, s));

		if (done >> 8 > slot[s].ticket || done >> 8 < slot[s].ticket - 1)
			wrong("producer %u slot %u: done %" PRIx64 ", ticket %" PRIx64, producer, s,
				done, slot[s].ticket);
		if (done >> 8 == slot[s].ticket)
			end(s, done & 255);
	}
}

/* The new connection of the same producer slot: the old one's writes are gone. */
void
producer::resume()
{
	wire.clear();
	strict_waits = false;
	for (uint64_t n = posted < SLOTS ? 0 : posted - SLOTS; n < posted; n++) {
		const uint32_t s = (uint32_t)(n % SLOTS);
		const uint64_t at =
			tokg_hdr_at(&w->g, producer, s) + offsetof(struct tokg_hdr, ticket);

		if (!slot[s].out || w->load(at) == slot[s].ticket)
			continue;
		write(s, false);
		if (slot[s].t.strict)
			while (!wire.empty())
				land(1);
		write(s, true);
	}
	breaking = 0;
}

/* The next slot has had the last ticket: nothing more is posted here. */
bool
producer::is_spent()
{
	return slot[posted % SLOTS].ticket == TOKG_TICKET_MAX;
}

/* What was to be posted again. */
void
producer::give_up()
{
	for (const text &t : again)
		for (uint32_t i = 0; i < t.n; i++)
			w->dead[t.request + (uint64_t)i * PRODUCERS] = 1;
	again.clear();
}

bool
producer::idle()
{
	for (const struct slot &s : slot)
		if (s.out)
			return false;
	return is_spent() ? again.empty() && wire.empty()
			  : again.empty() && wire.empty() && n_posted >= w->o.slots;
}

void
producer::step()
{
	land(r.below(64));
	if (state != LIVES)
		return;
	if (breaking > 0) {
		if (--breaking == 0)
			resume();
		return;
	}
	if (strict_waits && wire.empty()) {
		strict_waits = false;
		write(strict_slot, true);
		/* A header of which half is late for long is one more BADSUM, and then the end. */
		if (r.below(8) != 0)
			land(8);
	}
	for (uint32_t n = r.below(4); n > 0 && post(); n--)
		;
	read_back();
	if (is_spent())
		give_up();
}

} // namespace stress
