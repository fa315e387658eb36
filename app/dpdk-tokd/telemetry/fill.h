/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The answers of telemetry commands. DPDK 22.11 silently truncates: 256 entries in a dictionary,
 * 127 characters in a string, 16384 bytes in an answer. Commands with longer answers have pages.
 */
#pragma once

#include <rte_telemetry.h>
#include <rte_version.h>

#include "control/app.h"

#if RTE_VERSION < RTE_VERSION_NUM(23, 3, 0, 0) /* from 25.11 on there are only the new names */
#define rte_tel_data_add_dict_uint rte_tel_data_add_dict_u64
#define rte_tel_data_add_array_uint rte_tel_data_add_array_u64
#define RTE_TEL_UINT_VAL RTE_TEL_U64_VAL
#endif

#define TOKD_TEL_WORKERS 16 /* a page of /tokd/workers: at most 850 bytes each */
#define TOKD_TEL_HELP 64    /* a page of /tokd/help: at most 200 bytes each */

/*
 * Fill `d` for a command; params: the text after the comma, or NULL. 0, or -errno, which the client
 * sees as null. The app stays valid until it returns.
 */
typedef int (*tokd_tel_fill)(struct tokd_app *app, const char *params, struct rte_tel_data *d);

/* telemetry/app.c */
int tokd_tel_info(struct tokd_app *app, const char *params, struct rte_tel_data *d);
int tokd_tel_vocabs(struct tokd_app *app, const char *params, struct rte_tel_data *d);
int tokd_tel_reload(struct tokd_app *app, const char *params, struct rte_tel_data *d);
int tokd_tel_config(struct tokd_app *app, const char *params, struct rte_tel_data *d);
int tokd_tel_readers(struct tokd_app *app, const char *params, struct rte_tel_data *d);

/* telemetry/workers.c */
int tokd_tel_workers(struct tokd_app *app, const char *params, struct rte_tel_data *d);
int tokd_tel_histograms(struct tokd_app *app, const char *params, struct rte_tel_data *d);

/* telemetry/sink.c */
int tokd_tel_sink(struct tokd_app *app, const char *params, struct rte_tel_data *d);
/* Bytes of the token ring that the sink has not embedded; 0 without one. */
uint64_t tokd_tel_sink_lag(const struct tokd_worker *w);

/* telemetry/counters.c */
int tokd_tel_counters(struct tokd_app *app, const char *params, struct rte_tel_data *d);
int tokd_tel_help(struct tokd_app *app, const char *params, struct rte_tel_data *d);

/* ---- What they share (telemetry.c) ---- */

/* The workers of a command: [from, to). All without a number, else that one. */
struct tokd_tel_range {
	uint32_t from, to;
};
int tokd_tel_workers_of(
	const struct tokd_app *app, const char *number, struct tokd_tel_range *range);

/* A number of at most `max`, digits only. */
int tokd_tel_number(const char *text, uint32_t max, uint32_t *number);

/*
 * Add an empty dictionary, or array of u64, to `d`; NULL: no memory. (DPDK 22.11 accepts arrays of
 * dictionaries without an error, and shows them empty.)
 */
struct rte_tel_data *tokd_tel_add_dict(struct rte_tel_data *d, const char *name);
struct rte_tel_data *tokd_tel_add_array(struct rte_tel_data *d, const char *name);

/* Add a text; one longer than telemetry's strings ends in "...". */
void tokd_tel_add_text(struct rte_tel_data *d, const char *name, const char *text);
