/* SPDX-License-Identifier: BSD-3-Clause */
/* What one thread needs to encode: a cache, and room for ids. Nothing of Python. */
#pragma once

#include <tok.h>

/* Room that an encoder keeps for the next call, in ids: 4 MiB, of which only what was ever written
 * to is memory. */
#define ENCODER_ROOM_KEPT ((size_t)1 << 20)

struct encoder {
	struct tok_cache *cache;
	uint32_t *ids;
	size_t room;
};

/* NULL if memory is short. */
struct encoder *encoder_create(const struct tok_vocab *v);
void encoder_free(struct encoder *e);

/* Make room for at least `need` ids, those that are there kept. False if memory is short. */
bool encoder_grow(struct encoder *e, size_t need);

static inline bool
encoder_room(struct encoder *e, size_t need)
{
	return need <= e->room || encoder_grow(e, need);
}

/* Give back what is more than an encoder may keep. */
void encoder_trim(struct encoder *e);
