/* SPDX-License-Identifier: BSD-3-Clause */
/* The messages of the handshake: made, and proved before anything in them is used. Set-up only. */
#ifndef TOKG_HELLO_H
#define TOKG_HELLO_H

#include "handshake.h"
#include "peer.h"

/* A first hello; its qp is the transport's to fill. False: the source has too many vocabularies. */
bool tokg_hello_fill(struct tokg_hello *h, const struct tokg_target *target,
	const struct tokg_source *source, struct tokg_error *err);
/* The agent's look at one: its form alone. `tcp`: by which kind of socket it came. */
bool tokg_hello_proved(const struct tokg_hello *h, bool tcp, struct tokg_error *err);

/* The producer's look at the answer to `h`: a refusal gives the agent's words. */
bool tokg_welcome_proved(
	const struct tokg_hello *h, const struct tokg_welcome *w, struct tokg_error *err);
/* What came with it. */
enum tokg_memory { TOKG_MEMORY_WRONG, TOKG_MEMORY_HOST, TOKG_MEMORY_GPU };
/*
 * A memfd that holds the region and can get no smaller, or with `gpu` the dma-buf of GPU memory,
 * whose size is fixed. Its size in `bytes`.
 */
enum tokg_memory tokg_region_fd_proved(
	int fd, bool gpu, const struct tokg_geometry *g, uint64_t *bytes, struct tokg_error *err);

#endif
