/* SPDX-License-Identifier: BSD-3-Clause */
/* A producer's end: its source, and transports towards an agent of the test. */
#pragma once

#include "transport/transport.h"

#define SLOTS 8
#define PATIENCE_MS 20000 /* of what comes at once if the machine is not busy */

extern const struct tokg_source source;
extern uint32_t open_ms; /* the time limit of those below; PATIENCE_MS unless a test sets it */

uint32_t open_files(void);
/* By "shm", "cuda" or "verbs". NULL and `err`. */
struct tokg_transport *open_by(const char *kind, const char *path, struct tokg_error *err);
struct tokg_transport *open_of(
	const struct tokg_source *from, const char *kind, const char *path, struct tokg_error *err);
struct tokg_transport *open_to(const char *path, struct tokg_error *err);
