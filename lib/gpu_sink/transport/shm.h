/* SPDX-License-Identifier: BSD-3-Clause */
/* The region mapped into this process: memory of the host, or of the GPU (`cuda`). */
#pragma once

#include "session.h"
#include "transport.h"

struct tokg_shm {
	struct tokg_transport t; /* first */
	/* of this producer, in the region */
	struct tokg_hdr *hdr;
	uint8_t *payload;
	uint64_t *ask;
	const uint64_t *back; /* words of the back area */
	/* set-up */
	bool cuda, gpu; /* requested; the memory is the GPU's */
	int node;
	uint8_t *region;
	uint64_t mapped, dev, ino;
	struct tokg_session session;
};

/* Hot, transport_shm.c. */
int tokg_shm_post(struct tokg_transport *t, uint32_t slot, const void *payload, uint32_t bytes,
	const struct tokg_hdr *hdr, enum tokg_order order);
int tokg_shm_ask(struct tokg_transport *t, uint32_t lane, uint64_t word);
int tokg_shm_flush(struct tokg_transport *t);
int tokg_shm_poll(struct tokg_transport *t);
int tokg_shm_read_back(struct tokg_transport *t);
/* Hot, transport_cuda.c: for a mapping of GPU memory. */
int tokg_cuda_post(struct tokg_transport *t, uint32_t slot, const void *payload, uint32_t bytes,
	const struct tokg_hdr *hdr, enum tokg_order order);
int tokg_cuda_flush(struct tokg_transport *t);
int tokg_cuda_read_back(struct tokg_transport *t);
