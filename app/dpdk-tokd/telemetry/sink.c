/* SPDX-License-Identifier: BSD-3-Clause */
/* Telemetry: the sink of each worker. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "control/gpu_sink_control.h"
#include "fill.h"

uint64_t
tokd_tel_sink_lag(const struct tokd_worker *w)
{
	const uint64_t head = __atomic_load_n(&w->ring.hdr->head, __ATOMIC_RELAXED);
	const uint64_t cursor =
		w->sink != NULL ? atomic_load(tokg_sink_cursor(w->sink->sink)) : head;

	return cursor > head ? 0 : head - cursor;
}

static void
add_sink(struct rte_tel_data *d, const struct tokd_worker *w)
{
	struct tokd_sink *s = w->sink;

	rte_tel_data_add_dict_string(d, "state", tokd_sink_state_name(atomic_load(&s->state)));
	rte_tel_data_add_dict_uint(d, "lag_bytes", tokd_tel_sink_lag(w));
	rte_tel_data_add_dict_uint(d, "slots_posted", tokd_worker_counter(w, C_SINK_SLOTS));
	rte_tel_data_add_dict_uint(d, "slots_done", tokd_worker_counter(w, C_SINK_DONE));
	rte_tel_data_add_dict_uint(d, "lanes", tokg_sink_lanes(s->sink));
	rte_tel_data_add_dict_uint(d, "lanes_used", tokg_sink_lanes_used(s->sink));
	pthread_mutex_lock(&s->lock);
	rte_tel_data_add_dict_string(d, "transport", s->kind);
	tokd_tel_add_text(d, "path", s->path);
	rte_tel_data_add_dict_uint(d, "producer", s->producer);
	rte_tel_data_add_dict_uint(d, "epoch", s->epoch);
	rte_tel_data_add_dict_uint(d, "slots", s->slots);
	rte_tel_data_add_dict_uint(d, "slot_bytes", s->slot_bytes);
	rte_tel_data_add_dict_uint(d, "out_bytes", s->out_bytes);
	pthread_mutex_unlock(&s->lock);
}

/* Empty without --sink. */
int
tokd_tel_sink(struct tokd_app *app, const char *params, struct rte_tel_data *d)
{
	uint32_t from = 0;

	if (params != NULL && params[0] != '\0' &&
		tokd_tel_number(params, app->n_workers - 1, &from) != 0)
		return -EINVAL;
	rte_tel_data_start_dict(d);
	for (uint32_t i = from; i < app->n_workers && i < from + TOKD_TEL_WORKERS; i++) {
		const struct tokd_worker *w = app->worker[i];
		struct rte_tel_data *one;
		char name[16];

		if (w->sink == NULL)
			return 0;
		snprintf(name, sizeof(name), "%" PRIu32, i);
		one = tokd_tel_add_dict(d, name);
		if (one == NULL)
			return -ENOMEM;
		add_sink(one, w);
	}
	return 0;
}
