/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hot: writes to GPU memory, mapped through its dma-buf. The mapping is write-combined: stores
 * leave their buffers in any order, so a release store is not enough, and each step waits for the
 * one before. Loads cross the bus one by one, so they are as wide as possible.
 */
#include "shm.h"

#include <string.h>

#ifdef __x86_64__
#include <immintrin.h>
#endif

/* Earlier stores are on the bus before later ones. */
static inline void
settle(void)
{
#ifdef __x86_64__
	_mm_sfence();
#else
	__asm__ volatile("dsb sy" ::: "memory");
#endif
}

/*
 * The same before a load. A store fence orders stores only: a load may pass them, or be answered
 * from the buffers without crossing the bus.
 */
static inline void
settle_for_load(void)
{
#ifdef __x86_64__
	_mm_mfence();
#else
	__asm__ volatile("dsb sy" ::: "memory");
#endif
}

/*
 * A header with a check word. It is a line of the buffers, which leaves at once; if its words come
 * apart, in any order, the consumer finds the check wrong and reads again.
 */
static inline void
store_line(struct tokg_hdr *to, const struct tokg_hdr *hdr)
{
	uint64_t w[sizeof(*hdr) / sizeof(uint64_t)];

	memcpy(w, hdr, sizeof(w));
	for (uint32_t i = 0; i < sizeof(w) / sizeof(w[0]); i++)
		__atomic_store_n((uint64_t *)to + i, w[i], __ATOMIC_RELAXED);
}

int
tokg_cuda_post(struct tokg_transport *t, uint32_t slot, const void *payload, uint32_t bytes,
	const struct tokg_hdr *hdr, enum tokg_order order)
{
	const struct tokg_shm *s = (const struct tokg_shm *)t;
	uint8_t *body = s->payload + (size_t)slot * t->geometry.slot_bytes;
	struct tokg_hdr *to = &s->hdr[slot];

	if (bytes > 0)
		memcpy(body, payload, bytes);
	/* A read does not pass earlier writes on the bus: they have arrived. */
	if (order == TOKG_ORDER_STRICT && bytes > 0) {
		settle_for_load();
		(void)*(const volatile uint64_t *)(body + bytes - sizeof(uint64_t));
		settle_for_load(); /* the load completes before the header is stored */
	} else {
		settle();
	}
	if ((t->geometry.flags & TOKG_CHECKED) && order == TOKG_ORDER_FAST) {
		store_line(to, hdr);
		return 1;
	}
	memcpy(to, hdr, offsetof(struct tokg_hdr, ticket));
	settle();
	__atomic_store_n(&to->ticket, hdr->ticket, __ATOMIC_RELEASE);
	return 1;
}

/* Flushes the last ticket from its buffer. */
int
tokg_cuda_flush(struct tokg_transport *t)
{
	settle();
	return 0;
}

#ifdef __x86_64__
/* A streaming load fetches a whole line of write-combined memory. */
static void __attribute__((target("sse4.1"))) load_lines(void *to, const void *from, uint32_t lines)
{
	__m128i *out = to;
	/* The intrinsic's argument is not const. */
	__m128i *in = (__m128i *)(uintptr_t)from;

	_mm_mfence(); /* not from a line of an earlier fetch */
	for (uint32_t i = 0; i < lines * (TOKG_LINE / sizeof(*in)); i++)
		_mm_store_si128(&out[i], _mm_stream_load_si128(&in[i]));
	_mm_lfence();
}
#else
static void
load_lines(void *to, const void *from, uint32_t lines)
{
	const volatile uint64_t *in = from;
	uint64_t *out = to;

	for (uint32_t i = 0; i < lines * (TOKG_LINE / sizeof(*in)); i++)
		out[i] = in[i];
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
}
#endif

int
tokg_cuda_read_back(struct tokg_transport *t)
{
	const struct tokg_shm *s = (const struct tokg_shm *)t;

	load_lines(t->back, s->back, (uint32_t)(tokg_align(t->read_bytes, TOKG_LINE) / TOKG_LINE));
	t->n_reads++;
	return 1;
}
