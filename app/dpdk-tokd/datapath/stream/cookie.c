/* SPDX-License-Identifier: BSD-3-Clause */
#include "cookie.h"

static inline uint64_t
rotate(uint64_t x, uint32_t by)
{
	return x << by | x >> (64 - by);
}

static inline void
rounds(uint64_t v[4], uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		v[0] += v[1];
		v[2] += v[3];
		v[1] = rotate(v[1], 13) ^ v[0];
		v[3] = rotate(v[3], 16) ^ v[2];
		v[0] = rotate(v[0], 32) + v[3];
		v[2] += v[1];
		v[3] = rotate(v[3], 21) ^ v[0];
		v[1] = rotate(v[1], 17) ^ v[2];
		v[2] = rotate(v[2], 32);
	}
}

static inline void
compress(uint64_t v[4], uint64_t word)
{
	v[3] ^= word;
	rounds(v, 2);
	v[0] ^= word;
}

uint64_t
tokd_siphash(const uint64_t key[2], const uint64_t *word, uint32_t n)
{
	uint64_t v[4] = {key[0] ^ UINT64_C(0x736f6d6570736575),
		key[1] ^ UINT64_C(0x646f72616e646f6d), key[0] ^ UINT64_C(0x6c7967656e657261),
		key[1] ^ UINT64_C(0x7465646279746573)};

	for (uint32_t i = 0; i < n; i++)
		compress(v, word[i]);
	compress(v, (uint64_t)(8 * n) << 56); /* the length, and no bytes that are left */
	v[2] ^= 0xff;
	rounds(v, 4);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

static uint64_t
period(const struct tokd_worker *w)
{
	return w->t_burst / (w->tsc_hz * TOKD_COOKIE_SECONDS);
}

static uint64_t
cookie_of(const struct tokd_worker *w, const struct tokd_peer *peer, uint64_t at)
{
	uint64_t word[] = {peer->addr.half[0], peer->addr.half[1], peer->port, at};
	uint64_t cookie;

	memcpy(RTE_PTR_ADD(&word[2], sizeof(peer->port)), &peer->mac, sizeof(peer->mac));
	cookie = tokd_siphash(w->streams->cookie_key, word, RTE_DIM(word));
	return cookie != 0 ? cookie : 1;
}

uint64_t
tokd_cookie_make(const struct tokd_worker *w, const struct tokd_peer *peer)
{
	return cookie_of(w, peer, period(w));
}

bool
tokd_cookie_check(struct tokd_worker *w, const struct tokd_peer *peer, uint64_t cookie)
{
	const uint64_t now = period(w);
	uint64_t wrong, wrong_before;

	if (cookie == 0)
		return false;
	/* No branch, nor a comparison by bytes, depends on how much of it is right. */
	wrong = cookie ^ cookie_of(w, peer, now);
	wrong_before = cookie ^ cookie_of(w, peer, now - 1);
	if ((wrong == 0) | (wrong_before == 0)) {
		w->counter[C_COOKIE_RIGHT]++;
		return true;
	}
	w->counter[C_COOKIE_WRONG]++;
	return false;
}
