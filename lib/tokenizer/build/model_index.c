/* SPDX-License-Identifier: BSD-3-Clause */
/* Find ids by bytes, for the loaders. */
#include <string.h>
#include <sys/random.h>

#include "model_make.h"
#include "tables/mem.h"

bool
tok_index_init(struct tok_index *x, const struct tok_model *m, struct tok_error *err)
{
	uint32_t slots = 1024;

	while (slots < 2 * m->n_tokens)
		slots *= 2;
	x->m = m;
	x->mask = slots - 1;
	x->slot = tok_mem_default.alloc(NULL, slots * sizeof(*x->slot), 64);
	return (x->slot != NULL && tok_hash_seed(&x->seed)) ||
	       tok_fail(err, "out of memory for %u tokens", m->n_tokens);
}

void
tok_index_free(struct tok_index *x)
{
	if (x->slot != NULL)
		tok_mem_default.free(NULL, x->slot, ((size_t)x->mask + 1) * sizeof(*x->slot));
	x->slot = NULL;
}

bool
tok_hash_seed(struct tok_hash_seed *seed)
{
	if (getrandom(seed, sizeof(*seed), 0) != sizeof(*seed))
		return false;
	seed->second |= 1;
	return true;
}

uint32_t
tok_hash_bytes(struct tok_hash_seed seed, const uint8_t *p, uint32_t len)
{
	uint64_t h = len, word;

	for (; len >= sizeof(word); p += sizeof(word), len -= sizeof(word)) {
		memcpy(&word, p, sizeof(word));
		h = tok_hash_mix(h ^ word, seed);
	}
	word = 0;
	memcpy(&word, p, len);
	return (uint32_t)tok_hash_mix(h ^ word, seed);
}

/* The slot that these bytes have or would have, but for its id. */
static struct tok_index_slot
slot_of(const uint8_t *bytes, uint32_t len, uint32_t hash)
{
	struct tok_index_slot slot = {.len = (uint16_t)len, .hash = (uint16_t)(hash >> 16)};

	memcpy(&slot.first, bytes, len < sizeof(slot.first) ? len : sizeof(slot.first));
	return slot;
}

/* Of at most TOK_MAX_TOKEN_BYTES. */
static struct tok_index_slot *
find_slot(const struct tok_index *x, const uint8_t *bytes, struct tok_index_slot is, uint32_t hash)
{
	uint32_t i = hash & x->mask;

	for (; x->slot[i].next != 0; i = (i + 1) & x->mask) {
		const struct tok_index_slot *s = &x->slot[i];

		if (s->first == is.first && s->len == is.len &&
			(is.len <= sizeof(is.first) ||
				(s->hash == is.hash &&
					memcmp(x->m->bytes + x->m->token[s->next - 1].off, bytes,
						is.len) == 0)))
			break;
	}
	return &x->slot[i];
}

uint32_t
tok_index_find(const struct tok_index *x, const uint8_t *bytes, uint32_t len)
{
	const uint32_t hash = tok_hash_bytes(x->seed, bytes, len);

	/* free: 0 - 1 == TOK_NO_TOKEN */
	return len > TOK_MAX_TOKEN_BYTES
		       ? TOK_NO_TOKEN
		       : find_slot(x, bytes, slot_of(bytes, len, hash), hash)->next - 1;
}

bool
tok_index_add(struct tok_index *x, uint32_t id)
{
	const struct tok_model_token *t = &x->m->token[id];
	const uint8_t *bytes = x->m->bytes + t->off;
	struct tok_index_slot slot, *to;
	uint32_t hash;

	if (t->special || t->outside || t->len == 0)
		return true;
	hash = tok_hash_bytes(x->seed, bytes, t->len);
	slot = slot_of(bytes, t->len, hash);
	to = find_slot(x, bytes, slot, hash);
	if (to->next != 0)
		return false;
	slot.next = id + 1;
	*to = slot;
	return true;
}
