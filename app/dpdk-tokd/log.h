/* SPDX-License-Identifier: BSD-3-Clause */
/* rte_log types, one per part: --log-level=tokd.*:debug */
#pragma once

#include <stdbool.h>

#include <rte_log.h>

#define TOKD_LOG(part, level, ...)                                                                 \
	rte_log(RTE_LOG_##level, tokd_log_##part, "tokd." #part ": " __VA_ARGS__)

extern int tokd_log_main, tokd_log_port, tokd_log_ring, tokd_log_worker,
	tokd_log_control; /* log.c */

/* Before EAL: what it and we log gets time and level, as text or as one JSON object a line. */
void tokd_log_open(bool json);

/* A line on standard error that says why the program ends, where there is no log, or before EAL. */
void tokd_log_failure(const char *format, ...) __attribute__((format(printf, 1, 2)));
