/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cookies: a client that sends one back receives at its address. A cookie is a keyed hash of the
 * client's path and the time, so nothing is stored for a client that has not shown it.
 */
#pragma once

#include "stream.h"

/* A cookie is right in the period in which it was made, and in the next one. */
#define TOKD_COOKIE_SECONDS 60

/* SipHash-2-4 (Aumasson, Bernstein: "SipHash: a fast short-input PRF", 2012) of n words. */
uint64_t tokd_siphash(const uint64_t key[2], const uint64_t *word, uint32_t n);

/* For the sender of a packet: its address, MAC address and port, now. Never 0. */
uint64_t tokd_cookie_make(const struct tokd_worker *w, const struct tokd_peer *peer);

/* Is it one of ours for this sender, and not too old? Counts what it found; 0 is no cookie. */
bool tokd_cookie_check(struct tokd_worker *w, const struct tokd_peer *peer, uint64_t cookie);
