/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * --pipeline gpu: texts whose ids no client wants go to the GPU as bytes, which tokenizes them. A
 * text is kept in a buffer until it is complete, so that an incomplete one does not block the token
 * ring; then it becomes one record (TOKD_REC_BYTES). The buffer stays in use until the sink has
 * finished the text: the GPU may give it back to be tokenized here.
 *
 *           its stream begins          complete, in the ring           the GPU cannot
 *   FREE ─────────────────────▶ OPEN ───────────────────────▶ POSTED ──────────────────▶ BACK
 *     ▲  too long, or it failed  │     embedded, failed, shed    │    ids in the ring      │
 *     └──────────────────────────┴───────────────────────────────┴────────────────────────┘
 *
 * A text that finds no free buffer, or does not fit one, is tokenized here as without the option.
 * So are all texts while the sink sheds and has no agent: nobody would embed them. The open texts
 * of a source take at most a quarter of the buffers, or one if less than a quarter is free.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <ring/gpu_ring.h>

#include "datapath/source/source.h"
#include "stream.h"

enum tokd_gpu_text_state {
	TOKD_GPU_TEXT_FREE = 0,
	TOKD_GPU_TEXT_OPEN,
	TOKD_GPU_TEXT_POSTED,
	TOKD_GPU_TEXT_BACK
};

struct tokd_gpu_text {
	STAILQ_ENTRY(tokd_gpu_text) link; /* FREE, BACK: in the list of its state */
	uint8_t state;			  /* enum tokd_gpu_text_state */
	uint32_t n;			  /* bytes kept */
	uint32_t fed;			  /* of these, tokenized here */
	uint32_t fed_crc;		  /* CRC32C of them */
	bool leaves; /* OPEN: it is tokenized here: first what is kept, then the rest */
	/* POSTED, BACK: copied from its stream, which may have gone */
	struct tokd_addr addr;
	uint64_t stream_id, serial, t_open, t_rx;
	uint32_t epoch, crc;
};

STAILQ_HEAD(tokd_gpu_text_queue, tokd_gpu_text);

/* Of a worker. */
struct tokd_gpu_texts {
	uint32_t vocab; /* checksum: the GPU's */
	uint32_t room;	/* bytes of a text */
	uint32_t n;	/* texts */
	uint32_t n_free;
	bool here; /* the sink has no agent, and sheds: all are tokenized here */
	struct tokd_gpu_text_queue free, back;
	/* Texts that came back, and how many of these have ended. The control thread reads `ended`
	 * first. */
	_Atomic uint32_t came_back, ended;
	struct tokd_gpu_text *text;
	uint8_t *bytes;		   /* [n][room] */
	struct tokd_gpu_text *now; /* BACK, off that list: it is being tokenized. NULL: none is */
	struct tokd_stream stream; /* for `now`. It has the vocabulary of the current terms: with a
				    * sink a reload changes neither ids nor flags. */
	struct tokd_source source; /* for texts whose own source has gone */
};

/* A stream begins: it gets a buffer if only the GPU needs its ids and a buffer is free. */
void tokd_gpu_text_begin(
	struct tokd_worker *w, struct tokd_stream *s, const struct tokd_vocab *vocab);
/*
 * Keep the next `n` bytes of a text instead of feeding them. True: *how is the result. False: the
 * text is no longer kept, and what was kept is fed: feed these bytes, too.
 */
bool tokd_gpu_text_take(struct tokd_worker *w, struct tokd_stream *s, const uint8_t *text,
	uint32_t n, bool last, uint32_t want, uint64_t t_rx, enum tokd_feed *how);
/* The stream ends, and its text is not complete. */
void tokd_gpu_text_drop(struct tokd_worker *w, struct tokd_stream *s);

/* The sink's callback. */
void tokd_gpu_text_done(void *worker, const struct tokd_rec *rec, enum tokg_status status);
/* All texts in the ring were shed. */
void tokd_gpu_texts_shed(struct tokd_worker *w);
/* Once a turn: tokenizes texts that came back. It takes what is left of a slice, or a slice of its
 * own if no sources share. False: there are none. */
bool tokd_gpu_texts_feed(struct tokd_worker *w);

/* Is it the stream of a text that came back? Such a stream is in no list and has no client. */
static inline bool
tokd_gpu_text_is_back(const struct tokd_worker *w, const struct tokd_stream *s)
{
	return w->gpu_texts != NULL && s == &w->gpu_texts->stream;
}
