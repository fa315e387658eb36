/* SPDX-License-Identifier: BSD-3-Clause */
/* A device that is only memory: the test is its consumer and its producers. */
#pragma once

#include "ring/geometry.h"
#include "kernel/device.h"

#define FAKE_SLOTS 4
#define FAKE_PRODUCERS 2
#define FAKE_DIM 4

struct fake {
	struct tokg_device device;
	uint32_t n_starts, n_stops;
	uint64_t taken; /* entries of the outbox; counted here, as a GPU counts in its memory */
	uint32_t slow;	/* so many stops fail before one does not */
	bool stops;	/* else stop fails */
	bool mute;	/* does not say what was taken */
};

void fake_open(struct fake *f);
void fake_close(struct fake *f);
uint64_t fake_word(const struct fake *f, uint64_t offset);
void fake_set_word(struct fake *f, uint64_t offset, uint64_t value);
/* As a producer: publish. */
void fake_post(struct fake *f, uint32_t producer, uint32_t slot, uint64_t ticket);
/* As the consumer: take an entry of the outbox (it is a hole until told), and write it. */
uint64_t fake_reserve(struct fake *f);
void fake_tell_at(struct fake *f, uint64_t index, const struct tokg_out_entry *e);
void fake_tell(struct fake *f, const struct tokg_out_entry *e);
void fake_done(struct fake *f, uint32_t producer, uint32_t slot, uint64_t ticket, uint8_t status);
