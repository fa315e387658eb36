/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the transports. Set-up only. */
#pragma once

#include "handshake/inside.h"
#include "session.h"
#include "transport.h"

/* Zeroed, populated pages on a NUMA node (below 0: any). NULL: no memory. */
void *tokg_own_memory(size_t bytes, int node);
void tokg_own_free(void *at, size_t bytes);

/*
 * A transport that is not connected yet; tokg_session_open connects it. t->ops is set, and it can
 * be closed. NULL and `err`.
 */
struct tokg_transport *tokg_shm_new(const struct tokg_target *target,
	const struct tokg_source *source, struct tokg_session **session, struct tokg_error *err);
/* The same, after an agent accepts a connection, within `timeout_ms`. */
struct tokg_transport *tokg_verbs_new(const struct tokg_target *target,
	const struct tokg_source *source, uint32_t timeout_ms, struct tokg_session **session,
	struct tokg_error *err);
