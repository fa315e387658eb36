/* SPDX-License-Identifier: BSD-3-Clause */
/* The /tokd commands of DPDK's telemetry, and helpers for their answers. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "telemetry.h"
#include "fill.h"

/* X(name, "help") */
#define COMMANDS(X)                                                                                \
	X(info, "Version, state, port and addresses served. No parameters")                        \
	X(vocabs, "Vocabularies: name, checksum, size; 0 is the default. No parameters")           \
	X(workers,                                                                                 \
		"Workers: lcore, open streams, time, ring; 16 per answer. Parameters: int first")  \
	X(counters, "Counters, summed. Parameters: int worker, for its own only")                  \
	X(histograms, "Time by stage. Parameters: int worker, or stage[,worker] for its buckets")  \
	X(reload, "Reload vocabularies and limits, as SIGHUP. Returns at once. No parameters")     \
	X(readers, "Readers and taps attached to the token rings. No parameters")                  \
	X(sink, "GPU sinks: state, producer, lag in bytes; 16 per answer. Parameters: int first")  \
	X(config, "Application options as resolved, and where each came from. No parameters")      \
	X(help, "What counters and stages mean; 64 per answer. Parameters: int first, or name")

/*
 * Global, because rte_telemetry_register_cmd passes no argument to its callback. The lock keeps the
 * app valid while a command runs on telemetry's threads.
 */
static struct {
	pthread_mutex_t lock;
	struct tokd_app *app;
} shown = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int
with_app(tokd_tel_fill fill, const char *params, struct rte_tel_data *d)
{
	int rc = -ESHUTDOWN;

	pthread_mutex_lock(&shown.lock);
	if (shown.app != NULL) {
		pthread_mutex_lock(&shown.app->lock); /* no reload meanwhile */
		rc = fill(shown.app, params, d);
		pthread_mutex_unlock(&shown.app->lock);
	}
	pthread_mutex_unlock(&shown.lock);
	return rc;
}

#define X(name, help)                                                                              \
	static int cmd_##name(const char *cmd, const char *params, struct rte_tel_data *d)         \
	{                                                                                          \
		return with_app(tokd_tel_##name, params, d);                                       \
	}
COMMANDS(X)
#undef X

int
tokd_telemetry_start(struct tokd_app *app)
{
	static const struct {
		const char *cmd;
		telemetry_cb fn;
		const char *help;
	} commands[] = {
#define X(name, help) {"/tokd/" #name, cmd_##name, help},
		COMMANDS(X)
#undef X
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

int
tokd_tel_number(const char *text, uint32_t max, uint32_t *number)
{
	unsigned long n;
	char *end;

	/* strtoul accepts a sign and leading blanks. */
	if (text[0] < '0' || text[0] > '9')
		return -EINVAL;
	n = strtoul(text, &end, 10);
	if (*end != '\0' || n > max)
		return -EINVAL;
	*number = (uint32_t)n;
	return 0;
}

int
tokd_tel_workers_of(const struct tokd_app *app, const char *number, struct tokd_tel_range *range)
{
	uint32_t w;

	if (number == NULL || number[0] == '\0') {
		*range = (struct tokd_tel_range){.from = 0, .to = app->n_workers};
		return 0;
	}
	if (tokd_tel_number(number, app->n_workers - 1, &w) != 0)
		return -EINVAL;
	*range = (struct tokd_tel_range){.from = w, .to = w + 1};
	return 0;
}

/* DPDK accepts only started containers. */
static struct rte_tel_data *
add_started(struct rte_tel_data *d, const char *name, struct rte_tel_data *one)
{
	if (rte_tel_data_add_dict_container(d, name, one, 0) == 0)
		return one;
	rte_tel_data_free(one);
	return NULL;
}

struct rte_tel_data *
tokd_tel_add_dict(struct rte_tel_data *d, const char *name)
{
	struct rte_tel_data *one = rte_tel_data_alloc();

	if (one == NULL)
		return NULL;
	rte_tel_data_start_dict(one);
	return add_started(d, name, one);
}

struct rte_tel_data *
tokd_tel_add_array(struct rte_tel_data *d, const char *name)
{
	struct rte_tel_data *one = rte_tel_data_alloc();

	if (one == NULL)
		return NULL;
	rte_tel_data_start_array(one, RTE_TEL_UINT_VAL);
	return add_started(d, name, one);
}

void
tokd_tel_add_text(struct rte_tel_data *d, const char *name, const char *text)
{
	char shortened[RTE_TEL_MAX_STRING_LEN];

	if (snprintf(shortened, sizeof(shortened), "%s", text) >= (int)sizeof(shortened))
		memcpy(shortened + sizeof(shortened) - 4, "...", 4);
	rte_tel_data_add_dict_string(d, name, shortened);
}
