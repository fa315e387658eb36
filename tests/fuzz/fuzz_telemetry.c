/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Telemetry: each command with any parameters. Nothing of an answer is cut off by DPDK: every entry
 * is taken, and all of them together are shorter than what telemetry sends.
 */
#include <string.h>

#include <rte_cycles.h>

#include "eal.h"
#include "fuzz.h"
#include "datapath/stream/stream.h"
#include "telemetry/fill.h"
#include "vocabulary.h"

#pragma GCC diagnostic ignored "-Wmissing-prototypes" /* the linker's names */

#define WORKERS (TOKD_TEL_WORKERS + 3) /* more than a page */
#define ANSWERS_MAX 64
#define ANSWER_BYTES (16u << 10) /* DPDK's limit on an answer */
#define ENTRY_BYTES 8		 /* quotes, colon, comma, brackets */

static const tokd_tel_fill commands[] = {tokd_tel_info, tokd_tel_vocabs, tokd_tel_workers,
	tokd_tel_counters, tokd_tel_histograms, tokd_tel_readers, tokd_tel_config, tokd_tel_help};

static struct tokd_app *app;

/* ---- DPDK's side, looked at. What one answer allocated serves the next. ---- */

static struct rte_tel_data *answers[ANSWERS_MAX];
static uint32_t n_answers;
static size_t answer_bytes;

/* Of what a name stands for: fill.h. */
#define JOIN_AS_IS(a, b) a##b
#define JOIN(a, b) JOIN_AS_IS(a, b)
#define REAL(name) JOIN(__real_, name)
#define WRAP(name) JOIN(__wrap_, name)

struct rte_tel_data *__real_rte_tel_data_alloc(void);
int __real_rte_tel_data_add_dict_string(struct rte_tel_data *d, const char *name, const char *text);
int REAL(rte_tel_data_add_dict_uint)(struct rte_tel_data *d, const char *name, uint64_t v);
int __real_rte_tel_data_add_dict_int(struct rte_tel_data *d, const char *name, int v);
int __real_rte_tel_data_add_dict_container(
	struct rte_tel_data *d, const char *name, struct rte_tel_data *v, int keep);
int REAL(rte_tel_data_add_array_uint)(struct rte_tel_data *d, uint64_t v);

static size_t
digits(uint64_t v)
{
	size_t n = 1;

	for (; v >= 10; v /= 10)
		n++;
	return n;
}

struct rte_tel_data *
__wrap_rte_tel_data_alloc(void)
{
	MUST(n_answers < ANSWERS_MAX);
	if (answers[n_answers] == NULL)
		answers[n_answers] = __real_rte_tel_data_alloc();
	MUST(answers[n_answers] != NULL);
	return answers[n_answers++];
}

void
__wrap_rte_tel_data_free(struct rte_tel_data *d)
{
}

int
__wrap_rte_tel_data_add_dict_string(struct rte_tel_data *d, const char *name, const char *text)
{
	answer_bytes += strlen(name) + strlen(text) + ENTRY_BYTES;
	MUST(__real_rte_tel_data_add_dict_string(d, name, text) == 0);
	return 0;
}

int
WRAP(rte_tel_data_add_dict_uint)(struct rte_tel_data *d, const char *name, uint64_t v)
{
	answer_bytes += strlen(name) + digits(v) + ENTRY_BYTES;
	MUST(REAL(rte_tel_data_add_dict_uint)(d, name, v) == 0);
	return 0;
}

int
__wrap_rte_tel_data_add_dict_int(struct rte_tel_data *d, const char *name, int v)
{
	answer_bytes += strlen(name) + 11 + ENTRY_BYTES;
	MUST(__real_rte_tel_data_add_dict_int(d, name, v) == 0);
	return 0;
}

int
__wrap_rte_tel_data_add_dict_container(
	struct rte_tel_data *d, const char *name, struct rte_tel_data *v, int keep)
{
	answer_bytes += strlen(name) + ENTRY_BYTES;
	MUST(__real_rte_tel_data_add_dict_container(d, name, v, keep) == 0);
	return 0;
}

int
WRAP(rte_tel_data_add_array_uint)(struct rte_tel_data *d, uint64_t v)
{
	answer_bytes += digits(v) + 1;
	MUST(REAL(rte_tel_data_add_array_uint)(d, v) == 0);
	return 0;
}

/* ---- an appliance to ask ---- */

static struct tokd_worker *
make_worker(uint32_t i, struct rte_mempool *pool)
{
	static struct tokd_ring_hdr hdr = {
		.data_bytes = UINT64_C(1) << 36, .head = UINT64_C(1) << 63};
	static struct tokd_streams streams;
	struct tokd_worker *w = calloc(1, sizeof(*w));

	MUST(w != NULL);
	w->index = i;
	w->lcore = 1000 + i;
	w->tsc_hz = rte_get_tsc_hz();
	w->streams = &streams;
	w->pool = pool;
	w->ring.hdr = &hdr;
	w->ring.mask = hdr.data_bytes - 1;
	for (uint32_t c = 0; c < C_COUNT; c++)
		w->counter[c] = UINT64_MAX / WORKERS - c;
	for (uint32_t t = 0; t < T_COUNT; t++) {
		for (uint64_t v = 1; v < UINT64_C(1) << 50; v *= 2)
			tokd_histogram_add(&w->time[t], v + i);
	}
	return w;
}

static void
make_readers(struct tokd_attach *a)
{
	static _Alignas(64) uint8_t cursors[TOKD_CURSOR_BYTES];

	pthread_mutex_init(&a->lock, NULL);
	a->ring = app->ring;
	for (uint32_t i = 0; i < TOKD_SLOTS_MAX; i++) {
		a->conn[i] = (struct tokd_conn){
			.state = i < TOKD_READERS_MAX ? TOKD_CONN_READING : TOKD_CONN_TAPPING,
			.cursor = cursors,
			.slot = i,
			.pid = INT32_MAX,
			.uid = UINT32_MAX};
		a->slot[i] = &a->conn[i];
	}
}

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct rte_mempool *pool;

	app = aligned_alloc(RTE_CACHE_LINE_SIZE, sizeof(*app));
	MUST(app != NULL);
	memset(app, 0, sizeof(*app));
	eal_start();
	app->opt.vocab = "a-name-that-is-longer-than-telemetry-takes-in-one-string/"
			 "a-name-that-is-longer-than-telemetry-takes-in-one-string/"
			 "a-name-that-is-longer-than-telemetry-takes-in-one-string";
	for (size_t i = 0; i < OPT_MAX; i++)
		app->opt.given.source[i] = OPT_FROM_COMMAND_LINE;
	app->port.driver = "net_ring";
	app->address.from = "options";
	app->served = calloc(1, sizeof(*app->served));
	MUST(app->served != NULL);
	app->served->vocabs[0].n = TOKD_VOCABS_MAX;
	for (uint32_t i = 0; i < TOKD_VOCABS_MAX; i++)
		app->served->vocabs[0].tok[i] = vocabulary_make(i);
	pool = rte_pktmbuf_pool_create("telemetry", 63, 0, 0, 256, SOCKET_ID_ANY);
	MUST(pool != NULL);
	for (uint32_t i = 0; i < WORKERS; i++) {
		app->worker[i] = make_worker(i, pool);
		app->ring[i] = &app->worker[i]->ring;
	}
	make_readers(&app->control.attach);
	return 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, data + size};
	const uint8_t what = (uint8_t)input_take(&in, 1);
	const size_t left = (size_t)(in.end - in.at);
	char *params = NULL;

	app->n_workers = 1 + (uint32_t)(input_take(&in, 1) % WORKERS);
	app->control.attach.n_rings = app->n_workers;
	app->stop = what >> 4 & 3;
	if (!(what & 8)) { /* telemetry gives its own copy, NULL where there is none */
		params = calloc(1, left + 1);
		MUST(params != NULL);
		memcpy(params, in.at, (size_t)(in.end - in.at));
	}
	n_answers = 0;
	answer_bytes = 0;
	commands[what % RTE_DIM(commands)](app, params, __wrap_rte_tel_data_alloc());
	MUST(answer_bytes < ANSWER_BYTES);
	free(params);
	return 0;
}
