/* SPDX-License-Identifier: BSD-3-Clause */
/* --pipeline gpu: texts that go to the GPU as bytes, come back, or are tokenized here after all. */
#include <stdlib.h>

#include "fake_gpu.h"
#include "fixture.h"
#include "control/tables/tables.h"
#include "control/vocabs/terms.h"
#include "datapath/source/source.h"
#include "vocabulary.h"

#define PLACES (4 * GPU_SLOTS)
#define ROOM 4096 /* bytes of a text: rows of a quarter of the outputs */

/* Ids that only the GPU has get no keys: not with --block-keys. */
static int
set_up(void **state, int (*how)(void **state))
{
	const uint32_t keys = fx_block_keys;
	int rc;

	fx_block_keys = 0;
	rc = how(state);
	fx_block_keys = keys;
	return rc;
}

static int
set_up_ring(void **state)
{
	return set_up(state, setup);
}

static int
set_up_small_ring(void **state)
{
	return set_up(state, setup_small_ring);
}

#define GPU_TEST(name) TEST_WITH(name, set_up_ring, teardown)
#define SMALL_RING_TEST(name) TEST_WITH(name, set_up_small_ring, teardown)

static void
give_gpu(void)
{
	give_sink();
	assert_int_equal(tokd_gpu_texts_open(&fx->w, &gpu.t.geometry), 0);
	assert_int_equal(fx->w.gpu_texts->room, ROOM);
	assert_int_equal(fx->w.gpu_texts->n, PLACES);
}

static uint32_t
places(void)
{
	const struct tokd_gpu_text *g;
	uint32_t n = 0;

	STAILQ_FOREACH(g, &fx->w.gpu_texts->free, link)
	n++;
	return n;
}

/* Every text has ended here: so has its place. */
static void
take_gpu(void)
{
	const struct tokd_gpu_texts *t = fx->w.gpu_texts;

	assert_int_equal(places(), PLACES);
	assert_int_equal(atomic_load(&t->came_back), atomic_load(&t->ended));
	assert_int_equal(atomic_load(&fx->w.terms->users), 1 + tokd_worker_open_streams(&fx->w));
	tokd_sink_close(&fx->w);
	assert_null(fx->w.gpu_texts);
}

static void
posted_as_bytes(uint32_t slot, const void *text, uint32_t n)
{
	assert_int_equal(gpu.hdr[slot].flags, TOKG_FIRST | TOKG_LAST | TOKG_TEXT);
	assert_int_equal(gpu.hdr[slot].bytes, n);
	assert_memory_equal(gpu.payload[slot], text, n);
}

static void
posted_as_ids(uint32_t slot, const void *text, uint32_t n)
{
	uint32_t *ids = calloc(3 * n + 16, 4), n_ids = whole(text, n, ids, 3 * n + 16);

	assert_int_equal(gpu.hdr[slot].flags, TOKG_FIRST | TOKG_LAST);
	assert_int_equal(gpu.hdr[slot].tokens, n_ids);
	assert_memory_equal(gpu.payload[slot], ids, 4 * n_ids);
	free(ids);
}

static struct tokd_rep
is_done(void)
{
	struct reply r, last = {0};

	while (next_reply(&r))
		last = r;
	assert_true(last.rep.flags & TOKD_F_DONE);
	return last.rep;
}

static void
read_all(void)
{
	struct text_ids *none = calloc(1, sizeof(*none));

	gather(UINT64_MAX, none);
	free(none);
}

GPU_TEST(text_goes_to_the_gpu_as_bytes)
{
	struct tokd_rep rep;

	give_gpu();
	ask_text(1, "hello world", 11, 4, 0);
	rep = is_done();
	assert_int_equal(rep.flags, TOKD_F_DONE | TOKD_F_UNCOUNTED);
	assert_int_equal(rep.total | rep.ids_crc, 0);
	assert_int_equal(rep.text_end, 11);
	turns(3);
	assert_int_equal(gpu.n_posts, 1);
	posted_as_bytes(0, "hello world", 11);
	assert_int_equal(places(), PLACES - 1);
	embed(TOKG_OK);
	turns(3);
	tokd_sink_count(&fx->w);
	expect_count(C_SINK_TEXTS, 1);
	expect_count(C_IDS, 0);
	expect_count(C_TEXT_BYTES, 0);
	take_gpu();
}

/* Of an ARM's clock a tick is ten cycles and more. */
GPU_TEST(text_that_is_kept_takes_its_source_less_than_a_nanosecond_a_byte)
{
	uint8_t text[1000] = "";

	give_gpu();
	fx->w.tsc_hz = 200000000;
	send_text(1, text, sizeof(text), sizeof(text), 0);
	run();
	is_done();
	assert_in_range(fx->w.drr.took, 1, sizeof(text) * fx->w.tsc_hz / 1000000000);
	turns(3);
	embed(TOKG_OK);
	turns(3);
	take_gpu();
}

GPU_TEST(text_that_the_gpu_gives_back_is_tokenized_here)
{
	uint8_t text[ROOM];

	give_gpu();
	make_text(text, ROOM, 3);
	ask_text(1, text, ROOM, 1000, 0);
	assert_int_equal(is_done().flags, TOKD_F_DONE | TOKD_F_UNCOUNTED);
	turns(3);
	posted_as_bytes(0, text, ROOM);
	embed(TOKG_CPU);
	turns(20);
	assert_int_equal(fx->w.sink->sink != NULL && gpu.n_posts > 1, true);
	expect_text(1, text, ROOM);
	embed(TOKG_OK);
	turns(3);
	tokd_sink_count(&fx->w);
	expect_count(C_SINK_TEXTS_CPU, 1);
	expect_count(C_SINK_FAILED, 0);
	expect_count(C_TEXT_BYTES, ROOM);
	assert_true(tokg_sink_is_idle(fx->w.sink->sink, fx->w.ring.head));
	take_gpu();
}

GPU_TEST(text_with_ids_or_of_another_vocabulary_is_tokenized_here)
{
	struct request r = data_request(2, 0, 0, "hello", 5, TOKD_F_FIRST | TOKD_F_LAST);

	give_gpu();
	send_text(1, "hello", 5, 5, TOKD_F_IDS);
	r.req.vocab = fx->w.terms->vocab[1].checksum;
	send_request(r);
	send_text(3, "", 0, 1, 0); /* nothing to tokenize */
	run();
	assert_int_equal(drain(), 3);
	turns(3);
	assert_int_equal(gpu.n_posts, 3);
	posted_as_ids(0, "hello", 5);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(gpu.hdr[i].flags & TOKG_TEXT, 0);
	embed(TOKG_OK);
	turns(3);
	expect_count(C_PIPELINE_HERE, 0);
	take_gpu();
}

/* What was kept of it is tokenized first. However the packets are cut. */
GPU_TEST(text_that_is_too_long_is_tokenized_here)
{
	static const uint32_t sizes[] = {ROOM, ROOM + 1, 2 * ROOM, 9 * ROOM};
	uint8_t text[9 * ROOM];

	give_gpu();
	make_text(text, sizeof(text), 5);
	for (uint32_t i = 0; i < 4 * RTE_DIM(sizes); i++) {
		const uint32_t n = sizes[i / 4], cut = (uint32_t[]){1300, 1024, 4096, 700}[i % 4];

		for (uint32_t p = 0; p < text_packets(n, cut); p++)
			ask(text_packet(i, text, n, cut, 0, p));
		assert_int_equal(
			is_done().flags & TOKD_F_UNCOUNTED, n == ROOM ? TOKD_F_UNCOUNTED : 0);
		if (n > ROOM)
			expect_text(i, text, n);
		for (uint32_t k = 0; k < 20; k++) {
			turns(3);
			embed(TOKG_OK);
		}
		if (n == ROOM)
			read_all();
		assert_int_equal(places(), PLACES);
	}
	expect_count(C_PIPELINE_HERE, 12);
	take_gpu();
}

GPU_TEST(text_that_finds_no_place_is_tokenized_here)
{
	give_gpu();
	for (uint32_t i = 0; i < PLACES; i++) {
		ask_text(i, "hello", 5, 5, 0);
		assert_int_equal(is_done().flags, TOKD_F_DONE | TOKD_F_UNCOUNTED);
	}
	assert_int_equal(places(), 0);
	expect_count(C_PIPELINE_HERE, 0);
	ask_text(PLACES, "hello", 5, 5, 0);
	assert_int_equal(is_done().flags, TOKD_F_DONE);
	expect_count(C_PIPELINE_HERE, 1);
	for (uint32_t i = 0; i < PLACES; i++) {
		turns(3);
		embed(TOKG_OK);
	}
	take_gpu();
}

GPU_TEST(text_that_is_corrupt_never_reaches_the_gpu)
{
	struct request r = data_request(1, 0, 0, "hello", 5, TOKD_F_FIRST | TOKD_F_LAST);

	give_gpu();
	r.req.text_crc ^= 1;
	expect_refusal(r, TOKD_R_TEXT_CRC);
	turns(3);
	assert_int_equal(gpu.n_posts, 1);
	assert_int_equal(gpu.hdr[0].flags, TOKG_ABORT | TOKG_FIRST);
	embed(TOKG_OK);
	turns(3);
	take_gpu();
}

GPU_TEST(text_that_the_gpu_cannot_embed_fails_without_a_stream)
{
	give_gpu();
	ask_text(1, "hello", 5, 5, 0);
	drain();
	turns(3);
	embed(TOKG_BADPOS);
	turns(3);
	tokd_sink_count(&fx->w);
	expect_count(C_SINK_FAILED, 1);
	expect_count(C_STREAMS_FAILED, 0);
	take_gpu();
}

/*
 * The ring is full of what the GPU has not done, and of a text that it then gives back: that holds
 * nothing, and its ids come when there is room.
 */
SMALL_RING_TEST(text_that_comes_back_waits_for_the_ring_and_does_not_hold_it)
{
	uint8_t text[ROOM];
	uint32_t n = 0;

	give_gpu();
	make_text(text, ROOM, 7);
	while (fx->w.counter[C_DROP_RING_FULL] == 0) {
		ask_text(n, text, ROOM, 1024, 0);
		read_all();
		turns(2);
		drain();
		n++;
	}
	/* The last one has not ended; the other half waits for slots. */
	for (uint32_t i = 0; i < 600; i++) {
		if (i % 3 == 0)
			embed(i % 2 == 0 ? TOKG_CPU : TOKG_OK);
		turns(1);
		tokd_housekeeping(&fx->w, rte_rdtsc());
		read_all();
	}
	assert_true(n > 3);
	tokd_sink_count(&fx->w);
	assert_true(fx->w.counter[C_SINK_TEXTS_CPU] > 2);
	assert_int_equal(fx->w.counter[C_SINK_FAILED], 0);
	assert_int_equal(
		atomic_load(&fx->w.gpu_texts->came_back), atomic_load(&fx->w.gpu_texts->ended));
	tokd_stream_fail(&fx->w, TAILQ_FIRST(&fx->w.streams->open), TOKD_R_TIMEOUT);
	take_gpu();
}

/* What it kept is fed in parts, as far as the ring has room. */
SMALL_RING_TEST(text_that_is_too_long_waits_for_the_ring_in_the_middle)
{
	struct text_ids *got = calloc(1, sizeof(*got));
	uint8_t text[ROOM + 2000];
	const uint32_t packets = text_packets(sizeof(text), 1000);
	uint32_t *want = calloc(3 * sizeof(text), 4), n = 0, next = 0, waits = 0;
	uint64_t here;

	give_gpu();
	make_text(text, sizeof(text), 9);
	while (next < 4) {
		const struct request r = text_packet(1, text, sizeof(text), 1000, 0, next++);

		ask(r);
	}
	/* Others fill the ring. */
	while (fx->w.counter[C_DROP_RING_FULL] == 0) {
		ask_text(100 + n++, text, 900, 900, 0);
		gather(1, got);
		drain();
	}
	tokd_stream_fail(
		&fx->w, TAILQ_LAST(&fx->w.streams->open, tokd_stream_list), TOKD_R_TIMEOUT);
	assert_int_equal(got->records, 0);
	here = fx->w.counter[C_PIPELINE_HERE];
	for (uint32_t i = 0; next < packets; i++) {
		const struct request r = text_packet(1, text, sizeof(text), 1000, 0, next);
		struct reply rep;

		assert_true(i < 1000);
		if (i > 3)
			embed(TOKG_OK);
		ask(r);
		tokd_housekeeping(&fx->w, rte_rdtsc());
		gather(1, got);
		waits += got->records > 0 && next == 4;
		while (next_reply(&rep)) {
			if (rep.rep.stream_id == 1)
				next = rep.rep.ack;
		}
	}
	assert_true(waits > 0); /* some of it was fed, and it was not done */
	assert_int_equal(got->n, whole(text, sizeof(text), want, 3 * sizeof(text)));
	assert_memory_equal(got->id, want, 4 * got->n);
	assert_int_equal(got->last_flags, 1);
	assert_int_equal(fx->w.counter[C_PIPELINE_HERE], here + 1);
	for (uint32_t i = 0; i < 40; i++) {
		embed(TOKG_OK);
		turns(3);
	}
	take_gpu();
	free(got);
	free(want);
}

/* Form C has a limit of marks in a row. Its client has its answer: only the ring and the GPU hear.
 */
GPU_TEST(text_that_comes_back_and_is_refused_ends_with_an_abort)
{
	struct tokd_vocab *v = &fx->w.terms->vocab[0];
	const struct tokd_vocab was = *v;
	struct tok_vocab *nfc = vocabulary_make_nfc(VOCABULARY_MERGES);
	struct text_ids *got = calloc(1, sizeof(*got));
	char text[1000] = "e";

	for (uint32_t i = 1; i + 1 < sizeof(text); i += 2)
		memcpy(text + i, "\xcc\x81", 2);
	*v = (struct tokd_vocab){.tok = nfc, .checksum = tok_vocab_info(nfc).checksum};
	give_gpu();
	send_text(1, text, 999, 999, 0);
	ask_text(2, "hello", 5, 5, 0);
	assert_int_equal(drain(), 2);
	turns(3);
	assert_int_equal(gpu.n_posts, 2);
	embed(TOKG_CPU);
	turns(20);
	gather(1, got);
	assert_int_equal(got->aborts, 1);
	assert_int_equal(got->reason, TOKD_R_CARRY);
	expect_count(C_STREAMS_FAILED, 0);
	for (uint32_t i = 2; i < gpu.n_posts; i++)
		assert_int_equal(gpu.hdr[i].flags & TOKG_TEXT, 0);
	embed(TOKG_OK);
	turns(3);
	take_gpu();
	*v = was;
	tok_vocab_free(nfc);
	free(got);
}

GPU_TEST(text_that_is_shed_gives_back_its_place)
{
	give_gpu();
	for (uint32_t i = 0; i < 3; i++)
		send_text(i, "hello", 5, 5, 0);
	run();
	drain();
	turns(3);
	assert_int_equal(places(), PLACES - 3);
	tokg_sink_give_up(fx->w.sink->sink);
	atomic_store(&fx->w.sink->state, TOKD_SINK_LOST);
	assert_true(tokd_sink_shed(&fx->w));
	read_all();
	take_gpu();
}

#define OTHER_IP 0xc0000217u

static void
send_text_of(uint32_t ip, uint64_t stream, const void *text, uint32_t n)
{
	struct request r = text_packet(stream, text, n, n, 0, 0);

	r.ip = ip;
	ask(r);
	drain();
}

/* All that was posted, but not taken on yet. */
static void
give_all_back(void)
{
	struct tokd_gpu_texts *t = fx->w.gpu_texts;

	turns(3);
	embed(TOKG_CPU);
	for (uint32_t i = 0; i < 1000 && STAILQ_EMPTY(&t->back); i++) {
		rte_delay_us_block(10);
		tokd_sink_poll(&fx->w, false);
	}
	assert_false(STAILQ_EMPTY(&t->back));
}

/* Another source is at work: it gets its slices, whatever comes back. */
GPU_TEST(text_that_comes_back_takes_no_more_than_is_left_of_a_slice)
{
	struct tokd_gpu_texts *t;
	uint8_t text[ROOM];

	give_gpu();
	t = fx->w.gpu_texts;
	make_text(text, ROOM, 3);
	ask_text(1, text, ROOM, 1000, 0);
	give_all_back();
	fx->w.drr.shared = true;
	fx->w.drr.slice = 1;
	assert_true(tokd_gpu_texts_feed(&fx->w));
	expect_count(C_TEXT_BYTES, TOKD_PIECE_MAX);
	assert_int_equal(atomic_load(&t->ended), 0);
	/* The ring was full; it has room again. */
	fx->w.ring.full = true;
	assert_true(tokd_gpu_texts_feed(&fx->w));
	expect_count(C_TEXT_BYTES, ROOM);
	assert_int_equal(atomic_load(&t->ended), 1);
	fx->w.ring.full = false;
	expect_text(1, text, ROOM);
	/* The GPU's time is in no stage. */
	assert_int_equal(fx->w.time[T_TEXT_TO_LAST_ID].max, 0);
	turns(3);
	embed(TOKG_OK);
	turns(3);
	take_gpu();
}

GPU_TEST(texts_that_come_back_of_a_heavy_source_let_others_pass)
{
	const struct tokd_gpu_texts *t;
	struct tokd_source *heavy;

	give_gpu();
	t = fx->w.gpu_texts;
	for (uint64_t i = 0; i < 3; i++)
		send_text_of(0, i, "hello world", 11);
	send_text_of(OTHER_IP, 3, "the token", 9);
	give_all_back();
	assert_int_equal(atomic_load(&t->came_back), 4);
	heavy = tokd_source_find(&fx->w, &STAILQ_FIRST(&t->back)->addr);
	heavy->flow.heavy = true;
	heavy->flow.saved = 0;
	heavy->flow.at_saved = fx->w.drr.given;
	fx->w.drr.shared = true;
	fx->w.drr.slice = 1;
	tokd_gpu_texts_feed(&fx->w);
	assert_int_equal(atomic_load(&t->ended), 1);
	expect_text(3, "the token", 9);
	for (uint32_t i = 0; i < 3; i++)
		tokd_gpu_texts_feed(&fx->w);
	assert_int_equal(atomic_load(&t->ended), 4);
	turns(3);
	embed(TOKG_OK);
	turns(3);
	take_gpu();
}

/* A text that waits for the GPU uses no terms: a reload does not wait for the agent. */
GPU_TEST(text_at_the_gpu_does_not_keep_the_terms_that_it_began_with)
{
	struct tokd_vocabs v = {.node = SOCKET_ID_ANY, .n = 2};
	struct tokd_terms *was;

	give_gpu();
	ask_text(1, "hello world", 11, 11, 0);
	drain();
	turns(3);
	was = fx->w.terms;
	for (uint32_t i = 0; i < v.n; i++)
		v.tok[i] = (struct tok_vocab *)(uintptr_t)was->vocab[i].tok;
	atomic_store(&fx->w.next_terms, fixture_terms(&v));
	turns(1);
	assert_ptr_equal(fx->w.terms, fx->w.next_terms);
	assert_true(tokd_terms_are_left(was));
	tokd_terms_free(was);
	embed(TOKG_CPU);
	turns(5);
	expect_text(1, "hello world", 11);
	embed(TOKG_OK);
	turns(3);
	take_gpu();
}

GPU_TEST(open_texts_of_one_source_leave_places_to_others)
{
	const uint32_t most = PLACES / 4;

	give_gpu();
	for (uint64_t i = 0; i <= most; i++) {
		const struct request r = text_packet(i, "hello world", 11, 6, 0, 0);

		ask(r);
	}
	assert_int_equal(places(), PLACES - most);
	expect_count(C_PIPELINE_HERE, 1);
	send_text_of(OTHER_IP, 100, "hello", 5);
	assert_int_equal(places(), PLACES - most - 1);
	for (uint64_t i = 0; i <= most; i++) {
		const struct request r = text_packet(i, "hello world", 11, 6, 0, 1);

		ask(r);
		turns(3);
		embed(TOKG_OK);
	}
	turns(3);
	embed(TOKG_OK);
	turns(3);
	drain();
	take_gpu();
}

/* No one would embed it, and no one get its ids. Also if it began before. */
GPU_TEST(text_is_tokenized_here_while_the_sink_sheds)
{

	give_gpu();
	fx->w.ring.shed = tokd_sink_shed;
	ask(text_packet(1, "hello world", 11, 6, 0, 0));
	assert_int_equal(places(), PLACES - 1);
	tokg_sink_give_up(fx->w.sink->sink);
	atomic_store(&fx->w.sink->state, TOKD_SINK_LOST);
	turns(1);
	ask(text_packet(1, "hello world", 11, 6, 0, 1));
	expect_text(1, "hello world", 11);
	ask_text(2, "hello", 5, 5, 0);
	expect_text(2, "hello", 5);
	drain();
	expect_count(C_PIPELINE_HERE, 2);
	fx->w.ring.shed = NULL;
	take_gpu();
}

/* The agent dies before its cursor has passed the bytes: the next one gets the ids alone. */
GPU_TEST(text_that_came_back_goes_to_no_other_agent)
{
	struct tokg_error err = {""};
	uint32_t n_texts = 0;

	give_gpu();
	send_text(1, "first", 5, 5, 0);
	ask_text(2, "hello", 5, 5, 0);
	drain();
	turns(3);
	assert_int_equal(gpu.n_posts, 2);
	gpu.done[1] = TOKG_DONE(gpu.hdr[1].ticket, TOKG_CPU);
	turns(5);
	expect_text(2, "hello", 5);
	tokg_sink_give_up(fx->w.sink->sink);
	memset(gpu.hdr, 0, sizeof(gpu.hdr));
	memset(gpu.done, 0, sizeof(gpu.done));
	gpu.n_posts = 0;
	gpu.back = (struct tokg_back){.epoch = 1};
	assert_true(tokg_sink_attach(fx->w.sink->sink, &gpu.t, &err));
	turns(5);
	for (uint32_t i = 0; i < gpu.n_posts; i++)
		n_texts += (gpu.hdr[i].flags & TOKG_TEXT) != 0;
	assert_int_equal(gpu.n_posts, 2);
	assert_int_equal(n_texts, 1);
	posted_as_bytes(0, "first", 5);
	embed(TOKG_OK);
	turns(3);
	tokd_sink_count(&fx->w);
	expect_count(C_SINK_TEXT_BYTES, 15);
	take_gpu();
}
