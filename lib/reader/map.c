/* SPDX-License-Identifier: BSD-3-Clause */
/* Maps the appliance's memory if it cannot shrink, and validates it. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "reader.h"

/*
 * A file that can be truncated later would kill this process by SIGBUS. Its size is asked for after
 * its seals: until then the peer may change it.
 */
static int
map_whole(int fd, int prot, const char *what, uint32_t index, size_t least, void **va,
	size_t *bytes, struct tokr_error *e)
{
	const int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;

	if (seals < 0)
		return reader_fail(e, TOKR_INVALID, "%s %u: not a memfd", what, index);
	if ((seals & F_SEAL_SHRINK) == 0)
		return reader_fail(
			e, TOKR_INVALID, "%s %u: not sealed against shrinking", what, index);
	if (fstat(fd, &st) != 0) {
		e->sys_errno = errno;
		return reader_fail(
			e, TOKR_SYSTEM, "%s %u: fstat: %s", what, index, strerror(errno));
	}
	if (st.st_size < (off_t)least)
		return reader_fail(e, TOKR_INVALID, "%s %u: %lld bytes, must have at least %zu",
			what, index, (long long)st.st_size, least);
	*bytes = (size_t)st.st_size;
	*va = mmap(NULL, *bytes, prot, MAP_SHARED, fd, 0);
	if (*va == MAP_FAILED) {
		e->sys_errno = errno;
		return reader_fail(e, TOKR_SYSTEM, "%s %u: cannot map %zu bytes: %s", what, index,
			*bytes, strerror(errno));
	}
	return 0;
}

int
reader_map_cursors(struct tokr *r, int fd, struct tokr_error *e)
{
	void *va;
	int rc = map_whole(fd, PROT_READ | PROT_WRITE, "cursor memfd", 0, TOKD_CURSOR_BYTES, &va,
		&r->cursors_bytes, e);

	if (rc == 0)
		r->cursors = va;
	return rc;
}

static int
check_header(const struct tokd_ring_hdr *h, size_t map_bytes, const struct tokr *r, uint32_t index,
	struct tokr_error *e)
{
	if (h->magic != TOKD_RING_MAGIC)
		return reader_fail(e, TOKR_INVALID,
			"token ring %u: magic 0x%" PRIx64 ", must be 0x%llx", index, h->magic,
			(unsigned long long)TOKD_RING_MAGIC);
	if (h->version != TOKD_RING_VERSION)
		return reader_fail(e, TOKR_INVALID,
			"token ring %u: version %u, this library supports %u", index, h->version,
			TOKD_RING_VERSION);
	if (h->instance != r->instance)
		return reader_fail(
			e, TOKR_INVALID, "token ring %u: from another run of dpdk-tokd", index);
	if (h->data_bytes < TOKD_RING_ALIGN || (h->data_bytes & (h->data_bytes - 1)) != 0)
		return reader_fail(e, TOKR_INVALID,
			"token ring %u: data_bytes %" PRIu64 " must be a power of two from %u",
			index, h->data_bytes, TOKD_RING_ALIGN);
	if (h->data_off != TOKD_RING_HDR_BYTES || h->data_bytes > map_bytes - TOKD_RING_HDR_BYTES)
		return reader_fail(e, TOKR_INVALID,
			"token ring %u: data [%" PRIu64 ", +%" PRIu64 ") exceeds %zu bytes", index,
			h->data_off, h->data_bytes, map_bytes);
	if (h->block_size != 0 && (h->key_bytes == 0 || h->key_bytes % sizeof(uint64_t) != 0))
		return reader_fail(e, TOKR_INVALID,
			"token ring %u: key_bytes %u must be a multiple of %zu", index,
			h->key_bytes, sizeof(uint64_t));
	if (h->tsc_hz == 0)
		return reader_fail(e, TOKR_INVALID, "token ring %u: tsc_hz is 0", index);
	return 0;
}

int
reader_map_ring(struct tokr *r, uint32_t index, int fd, uint64_t start, struct tokr_error *e)
{
	struct ring *ring = &r->ring[index];
	struct tokd_ring_hdr h;
	uint64_t head, tail;
	void *va;
	int rc = map_whole(
		fd, PROT_READ, "token ring", index, TOKD_RING_HDR_BYTES, &va, &ring->map_bytes, e);

	if (rc != 0)
		return rc;
	ring->hdr = va;		   /* reader_unmap unmaps it from here on */
	memcpy(&h, va, sizeof(h)); /* validate and use the same copy */
	rc = check_header(&h, ring->map_bytes, r, index, e);
	if (rc != 0)
		return rc;
	head = __atomic_load_n(&ring->hdr->head, __ATOMIC_ACQUIRE);
	tail = __atomic_load_n(&ring->hdr->tail, __ATOMIC_ACQUIRE);
	/* A tap may be overrun already; then it begins at the tail. */
	if (start % TOKD_RING_ALIGN != 0 || start > head ||
		(r->mode == TOKR_READER && start < tail))
		return reader_fail(e, TOKR_INVALID,
			"token ring %u: start %" PRIu64 " must be a record in [%" PRIu64
			", %" PRIu64 "]",
			index, start, tail, head);
	ring->data = (const uint8_t *)va + TOKD_RING_HDR_BYTES;
	ring->mask = h.data_bytes - 1;
	ring->position = ring->head = ring->cursor = start;
	if (r->cursors != NULL)
		ring->cursor_word = (uint64_t *)(void *)(r->cursors + TOKD_CURSOR_STRIDE * index);
	ring->info = (struct tokr_ring){.worker = h.worker,
		.lcore = h.lcore,
		.vocab = h.vocab,
		.data_bytes = h.data_bytes,
		.tsc_hz = h.tsc_hz};
	ring->block_size = h.block_size;
	ring->key_scheme = h.key_scheme;
	ring->key_bytes = h.key_bytes;
	return 0;
}

void
reader_unmap(struct tokr *r)
{
	for (uint32_t i = 0; i < TOKD_RINGS_MAX; i++) {
		if (r->ring[i].hdr != NULL)
			munmap((void *)(uintptr_t)r->ring[i].hdr, r->ring[i].map_bytes);
	}
	if (r->cursors != NULL)
		munmap(r->cursors, r->cursors_bytes);
}
