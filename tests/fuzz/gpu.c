/* SPDX-License-Identifier: BSD-3-Clause */
#include "gpu.h"

#include <ring/geometry.h>

#include "control/gpu_sink_control.h"
#include "vocabulary.h"

#define SLOTS 8
#define LANES 4
#define LOG 512
#define N_IDS (1u << 16) /* more than a vocabulary has */
#define TURNS 3		 /* from an id in the log to its record, about */
#define IDS_MAX 1024	 /* of an answer, that are followed */
#define TEXT_MAX (16u << 10)

struct lane {
	uint32_t turn, made; /* turn 0: none has begun */
	uint64_t ask, serial;
};

/* By serial. */
struct answer {
	bool begun, over;
	bool skips;			   /* special tokens have no text */
	uint32_t n_made, n, bytes, n_text; /* the last three: in the token ring */
	uint32_t made[IDS_MAX];
	uint8_t text[TEXT_MAX];
};

static struct gpu {
	const struct tokd_worker *w;
	struct tokg_transport t;
	struct tokg_back back;
	uint64_t word[SLOTS + LANES + LOG], copy[SLOTS + LANES + LOG]; /* done, ended, log */
	struct tokg_hdr hdr[SLOTS];
	uint64_t now, log_head;
	enum tokg_status status; /* of the next slot */
	bool broken, holds;	 /* holds: no slot is done */
	struct lane lane[LANES];
} gpu;

static struct answer answers[PLANE_GATHERED];

/* ---- the engine ---- */

static void
begin(struct answer *a, uint64_t serial)
{
	const struct tokd_stream *s = tokd_stream_of_serial(gpu.w->streams, serial);

	a->begun = true;
	a->skips = s != NULL && (s->flags & TOKD_F_SKIP_SPECIAL) != 0;
}

static void
finish(void)
{
	while (!gpu.holds) {
		const uint32_t slot = gpu.back.released % SLOTS;
		const struct tokg_hdr *h = &gpu.hdr[slot];

		if (h->ticket == gpu.word[slot] >> 8)
			return;
		gpu.word[slot] = TOKG_DONE(h->ticket, gpu.status);
		gpu.back.released++;
		if ((h->flags & TOKG_GENERATE) && gpu.status == TOKG_OK) {
			struct lane *l = &gpu.lane[TOKG_FLAGS_LANE(h->flags)];

			l->turn = TOKG_FLAGS_TURN(h->flags);
			l->made = 0;
			l->serial = h->request;
			if (h->request < PLANE_GATHERED)
				begin(&answers[h->request], h->request);
		}
		gpu.status = TOKG_OK;
	}
}

static bool
is_open(uint32_t lane)
{
	return gpu.lane[lane].turn != TOKG_LANE_TURN(gpu.word[SLOTS + lane]);
}

static bool
may_make(uint32_t lane)
{
	const struct lane *l = &gpu.lane[lane];

	return is_open(lane) && TOKG_LANE_TURN(l->ask) == l->turn && TOKG_LANE_N(l->ask) > l->made;
}

/* Also when it may not. */
static void
make(uint32_t lane, uint32_t id)
{
	struct lane *l = &gpu.lane[lane];
	const bool begun = l->turn != 0 && l->serial < PLANE_GATHERED;
	struct answer *a = begun ? &answers[l->serial] : NULL;

	gpu.word[SLOTS + LANES + gpu.log_head % LOG] =
		TOKG_TOKEN(id, lane, l->turn, tokg_lap_of(&gpu.t.geometry, gpu.log_head));
	gpu.log_head++;
	l->made++;
	if (a != NULL && a->n_made < IDS_MAX)
		a->made[a->n_made] = id;
	if (a != NULL)
		a->n_made++;
}

void
gpu_step(const struct tokd_worker *w, struct input *in)
{
	const uint8_t what = (uint8_t)input_take(in, 1), how = (uint8_t)input_take(in, 1);
	const uint32_t n_ids = tok_vocab_info(w->terms->vocab[0].tok).n_ids, i = what % LANES;
	const struct lane *l = &gpu.lane[i];

	switch (what / LANES % 16) {
	case 0:
		gpu.holds = !gpu.holds;
		break;
	case 1:
		gpu.status = TOKG_OK + how % TOKG_BADPOS;
		break;
	case 2:
		gpu.broken = true;
		break;
	case 3:
		gpu.word[SLOTS + i] = TOKG_LANE_WORD(l->made, l->turn, TOKG_END_STOP + how % 4);
		break;
	case 4: /* perhaps more than was granted, or for nobody */
		make(i, how);
		break;
	case 5: /* outside the vocabulary, or even the table */
		if (may_make(i))
			make(i, how == UINT8_MAX ? N_IDS : n_ids + how);
		break;
	case 6:
		gpu.word[SLOTS + i] = TOKG_LANE_WORD(l->made + how / 16, l->turn, how % 16);
		break;
	case 7:
		gpu.back.epoch++;
		break;
	default:
		for (uint32_t n = how % 64 + 1; n > 0 && may_make(i); n--)
			make(i, (how + 31 * l->made) % n_ids);
		break;
	}
}

/* ---- the transport ---- */

static int
post(struct tokg_transport *t, uint32_t slot, const void *payload, uint32_t bytes,
	const struct tokg_hdr *hdr, enum tokg_order order)
{
	if (gpu.broken)
		return -1;
	gpu.hdr[slot] = *hdr;
	return 1;
}

static int
ask(struct tokg_transport *t, uint32_t lane, uint64_t word)
{
	if (gpu.broken)
		return -1;
	gpu.lane[lane].ask = word;
	return 1;
}

static int
poll_all(struct tokg_transport *t)
{
	if (gpu.broken)
		return -1;
	finish();
	return 0;
}

static int
read_back(struct tokg_transport *t)
{
	gpu.back.heartbeat++;
	*t->back = gpu.back;
	memcpy(gpu.copy, gpu.word, t->read_bytes - sizeof(gpu.back));
	t->n_reads++;
	return 1;
}

static int
reconnect(struct tokg_transport *t, uint64_t *tickets, struct tokg_error *err)
{
	for (uint32_t i = 0; i < SLOTS; i++)
		tickets[i] = gpu.hdr[i].ticket;
	gpu.broken = false;
	return 1;
}

static void
end(struct tokg_transport *t)
{
}

static const struct tokg_transport_ops ops = {.name = "fuzz",
	.post = post,
	.ask = ask,
	.flush = poll_all,
	.poll = poll_all,
	.read_back = read_back,
	.reconnect = reconnect,
	.close = end};

/* ---- the worker's sink ---- */

void
gpu_open(struct tokd_worker *w)
{
	static struct tokg_back copy;
	struct tokg_error err;

	gpu = (struct gpu){.w = w, .back.epoch = 1, .status = TOKG_OK};
	copy = gpu.back;
	for (uint32_t i = 0; i < PLANE_GATHERED; i++) {
		struct answer *a = &answers[i];

		a->begun = a->over = false;
		a->n_made = a->n = a->bytes = a->n_text = 0;
	}
	gpu.t = (struct tokg_transport){.ops = &ops,
		.epoch = 1,
		.back = &copy,
		.done = gpu.copy,
		.link = -1,
		.geometry = {.producers = 1,
			.slots = SLOTS,
			.slot_bytes = TOKG_SLOT_BYTES_MIN,
			.kind = TOKG_KIND_WORD,
			.dtype = TOKG_F32,
			.dim = 8,
			.n_ids = N_IDS,
			.lanes = LANES,
			.log = LOG,
			.out_bytes = 1 << 19}};
	MUST(tokg_geometry_fill(&gpu.t.geometry, &err));
	gpu.t.read_bytes = tokg_back_bytes(&gpu.t.geometry, true);
	MUST(tokd_sink_make(w, &gpu.t, &err));
}

void
gpu_close(struct tokd_worker *w)
{
	tokd_sink_close(w);
}

/* As tokd_sink_poll, and the control thread beside it, but reads are due in every turn. */
static void
poll_sink(struct tokd_worker *w)
{
	struct tokd_sink *s = w->sink;
	struct tokg_error err;

	gpu.now += w->tsc_hz / 1000;
	if (s->state == TOKD_SINK_BROKEN)
		s->state =
			tokg_sink_recover(s->sink, &err) > 0 ? TOKD_SINK_RUNNING : TOKD_SINK_LOST;
	s->answers.lost = s->state == TOKD_SINK_LOST;
	if (s->answers.lost)
		tokg_sink_cut(s->sink);
	else if (!tokg_sink_poll(s->sink, w->ring.head, gpu.now, true))
		s->state = TOKD_SINK_BROKEN;
}

void
gpu_turns(struct tokd_worker *w)
{
	for (uint32_t i = 0; i < TURNS; i++) {
		poll_sink(w);
		tokd_generate_turn(w);
	}
}

/* ---- what came of it ---- */

static void
see_text(const struct tokd_worker *w, struct answer *a, const uint8_t *text, uint32_t n)
{
	static uint8_t want[TEXT_MAX];
	const struct tok_vocab *v = w->terms->vocab[0].tok;
	const uint32_t special = tok_vocab_info(v).n_ids - VOCABULARY_SPECIALS;
	uint32_t ids[IDS_MAX], n_ids = 0;
	struct tok_result r;

	if (n > 0 && a->n_text + n <= TEXT_MAX)
		memcpy(&a->text[a->n_text], text, n);
	a->n_text += n;
	if (!a->over || a->n_text > TEXT_MAX || a->n > IDS_MAX)
		return;
	for (uint32_t i = 0; i < a->n; i++)
		if (!a->skips || a->made[i] < special)
			ids[n_ids++] = a->made[i];
	r = tok_decode(v, ids, n_ids, want, TEXT_MAX);
	MUST(r.status == TOK_OK && r.produced == a->n_text);
	MUST(memcmp(want, a->text, a->n_text) == 0);
}

void
gpu_record(const struct tokd_worker *w, const struct tokd_rec *rec, const uint8_t *items)
{
	struct answer *a = &answers[rec->serial % PLANE_GATHERED];
	uint32_t at = 0;

	if (rec->serial >= PLANE_GATHERED || !a->begun)
		return;
	MUST(rec->first == a->bytes && rec->flags == 0);
	while (at < rec->count) {
		struct tokd_made made;

		MUST(rec->count - at >= sizeof(made) && !a->over);
		memcpy(&made, items + at, sizeof(made));
		at += sizeof(made);
		MUST(rec->count - at >= made.text && made.end <= TOKD_MADE_CANCELLED);
		a->over = made.end != TOKD_MADE_MORE;
		MUST(a->over == (made.id == TOKD_MADE_END));
		if (!a->over) {
			MUST(a->n < a->n_made);
			MUST(a->n >= IDS_MAX || made.id == a->made[a->n]);
			a->n++;
		}
		see_text(w, a, items + at, made.text);
		at += made.text;
	}
	a->bytes += rec->count;
}

void
gpu_ended(const struct tokd_worker *w)
{
	MUST(TAILQ_EMPTY(&w->answers->ready));
	for (uint32_t i = 0; i <= w->streams->n; i++)
		MUST(w->streams->stream[i].lane == 0);
}
