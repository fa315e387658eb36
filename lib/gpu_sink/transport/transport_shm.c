/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hot: plain stores into mapped host memory. A consumer on this host reads them from the cache;
 * reads of a GPU over the bus are coherent with it.
 */
#include "shm.h"

#include <string.h>

int
tokg_shm_post(struct tokg_transport *t, uint32_t slot, const void *payload, uint32_t bytes,
	const struct tokg_hdr *hdr, enum tokg_order order)
{
	const struct tokg_shm *s = (const struct tokg_shm *)t;
	struct tokg_hdr *to = &s->hdr[slot];

	(void)order; /* stores of one thread stay in order */
	if (bytes > 0)
		memcpy(s->payload + (size_t)slot * t->geometry.slot_bytes, payload, bytes);
	memcpy(to, hdr, offsetof(struct tokg_hdr, ticket));
	/* Release: the ticket is visible after all of the above. */
	__atomic_store_n(&to->ticket, hdr->ticket, __ATOMIC_RELEASE);
	return 1;
}

int
tokg_shm_ask(struct tokg_transport *t, uint32_t lane, uint64_t word)
{
	const struct tokg_shm *s = (const struct tokg_shm *)t;

	/* Release: after the reads of the log that make room for what is granted. */
	__atomic_store_n(&s->ask[lane], word, __ATOMIC_RELEASE);
	return 1;
}

int
tokg_shm_flush(struct tokg_transport *t)
{
	return 0;
}

int
tokg_shm_poll(struct tokg_transport *t)
{
	return __atomic_load_n(&t->gone, __ATOMIC_RELAXED) ? -1 : 0;
}

int
tokg_shm_read_back(struct tokg_transport *t)
{
	const struct tokg_shm *s = (const struct tokg_shm *)t;
	uint64_t *to = (uint64_t *)t->back;

	for (uint32_t i = 0; i < t->read_bytes / 8; i++)
		to[i] = __atomic_load_n(&s->back[i], __ATOMIC_RELAXED);
	/* Acquire: after the consumer's accesses before `done`, the subscriber's before `released`.
	 */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	t->n_reads++;
	return 1;
}
