/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * GENERATE: the text is a prompt, and a model on the GPU continues it. The prompt is fed as any
 * text. With its last bytes it takes a lane of the sink, by which ids come back (sink/sink.h); each
 * becomes a struct tokd_made and its text, in records of kind TEXT.
 *
 *         LAST is fed, with a lane            ended, and all is published
 *   OPEN ──────────────────────────▶ answers ─────────────────────────────▶ DONE
 *                                       └──▶ FAILED, without an ABORT: the prompt is complete
 *
 *   sink: token() ──▶ answer.id[] ──▶ a record of all that is there ──▶ reply
 *                          └── granted: as many as left it
 *
 * Bounded: TOKD_ANSWER_IDS are granted when a lane is taken, and later as many as were published.
 * The sink gives no more than is granted. So what came and is not published always fits id[], also
 * while the token ring is full, or a client does not acknowledge and has used up its window. Then
 * nothing more is granted, the lane pauses, and nobody else waits for it.
 *
 * Lanes are shared by source: while several are at work each has at most a quarter, and one if less
 * than a quarter is free; one that is alone leaves a quarter. While none is free, an answer whose
 * client is slow (tokd_share_is_slow) times out. Nobody gives way to others otherwise.
 *
 * A lane is its stream's until the sink says that it ended, or the stream does (tokd_generate_leave
 * is called for every stream that is no longer open).
 */
#pragma once

#include <sink/sink.h>

#include "stream.h"

/* Of a worker with a sink. */
struct tokd_answers {
	struct tokg_sink *sink;
	bool lost;				     /* it has no agent */
	struct tokd_stream_list ready;		     /* with something to publish */
	struct tokd_stream *of_lane[TOKG_LANES_MAX]; /* that took it last */
};

/* Can texts with this vocabulary be continued? False: there is no GPU that makes ids now. */
bool tokd_generate_can(const struct tokd_worker *w, const struct tokd_vocab *vocab);
/* It has a lane, and none is left for others. */
bool tokd_generate_is_short(const struct tokd_worker *w, const struct tokd_stream *s);
/* It gets no lane now: none is free, or its source has its share. */
bool tokd_generate_must_wait(const struct tokd_worker *w, const struct tokd_stream *s);

/* The last bytes of a prompt are next: it takes a lane. NOT_FED: it must wait. */
enum tokd_feed tokd_generate_begin(struct tokd_worker *w, struct tokd_stream *s, uint32_t limit);
/* They were fed. */
void tokd_generate_answer(struct tokd_worker *w, struct tokd_stream *s);
/* It answers, and its client has acknowledged some. */
void tokd_generate_go_on(struct tokd_worker *w, struct tokd_stream *s);
/* Its client asks for the end. */
void tokd_generate_cancel(struct tokd_worker *w, struct tokd_stream *s);
/* It is no longer open. */
void tokd_generate_leave(struct tokd_worker *w, struct tokd_stream *s);

/* The sink's callbacks. */
void tokd_generate_token(void *worker, uint32_t lane, uint64_t serial, uint32_t index, uint32_t id);
void tokd_generate_ended(void *worker, uint32_t lane, uint64_t serial, enum tokg_end how);

/*
 * Once a turn, after the sink was polled: publishes and sends what came, for about as long as a
 * slice of the tokenizer, whose ticks its sources pay (drr.h); the rest in the next. False: there
 * was nothing.
 */
bool tokd_generate_turn(struct tokd_worker *w);
