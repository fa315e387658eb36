/* SPDX-License-Identifier: BSD-3-Clause */
/* Builds and validates the messages of the handshake. Set-up only. */
#pragma once

#include "handshake.h"
#include "peer.h"

/* A first hello; the transport fills qp. False: too many vocabularies. */
bool tokg_hello_fill(struct tokg_hello *h, const struct tokg_target *target,
	const struct tokg_source *source, struct tokg_error *err);
/* Agent: validates the form of a hello. `tcp`: it came by TCP. */
bool tokg_hello_proved(const struct tokg_hello *h, bool tcp, struct tokg_error *err);

/* Producer: validates the answer to `h`; err has the agent's words if it refused. */
bool tokg_welcome_proved(
	const struct tokg_hello *h, const struct tokg_welcome *w, struct tokg_error *err);
/* The kind of memory of a region. */
enum tokg_memory { TOKG_MEMORY_WRONG, TOKG_MEMORY_HOST, TOKG_MEMORY_GPU };
/*
 * Validates the region's descriptor: a memfd that is large enough and cannot shrink, or with `gpu`
 * a dma-buf of GPU memory, whose size is fixed. `bytes`: its size.
 */
enum tokg_memory tokg_region_fd_proved(
	int fd, bool gpu, const struct tokg_geometry *g, uint64_t *bytes, struct tokg_error *err);
