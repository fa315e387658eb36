/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_telemetry.h>

#include "app.h"
#include "log.h"
#include "telemetry.h"

/*
 * rte_telemetry_register_cmd takes no argument for its callback: what the commands look at has to
 * be global. The lock keeps it standing while a command, on telemetry's own threads, looks.
 */
static struct {
	pthread_mutex_t lock;
	struct tokd_app *app;
} shown = {.lock = PTHREAD_MUTEX_INITIALIZER};

typedef int (*fill_fn)(struct tokd_app *app, const char *params, struct rte_tel_data *d);

static int
with_app(fill_fn fill, const char *params, struct rte_tel_data *d)
{
	int rc = -ESHUTDOWN;

	pthread_mutex_lock(&shown.lock);
	if (shown.app != NULL)
		rc = fill(shown.app, params, d);
	pthread_mutex_unlock(&shown.lock);
	return rc;
}

static uint64_t
counter(const struct tokd_worker *w, int c)
{
	return __atomic_load_n(&w->counter[c], __ATOMIC_RELAXED);
}

static const char *
stop_text(uint32_t stop)
{
	return stop == TOKD_RUN ? "serving" : stop == TOKD_DRAIN ? "draining" : "stopping";
}

/*
 * A dictionary in `d` under the name `index`. (An array of dictionaries DPDK 22.11 takes without
 * an error, and shows as empty.)
 */
static struct rte_tel_data *
add_one(struct rte_tel_data *d, uint32_t index)
{
	struct rte_tel_data *one = rte_tel_data_alloc();
	char name[16];

	if (one == NULL)
		return NULL;
	rte_tel_data_start_dict(one);
	snprintf(name, sizeof(name), "%" PRIu32, index);
	if (rte_tel_data_add_dict_container(d, name, one, 0) == 0)
		return one;
	rte_tel_data_free(one);
	return NULL;
}

static int
fill_info(struct tokd_app *app, const char *params, struct rte_tel_data *d)
{
	char text[RTE_TEL_MAX_STRING_LEN];

	rte_tel_data_start_dict(d);
	rte_tel_data_add_dict_string(d, "version", TOKD_VERSION);
	rte_tel_data_add_dict_string(d, "state", stop_text(atomic_load(&app->stop)));
	rte_tel_data_add_dict_u64(d, "uptime_s", (rte_rdtsc() - app->t_start) / rte_get_tsc_hz());
	snprintf(text, sizeof(text), "%016" PRIx64, app->instance);
	rte_tel_data_add_dict_string(d, "instance", text);
	rte_tel_data_add_dict_u64(d, "workers", app->n_workers);
	rte_tel_data_add_dict_string(d, "port_name", app->port.name);
	rte_tel_data_add_dict_string(d, "driver", app->port.driver);
	return 0;
}

static int
fill_vocabs(struct tokd_app *app, const char *params, struct rte_tel_data *d)
{
	const struct tokd_vocabs *vocabs = &app->vocabs[0];

	rte_tel_data_start_dict(d);
	for (uint32_t i = 0; i < vocabs->n; i++) {
		const struct tok_vocab_info v = tok_vocab_info(vocabs->tok[i]);
		struct rte_tel_data *one = add_one(d, i);
		char text[9];

		if (one == NULL)
			return -ENOMEM;
		rte_tel_data_add_dict_string(one, "name", v.name);
		snprintf(text, sizeof(text), "%08" PRIx32, v.checksum);
		rte_tel_data_add_dict_string(one, "checksum", text);
		rte_tel_data_add_dict_string(one, "pretokenizer", v.pretokenizer);
		rte_tel_data_add_dict_u64(one, "ids", v.n_ids);
		rte_tel_data_add_dict_u64(one, "table_bytes", v.table_bytes);
	}
	return 0;
}

static int
fill_workers(struct tokd_app *app, const char *params, struct rte_tel_data *d)
{
	rte_tel_data_start_dict(d);
	for (uint32_t i = 0; i < app->n_workers; i++) {
		const struct tokd_worker *w = app->worker[i];
		const struct tokd_ring_hdr *ring = w->ring.hdr;
		struct rte_tel_data *one = add_one(d, i);

		if (one == NULL)
			return -ENOMEM;
		rte_tel_data_add_dict_u64(one, "lcore", w->lcore);
		rte_tel_data_add_dict_int(one, "node", w->node);
		rte_tel_data_add_dict_u64(one, "queue", w->queue);
		rte_tel_data_add_dict_u64(one, "open_streams", tokd_worker_open_streams(w));
		rte_tel_data_add_dict_u64(one, "busy", counter(w, C_CYCLES_BUSY));
		rte_tel_data_add_dict_u64(one, "blocked", counter(w, C_CYCLES_BLOCKED));
		rte_tel_data_add_dict_u64(one, "idle", counter(w, C_CYCLES_IDLE));
		rte_tel_data_add_dict_u64(
			one, "ring_head", __atomic_load_n(&ring->head, __ATOMIC_RELAXED));
		rte_tel_data_add_dict_u64(
			one, "ring_tail", __atomic_load_n(&ring->tail, __ATOMIC_RELAXED));
		rte_tel_data_add_dict_int(one, "ring_huge", w->ring.huge);
	}
	return 0;
}

/* Sum over the workers, or one of them. */
static int
fill_counters(struct tokd_app *app, const char *params, struct rte_tel_data *d)
{
	struct tokd_reader_info info[TOKD_READERS_MAX];
	struct tokd_attach_counts readers;
	const bool one = params != NULL && params[0] != '\0';
	uint32_t from = 0, to = app->n_workers;

	if (one) {
		char *end;
		unsigned long w = strtoul(params, &end, 10);

		if (*end != '\0' || params[0] == '-' || w >= app->n_workers)
			return -EINVAL;
		from = (uint32_t)w;
		to = from + 1;
	}
	rte_tel_data_start_dict(d);
	for (int c = 0; c < C_COUNT; c++) {
		uint64_t sum = 0;

		for (uint32_t w = from; w < to; w++)
			sum += counter(app->worker[w], c);
		rte_tel_data_add_dict_u64(d, tokd_counter_info[c].name, sum);
	}
	if (one)
		return 0; /* readers belong to no worker */
	tokd_attach_list(&app->control.attach, info, &readers);
	rte_tel_data_add_dict_u64(d, "readers_attached", readers.attached);
	rte_tel_data_add_dict_u64(d, "readers_detached", readers.detached);
	rte_tel_data_add_dict_u64(d, "readers_dropped", readers.dropped);
	rte_tel_data_add_dict_u64(d, "readers_refused", readers.refused);
	return 0;
}

static int
fill_readers(struct tokd_app *app, const char *params, struct rte_tel_data *d)
{
	static const char *const state[] = {
		[TOKD_CONN_JOINING] = "joining",
		[TOKD_CONN_READING] = "reading",
		[TOKD_CONN_LEAVING] = "leaving",
	};
	struct tokd_reader_info info[TOKD_READERS_MAX];
	struct tokd_attach_counts counts;
	uint32_t n = tokd_attach_list(&app->control.attach, info, &counts);

	rte_tel_data_start_dict(d);
	for (uint32_t i = 0; i < n; i++) {
		struct rte_tel_data *one = add_one(d, info[i].slot);

		if (one == NULL)
			return -ENOMEM;
		rte_tel_data_add_dict_string(one, "state", state[info[i].state]);
		rte_tel_data_add_dict_int(one, "pid", info[i].pid);
		rte_tel_data_add_dict_u64(one, "uid", info[i].uid);
		rte_tel_data_add_dict_u64(one, "since_ms", info[i].state_ms);
		rte_tel_data_add_dict_u64(one, "lag_bytes", info[i].lag_bytes);
		rte_tel_data_add_dict_u64(one, "lag_worker", info[i].lag_ring);
	}
	return 0;
}

static int
fill_config(struct tokd_app *app, const char *params, struct rte_tel_data *d)
{
	struct tokd_option_value value;

	rte_tel_data_start_dict(d);
	for (size_t i = 0; tokd_options_value(&app->opt, i, &value); i++) {
		/* Telemetry's names have no hyphen, its strings a limit. */
		char name[40];

		snprintf(name, sizeof(name), "%s", value.name);
		for (char *p = name; *p != '\0'; p++)
			*p = *p == '-' ? '_' : *p;
		value.text[RTE_TEL_MAX_STRING_LEN - 1] = '\0';
		rte_tel_data_add_dict_string(d, name, value.text);
		snprintf(name + strlen(name), sizeof(name) - strlen(name), "_from");
		rte_tel_data_add_dict_string(d, name, tokd_options_source(value.source));
	}
	return 0;
}

#define COMMAND(name)                                                                              \
	static int cmd_##name(const char *cmd, const char *params, struct rte_tel_data *d)         \
	{                                                                                          \
		return with_app(fill_##name, params, d);                                           \
	}
COMMAND(info)
COMMAND(vocabs)
COMMAND(workers)
COMMAND(counters)
COMMAND(readers)
COMMAND(config)

int
tokd_telemetry_start(struct tokd_app *app)
{
	static const struct {
		const char *cmd;
		telemetry_cb fn;
		const char *help;
	} commands[] = {
		{"/tokd/info", cmd_info, "Version, state and port. No parameters"},
		{"/tokd/vocabs", cmd_vocabs,
			"Vocabularies: name, checksum, size; 0 is the default. No parameters"},
		{"/tokd/workers", cmd_workers,
			"Each worker: lcore, queue, open streams, TSC cycles, ring. No parameters"},
		{"/tokd/counters", cmd_counters,
			"Counters, summed. Parameters: int worker, for its own only"},
		{"/tokd/readers", cmd_readers,
			"Readers attached to the token rings. No parameters"},
		{"/tokd/config", cmd_config,
			"Application options as resolved, and where each came from. No parameters"},
	};

	for (size_t i = 0; i < RTE_DIM(commands); i++) {
		int rc = rte_telemetry_register_cmd(
			commands[i].cmd, commands[i].fn, commands[i].help);

		if (rc != 0) {
			TOKD_LOG(main, ERR, "telemetry %s: %s\n", commands[i].cmd, strerror(-rc));
			return rc;
		}
	}
	pthread_mutex_lock(&shown.lock);
	shown.app = app;
	pthread_mutex_unlock(&shown.lock);
	return 0;
}

void
tokd_telemetry_stop(void)
{
	pthread_mutex_lock(&shown.lock);
	shown.app = NULL;
	pthread_mutex_unlock(&shown.lock);
}
