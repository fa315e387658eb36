/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "words.h"

#define SLOTS_FIRST (1u << 16)

#define MIX_1 0xa0761d6478bd642full
#define MIX_2 0xe7037ed1a0b428dbull

void *
train_grow(void *p, uint64_t *room, uint64_t need, size_t element)
{
	uint64_t more = *room < 1024 ? 1024 : 2 * *room;
	void *larger;

	if (need <= *room && p != NULL)
		return p;
	more = more < need ? need : more;
	larger = more > SIZE_MAX / element ? NULL : realloc(p, more * element);
	if (larger != NULL)
		*room = more;
	return larger;
}

bool
train_seed(uint64_t seed[2], struct tok_error *err)
{
	return getrandom(seed, 2 * sizeof(*seed), 0) == 2 * sizeof(*seed) ||
	       tok_fail(err, "getrandom: %s", strerror(errno));
}

bool
train_words_init(struct train_words *w, struct tok_error *err)
{
	*w = (struct train_words){.mask = SLOTS_FIRST - 1};
	w->slot = calloc(SLOTS_FIRST, sizeof(*w->slot));
	return (w->slot != NULL || tok_fail(err, "out of memory for words")) &&
	       train_seed(w->seed, err);
}

void
train_words_free(struct train_words *w)
{
	free(w->word);
	free(w->bytes);
	free(w->slot);
	*w = (struct train_words){0};
}

static uint64_t
load(const uint8_t *p, uint32_t n)
{
	uint64_t v = 0;
	uint32_t low, high;

	if (n >= 8) {
		memcpy(&v, p, 8);
	} else if (n >= 4) {
		memcpy(&low, p, 4);
		memcpy(&high, p + n - 4, 4);
		v = (uint64_t)high << 32 | low;
	} else {
		v = (uint64_t)p[0] << 16 | (uint64_t)p[n / 2] << 8 | p[n - 1];
	}
	return v;
}

/* A word to look up: the part of train_word that does not depend on where it is stored. */
static inline struct train_word
word_of(const struct train_words *w, const uint8_t *p, uint32_t len)
{
	struct train_word word = {.len = len, .count = 1};
	uint64_t h = w->seed[0];

	word.head = load(p, len);
	word.tail = len > 8 ? load(p + len - 8, 8) : 0;
	for (uint32_t at = 8; at + 8 < len; at += 8)
		h = train_mix(load(p + at, 8) ^ w->seed[1], h);
	h = train_mix(word.head ^ w->seed[1], word.tail ^ h ^ MIX_1);
	word.hash = (uint32_t)(train_mix(h ^ len, w->seed[0] ^ MIX_2) >> 32);
	return word;
}

static void
put_slot(uint64_t *slot, uint32_t mask, uint32_t hash, uint32_t word)
{
	uint32_t i = hash & mask;

	while (slot[i] != 0)
		i = (i + 1) & mask;
	slot[i] = (uint64_t)hash << 32 | (word + 1);
}

static bool
more_slots(struct train_words *w)
{
	uint32_t mask = 2 * w->mask + 1;
	uint64_t *slot = calloc((size_t)mask + 1, sizeof(*slot));

	if (slot == NULL)
		return false;
	for (uint32_t i = 0; i < w->n; i++)
		put_slot(slot, mask, w->word[i].hash, i);
	free(w->slot);
	w->slot = slot;
	w->mask = mask;
	return true;
}

static bool
new_word(struct train_words *w, const uint8_t *p, const struct train_word *new, uint32_t at,
	struct tok_error *err)
{
	uint64_t room = w->room;
	struct train_word *word;
	uint8_t *bytes;

	if (w->n >= UINT32_MAX / 2)
		return tok_fail(err, "more than %u distinct words: train on less text", w->n);
	word = train_grow(w->word, &room, w->n + 1ull, sizeof(*word));
	if (word != NULL) {
		w->word = word;
		w->room = (uint32_t)room;
	}
	bytes = train_grow(w->bytes, &w->room_bytes, w->n_bytes + new->len, 1);
	if (bytes != NULL)
		w->bytes = bytes;
	if (word == NULL || bytes == NULL)
		return tok_fail(err, "out of memory at %u distinct words", w->n);
	word[w->n] = *new;
	word[w->n].off = w->n_bytes;
	memcpy(bytes + w->n_bytes, p, new->len);
	w->n_bytes += new->len;
	w->n++;
	w->slot[at] = (uint64_t) new->hash << 32 | w->n;
	return w->n <= w->mask / 2 || more_slots(w) ||
	       tok_fail(err, "out of memory at %u distinct words", w->n);
}

static inline bool
is_same(const struct train_words *w, const struct train_word *word, const struct train_word *new,
	const uint8_t *p)
{
	return word->len == new->len && word->head == new->head && word->tail == new->tail &&
	       (word->len <= 16 || memcmp(w->bytes + word->off, p, word->len) == 0);
}

static bool
add_one(struct train_words *w, const uint8_t *p, const struct train_word *new,
	struct tok_error *err)
{
	uint32_t i = new->hash & w->mask;

	for (; w->slot[i] != 0; i = (i + 1) & w->mask) {
		struct train_word *word = &w->word[(uint32_t)w->slot[i] - 1];

		if (w->slot[i] >> 32 == new->hash && is_same(w, word, new, p)) {
			word->count++;
			return true;
		}
	}
	return new_word(w, p, new, i, err);
}

bool
train_words_add(struct train_words *w, const uint8_t *text, const size_t *start, uint32_t n,
	struct tok_error *err)
{
	struct train_word word[TRAIN_WORDS_MAX];

	for (uint32_t i = 0; i < n; i++) {
		word[i] = word_of(w, text + start[i], (uint32_t)(start[i + 1] - start[i]));
		__builtin_prefetch(&w->slot[word[i].hash & w->mask]);
	}
	for (uint32_t i = 0; i < n; i++) {
		const uint64_t slot = w->slot[word[i].hash & w->mask];

		if (slot != 0)
			__builtin_prefetch(&w->word[(uint32_t)slot - 1]);
	}
	for (uint32_t i = 0; i < n; i++) {
		if (!add_one(w, text + start[i], &word[i], err))
			return false;
	}
	return true;
}
