/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Records. The ring is memory of another process: a record's header is copied, the copy validated
 * and used.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "reader.h"

static_assert((int)TOKR_FIRST == TOKD_REC_FIRST && (int)TOKR_LAST == TOKD_REC_LAST &&
		      (int)TOKR_ABORT == TOKD_REC_ABORT && (int)TOKR_KEYS == TOKD_REC_KEYS,
	"flags must be equal");

#define HELD_FIRST_ROOM 64
/* Per call: a tap that is overrun repeatedly tries again later. */
#define OVERRUNS_MAX 16

static uint64_t
load_head(const struct ring *ring)
{
	/* Acquire: every record below is complete. */
	return __atomic_load_n(&ring->hdr->head, __ATOMIC_ACQUIRE);
}

/* After the use of bytes: those at or above the result were not overwritten. */
static uint64_t
load_tail_after_use(const struct ring *ring)
{
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return __atomic_load_n(&ring->hdr->tail, __ATOMIC_RELAXED);
}

static void
give_back(struct ring *ring)
{
	uint64_t cursor = ring->position;

	while (ring->held_first != ring->held_end &&
		ring->held[ring->held_first & (ring->held_room - 1)].released)
		ring->held_first++;
	if (ring->held_first != ring->held_end)
		cursor = ring->held[ring->held_first & (ring->held_room - 1)].pos;
	if (cursor == ring->cursor)
		return;
	ring->cursor = cursor;
	/* Release: after the last use of what the writer may reuse. */
	__atomic_store_n(ring->cursor_word, cursor, __ATOMIC_RELEASE);
}

/* Doubles the queue of unreleased records, which all fit the ring. */
static int
grow(struct ring *ring)
{
	uint64_t room = ring->held_room != 0 ? 2 * ring->held_room : HELD_FIRST_ROOM;
	struct held *held = malloc(room * sizeof(*held));

	if (held == NULL)
		return -1;
	for (uint64_t t = ring->held_first; t != ring->held_end; t++)
		held[t & (room - 1)] = ring->held[t & (ring->held_room - 1)];
	free(ring->held);
	ring->held = held;
	ring->held_room = room;
	return 0;
}

/* Overrun by the writer. A tap continues at the oldest valid record. */
static int
overrun(struct tokr *r, struct ring *ring, uint64_t tail)
{
	if (r->mode == TOKR_READER) {
		int rc = reader_check_socket(r); /* the appliance's reason, if it has arrived */

		if (rc != 0)
			return rc;
		return reader_fail(&r->error, TOKR_DROPPED,
			"%s: dropped: token ring %u went on to %" PRIu64
			", past unread ids at %" PRIu64 "; read faster, or raise --reader-timeout",
			r->path, ring->info.worker, tail, ring->position);
	}
	if (tail % TOKD_RING_ALIGN != 0 || tail - ring->position > INT64_MAX)
		return reader_fail(&r->error, TOKR_INVALID,
			"token ring %u: tail %" PRIu64 " is not the position of a record",
			ring->info.worker, tail);
	ring->info.overruns++;
	ring->info.lost_bytes += tail - ring->position;
	ring->skipped += tail - ring->position;
	ring->position = tail;
	if (ring->head < tail)
		ring->head = tail;
	return 0;
}

/* 1: there are records above `position`; 0: none; or enum tokr_result. */
static int
look_for_more(struct tokr *r, struct ring *ring)
{
	uint64_t head = load_head(ring), size = ring->mask + 1, tail;
	int rc;

	if (head == ring->head)
		return ring->position != head;
	tail = load_tail_after_use(ring);
	if (tail > ring->position) {
		rc = overrun(r, ring, tail);
		if (rc != 0)
			return rc;
		head = load_head(ring); /* at least the tail */
	}
	if (head % TOKD_RING_ALIGN != 0 || head < ring->head || head - ring->position > size) {
		/* Overrun between the loads: the next iteration sees the tail. */
		if (r->mode == TOKR_TAP && load_tail_after_use(ring) > ring->position)
			return 0;
		return reader_fail(&r->error, TOKR_INVALID,
			"token ring %u: head went from %" PRIu64 " to %" PRIu64, ring->info.worker,
			ring->head, head);
	}
	ring->head = head;
	return ring->position != head;
}

static uint64_t
padded(uint64_t bytes)
{
	return (bytes + TOKD_RING_ALIGN - 1) / TOKD_RING_ALIGN * TOKD_RING_ALIGN;
}

/* Bytes of its keys, padded. */
static uint64_t
bytes_of_keys(const struct ring *ring, uint32_t flags, uint32_t first, uint32_t count)
{
	if ((flags & TOKD_REC_KEYS) == 0)
		return 0;
	return padded((uint64_t)tokd_rec_keys(first, count, ring->block_size) * ring->key_bytes);
}

static bool
keys_fit(const struct ring *ring, const struct tokd_rec *rec)
{
	return ring->block_size != 0 &&
	       padded(sizeof(*rec) + sizeof(uint32_t) * rec->count) +
			       bytes_of_keys(ring, rec->flags, rec->first, rec->count) <=
		       rec->bytes;
}

static int
check_record(struct tokr *r, const struct ring *ring, const struct tokd_rec *rec)
{
	uint64_t pos = ring->position, room = ring->mask + 1 - (pos & ring->mask);

	if (room > ring->head - pos)
		room = ring->head - pos;
	if (rec->bytes < sizeof(*rec) || rec->bytes % TOKD_RING_ALIGN != 0 || rec->bytes > room)
		return reader_fail(&r->error, TOKR_INVALID,
			"token ring %u: record at %" PRIu64
			": %u bytes, must be a multiple of %u up to %" PRIu64,
			ring->info.worker, pos, rec->bytes, TOKD_RING_ALIGN, room);
	if (rec->kind != TOKD_REC_TOKENS)
		return 0;
	if (rec->count > (rec->bytes - sizeof(*rec)) / sizeof(uint32_t))
		return reader_fail(&r->error, TOKR_INVALID,
			"token ring %u: record at %" PRIu64 ": %u ids do not fit its %u bytes",
			ring->info.worker, pos, rec->count, rec->bytes);
	if ((rec->flags & TOKD_REC_KEYS) != 0 && !keys_fit(ring, rec))
		return reader_fail(&r->error, TOKR_INVALID,
			"token ring %u: record at %" PRIu64
			": %u ids and the keys of their blocks of %u do not fit its %u "
			"bytes",
			ring->info.worker, pos, rec->count, ring->block_size, rec->bytes);
	return 0;
}

static uint64_t
in_ns(uint64_t ticks, uint64_t hz)
{
	return (uint64_t)((unsigned __int128)ticks * 1000000000u / hz);
}

static int
fill_record(struct tokr *r, struct ring *ring, const struct tokd_rec *rec, struct tokr_record *out)
{
	if (r->mode == TOKR_READER) {
		if (ring->held_end - ring->held_first == ring->held_room && grow(ring) != 0)
			return reader_fail(&r->error, TOKR_SYSTEM,
				"cannot allocate a queue for more than %" PRIu64
				" unreleased records: release some",
				ring->held_room);
		ring->held[ring->held_end & (ring->held_room - 1)] =
			(struct held){.pos = ring->position};
	}
	*out = (struct tokr_record){
		.ids = (const uint32_t *)(const void *)(ring->data + (ring->position & ring->mask) +
							sizeof(*rec)),
		.count = rec->count,
		.first = rec->first,
		.flags = rec->flags,
		.reason = rec->reason,
		.stream_id = rec->stream_id,
		.serial = rec->serial,
		.instance = r->instance,
		.t_rx_ns = in_ns(rec->t_rx, ring->info.tsc_hz),
		.t_publish_ns = in_ns(rec->t_publish, ring->info.tsc_hz),
		.t_rx = rec->t_rx,
		.t_publish = rec->t_publish,
		.lost_bytes = ring->skipped,
		.position = ring->position,
		.worker = (uint32_t)(ring - r->ring),
		.epoch = rec->epoch,
		.vocab = rec->vocab,
		.text_end = rec->text_end,
		.ticket = ring->held_end++,
	};
	ring->skipped = 0;
	ring->position += rec->bytes;
	ring->info.records++;
	ring->info.ids += rec->count;
	r->given++;
	return 1;
}

/* The next record of one ring. Skips no further than the head is now, however fast that moves. */
static int
look_at(struct tokr *r, struct ring *ring, struct tokr_record *out)
{
	bool is_latest = false;

	for (int overruns = 0; overruns < OVERRUNS_MAX;) {
		struct tokd_rec rec;
		uint64_t tail;
		int rc;

		if (ring->position == ring->head) {
			rc = is_latest ? 0 : look_for_more(r, ring);
			if (rc <= 0)
				return rc;
			is_latest = true;
		}
		memcpy(&rec, ring->data + (ring->position & ring->mask), sizeof(rec));
		tail = load_tail_after_use(ring);
		if (tail > ring->position) { /* the copy may be overwritten */
			rc = overrun(r, ring, tail);
			if (rc != 0)
				return rc;
			overruns++;
			continue;
		}
		rc = check_record(r, ring, &rec);
		if (rc != 0)
			return rc;
		if (rec.kind == TOKD_REC_TOKENS)
			return fill_record(r, ring, &rec, out);
		ring->position += rec.bytes;
		if (r->mode == TOKR_READER)
			give_back(ring); /* the caller does not see padding, text and others */
	}
	return 0;
}

int
reader_look(struct tokr *r, struct tokr_record *rec)
{
	for (uint32_t i = 0; i < r->n_rings; i++) {
		struct ring *ring = &r->ring[r->turn];
		int rc;

		r->turn = r->turn + 1 < r->n_rings ? r->turn + 1 : 0;
		rc = look_at(r, ring, rec);
		if (rc != 0)
			return rc;
	}
	return 0;
}

int
tokr_check(const struct tokr *r, const struct tokr_record *rec)
{
	if (rec->worker >= r->n_rings)
		return 0; /* invalid */
	return load_tail_after_use(&r->ring[rec->worker]) > rec->position ? TOKR_OVERRUN : 0;
}

int
tokr_release(struct tokr *r, const struct tokr_record *rec)
{
	struct ring *ring = &r->ring[rec->worker < r->n_rings ? rec->worker : 0];
	int rc = tokr_check(r, rec);

	if (r->mode == TOKR_READER) {
		struct held *held;

		/* Released before. */
		if (rec->ticket - ring->held_first >= ring->held_end - ring->held_first)
			return 0;
		held = &ring->held[rec->ticket & (ring->held_room - 1)];
		if (held->released || held->pos != rec->position)
			return 0;
		held->released = true;
		give_back(ring);
	}
	if (rc == TOKR_OVERRUN && r->mode == TOKR_READER && !r->gone && r->error.code == 0)
		(void)reader_check_socket(r); /* why it was dropped: said before the ring went on */
	if (rc == TOKR_OVERRUN) {
		ring->info.broken_records++;
		ring->info.lost_bytes +=
			padded(sizeof(struct tokd_rec) + sizeof(uint32_t) * rec->count) +
			bytes_of_keys(ring, rec->flags, rec->first, rec->count);
	}
	return rc;
}

void
tokr_keys(const struct tokr *r, const struct tokr_record *rec, struct tokr_keys *keys)
{
	const struct ring *ring =
		&r->ring[rec != NULL && rec->worker < r->n_rings ? rec->worker : 0];

	*keys = (struct tokr_keys){.block_size = ring->block_size,
		.key_bytes = ring->key_bytes,
		.scheme = ring->key_scheme};
	if (rec == NULL || (rec->flags & TOKR_KEYS) == 0)
		return;
	keys->count = tokd_rec_keys(rec->first, rec->count, ring->block_size);
	keys->first = rec->first / ring->block_size;
	keys->keys = (const uint8_t *)rec->ids + padded(sizeof(uint32_t) * rec->count);
}

uint64_t
tokr_instance(const struct tokr *r)
{
	return r->instance;
}

uint32_t
tokr_rings(const struct tokr *r)
{
	return r->n_rings;
}

int
tokr_ring_info(const struct tokr *r, uint32_t index, struct tokr_ring *info)
{
	const struct ring *ring = &r->ring[index < r->n_rings ? index : 0];
	uint64_t tail, end;

	if (index >= r->n_rings)
		return -1;
	*info = ring->info;
	info->unread_bytes = load_head(ring) - ring->position;
	if (r->mode != TOKR_READER)
		return 0;
	info->held_bytes = ring->position - ring->cursor;
	tail = load_tail_after_use(ring);
	end = tail < ring->position ? tail : ring->position;
	info->overwritten_bytes = end > ring->cursor ? end - ring->cursor : 0;
	return 0;
}
