/* SPDX-License-Identifier: BSD-3-Clause */
/* Telemetry: counters, all present from the start, and their help texts. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "fill.h"

/* Of the control thread. X(field, "name", "help") */
#define READER_COUNTERS(X)                                                                         \
	X(attached, "readers_attached", "readers that attached to the token rings")                \
	X(detached, "readers_detached", "readers that closed their socket, or exited")             \
	X(dropped, "readers_dropped",                                                              \
		"readers dropped: they kept the ring full for --reader-timeout in 100 s")          \
	X(backed_off, "readers_backed_off",                                                        \
		"readers refused: too soon after one of the same owner was dropped")               \
	X(refused, "readers_refused", "connections refused at the control socket")                 \
	X(taps_attached, "taps_attached", "taps that attached to the token rings")                 \
	X(taps_detached, "taps_detached", "taps that closed their socket, or exited")

enum {
#define X(field, name, help) N_##field,
	READER_COUNTERS(X)
#undef X
		N_READER_COUNTERS
};

#define N_NAMES (C_COUNT + N_READER_COUNTERS + T_COUNT)
static_assert(C_COUNT + N_READER_COUNTERS <= RTE_TEL_MAX_DICT_ENTRIES,
	"telemetry would truncate the answer: /tokd/counters needs pages");

#define X(sym, name, help)                                                                         \
	static_assert(sizeof(help) <= RTE_TEL_MAX_STRING_LEN && sizeof(name) <= 32,                \
		name ": telemetry would truncate it");
TOKD_COUNTERS(X)
TOKD_STAGES(X)
#undef X

int
tokd_tel_counters(struct tokd_app *app, const char *params, struct rte_tel_data *d)
{
	struct tokd_attach_counts readers;
	struct tokd_tel_range range;

	if (tokd_tel_workers_of(app, params, &range) != 0)
		return -EINVAL;
	rte_tel_data_start_dict(d);
	for (int c = 0; c < C_COUNT; c++) {
		uint64_t sum = 0;

		for (uint32_t w = range.from; w < range.to; w++)
			sum += tokd_worker_counter(app->worker[w], c);
		rte_tel_data_add_dict_uint(d, tokd_counter_info[c].name, sum);
	}
	if (params != NULL && params[0] != '\0')
		return 0;
	tokd_attach_list(&app->control.attach, NULL, 0, &readers);
#define X(field, name, help) rte_tel_data_add_dict_uint(d, name, readers.field);
	READER_COUNTERS(X)
#undef X
	return 0;
}

static struct tokd_counter_info
name_and_help(uint32_t i)
{
	static const struct tokd_counter_info readers[N_READER_COUNTERS] = {
#define X(field, name, help) {name, help},
		READER_COUNTERS(X)
#undef X
	};

	if (i < C_COUNT)
		return tokd_counter_info[i];
	i -= C_COUNT;
	if (i < N_READER_COUNTERS)
		return readers[i];
	i -= N_READER_COUNTERS;
	return (struct tokd_counter_info){tokd_stage_info[i].name, tokd_stage_info[i].help};
}

static int
help_of(const char *name, struct rte_tel_data *d)
{
	for (uint32_t i = 0; i < N_NAMES; i++) {
		const struct tokd_counter_info info = name_and_help(i);

		if (strcmp(info.name, name) == 0)
			return rte_tel_data_add_dict_string(d, info.name, info.help);
	}
	return -ENOENT;
}

/* A page after the last name is empty: the end for a client that reads page by page. */
int
tokd_tel_help(struct tokd_app *app, const char *params, struct rte_tel_data *d)
{
	uint32_t from = 0;

	rte_tel_data_start_dict(d);
	if (params != NULL && params[0] != '\0' &&
		tokd_tel_number(params, UINT32_MAX - TOKD_TEL_HELP, &from) != 0)
		return help_of(params, d);
	for (uint32_t i = from; i < N_NAMES && i < from + TOKD_TEL_HELP; i++) {
		const struct tokd_counter_info info = name_and_help(i);

		rte_tel_data_add_dict_string(d, info.name, info.help);
	}
	return 0;
}
