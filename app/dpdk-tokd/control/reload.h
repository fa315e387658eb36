/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reload of vocabularies and limits, by SIGHUP or telemetry. A pair with app.h, which holds it. A
 * thread of its own reads the configuration and loads the new vocabularies beside the old ones; an
 * error leaves all as it was. Then each worker gets its new terms by one pointer. The old ones are
 * freed when no text needs them: until then the next reload waits, so that there are never three.
 *
 *          asked            loaded               left by all workers
 *   IDLE ─────────▶ LOADING ──────▶ LEAVING ────────────────────────▶ IDLE
 *                      └─▶ IDLE: an error
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "options/options.h"

struct tokd_app;
struct tokd_served;

enum tokd_reload_state { TOKD_RELOAD_IDLE = 0, TOKD_RELOAD_LOADING, TOKD_RELOAD_LEAVING };

struct tokd_reload {
	int argc; /* of the program */
	char **argv;
	_Atomic bool asked;
	/* The control thread's. */
	enum tokd_reload_state state;
	pthread_t thread;
	struct tokd_served *old; /* LEAVING */
	bool told;		 /* that the next one waits */
	char *first_file;	 /* values of options that stay point into it */
	/* The loading thread's until `loaded`. */
	struct tokd_options opt;
	struct tokd_served *served; /* NULL: see error */
	struct tok_error error;
	_Atomic bool loaded;
	/* For telemetry, under the app's lock. */
	uint64_t n_done, n_failed;
	struct tok_error why; /* of the last one that failed */
};

/* Any thread. */
void tokd_reload_ask(struct tokd_app *app);

/* The control thread. */
void tokd_reload_poll(struct tokd_app *app);
/* Call poll again after this many ms; -1: when woken. */
int tokd_reload_wait_ms(const struct tokd_app *app);

/* After control thread and workers have ended. */
void tokd_reload_close(struct tokd_app *app);

/* Open texts of before the last reload. Under the app's lock. */
uint32_t tokd_reload_old_texts(const struct tokd_app *app);
