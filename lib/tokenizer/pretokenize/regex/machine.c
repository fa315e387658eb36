/* SPDX-License-Identifier: BSD-3-Clause */
/* clang-format off */
/*
 * Readings to one table of steps (enum tok_pretok_step). A state of the machine is the set of all
 * readings that the text so far may turn out to have. What all of them say is certain: a character
 * before which none has a border is taken, one before which all have one ends the pretoken. Where
 * they differ, characters are held until the readings that are left agree.
 *
 *   regexes     \p{N}, then [ab]+c
 *   text        ;  a  b  7  ...               held      readings that differ
 *   step        TAKE                                    a gap
 *                  HOLD                       a         a match begins before a, or the gap goes on
 *                     HOLD                    ab
 *                        AGAIN                          7 ends it: no match, a border after ab
 *                  TAKE                       (a again) the gap, known
 *                     TAKE                    (b again)
 *                        CLOSE
 */
/* clang-format on */
#include <stdlib.h>
#include <string.h>

#include "inside.h"
#include "pretokenize/pretok.h"

/* A state as a key: its phase, then items. */
enum phase {
	FRESH, /* no pretoken is open; one reading, the first */
	OPEN,
	HELD,  /* characters of an open pretoken are held */
	KNOWN, /* they are stepped again, and the first of them is known to be taken */
};

/* The first border of a reading since the held characters began. */
enum border {
	NONE,
	BEFORE_FIRST, /* before the first that is held */
	BEFORE_LATER,
	BEFORE_NEXT, /* before the character that is stepped */
};

struct item {
	uint16_t reading;
	uint16_t first; /* HELD: the reading after the first held character */
	uint16_t border;
};

struct state {
	uint16_t phase;
	struct item item[RX_STATES_MAX];
};
#define STATE_LEN(n) (1 + (n) * (uint32_t)(sizeof(struct item) / sizeof(uint16_t)))

struct maker {
	struct rx *rx;
	const struct rx_readings *readings;
	struct rx_keys *keys;
	struct state now, next; /* of n_now, n items */
	uint32_t n_now, n;
	uint32_t with[BEFORE_NEXT + 1]; /* items of `next` with this border */
	bool held;			/* `now` holds characters */
};

/* A reading after the character. Each has one past. */
static bool
add(struct maker *mk, struct item item)
{
	struct item *to = mk->next.item;
	uint32_t i = mk->n;

	if (!rx_work(mk->rx, 1))
		return false;
	for (; i > 0 && to[i - 1].reading >= item.reading; i--)
		;
	if (i < mk->n && to[i].reading == item.reading)
		return memcmp(&to[i], &item, sizeof(item)) == 0 ||
		       tok_fail(mk->rx->err, "%s: a text has two readings", mk->rx->where);
	memmove(to + i + 1, to + i, (mk->n - i) * sizeof(*to));
	to[i] = item;
	mk->n++;
	mk->with[item.border]++;
	return true;
}

/* All readings after a character of class c; they fill mk->next. */
static bool
read_on(struct maker *mk, uint32_t c)
{
	const struct rx_readings *all = mk->readings;

	mk->n = 0;
	memset(mk->with, 0, sizeof(mk->with));
	for (uint32_t i = 0; i < mk->n_now; i++) {
		const struct item was = mk->now.item[i];

		RX_EACH_EDGE (e, &all->at[was.reading], c) {
			struct item item = {e->to, mk->held ? was.first : e->to, was.border};

			if (!all->at[e->to].alive)
				continue;
			if (item.border == NONE && e->border && mk->now.phase != FRESH)
				item.border = BEFORE_NEXT;
			if (!add(mk, item))
				return false;
		}
	}
	return true;
}

/* The text ends: the one reading that may is left. */
static bool
read_end(struct maker *mk)
{
	mk->n = 0;
	memset(mk->with, 0, sizeof(mk->with));
	for (uint32_t i = 0; i < mk->n_now; i++) {
		struct item item = mk->now.item[i];

		item.border = item.border == NONE ? BEFORE_NEXT : item.border;
		if (mk->readings->at[item.reading].accepts && !add(mk, item))
			return false;
	}
	return true;
}

/* ---- steps from `now` to `next`, whose items are those after the character ---- */

static enum tok_pretok_step
fresh(struct maker *mk, enum tok_pretok_step step)
{
	mk->n = 1;
	mk->next.phase = FRESH;
	mk->next.item[0] = (struct item){0};
	return step;
}

/* The character is taken, and what is held. */
static enum tok_pretok_step
take(struct maker *mk)
{
	bool closes = true;

	for (uint32_t i = 0; i < mk->n; i++) {
		closes = closes && mk->readings->at[mk->next.item[i].reading].closes;
		mk->next.item[i] = (struct item){.reading = mk->next.item[i].reading};
	}
	mk->next.phase = OPEN;
	return closes ? fresh(mk, TOK_STEP_TAKE_CLOSE) : TOK_STEP_TAKE;
}

/* The character is held: what is held begins with it, or goes on. */
static enum tok_pretok_step
hold(struct maker *mk, bool begins)
{
	for (uint32_t i = 0; i < mk->n; i++) {
		struct item *item = &mk->next.item[i];

		if (begins)
			item->first = item->reading;
		if (item->border == BEFORE_NEXT)
			item->border = begins ? BEFORE_FIRST : BEFORE_LATER;
	}
	mk->next.phase = HELD;
	return begins && mk->held ? TOK_STEP_TAKE_HOLD : TOK_STEP_HOLD;
}

/* The first held character is taken, and it is known how it is read. */
static enum tok_pretok_step
again(struct maker *mk)
{
	const uint32_t n = mk->n;

	mk->n = 0;
	for (uint32_t i = 0; i < n; i++) {
		const uint16_t first = mk->next.item[i].first;
		uint32_t k = mk->n;

		/* Fewer are kept than were read. */
		for (; k > 0 && mk->next.item[k - 1].reading > first; k--)
			;
		if (k > 0 && mk->next.item[k - 1].reading == first)
			continue;
		memmove(mk->next.item + k + 1, mk->next.item + k,
			(mk->n - k) * sizeof(struct item));
		mk->next.item[k] = (struct item){.reading = first};
		mk->n++;
	}
	mk->next.phase = KNOWN;
	return TOK_STEP_AGAIN;
}

/* A character, or the end of the text, was read. */
static enum tok_pretok_step
step(struct maker *mk)
{
	if (mk->with[NONE] == mk->n)
		return take(mk);
	if (mk->with[BEFORE_NEXT] == mk->n)
		return fresh(mk, mk->held ? TOK_STEP_HELD_CLOSE : TOK_STEP_CLOSE);
	if (mk->with[BEFORE_FIRST] == mk->n)
		return fresh(mk, TOK_STEP_CLOSE);
	if (mk->with[NONE] + mk->with[BEFORE_NEXT] == mk->n)
		return hold(mk, true);
	return mk->with[BEFORE_FIRST] > 0 ? hold(mk, false) : again(mk);
}

/* A step and the state after it, as in the table. */
static uint16_t
entry(enum tok_pretok_step result, uint32_t next)
{
	return (uint16_t)(next << TOK_STEP_BITS | (uint32_t)result);
}

static uint32_t
number_of_next(struct maker *mk)
{
	return rx_number(mk->rx, mk->keys, (const uint16_t *)&mk->next, STATE_LEN(mk->n));
}

/* The step of `now` for class c, the last of which is the end of the text. False: refused. */
static bool
step_class(struct maker *mk, uint32_t c, enum tok_pretok_step *result)
{
	if (mk->now.phase == KNOWN) { /* the character is the one that is known */
		mk->n = mk->n_now;
		memcpy(mk->next.item, mk->now.item, mk->n * sizeof(struct item));
		*result = take(mk);
		return true;
	}
	if (!(c < mk->readings->n_classes ? read_on(mk, c) : read_end(mk)))
		return false;
	/* What is stepped again cannot go on so: it was read before, and any step will do. */
	if (mk->n > 0)
		*result = step(mk);
	else if (c < mk->readings->n_classes)
		*result = fresh(mk, TOK_STEP_TAKE_CLOSE);
	else
		*result = fresh(mk, mk->held ? TOK_STEP_HELD_CLOSE : TOK_STEP_CLOSE);
	return true;
}

/* Steps of all states that can be reached: to[state * width + class]. */
static bool
reach(struct maker *mk, uint16_t *to, uint32_t width)
{
	fresh(mk, TOK_STEP_CLOSE);
	if (number_of_next(mk) == RX_NO_NUMBER)
		return false;
	for (uint32_t s = 0; s < mk->keys->n; s++) {
		const uint32_t len = mk->keys->entry[s].len;

		memcpy(&mk->now, mk->keys->entry[s].key, len * sizeof(uint16_t));
		mk->n_now = (len - 1) / (STATE_LEN(1) - 1);
		mk->held = mk->now.phase == HELD;
		for (uint32_t c = 0; c < width; c++) {
			enum tok_pretok_step result = TOK_STEP_CLOSE;
			uint32_t next;

			if (!step_class(mk, c, &result))
				return false;
			next = number_of_next(mk);
			if (next == RX_NO_NUMBER)
				return false;
			to[s * width + c] = entry(result, next);
		}
	}
	return true;
}

/*
 * Join states that no text tells apart: split groups while some have members with different steps
 * (Moore). group[] becomes the numbers of the minimal machine's states. Returns how many, or 0.
 */
static uint32_t
minimize(struct rx *rx, const uint16_t *to, uint32_t n, uint32_t width, uint16_t *group)
{
	uint32_t before = 0, now = 0;

	do {
		struct rx round = {.where = rx->where, .err = rx->err};
		struct rx_keys *keys = rx_alloc(&round, 1, sizeof(*keys));
		uint16_t *key = rx_alloc(&round, width + 1, sizeof(*key));
		uint16_t *next = rx_alloc(&round, n, sizeof(*next));

		before = now;
		now = 0;
		for (uint32_t s = 0; keys != NULL && key != NULL && next != NULL && s < n; s++) {
			uint32_t number;

			key[0] = group[s];
			for (uint32_t c = 0; c < width; c++) {
				const uint16_t e = to[s * width + c];

				key[1 + c] = entry((enum tok_pretok_step)(e & TOK_STEP_MASK),
					group[e >> TOK_STEP_BITS]);
			}
			number = rx_number(&round, keys, key, width + 1);
			if (number == RX_NO_NUMBER) {
				rx_free(&round);
				return 0;
			}
			next[s] = (uint16_t)number;
			now = keys->n; /* there are not more of them than states */
		}
		if (now > 0)
			memcpy(group, next, n * sizeof(*next));
		rx_free(&round);
		if (!rx_work(rx, (uint64_t)n * width))
			return 0;
	} while (now != before);
	return now;
}

/* The table, its columns in the order of the classes' numbers. */
static bool
write_table(const struct rx_classes *classes, const uint16_t *to, uint32_t n, uint32_t width,
	const uint16_t *group, struct tok_machine *out)
{
	out->step = calloc((size_t)out->n_states * out->width, sizeof(*out->step));
	out->run = calloc(classes->n_runs, sizeof(*out->run));
	if (out->step == NULL || out->run == NULL)
		return false;
	out->n_runs = classes->n_runs;
	memcpy(out->run, classes->run, classes->n_runs * sizeof(*out->run));
	for (uint32_t s = 0; s < n; s++) {
		uint16_t *row = out->step + (size_t)group[s] * out->width;

		for (uint32_t number = 0; number < out->width; number++) {
			uint32_t c = 0; /* numbers that no class has are as the first */

			while (c < classes->n && classes->number[c] != number)
				c++;
			c = number == out->width - 1 ? classes->n : c == classes->n ? 0 : c;
			row[number] =
				entry((enum tok_pretok_step)(to[s * width + c] & TOK_STEP_MASK),
					group[to[s * width + c] >> TOK_STEP_BITS]);
		}
	}
	return true;
}

bool
rx_machine(struct rx *rx, const struct rx_readings *readings, const struct rx_classes *classes,
	struct tok_machine *out)
{
	const uint32_t width = classes->n + 1;
	struct maker *mk = rx_alloc(rx, 1, sizeof(*mk));
	uint16_t *to = rx_alloc(rx, (size_t)RX_STATES_MAX * width, sizeof(*to));
	uint16_t *group = rx_alloc(rx, RX_STATES_MAX, sizeof(*group));

	*out = (struct tok_machine){.width = classes->width};
	if (mk == NULL || to == NULL || group == NULL)
		return false;
	mk->rx = rx;
	mk->readings = readings;
	mk->keys = rx_alloc(rx, 1, sizeof(*mk->keys));
	if (mk->keys == NULL || !reach(mk, to, width))
		return false;
	/* A minimal machine never joins states that differ in what is open and held. */
	for (uint32_t s = 0; s < mk->keys->n; s++)
		group[s] = mk->keys->entry[s].key[0];
	out->n_states = minimize(rx, to, mk->keys->n, width, group);
	if (out->n_states == 0)
		return false;
	return write_table(classes, to, mk->keys->n, width, group, out) ||
	       tok_fail(rx->err, "%s: out of memory for a regular expression", rx->where);
}
