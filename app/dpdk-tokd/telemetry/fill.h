/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The answers to telemetry's commands. What DPDK 22.11 silently cuts off is kept in bounds here:
 * 256 entries in a dictionary, 127 characters in a string, 16384 bytes in an answer. A command
 * whose answer could be longer gives it by pages.
 */
#ifndef TOKD_TELEMETRY_FILL_H
#define TOKD_TELEMETRY_FILL_H

#include <rte_telemetry.h>

#include "control/app.h"

#define TOKD_TEL_WORKERS 16 /* a page of /tokd/workers: at most 850 bytes each */
#define TOKD_TEL_HELP 64    /* a page of /tokd/help: at most 200 bytes each */

/*
 * Fill `d` for a command with what stood behind its comma, NULL if nothing did. 0, or -errno,
 * which the client gets to see as null. The app stands until it returns.
 */
typedef int (*tokd_tel_fill)(struct tokd_app *app, const char *params, struct rte_tel_data *d);

/* telemetry/app.c */
int tokd_tel_info(struct tokd_app *app, const char *params, struct rte_tel_data *d);
int tokd_tel_vocabs(struct tokd_app *app, const char *params, struct rte_tel_data *d);
int tokd_tel_config(struct tokd_app *app, const char *params, struct rte_tel_data *d);
int tokd_tel_readers(struct tokd_app *app, const char *params, struct rte_tel_data *d);

/* telemetry/workers.c */
int tokd_tel_workers(struct tokd_app *app, const char *params, struct rte_tel_data *d);
int tokd_tel_histograms(struct tokd_app *app, const char *params, struct rte_tel_data *d);

/* telemetry/sink.c */
int tokd_tel_sink(struct tokd_app *app, const char *params, struct rte_tel_data *d);

/* telemetry/counters.c */
int tokd_tel_counters(struct tokd_app *app, const char *params, struct rte_tel_data *d);
int tokd_tel_help(struct tokd_app *app, const char *params, struct rte_tel_data *d);

/* ---- What they share (telemetry.c) ---- */

/* The workers a command is about: [from, to). All of them without a number, else that one. */
struct tokd_tel_range {
	uint32_t from, to;
};
int tokd_tel_workers_of(
	const struct tokd_app *app, const char *number, struct tokd_tel_range *range);

/* A number of at most `max`, digits only. */
int tokd_tel_number(const char *text, uint32_t max, uint32_t *number);

/*
 * An empty dictionary, or array of u64, in `d` under `name`; NULL if there is no memory. (An array
 * of dictionaries DPDK 22.11 takes without an error, and shows as empty.)
 */
struct rte_tel_data *tokd_tel_add_dict(struct rte_tel_data *d, const char *name);
struct rte_tel_data *tokd_tel_add_array(struct rte_tel_data *d, const char *name);

/* A text of any length: one longer than telemetry's strings ends in "...". */
void tokd_tel_add_text(struct rte_tel_data *d, const char *name, const char *text);

static inline uint64_t
tokd_tel_counter(const struct tokd_worker *w, int c)
{
	return __atomic_load_n(&w->counter[c], __ATOMIC_RELAXED);
}

#endif
