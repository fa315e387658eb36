/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dpdk-tokd: text in by UDP, exact token ids out. The life cycle: options, EAL, port, workers,
 * control thread, and clean-up in reverse order. Exit codes: eal_start.h.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <sys/random.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_launch.h>
#include <rte_lcore.h>

#include "control/app.h"
#include "control/cpu_check.h"
#include "control/eal_start.h"
#include "control/net_allow_open.h"
#include "control/tables/tables.h"
#include "control/unmap_guard.h"
#include "control/worker_open.h"
#include "control/workers.h"
#include "control/zero_copy_open.h"
#include "log.h"
#include "notify.h"
#include "sandbox/start.h"
#include "telemetry/summary.h"
#include "telemetry/telemetry.h"
#include "version.h"

#define OPTIONS_WIDTH 80 /* characters of options in a line of the log */

static void
log_options(const struct tokd_options *opt, enum opt_source from, const char *list)
{
	const bool is_file = from == OPT_FROM_FILE && opt->config != NULL;

	if (list[0] != '\0')
		TOKD_LOG(main, INFO, "options (%s%s%s):%s\n", opt_source_name(from),
			is_file ? " " : "", is_file ? opt->config : "", list);
}

/* Options that are not defaults, by source; long lists in several lines. */
static void
log_config(const struct tokd_options *opt)
{
	for (enum opt_source from = OPT_SOURCES; --from > OPT_FROM_DEFAULT;) {
		char line[OPTIONS_WIDTH + sizeof(struct opt_value)] = "";
		struct opt_value value;
		size_t used = 0;

		for (size_t i = 0; opt_value(&tokd_program, &opt->given, opt, i, &value); i++) {
			if (value.source != from || value.text[0] == '\0')
				continue;
			if (used + strlen(value.name) + strlen(value.text) > OPTIONS_WIDTH) {
				log_options(opt, from, line);
				used = 0;
			}
			used += (size_t)snprintf(
				line + used, sizeof(line) - used, " %s=%s", value.name, value.text);
		}
		log_options(opt, from, line);
	}
}

/* Fails if standard output could not take all: a disk can be full. */
static enum tokd_exit
end_of_output(void)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return TOKD_EXIT_OK;
	tokd_log_failure("standard output: %s", strerror(errno));
	return TOKD_EXIT_FAILED;
}

/* Options are valid here. Loads the vocabularies: all that can be checked without EAL. */
static enum tokd_exit
check_config(const struct tokd_options *opt)
{
	struct tokd_vocabs vocabs;
	struct tok_error error;

	if (!tokd_vocabs_load(&vocabs, opt, TOKD_VOCABS_NO_EAL, &error)) {
		tokd_log_failure("%s", error.text);
		return TOKD_EXIT_USAGE;
	}
	tokd_vocabs_free(&vocabs);
	opt_print_file(&tokd_program, &opt->given, opt, stdout);
	return end_of_output();
}

static void
limit_fragments(struct tokd_app *app)
{
	const uint32_t each = tokd_frags_each(app->opt.fragments, app->n_workers);

	if (each == app->opt.fragments)
		return;
	TOKD_LOG(main, NOTICE,
		"--fragments %u: IP fragments are dropped with %u workers, because RSS would "
		"spread one text over several; clients must send datagrams that fit the MTU\n",
		app->opt.fragments, app->n_workers);
	app->opt.fragments = each;
}

/* Returns when all workers have. */
static int
workers_run(struct tokd_app *app)
{
	int rc = 0;

	for (uint32_t i = 1; i < app->n_workers && rc == 0; i++) {
		rc = rte_eal_remote_launch(tokd_worker_run, app->worker[i], app->worker[i]->lcore);
		if (rc != 0)
			TOKD_LOG(main, ERR, "worker %u: cannot launch lcore %u: %s\n", i,
				app->worker[i]->lcore, strerror(-rc));
	}
	if (rc == 0) {
		char at[TOKD_ADDRESS_TEXT];

		TOKD_LOG(main, NOTICE,
			"ready: udp %s port %u on %s (%s), %u workers, vocabulary %s, readers at "
			"%s\n",
			tokd_address_text(&app->address, at), app->opt.udp_port, app->port.name,
			app->port.driver, app->n_workers, app->opt.vocab, app->opt.socket);
		fflush(NULL);
		tokd_notify("READY=1");
		rc = tokd_worker_run(app->worker[0]);
	} else {
		atomic_store(&app->stop, TOKD_STOP);
	}
	rte_eal_mp_wait_lcore();
	return rc;
}

static int
serve(struct tokd_app *app)
{
	static const struct tokd_addr none;
	int rc;

	limit_fragments(app);
	rc = tokd_port_configure(&app->port, &app->opt, (uint16_t)app->n_workers);
	if (rc != 0)
		return rc;
	rc = tokd_address_choose(&app->address, &app->port, &app->opt);
	if (rc != 0)
		goto close_workers;
	tokd_cpu_check(&app->port);
	if (app->opt.allow != NULL)
		rc = tokd_allow_open(&app->allow, app->opt.allow, app->port.node);
	if (rc == 0)
		rc = tokd_workers_open(app);
	if (rc != 0)
		goto close_workers;
	/* A kernel that answers neighbours has joined their group. */
	rc = tokd_port_start(
		&app->port, &app->opt, app->address.kernel_answers ? &none : &app->address.ip6);
	for (uint32_t i = 0; i < app->n_workers && rc == 0; i++)
		rc = tokd_worker_bound_held(app->worker[i], &app->port);
	for (uint32_t i = 0; i < app->n_workers && rc == 0; i++)
		tokd_zero_copy_check(app->worker[i], &app->port);
	if (rc != 0)
		goto close_workers;
	rc = tokd_control_start(&app->control, app);
	if (rc != 0)
		goto close_workers;
	rc = tokd_telemetry_start(app);
	if (rc != 0)
		goto stop_control;
	if (app->opt.sandbox)
		rc = tokd_sandbox_start(&app->opt, &app->port, app->served->vocabs[0].tok,
			app->served->vocabs[0].n, app->control.wake);
	if (rc != 0)
		goto stop_telemetry;

	tokd_unmap_guard(app);
	rc = workers_run(app);
	if (rc == 0 && atomic_load(&app->port.lost))
		rc = -ENODEV;
	tokd_unmap_guard(NULL);

stop_telemetry:
	tokd_telemetry_stop();
stop_control:
	tokd_control_stop(&app->control);
	tokd_summary_print(stdout, app);
	tokd_control_free(&app->control);
close_workers:
	/* Fragments that wait may be in memory of the driver (mlx5 with mprq_en). */
	for (uint32_t i = 0; i < app->n_workers && app->worker[i] != NULL; i++)
		tokd_worker_free(app->worker[i]);
	/* The device frees its mbufs before their pools are freed. */
	tokd_port_close(&app->port);
	tokd_address_free(&app->address);
	tokd_workers_close(app);
	tokd_allow_close(&app->allow);
	return rc;
}

/* What the options name, before a device is touched. Its errors are those of --check-config. */
static enum tokd_exit
load(struct tokd_app *app)
{
	int node[TOKD_RINGS_MAX] = {(int)rte_lcore_to_socket_id(rte_get_main_lcore())}, rc;
	struct tok_error error;
	uint32_t n = 1;
	unsigned int lcore;

	/* rte_lcore_count() includes service lcores, and threads that drivers have registered. */
	RTE_LCORE_FOREACH_WORKER (lcore) {
		if (n < TOKD_RINGS_MAX)
			node[n] = (int)rte_lcore_to_socket_id(lcore);
		n++;
	}
	if (n > TOKD_RINGS_MAX) {
		TOKD_LOG(main, ERR, "%u lcores: the limit is %u; give fewer in -l\n", n,
			TOKD_RINGS_MAX);
		return TOKD_EXIT_FAILED;
	}
	app->n_workers = n;
	rc = tokd_served_load(&app->served, &app->opt, node, n, &error);
	if (rc != 0)
		TOKD_LOG(main, ERR, "%s\n", error.text);
	return rc == 0 ? TOKD_EXIT_OK : rc == -EINVAL ? TOKD_EXIT_USAGE : TOKD_EXIT_FAILED;
}

/* From EAL's start to its end. */
static enum tokd_exit
run(struct tokd_app *app, int eal_argc, char **argv)
{
	enum tokd_exit code;
	uint16_t port;

	tokd_log_open(app->opt.log_format == TOKD_LOG_JSON);
	tokd_control_before_eal();
	code = tokd_eal_start(eal_argc, argv);
	if (code != TOKD_EXIT_OK)
		return code;
	code = TOKD_EXIT_FAILED;
	log_config(&app->opt);
	app->t_start = rte_rdtsc();
	if (rte_eal_process_type() != RTE_PROC_PRIMARY) {
		TOKD_LOG(main, ERR, "must be a primary process; give another --file-prefix\n");
	} else if (getrandom(&app->instance, sizeof(app->instance), 0) != sizeof(app->instance)) {
		TOKD_LOG(main, ERR, "cannot get a random instance number (getrandom): %s\n",
			strerror(errno));
	} else {
		code = load(app);
		if (code == TOKD_EXIT_OK && serve(app) != 0)
			code = TOKD_EXIT_FAILED;
		tokd_reload_close(app);
		tokd_served_free(app->served);
		/* Not served: EAL crashes where it ends a net_failsafe that still has its ports. */
		RTE_ETH_FOREACH_DEV (port)
			rte_eth_dev_close(port);
	}
	rte_eal_cleanup();
	tokd_sandbox_log_denied();
	return code;
}

int
main(int argc, char **argv)
{
	static struct tokd_app app = {.lock = PTHREAD_MUTEX_INITIALIZER};
	struct opt_error error;
	enum tokd_exit code = TOKD_EXIT_OK;
	int eal_argc;

	app.reload.argc = argc;
	app.reload.argv = argv;
	switch (tokd_options_parse(argc, argv, environ, &eal_argc, &app.opt, &error)) {
	case TOKD_OPTIONS_HELP:
		opt_help(&tokd_program, app.opt.given.help, stdout);
		code = end_of_output();
		break;
	case TOKD_OPTIONS_VERSION:
		tokd_version_print(stdout);
		code = end_of_output();
		break;
	case TOKD_OPTIONS_EAL_HELP:
		code = tokd_eal_start(2, (char *[]){argv[0], "-h", NULL}); /* exits */
		break;
	case TOKD_OPTIONS_CHECK:
		code = check_config(&app.opt);
		break;
	case TOKD_OPTIONS_BAD:
		tokd_log_failure("%s", error.text);
		code = TOKD_EXIT_USAGE;
		break;
	case TOKD_OPTIONS_RUN:
		code = run(&app, eal_argc, argv);
		break;
	}
	opt_free(&app.opt.given);
	return code;
}
