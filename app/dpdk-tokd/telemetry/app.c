/* SPDX-License-Identifier: BSD-3-Clause */
/* Telemetry: the appliance, its options, its readers. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <rte_cycles.h>

#include <sandbox.h>

#include "build_revision.h"
#include "fill.h"

static const char *
stop_text(uint32_t stop)
{
	return stop == TOKD_RUN ? "serving" : stop == TOKD_DRAIN ? "draining" : "stopping";
}

/* Empty: no address of this family; not a kernel interface. */
static void
add_address(struct rte_tel_data *d, const struct tokd_address *a)
{
	const struct tokd_address ip = {.ip = a->ip}, ip6 = {.ip6 = a->ip6};
	char text[TOKD_ADDRESS_TEXT];

	rte_tel_data_add_dict_string(d, "ip", tokd_address_text(&ip, text));
	rte_tel_data_add_dict_string(d, "ip6", tokd_address_text(&ip6, text));
	rte_ether_format_addr(text, sizeof(text), &a->mac);
	rte_tel_data_add_dict_string(d, "mac", text);
	rte_tel_data_add_dict_string(d, "address_from", a->from);
	rte_tel_data_add_dict_string(d, "interface", a->interface);
	rte_tel_data_add_dict_string(
		d, "arp_and_ping_by", a->kernel_answers ? "kernel" : "dpdk-tokd");
}

int
tokd_tel_info(struct tokd_app *app, const char *params, struct rte_tel_data *d)
{
	const struct tok_vocab_info v = tok_vocab_info(app->served->vocabs[0].tok[0]);
	char text[RTE_TEL_MAX_STRING_LEN];

	rte_tel_data_start_dict(d);
	rte_tel_data_add_dict_string(d, "version", TOKD_VERSION);
	rte_tel_data_add_dict_string(d, "revision", TOKD_REVISION);
	rte_tel_data_add_dict_string(d, "state", stop_text(atomic_load(&app->stop)));
	rte_tel_data_add_dict_uint(d, "uptime_s", (rte_rdtsc() - app->t_start) / rte_get_tsc_hz());
	snprintf(text, sizeof(text), "%016" PRIx64, app->instance);
	rte_tel_data_add_dict_string(d, "instance", text);
	rte_tel_data_add_dict_uint(d, "tsc_hz", rte_get_tsc_hz());
	rte_tel_data_add_dict_uint(d, "workers", app->n_workers);
	rte_tel_data_add_dict_string(d, "sandbox", app->opt.sandbox ? "yes" : "no");
	rte_tel_data_add_dict_uint(d, "calls_denied", tokd_sandbox_denied());
	rte_tel_data_add_dict_uint(d, "port", app->port.id);
	rte_tel_data_add_dict_string(d, "port_name", app->port.name);
	rte_tel_data_add_dict_string(d, "driver", app->port.driver);
	rte_tel_data_add_dict_string(d, "link", atomic_load(&app->port.no_carrier) ? "down" : "up");
	add_address(d, &app->address);
	tokd_tel_add_text(d, "vocab", v.name); /* the default; /tokd/vocabs has all */
	snprintf(text, sizeof(text), "%08" PRIx32, v.checksum);
	rte_tel_data_add_dict_string(d, "vocab_checksum", text);
	rte_tel_data_add_dict_uint(d, "reloads", app->reload.n_done);
	rte_tel_data_add_dict_uint(d, "reloads_failed", app->reload.n_failed);
	tokd_tel_add_text(d, "reload_error", app->reload.why.text);
	rte_tel_data_add_dict_uint(d, "old_texts", tokd_reload_old_texts(app));
	return 0;
}

int
tokd_tel_reload(struct tokd_app *app, const char *params, struct rte_tel_data *d)
{
	tokd_reload_ask(app);
	rte_tel_data_start_dict(d);
	rte_tel_data_add_dict_string(d, "reload", "asked for; /tokd/info shows how it ends");
	return 0;
}

int
tokd_tel_vocabs(struct tokd_app *app, const char *params, struct rte_tel_data *d)
{
	const struct tokd_vocabs *vocabs = &app->served->vocabs[0];

	rte_tel_data_start_dict(d);
	for (uint32_t i = 0; i < vocabs->n; i++) {
		const struct tok_vocab_info v = tok_vocab_info(vocabs->tok[i]);
		struct rte_tel_data *one;
		char text[16];

		snprintf(text, sizeof(text), "%" PRIu32, i);
		one = tokd_tel_add_dict(d, text);
		if (one == NULL)
			return -ENOMEM;
		tokd_tel_add_text(one, "name", v.name);
		snprintf(text, sizeof(text), "%08" PRIx32, v.checksum);
		rte_tel_data_add_dict_string(one, "checksum", text);
		rte_tel_data_add_dict_string(one, "pretokenizer", v.pretokenizer);
		rte_tel_data_add_dict_string(one, "isa", v.isa);
		rte_tel_data_add_dict_uint(one, "ids", v.n_ids);
		rte_tel_data_add_dict_uint(one, "table_bytes", v.table_bytes);
	}
	return 0;
}

int
tokd_tel_readers(struct tokd_app *app, const char *params, struct rte_tel_data *d)
{
	static const char *const state[] = {
		[TOKD_CONN_JOINING] = "joining",
		[TOKD_CONN_READING] = "reading",
		[TOKD_CONN_LEAVING] = "leaving",
		[TOKD_CONN_TAPPING] = "tapping",
	};
	struct tokd_reader_info info[TOKD_SLOTS_MAX];
	struct tokd_attach_counts counts;
	uint32_t n = tokd_attach_list(&app->control.attach, info, RTE_DIM(info), &counts);

	rte_tel_data_start_dict(d);
	for (uint32_t i = 0; i < n; i++) {
		struct rte_tel_data *one;
		char name[16];

		snprintf(name, sizeof(name), "%" PRIu32, info[i].slot);
		one = tokd_tel_add_dict(d, name);
		if (one == NULL)
			return -ENOMEM;
		rte_tel_data_add_dict_string(
			one, "mode", info[i].state == TOKD_CONN_TAPPING ? "tap" : "reader");
		rte_tel_data_add_dict_string(one, "state", state[info[i].state]);
		rte_tel_data_add_dict_int(one, "pid", info[i].pid);
		rte_tel_data_add_dict_uint(one, "uid", info[i].uid);
		rte_tel_data_add_dict_uint(one, "since_ms", info[i].state_ms);
		if (info[i].state == TOKD_CONN_TAPPING)
			continue; /* its position is unknown */
		rte_tel_data_add_dict_uint(one, "lag_bytes", info[i].lag_bytes);
		rte_tel_data_add_dict_uint(one, "lag_worker", info[i].lag_ring);
	}
	return 0;
}

int
tokd_tel_config(struct tokd_app *app, const char *params, struct rte_tel_data *d)
{
	struct opt_value value;

	rte_tel_data_start_dict(d);
	for (size_t i = 0; opt_value(&tokd_program, &app->opt.given, &app->opt, i, &value); i++) {
		char name[40];

		/* Telemetry's names have no hyphen. */
		snprintf(name, sizeof(name), "%s", value.name);
		for (char *p = name; *p != '\0'; p++)
			*p = *p == '-' ? '_' : *p;
		tokd_tel_add_text(d, name, value.text);
		snprintf(name + strlen(name), sizeof(name) - strlen(name), "_from");
		rte_tel_data_add_dict_string(d, name, opt_source_name(value.source));
	}
	return 0;
}
