/* SPDX-License-Identifier: BSD-3-Clause */
/* --sandbox: what is kept of the privileges that set-up needed. */
#pragma once

#include "control/port/port.h"
#include "options/options.h"

/*
 * Once everything is open and every thread but clients' has been started. wake_fd: an eventfd that
 * is written when a system call is denied. Returns 0, or -errno with a message logged.
 */
int tokd_sandbox_start(const struct tokd_options *opt, const struct tokd_port *port,
	struct tok_vocab *const *vocab, uint32_t n_vocabs, int wake_fd);

/* Logs the system calls denied since the last time, each once. One thread at a time. */
void tokd_sandbox_log_denied(void);
