/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "ring.h"

#define ATTACH_MS 5000

int
ring_open(struct ring *ring, const char *socket)
{
	struct tokr_error e;

	ring->reader = tokr_attach(socket, TOKR_READER, ATTACH_MS, &e);
	if (ring->reader == NULL)
		fprintf(stderr, "tokd-load-dpdk: --ring: %s\n", e.text);
	return ring->reader != NULL ? 0 : -1;
}

void
ring_close(struct ring *ring)
{
	if (ring->reader != NULL)
		tokr_detach(ring->reader);
	ring->reader = NULL;
}

static void
take_times(struct ring_seen *seen, const struct tokr_record *rec)
{
	if (seen->first_rx_ns == 0 || rec->t_rx_ns < seen->first_rx_ns)
		seen->first_rx_ns = rec->t_rx_ns;
	seen->last_publish_ns = rec->t_publish_ns;
	if (rec->count == 0)
		return;
	if (seen->records < RING_TIMES)
		seen->wire_to_ring_ns[seen->records] = (uint32_t)(rec->t_publish_ns - rec->t_rx_ns);
	seen->records++;
}

/* Does the record continue where the one before ended, with the right ids? */
static bool
is_right(const struct ring_text *text, const struct tokr_record *rec)
{
	const struct ring_seen *seen = text->seen;
	const struct slice *slice = text->slice;

	if (seen->last || (rec->flags & TOKR_ABORT) != 0 || rec->first != seen->ids ||
		((rec->flags & TOKR_FIRST) != 0) != (seen->first_rx_ns == 0) ||
		rec->count > slice->n_ids - seen->ids)
		return false;
	if ((rec->flags & TOKR_LAST) != 0 &&
		(rec->first + rec->count != slice->n_ids || rec->text_end != slice->text_len))
		return false;
	return memcmp(rec->ids, slice->ids + (size_t)4 * rec->first, (size_t)4 * rec->count) == 0;
}

static void
take(struct ring *ring, const struct ring_text *text, const struct tokr_record *rec)
{
	struct ring_seen *seen = text->seen;

	ring->records++;
	ring->ids += rec->count;
	if (seen == NULL) {
		ring->doubled++;
		return;
	}
	if (!is_right(text, rec))
		seen->wrong = true;
	take_times(seen, rec);
	seen->ids += rec->count;
	seen->last |= (rec->flags & TOKR_LAST) != 0;
}

int
ring_drain(struct ring *ring, ring_find *find, void *arg)
{
	struct tokr_record rec;
	int rc;

	if (ring->reader == NULL)
		return 0;
	while ((rc = tokr_next(ring->reader, &rec, 0)) == 1) {
		const struct ring_text text = find(arg, rec.epoch, rec.stream_id);

		take(ring, &text, &rec);
		if (tokr_release(ring->reader, &rec) != 0 && text.seen != NULL)
			text.seen->wrong = true;
	}
	if (rc == 0)
		return 0;
	fprintf(stderr, "tokd-load-dpdk: --ring: %s\n", tokr_last_error(ring->reader)->text);
	return -1;
}

const char *
ring_judge(struct ring *ring, const struct ring_text *text)
{
	if (ring->reader == NULL)
		return NULL;
	if (text->seen->wrong) {
		ring->wrong++;
		return "wrong in the token ring";
	}
	if (!text->seen->last) {
		ring->lost++;
		return "not whole in the token ring";
	}
	ring->texts++;
	return NULL;
}
