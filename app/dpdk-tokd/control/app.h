/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The state of a running dpdk-tokd. main.c owns it; the control thread and telemetry read it. A
 * pair with control.h: it holds the control thread, and control.c reads the rest.
 */
#pragma once

#include <stdalign.h>
#include <stdatomic.h>
#include <stdint.h>

#include "control/port/address.h"
#include "control.h"
#include "datapath/net_allow.h"
#include "datapath/worker.h"
#include "options/options.h"
#include "control/port/port.h"
#include "reload.h"
#include "vocabs/served.h"

struct tokd_app {
	/* Every worker reads it in every turn: nothing written often shares its cache line. */
	alignas(RTE_CACHE_LINE_SIZE) _Atomic uint32_t stop; /* enum tokd_stop */
	alignas(RTE_CACHE_LINE_SIZE) struct tokd_options opt;
	struct tokd_served *served;
	pthread_mutex_t lock; /* opt and served: a reload against telemetry */
	struct tokd_reload reload;
	struct tokd_port port;
	struct tokd_address address;
	struct tokd_allow allow; /* of --allow */
	uint64_t instance;	 /* random number of this run */
	uint64_t t_start;	 /* TSC */
	uint32_t n_workers;
	struct tokd_worker *worker[TOKD_RINGS_MAX];
	struct tokd_ring *ring[TOKD_RINGS_MAX]; /* those of the workers */
	uint32_t next_sink; /* control thread: the worker whose sink is checked first */
	struct tokd_control control;
};
