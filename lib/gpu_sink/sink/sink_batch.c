/* SPDX-License-Identifier: BSD-3-Clause */
/* Hot: the content of the next slot: a part of a long record, one record, a batch, or a repeat. */
#include "sink_inside.h"

/*
 * The check word covers the padding after ids or bytes: it must be zero. Keys of blocks, which may
 * follow it, are the writer's.
 */
static void
zero_padding(struct tokd_rec *rec)
{
	const uint64_t used =
		sizeof(*rec) + (rec->kind == TOKD_REC_BYTES ? rec->count : 4ull * rec->count);

	memset((uint8_t *)rec + used, 0, tokg_align(used, TOKD_RING_ALIGN) - used);
}

/* Index of the vocabulary in the hello; n_vocabs: not in it. */
static uint32_t
vocab_of(const struct tokg_sink *s, const struct tokd_rec *rec)
{
	uint32_t i = 0;

	while (i < s->n_vocabs && s->vocab[i] != rec->vocab)
		i++;
	return i;
}

/* `tokens` ids of the record at `pos`, from index `part` on, without its header. */
static struct tokg_sink_job
job_of_part(const struct tokg_sink *s, uint64_t pos, uint32_t part, uint32_t tokens, uint16_t vocab)
{
	const struct tokd_rec *rec = tokg_sink_rec(s, pos);
	struct tokg_sink_job job = {
		.payload = pos + sizeof(*rec) + 4ull * part,
		.request = rec->serial,
		.out_bytes = tokg_out_bytes(tokens, s->row_bytes),
		.bytes = 4 * tokens,
		.tokens = tokens,
		.first = rec->first + part,
		.vocab = vocab,
	};

	if (tokens == 0)
		job.payload = pos; /* not read, but within the ring */
	if (part == 0 && (rec->flags & TOKD_REC_FIRST))
		job.flags |= TOKG_FIRST;
	if (part + tokens == rec->count) {
		const uint32_t lane = tokg_sink_lane_for(s, rec);

		job.flags |= rec->flags & TOKD_REC_LAST ? TOKG_LAST : 0;
		job.flags |= rec->flags & TOKD_REC_ABORT ? TOKG_ABORT : 0;
		job.flags |= lane != 0 ? tokg_sink_lane_flags(s, lane - 1) : 0;
	}
	return job;
}

/* The bytes of the record at `pos`. */
static struct tokg_sink_job
job_of_text(const struct tokg_sink *s, uint64_t pos)
{
	const struct tokd_rec *rec = tokg_sink_rec(s, pos);

	return (struct tokg_sink_job){
		.payload = rec->count > 0 ? pos + sizeof(*rec) : pos,
		.request = rec->serial,
		.out_bytes = tokg_out_bytes(rec->count, s->row_bytes),
		.bytes = rec->count,
		.flags = TOKG_FIRST | TOKG_LAST | TOKG_TEXT,
	};
}

/*
 * Post `job`, in which `records` end, as a new piece from `next` on, with `texts` among or after
 * them. As tokg_sink_post.
 */
static int
post_piece(struct tokg_sink *s, const struct tokg_sink_job *job, uint32_t records, uint32_t texts,
	uint64_t end, uint64_t now)
{
	const uint32_t whole = TOKG_FIRST | TOKG_LAST, index = s->piece_head;
	const uint32_t generate =
		job->flags & TOKG_GENERATE ? job->flags & (TOKG_GENERATE | TOKG_FLAGS_OF_LANE) : 0;
	int rc;

	if (s->piece_head - s->piece_tail > s->piece_mask) {
		s->no_slot = true;
		return 0;
	}
	s->piece[index & s->piece_mask] = (struct tokg_sink_piece){
		.start = s->next,
		.at = end,
		.end = end,
		.part = s->part,
		.tokens = job->tokens,
		.records = records + texts,
		.generate = generate,
		.batch = (job->flags & TOKG_BATCH) != 0,
		.text = (job->flags & TOKG_TEXT) != 0,
	};
	rc = tokg_sink_post(s, job, index, 0, now);
	if (rc != 0) {
		s->piece_head++;
		if (__builtin_expect(generate != 0, 0))
			tokg_sink_lane_posted(s, generate, (job->flags & whole) == whole);
		s->counter[TOKG_C_TOKENS] += job->tokens;
		s->counter[TOKG_C_RECORDS] += records;
	}
	return rc;
}

/* One slot of a record that is too long for one. */
static int
post_part(struct tokg_sink *s, const struct tokd_rec *rec, uint16_t vocab, uint64_t now)
{
	const uint32_t left = rec->count - s->part, most = s->slot_bytes / 4;
	const uint32_t tokens = left < most ? left : most;
	const struct tokg_sink_job job = job_of_part(s, s->next, s->part, tokens, vocab);
	const int rc =
		post_piece(s, &job, s->part + tokens == rec->count, 0, s->next + rec->bytes, now);

	if (rc == 0)
		return rc;
	s->part += tokens;
	if (s->part == rec->count) {
		s->next += rec->bytes;
		s->part = 0;
	}
	return rc;
}

/* Add the record at the end of the batch; false: it does not fit. */
static bool
add_record(struct tokg_sink *s, struct tokd_rec *rec)
{
	struct tokg_sink_batch *b = &s->batch;
	const uint64_t out = tokg_out_bytes(rec->count, s->row_bytes);
	const uint64_t bytes = b->end + rec->bytes - s->next;
	const uint32_t lane = tokg_sink_lane_for(s, rec);

	if (b->n > 0 && (lane != 0 || rec->vocab != s->vocab[b->vocab] ||
				rec->serial < s->skip_below || bytes > s->slot_bytes ||
				/* At most the outputs of a full slot, as the agent assumes. */
				b->out_bytes + out > (s->out_mask + 1) / 4))
		return false;
	zero_padding(rec);
	b->lane = lane;
	b->n++;
	b->bytes = (uint32_t)bytes;
	b->tokens += rec->count;
	b->out_bytes += out;
	return true;
}

/* Decoded text between two records is sent with them: cheaper than a slot for each. */
static void
gather(struct tokg_sink *s, uint64_t head, uint16_t vocab)
{
	struct tokg_sink_batch *b = &s->batch;

	if (b->n == 0) {
		b->vocab = vocab;
		b->end = s->next;
	}
	while (!b->closed && b->end != head) {
		struct tokd_rec *rec = tokg_sink_rec(s, b->end);

		if (rec->kind == TOKD_REC_BYTES ||
			(rec->kind == TOKD_REC_TOKENS && !add_record(s, rec))) {
			b->closed = true;
			return;
		}
		b->texts += rec->kind == TOKD_REC_TEXT;
		b->end += rec->bytes;
		/* The ring wraps, not even the smallest record fits, or it has a slot alone. */
		b->closed = (b->end & s->mask) == 0 ||
			    b->end - s->next + sizeof(*rec) > s->slot_bytes || b->lane != 0;
	}
}

static bool
is_due(const struct tokg_sink *s, const struct tokd_rec *rec, uint64_t now)
{
	return now > rec->t_publish && now - rec->t_publish >= s->batch_ticks;
}

static int
post_batch(struct tokg_sink *s, const struct tokd_rec *rec, uint64_t now)
{
	const struct tokg_sink_batch *b = &s->batch;
	struct tokg_sink_job job;
	int rc;

	if (b->n == 1) {
		job = job_of_part(s, s->next, 0, rec->count, b->vocab);
	} else {
		job = (struct tokg_sink_job){
			.payload = s->next,
			.out_bytes = b->out_bytes,
			.bytes = b->bytes,
			.tokens = b->tokens,
			.flags = TOKG_BATCH,
			.vocab = b->vocab,
		};
	}
	rc = post_piece(s, &job, b->n, b->texts, b->end, now);
	if (rc == 0)
		return rc;
	s->next = b->end;
	s->batch = (struct tokg_sink_batch){0};
	return rc;
}

/* The record is not posted: it is finished with the piece before it. */
static void
pass_over(struct tokg_sink *s, const struct tokd_rec *rec)
{
	const uint32_t n = rec->kind != TOKD_REC_PAD;

	if (s->piece_tail == s->piece_head)
		s->finished += n;
	else
		s->piece[(s->piece_head - 1) & s->piece_mask].records += n;
	s->next += rec->bytes;
}

/* The rest of a text that was shed, or a text without a table. */
static void
refuse(struct tokg_sink *s, const struct tokd_rec *rec)
{
	if (rec->serial < s->skip_below)
		s->counter[TOKG_C_SHED]++;
	else
		tokg_sink_fail(s, rec->serial, TOKG_BADID);
	pass_over(s, rec);
}

/* The next record, a text's bytes; the owner's if it is too long. As tokg_sink_post. */
static int
post_text(struct tokg_sink *s, struct tokd_rec *rec, uint64_t now)
{
	const bool shed = rec->serial < s->skip_below;
	struct tokg_sink_job job;
	int rc;

	if (rec->flags == 0) { /* tokg_sink_void */
		pass_over(s, rec);
		return 1;
	}
	if (shed || rec->count > s->text_most) {
		s->counter[TOKG_C_SHED] += shed;
		tokg_sink_text(s, s->next, shed ? TOKG_SHED : TOKG_CPU);
		tokg_sink_void(s, s->next);
		pass_over(s, rec);
		return 1;
	}
	zero_padding(rec);
	job = job_of_text(s, s->next);
	rc = post_piece(s, &job, 1, 0, s->next + rec->bytes, now);
	if (rc != 0) {
		s->next += rec->bytes;
		s->counter[TOKG_C_TEXTS]++;
		s->counter[TOKG_C_TEXT_BYTES] += rec->count;
	}
	return rc;
}

int
tokg_sink_post_fresh(struct tokg_sink *s, uint64_t head, uint64_t now, bool idle)
{
	uint32_t turns = 0, skips = 0;

	while (s->next != head && turns < TOKG_POLL_POSTS && skips < TOKG_POLL_SKIPS) {
		struct tokd_rec *rec = tokg_sink_rec(s, s->next);
		uint32_t vocab;
		int rc;

		if (rec->kind == TOKD_REC_BYTES) {
			turns++;
			rc = post_text(s, rec, now);
			if (rc != 1)
				return rc;
			continue;
		}
		if (rec->kind != TOKD_REC_TOKENS) {
			pass_over(s, rec);
			skips++;
			continue;
		}
		turns++;
		vocab = vocab_of(s, rec);
		if (vocab == s->n_vocabs || rec->serial < s->skip_below) {
			refuse(s, rec);
			continue;
		}
		if (4ull * rec->count > s->slot_bytes) {
			if (s->part == 0)
				zero_padding(rec);
			rc = post_part(s, rec, (uint16_t)vocab, now);
		} else {
			gather(s, head, (uint16_t)vocab);
			if (!s->batch.closed && !idle && !is_due(s, rec, now))
				return 1;
			rc = post_batch(s, rec, now);
		}
		if (rc != 1)
			return rc;
	}
	return 1;
}

/* Post the rest of a failed piece again; 1: all is posted. */
static int
post_piece_again(struct tokg_sink *s, uint32_t index, uint64_t now)
{
	struct tokg_sink_piece *p = &s->piece[index & s->piece_mask];

	while (p->at != p->end) {
		const struct tokd_rec *rec = tokg_sink_rec(s, p->at);
		struct tokg_sink_job job;
		int rc;

		if (rec->kind == TOKD_REC_BYTES) {
			job = job_of_text(s, p->at);
		} else if (rec->kind == TOKD_REC_TOKENS) {
			job = job_of_part(s, p->at, p->part, p->batch ? rec->count : p->tokens,
				(uint16_t)vocab_of(s, rec));
		} else {
			p->at += rec->bytes;
			continue;
		}
		job.flags |= p->generate;
		if (s->poll_posts == TOKG_POLL_POSTS)
			return 0;
		rc = tokg_sink_post(s, &job, index, p->strict ? (uint32_t)TOKG_STRICT : 0, now);
		if (rc == 0)
			return 0;
		s->counter[TOKG_C_AGAIN]++;
		p->at = p->batch ? p->at + rec->bytes : p->end;
		if (rc < 0) {
			s->n_again -= p->at == p->end;
			return rc;
		}
	}
	s->n_again--;
	return 1;
}

int
tokg_sink_post_again(struct tokg_sink *s, uint64_t now)
{
	for (uint32_t i = s->piece_tail; i != s->piece_head && s->n_again != 0; i++) {
		const struct tokg_sink_piece *p = &s->piece[i & s->piece_mask];
		int rc;

		if (p->at == p->end)
			continue;
		rc = post_piece_again(s, i, now);
		if (rc != 1)
			return rc;
	}
	return 1;
}
