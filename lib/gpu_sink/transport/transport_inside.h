/* SPDX-License-Identifier: BSD-3-Clause */
/* What the transports have in common: set-up alone. */
#ifndef TOKG_TRANSPORT_INSIDE_H
#define TOKG_TRANSPORT_INSIDE_H

#include "handshake/inside.h"
#include "session.h"
#include "transport.h"

/* Zeroed whole pages on a NUMA node (below 0: any), all of them there. NULL: no memory. */
void *tokg_own_memory(size_t bytes, int node);
void tokg_own_free(void *at, size_t bytes);

/*
 * Empty, for tokg_session_open to bring to life: t->ops and what is needed to close it stand. NULL
 * and `err`.
 */
struct tokg_transport *tokg_shm_new(const struct tokg_target *target,
	const struct tokg_source *source, struct tokg_session **session, struct tokg_error *err);
/* The same, once somebody listens there, for which it waits `timeout_ms` at most. */
struct tokg_transport *tokg_verbs_new(const struct tokg_target *target,
	const struct tokg_source *source, uint32_t timeout_ms, struct tokg_session **session,
	struct tokg_error *err);

#endif
