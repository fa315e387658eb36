/* SPDX-License-Identifier: BSD-3-Clause */
/* The ring check of tokd-load-dpdk, given records that no appliance should publish. */
#include "test.h"

#include "ring.h"

static const uint32_t ids[] = {5, 6, 7, 8};
static const struct slice slice = {
	.text = (const uint8_t *)"text", .ids = (const uint8_t *)ids, .text_len = 4, .n_ids = 4};

static struct ring_seen seen;
static bool in_flight;
static struct tokr_record next;
static int left;

/* ---- in place of tokd/reader.h: `next`, `left` times ---- */

int
tokr_next(struct tokr *r, struct tokr_record *rec, int timeout_ms)
{
	(void)r, (void)timeout_ms;
	*rec = next;
	return left-- > 0;
}

int
tokr_release(struct tokr *r, const struct tokr_record *rec)
{
	(void)r, (void)rec;
	return 0;
}

struct tokr *
tokr_attach(const char *path, int mode, int timeout_ms, struct tokr_error *e)
{
	(void)path, (void)mode, (void)timeout_ms, (void)e;
	return (struct tokr *)&next;
}

void
tokr_detach(struct tokr *r)
{
	(void)r;
}

const struct tokr_error *
tokr_last_error(const struct tokr *r)
{
	(void)r;
	return NULL;
}

/* ---- */

static struct ring_text
find(void *arg, uint32_t epoch, uint64_t stream_id)
{
	(void)arg, (void)epoch, (void)stream_id;
	return (struct ring_text){&slice, in_flight ? &seen : NULL};
}

/* The text's record, whole and right. */
static const struct tokr_record whole = {
	.ids = ids, .count = 4, .flags = TOKR_FIRST | TOKR_LAST, .text_end = 4, .t_rx_ns = 1};

static const char *
judge(struct ring *ring, struct tokr_record rec, int times)
{
	const struct ring_text text = {&slice, &seen};

	seen = (struct ring_seen){0};
	*ring = (struct ring){0};
	assert_int_equal(ring_open(ring, ""), 0);
	in_flight = true;
	next = rec;
	left = times;
	assert_int_equal(ring_drain(ring, find, NULL), 0);
	return ring_judge(ring, &text);
}

TEST(a_text_is_in_the_ring_once)
{
	struct ring ring;

	assert_null(judge(&ring, whole, 1));
	assert_int_equal(ring.texts, 1);
	assert_int_equal(ring.doubled, 0);
	assert_non_null(judge(&ring, whole, 2)); /* before its answer came */
	assert_int_equal(ring.wrong, 1);
	judge(&ring, whole, 1);
	in_flight = false; /* after it */
	left = 1;
	assert_int_equal(ring_drain(&ring, find, NULL), 0);
	assert_int_equal(ring.doubled, 1);
	ring_close(&ring);
}

TEST(a_text_without_its_end_is_lost)
{
	struct tokr_record rec = whole;
	struct ring ring;

	assert_non_null(judge(&ring, whole, 0));
	assert_int_equal(ring.lost, 1);
	rec.flags = TOKR_FIRST;
	assert_non_null(judge(&ring, rec, 1));
	assert_int_equal(ring.lost, 1);
}

TEST(what_is_wrong_is_found)
{
	static const uint32_t others[] = {5, 6, 9, 8};
	struct tokr_record wrong[6];
	struct ring ring;

	for (size_t i = 0; i < 6; i++)
		wrong[i] = whole;
	wrong[0].ids = others;
	wrong[1].count = 3;
	wrong[2].first = 1;
	wrong[3].text_end = 3;
	wrong[4].flags = TOKR_LAST;
	wrong[5].flags |= TOKR_ABORT;
	for (size_t i = 0; i < 6; i++) {
		assert_non_null(judge(&ring, wrong[i], 1));
		assert_int_equal(ring.wrong, 1);
	}
}
