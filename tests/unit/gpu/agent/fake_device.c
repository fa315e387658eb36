/* SPDX-License-Identifier: BSD-3-Clause */
#include "test.h"
#include "fake_device.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define OUTBOX 256

static int
start(struct tokg_device *d, uint32_t incarnation, struct tokg_error *err)
{
	((struct fake *)d)->n_starts++;
	d->incarnation = incarnation;
	return 0;
}

static int
stop(struct tokg_device *d, enum tokg_stop how, uint32_t timeout_ms, struct tokg_error *err)
{
	struct fake *f = (struct fake *)d;

	f->n_stops++;
	if (f->slow > 0) {
		f->slow--;
		return -1;
	}
	return f->stops ? 0 : -1;
}

static int
write_u64(struct tokg_device *d, uint64_t offset, uint64_t value)
{
	fake_set_word((struct fake *)d, offset, value);
	return 0;
}

static int
read_bytes(struct tokg_device *d, uint64_t offset, void *to, size_t bytes)
{
	memcpy(to, (uint8_t *)d->region + offset, bytes);
	return 0;
}

static int
taken(struct tokg_device *d, uint64_t *n)
{
	const struct fake *f = (const struct fake *)d;

	if (f->mute)
		return -1;
	*n = f->taken;
	return 0;
}

static int
renew_made(struct tokg_device *d, struct tokg_error *err)
{
	if (d->made_fd >= 0)
		close(d->made_fd);
	d->made_fd = memfd_create("made", MFD_CLOEXEC);
	assert_true(d->made_fd >= 0);
	return 0;
}

static bool
close_device(struct tokg_device *d)
{
	return ((struct fake *)d)->stops;
}

static const struct tokg_device_ops ops = {
	.name = "fake",
	.start = start,
	.stop = stop,
	.write_u64 = write_u64,
	.write_u64_later = write_u64,
	.read = read_bytes,
	.taken = taken,
	.renew_made = renew_made,
	.close = close_device,
};

void
fake_open(struct fake *f)
{
	struct tokg_geometry *g = &f->device.geometry;
	struct tokg_error err;

	memset(f, 0, sizeof(*f));
	*g = (struct tokg_geometry){.producers = FAKE_PRODUCERS,
		.slots = FAKE_SLOTS,
		.slot_bytes = 1024,
		.kind = TOKG_KIND_WORD,
		.dtype = TOKG_F32,
		.dim = FAKE_DIM,
		.n_ids = 100,
		.lanes = 2,
		.log = 8,
		.out_bytes = 65536};
	assert_true(tokg_geometry_fill(g, &err));
	f->device.ops = &ops;
	f->device.region = calloc(1, g->region_bytes);
	f->device.outputs_fd = memfd_create("outputs", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_int_equal(ftruncate(f->device.outputs_fd, 2 * 65536), 0);
	f->device.region_fd = f->device.region_dmabuf = f->device.made_fd = -1;
	f->device.outbox =
		calloc(1, sizeof(struct tokg_outbox) + OUTBOX * sizeof(struct tokg_out_entry));
	assert_non_null(f->device.outbox);
	f->device.outbox->n = OUTBOX;
	f->stops = true;
}

void
fake_close(struct fake *f)
{
	free(f->device.region);
	free(f->device.outbox);
	close(f->device.outputs_fd);
}

uint64_t
fake_word(const struct fake *f, uint64_t offset)
{
	return *(uint64_t *)((uint8_t *)f->device.region + offset);
}

void
fake_set_word(struct fake *f, uint64_t offset, uint64_t value)
{
	*(uint64_t *)((uint8_t *)f->device.region + offset) = value;
}

void
fake_post(struct fake *f, uint32_t producer, uint32_t slot, uint64_t ticket)
{
	fake_set_word(f,
		tokg_hdr_at(&f->device.geometry, producer, slot) +
			offsetof(struct tokg_hdr, ticket),
		ticket);
}

uint64_t
fake_reserve(struct fake *f)
{
	return f->taken++;
}

void
fake_tell_at(struct fake *f, uint64_t index, const struct tokg_out_entry *e)
{
	struct tokg_out_entry *to = tokg_outbox_entry(f->device.outbox, index);

	*to = *e;
	to->seq = index + 1;
}

void
fake_tell(struct fake *f, const struct tokg_out_entry *e)
{
	fake_tell_at(f, fake_reserve(f), e);
}

void
fake_done(struct fake *f, uint32_t producer, uint32_t slot, uint64_t ticket, uint8_t status)
{
	fake_set_word(
		f, tokg_done_at(&f->device.geometry, producer, slot), TOKG_DONE(ticket, status));
}
