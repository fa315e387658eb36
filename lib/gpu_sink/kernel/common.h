/* SPDX-License-Identifier: BSD-3-Clause */
/* Set-up shared by both kinds of device. Inline: one is C++, the other is compiled by nvcc. */
#pragma once

#include <stdio.h>
#include <string.h>

#include "engine_area.h"
#include "schedule.cuh"

extern "C" {
#include "ring/geometry.h"
}

#define TOKG_INCARNATION_MAX 65535 /* 16 bits in a claim */

/* Validates the vocabulary of TEXT slots. */
static inline bool
tokg_text_vocab_proved(const struct tokg_device_config *c, struct tokg_error *err)
{
	const struct tok_vocab *const v = c->text_vocab;
	const char *const why = v != NULL ? tokg_view_refuses(v, c->text_flags) : NULL;

	if (why != NULL)
		return tokg_wrong(err, "--text-vocab: the device cannot encode with it: %s", why);
	if (v != NULL && v->info.n_ids > c->geometry.n_ids)
		return tokg_wrong(err,
			"--text-vocab: it has %u ids, the word table %u rows: use the table "
			"of the same model",
			v->info.n_ids, c->geometry.n_ids);
	return true;
}

/* Validates geometry and tables. */
static inline bool
tokg_config_proved(const struct tokg_device_config *c, struct tokg_error *err)
{
	const struct tokg_geometry *const g = &c->geometry;
	const struct tokg_tables *const t = &c->tables;

	if (!tokg_geometry_proved(g, UINT64_MAX, err))
		return false;
	if (c->external_engine && g->lanes == 0)
		return tokg_wrong(err, "device: an external engine needs lanes");
	if (t->kind != g->kind || t->dtype != g->dtype || t->dim != g->dim ||
		t->n_ids != g->n_ids ||
		(t->kind != TOKG_KIND_WORD && t->n_positions != g->n_positions))
		return tokg_wrong(err,
			"device: the tables (kind %u, dtype %u, %u x %u, %u positions)"
			" are not those of the geometry (%u, %u, %u x %u, %u)",
			t->kind, t->dtype, t->n_ids, t->dim, t->n_positions, g->kind, g->dtype,
			g->n_ids, g->dim, g->n_positions);
	if (t->word == NULL || (t->kind != TOKG_KIND_WORD && t->position == NULL) ||
		(t->kind == TOKG_KIND_BERT &&
			(t->type == NULL || t->gamma == NULL || t->beta == NULL)))
		return tokg_wrong(err, "device: kind %u needs more tables than given", t->kind);
	if (c->ring_epoch == 0)
		return tokg_wrong(err, "device: ring_epoch must not be 0");
	return tokg_text_vocab_proved(c, err);
}

static inline bool
tokg_incarnation_right(const struct tokg_device *d, uint32_t incarnation, struct tokg_error *err)
{
	return (incarnation > d->incarnation && incarnation <= TOKG_INCARNATION_MAX) ||
	       tokg_wrong(err, "consumer: incarnation is %u, must be %u to %d: restart the agent",
		       incarnation, d->incarnation + 1, TOKG_INCARNATION_MAX);
}

static inline uint64_t
tokg_owner_limit_ns(const struct tokg_device_config *c)
{
	return (c->owner_limit_ms > 0 ? c->owner_limit_ms : TOKG_OWNER_LIMIT_MS) * 1000000ull;
}

/* Each operation of the device calls it. */
static inline void
tokg_owner_lives(struct tokg_device *d)
{
	__atomic_fetch_add(&d->outbox->owner, 1, __ATOMIC_RELAXED);
}

/* Number of entries of an outbox; see device.h. */
static inline uint64_t
tokg_outbox_size(const struct tokg_geometry *g)
{
	const uint64_t least = g->producers * (g->out_bytes / TOKG_OUT_ALIGN + g->slots);
	uint64_t n = 1;

	while (n < least)
		n *= 2;
	return n;
}

/*
 * Marks reserved entries that have no seq with status 0: an incarnation that was killed after
 * reserving an entry never writes its seq, and the reader would wait for ever. Call only while no
 * consumer runs. `reserved`: entries reserved so far.
 */
static inline void
tokg_outbox_repair(struct tokg_outbox *o, uint64_t reserved)
{
	for (uint64_t i = reserved > o->n ? reserved - o->n : 0; i < reserved; i++) {
		struct tokg_out_entry *const e = tokg_outbox_entry(o, i);

		if (__atomic_load_n(&e->seq, __ATOMIC_ACQUIRE) == i + 1)
			continue;
		memset((uint8_t *)e + sizeof(e->seq), 0, sizeof(*e) - sizeof(e->seq));
		__atomic_store_n(&e->seq, i + 1, __ATOMIC_RELEASE);
	}
}

/* One of the tables: `bytes` (0: not in this kind) at offset `at` of the copy. */
struct tokg_table_copy {
	const void *from;
	uint64_t bytes, at;
	const uint8_t **to; /* the consumer's pointer */
};

#define TOKG_TABLES 5

/*
 * Lay out the tables of a device's copy, each on its own page; returns the total bytes. All of `e`
 * except the addresses must be filled in.
 */
static inline uint64_t
tokg_tables_plan(const struct tokg_tables *t, uint64_t row_bytes, struct tokg_embed *e,
	struct tokg_table_copy table[TOKG_TABLES])
{
	const uint64_t of_positions = t->kind != TOKG_KIND_WORD ? t->n_positions * row_bytes : 0;
	const uint64_t of_bert = t->kind == TOKG_KIND_BERT ? row_bytes : 0;
	uint64_t end = 0;

	table[0] = {t->word, t->n_ids * row_bytes, 0, &e->word};
	table[1] = {t->position, of_positions, 0, &e->position};
	table[2] = {t->type, of_bert, 0, &e->type};
	table[3] = {t->gamma, of_bert, 0, &e->gamma};
	table[4] = {t->beta, of_bert, 0, &e->beta};
	for (uint32_t i = 0; i < TOKG_TABLES; i++) {
		table[i].at = end;
		end += tokg_align(table[i].bytes, TOKG_PAGE);
	}
	e->kind = t->kind;
	e->dtype = t->dtype;
	e->dim = t->dim;
	e->row_bytes = (uint32_t)row_bytes;
	e->n_ids = t->n_ids;
	e->n_positions = t->n_positions;
	e->epsilon = t->epsilon;
	return end;
}

/*
 * The consumer's private memory, as offsets into one allocation. What is before `found` is zeroed
 * before each incarnation.
 */
struct tokg_scratch {
	uint64_t slots, schedule, records; /* the last two: empty without graphs */
	uint64_t found, parts, copies;
	uint64_t text_ids, text_scratch; /* text: empty without a vocabulary */
	uint64_t lanes, log_head, asked, end;
};

/* Bytes of scratch to encode any text of a slot. */
static inline uint64_t
tokg_slot_text_scratch(const struct tokg_geometry *g)
{
	const uint32_t most = g->slot_bytes < TOKG_TEXT_MAX ? g->slot_bytes : TOKG_TEXT_MAX;

	return tokg_align(tokg_text_scratch(most), TOKG_LINE);
}

/* `blocks` that encode text, each with its own scratch; 0: no TEXT slots. Graphs: for each slot. */
static inline struct tokg_scratch
tokg_scratch_plan(const struct tokg_geometry *g, uint32_t blocks, bool graphs)
{
	const uint64_t slots = (uint64_t)g->producers * g->slots;
	const uint64_t texts = graphs && blocks > 0 ? slots : blocks;
	const uint64_t parts = slots * (g->slot_bytes / TOKD_RING_ALIGN);
	struct tokg_scratch s;

	s.slots = tokg_align(sizeof(struct tokg_work), TOKG_PAGE);
	s.schedule = tokg_align(s.slots + slots * sizeof(struct tokg_state), TOKG_PAGE);
	s.records = s.schedule;
	if (graphs)
		s.records += tokg_align(sizeof(struct tokg_schedule), TOKG_PAGE);
	s.found = s.records;
	if (graphs)
		s.found += tokg_align(parts * sizeof(struct tokg_state), TOKG_PAGE);
	s.parts = tokg_align(s.found + slots * sizeof(struct tokg_found), TOKG_PAGE);
	s.copies = tokg_align(s.parts + parts * sizeof(struct tokg_part), TOKG_PAGE);
	s.text_ids = tokg_align(s.copies + slots * g->slot_bytes, TOKG_PAGE);
	s.text_scratch = s.text_ids;
	if (blocks > 0)
		s.text_scratch += slots * tokg_text_ids_bytes(g);
	s.lanes = tokg_align(s.text_scratch + texts * tokg_slot_text_scratch(g), TOKG_PAGE);
	s.log_head = s.lanes + (uint64_t)g->producers * g->lanes * sizeof(struct tokg_lane);
	s.asked = s.log_head + 8ull * g->producers;
	s.end = tokg_align(s.asked + 4 * slots, TOKG_PAGE);
	return s;
}

static inline void
tokg_scratch_set(struct tokg_consumer *k, const struct tokg_scratch *s, uint8_t *at)
{
	k->work = (struct tokg_work *)at;
	k->slots = (struct tokg_state *)(at + s->slots);
	k->records = (struct tokg_state *)(at + s->records);
	k->found = (struct tokg_found *)(at + s->found);
	k->parts = (struct tokg_part *)(at + s->parts);
	k->copies = at + s->copies;
	k->text_ids = s->text_ids - s->copies;
	k->text_scratch = at + s->text_scratch;
	k->text_scratch_bytes = tokg_slot_text_scratch(&k->g);
	k->lanes = (struct tokg_lane *)(at + s->lanes);
	k->log_head = (uint64_t *)(at + s->log_head);
	k->asked = (uint32_t *)(at + s->asked);
}

/* Where the consumer finds what it shares with an external engine. */
static inline void
tokg_engine_area_set(struct tokg_consumer *k, uint8_t *outputs, uint8_t *made)
{
	const struct tokg_engine_area a = tokg_engine_area_plan(&k->g);

	k->ids = (uint32_t *)(outputs + a.ids_off);
	k->shown = (struct tokd_lane_shown *)(outputs + a.shown_off);
	k->engine_made = (const struct tokd_lane_made *)made;
	k->engine_ids = (const uint32_t *)(made + a.ids_in_made);
	k->room = a.room;
	k->ids_of_page = a.ids_of_page;
}

/* Initializes ctl of a new region. The caller writes `magic` last. */
static inline struct tokg_ctl
tokg_ctl_make(const struct tokg_device_config *c)
{
	struct tokg_ctl ctl = {};

	ctl.version = TOKG_VERSION;
	ctl.ring_epoch = c->ring_epoch;
	ctl.geometry = c->geometry;
	return ctl;
}

static inline bool
tokg_in_region(const struct tokg_device *d, uint64_t offset, uint64_t bytes)
{
	return offset % 8 == 0 && bytes % 4 == 0 && bytes <= d->geometry.region_bytes &&
	       offset <= d->geometry.region_bytes - bytes;
}

/* Operations of a device whose region is mapped in this process. */
static inline int
tokg_mapped_write_u64(struct tokg_device *d, uint64_t offset, uint64_t value)
{
	if (!tokg_in_region(d, offset, sizeof(value)))
		return -1;
	tokg_owner_lives(d);
	__atomic_store_n((uint64_t *)((uint8_t *)d->region + offset), value, __ATOMIC_RELEASE);
	return 0;
}

/* Words that the consumer writes, in host memory. */
static inline void
tokg_words_read(const uint8_t *from, void *to, size_t bytes)
{
	size_t i = 0;

	for (; i + 8 <= bytes; i += 8) {
		const uint64_t v = __atomic_load_n((const uint64_t *)(from + i), __ATOMIC_ACQUIRE);

		memcpy((uint8_t *)to + i, &v, sizeof(v));
	}
	if (i < bytes) {
		const uint32_t v = __atomic_load_n((const uint32_t *)(from + i), __ATOMIC_ACQUIRE);

		memcpy((uint8_t *)to + i, &v, sizeof(v));
	}
}

static inline int
tokg_mapped_read(struct tokg_device *d, uint64_t offset, void *to, size_t bytes)
{
	if (!tokg_in_region(d, offset, bytes))
		return -1;
	tokg_owner_lives(d);
	tokg_words_read((const uint8_t *)d->region + offset, to, bytes);
	return 0;
}

static inline bool
tokg_in_outputs(const struct tokg_device *d, uint64_t offset, uint64_t bytes)
{
	const uint64_t all = d->geometry.producers * d->geometry.out_bytes;

	return bytes <= all && offset <= all - bytes;
}
