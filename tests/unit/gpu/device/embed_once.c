/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * embed_once DEVICE FOLDER KIND DTYPE DIM N_IDS N_POSITIONS EPSILON POSITION0 BATCH
 *
 * Reads FOLDER/{word,position,type,gamma,beta}.bin (elements of DTYPE) and FOLDER/ids.bin (uint32),
 * embeds the ids on the device, in slots of up to 4096 ids or, with BATCH above 0, in batches of
 * records of BATCH ids each, and writes FOLDER/rows.bin. Prints the worst status. The reference
 * that it is compared with is tests/cli/gpu/test_embeddings.py.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tokd/ring.h>

#include "post.h"

#define SLOTS 4

struct once {
	struct tokg_device *d;
	uint32_t *ids, n, position0, batch;
	uint8_t *rows, payload[TOKG_SLOT_BYTES];
	uint64_t entries, ticket[SLOTS];
	uint32_t posted, worst;
};

static void *
load(const char *folder, const char *name, size_t *bytes)
{
	char path[512];
	FILE *f;
	void *p;
	long n;

	snprintf(path, sizeof(path), "%s/%s.bin", folder, name);
	f = fopen(path, "rb");
	if (f == NULL)
		return NULL;
	fseek(f, 0, SEEK_END);
	n = ftell(f);
	rewind(f);
	p = malloc((size_t)n + 1);
	if (p == NULL || fread(p, 1, (size_t)n, f) != (size_t)n)
		post_fail("%s cannot be read", path);
	fclose(f);
	if (bytes)
		*bytes = (size_t)n;
	return p;
}

/* Rows of the slot's entries, to where their ids stood. */
static void
collect(struct once *o)
{
	const struct tokg_geometry *const g = &o->d->geometry;
	uint32_t parts = 1;

	for (uint32_t i = 0; i < parts; i++) {
		const struct tokg_out_entry *const e = post_entry(o->d, o->entries++);

		if (o->d->ops->read_outputs(o->d, e->out_off & (g->out_bytes - 1),
			    o->rows + (uint64_t)e->first * g->row_bytes,
			    (size_t)e->tokens * g->row_bytes) < 0)
			post_fail("the outputs cannot be read");
		parts = e->parts;
	}
}

static void
one_slot(struct once *o, struct tokg_hdr *h)
{
	const uint32_t slot = o->posted++ % SLOTS;
	uint32_t status;

	h->kind = (uint16_t)o->d->geometry.kind;
	h->epoch = POST_EPOCH;
	post_slot(o->d, 0, slot, h, ++o->ticket[slot], o->payload);
	status = post_wait(o->d, 0, slot, o->ticket[slot]);
	if (status > o->worst)
		o->worst = status;
	if (status == TOKG_OK || status == TOKG_BADID || status == TOKG_BADPOS)
		collect(o);
}

static void
plain_slots(struct once *o)
{
	for (uint32_t at = 0; at < o->n; at += TOKG_SLOT_BYTES / 4) {
		const uint32_t n =
			o->n - at < TOKG_SLOT_BYTES / 4 ? o->n - at : TOKG_SLOT_BYTES / 4;
		struct tokg_hdr h = {.bytes = 4 * n, .tokens = n, .first = at};

		h.position0 = o->position0 + at;
		memcpy(o->payload, o->ids + at, 4ull * n);
		one_slot(o, &h);
	}
}

/* A record's position is its `first`: position0 must be 0. */
static void
batches(struct once *o)
{
	for (uint32_t at = 0; at < o->n;) {
		struct tokg_hdr h = {.flags = TOKG_BATCH};

		while (at < o->n) {
			struct tokd_rec r = {.kind = TOKD_REC_TOKENS, .first = at};

			r.count = o->n - at < o->batch ? o->n - at : o->batch;
			r.bytes = (uint32_t)tokg_align(sizeof(r) + 4ull * r.count, TOKD_RING_ALIGN);
			if (h.bytes + r.bytes > TOKG_SLOT_BYTES)
				break;
			memset(o->payload + h.bytes, 0, r.bytes);
			memcpy(o->payload + h.bytes, &r, sizeof(r));
			memcpy(o->payload + h.bytes + sizeof(r), o->ids + at, 4ull * r.count);
			h.bytes += r.bytes;
			h.tokens += r.count;
			at += r.count;
		}
		one_slot(o, &h);
	}
}

int
main(int argc, char **argv)
{
	static struct tokg_device_config c;
	struct tokg_geometry *const g = &c.geometry;
	struct tokg_tables *const t = &c.tables;
	static struct once o;
	char path[512];
	size_t bytes = 0;
	FILE *f;

	if (argc != 11)
		post_fail(
			"usage: embed_once DEVICE FOLDER KIND DTYPE DIM N_IDS N_POSITIONS EPSILON "
			"POSITION0 BATCH");
	g->producers = 1;
	g->slots = SLOTS;
	g->slot_bytes = TOKG_SLOT_BYTES;
	g->flags = TOKG_CHECKED;
	g->kind = t->kind = (uint32_t)atoi(argv[3]);
	g->dtype = t->dtype = (uint32_t)atoi(argv[4]);
	g->dim = t->dim = (uint32_t)atoi(argv[5]);
	g->n_ids = t->n_ids = (uint32_t)atoi(argv[6]);
	g->n_positions = t->n_positions = (uint32_t)atoi(argv[7]);
	g->out_bytes = 1 << 27;
	t->epsilon = strtof(argv[8], NULL);
	t->word = load(argv[2], "word", NULL);
	t->position = load(argv[2], "position", NULL);
	t->type = load(argv[2], "type", NULL);
	t->gamma = load(argv[2], "gamma", NULL);
	t->beta = load(argv[2], "beta", NULL);
	o.position0 = (uint32_t)atoi(argv[9]);
	o.batch = (uint32_t)atoi(argv[10]);
	o.ids = load(argv[2], "ids", &bytes);
	o.n = (uint32_t)(bytes / 4);
	o.d = post_open(argv[1], &c);
	o.rows = calloc(o.n ? o.n : 1, g->row_bytes);
	if (o.ids == NULL || o.rows == NULL)
		post_fail("no ids, or no memory for the rows");
	if (o.batch > 0)
		batches(&o);
	else
		plain_slots(&o);
	snprintf(path, sizeof(path), "%s/rows.bin", argv[2]);
	f = fopen(path, "wb");
	if (f == NULL || fwrite(o.rows, g->row_bytes, o.n, f) != o.n || fclose(f) != 0)
		post_fail("%s cannot be written", path);
	o.d->ops->close(o.d);
	printf("%u\n", o.worst);
	return 0;
}
