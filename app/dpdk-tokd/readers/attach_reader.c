/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One reader and the workers. The control thread sets tokd_reader.state to JOIN and LEAVE, the
 * worker to ACTIVE and FREE.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_cycles.h>

#include "attach.h"
#include "log.h"

static _Atomic uint64_t *
cursor_of(const struct tokd_conn *c, uint32_t w)
{
	return (_Atomic uint64_t *)(c->cursor + TOKD_CURSOR_STRIDE * w);
}

/* Sealed against resizing: truncation would kill the worker by SIGBUS. */
static int
make_cursor(struct tokd_conn *c)
{
	c->cursor_fd = memfd_create("tokd-cursor", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (c->cursor_fd < 0)
		return -errno;
	if (ftruncate(c->cursor_fd, TOKD_CURSOR_BYTES) != 0 ||
		fcntl(c->cursor_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
		return -errno;
	c->cursor = mmap(NULL, TOKD_CURSOR_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
		c->cursor_fd, 0);
	if (c->cursor == MAP_FAILED) {
		c->cursor = NULL;
		return -errno;
	}
	return 0;
}

int
tokd_reader_join(struct tokd_attach *a, struct tokd_conn *c, const char **reason)
{
	uint32_t slot = 0;
	int rc;

	while (slot < TOKD_READERS_MAX && a->slot[slot] != NULL)
		slot++;
	if (slot == TOKD_READERS_MAX) {
		*reason = RTE_STR(TOKD_READERS_MAX) " readers are attached, the limit: detach one";
		return -EBUSY;
	}
	rc = make_cursor(c);
	if (rc != 0) {
		*reason = "no memory or descriptors for a cursor: see the log of dpdk-tokd";
		TOKD_LOG(control, ERR, "reader of pid %d: cannot create a cursor memfd: %s\n",
			c->pid, strerror(-rc));
		return rc;
	}
	c->slot = slot;
	a->slot[slot] = c;
	for (uint32_t w = 0; w < a->n_rings; w++) {
		struct tokd_reader *rd = &a->ring[w]->reader[slot];

		rd->cursor = cursor_of(c, w);
		/* Release: a worker that sees JOIN sees the cursor. */
		atomic_store_explicit(&rd->state, TOKD_READER_JOIN, memory_order_release);
	}
	return 0;
}

bool
tokd_reader_in_state(
	const struct tokd_attach *a, const struct tokd_conn *c, uint32_t state, uint32_t *missing)
{
	for (uint32_t w = 0; w < a->n_rings; w++) {
		/* Acquire: with ACTIVE we see `start`; after FREE the cursor is unused. */
		if (atomic_load_explicit(
			    &a->ring[w]->reader[c->slot].state, memory_order_acquire) != state) {
			*missing = w;
			return false;
		}
	}
	return true;
}

int
tokd_reader_welcome(struct tokd_attach *a, struct tokd_conn *c)
{
	uint64_t start[TOKD_RINGS_MAX];
	int fd[1 + TOKD_RINGS_MAX];

	fd[0] = c->cursor_fd;
	for (uint32_t w = 0; w < a->n_rings; w++) {
		start[w] = a->ring[w]->reader[c->slot].start;
		/* It was 0 until now, which the worker ignored: positions never decrease. */
		atomic_store_explicit(cursor_of(c, w), start[w], memory_order_relaxed);
		fd[1 + w] = a->ring[w]->fd;
	}
	return tokd_attach_answer(a, c->fd, start, fd, 1 + a->n_rings);
}

int
tokd_tap_welcome(struct tokd_attach *a, struct tokd_conn *c, const char **reason)
{
	uint64_t start[TOKD_RINGS_MAX];
	uint32_t slot = TOKD_READERS_MAX;
	int fd[TOKD_RINGS_MAX], rc;

	while (slot < TOKD_SLOTS_MAX && a->slot[slot] != NULL)
		slot++;
	if (slot == TOKD_SLOTS_MAX) {
		*reason = RTE_STR(TOKD_TAPS_MAX) " taps are attached, the limit: detach one";
		return -EBUSY;
	}
	for (uint32_t w = 0; w < a->n_rings; w++) {
		start[w] = __atomic_load_n(&a->ring[w]->hdr->head, __ATOMIC_ACQUIRE);
		fd[w] = a->ring[w]->fd;
	}
	rc = tokd_attach_answer(a, c->fd, start, fd, a->n_rings);
	if (rc != 0) {
		*reason = "cannot send the reply";
		return rc;
	}
	c->slot = slot;
	a->slot[slot] = c;
	return 0;
}

void
tokd_reader_leave(struct tokd_attach *a, struct tokd_conn *c)
{
	for (uint32_t w = 0; w < a->n_rings; w++)
		atomic_store_explicit(&a->ring[w]->reader[c->slot].state, TOKD_READER_LEAVE,
			memory_order_release);
}

void
tokd_reader_release(struct tokd_attach *a, struct tokd_conn *c)
{
	if (a->slot[c->slot] == c)
		a->slot[c->slot] = NULL;
	if (c->cursor != NULL)
		munmap(c->cursor, TOKD_CURSOR_BYTES);
	if (c->cursor_fd >= 0)
		close(c->cursor_fd);
	c->cursor = NULL;
	c->cursor_fd = -1;
}

uint32_t
tokd_reader_hold_ms(const struct tokd_attach *a, const struct tokd_conn *c)
{
	const uint32_t ms = a->reader_timeout_ms >> 2 * c->drops;

	return ms > 0 ? ms : a->reader_timeout_ms > 0;
}

struct tokd_conn *
tokd_reader_overdue(const struct tokd_attach *a, uint32_t w)
{
	const uint64_t now = rte_rdtsc();

	for (uint32_t slot = 0; slot < TOKD_READERS_MAX; slot++) {
		struct tokd_conn *c = a->slot[slot];

		if (c != NULL && c->state == TOKD_CONN_READING &&
			tokd_reader_is_overdue(&a->ring[w]->reader[slot],
				a->tsc_per_ms * tokd_reader_hold_ms(a, c), now))
			return c;
	}
	return NULL;
}

uint64_t
tokd_reader_lag(const struct tokd_attach *a, const struct tokd_conn *c, uint32_t w)
{
	const struct tokd_ring *r = a->ring[w];
	uint64_t cursor = atomic_load_explicit(cursor_of(c, w), memory_order_relaxed);
	uint64_t head = __atomic_load_n(&r->hdr->head, __ATOMIC_ACQUIRE);

	return cursor > head ? 0 : RTE_MIN(head - cursor, r->mask + 1);
}
