/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packet loss, duplication and reordering in one direction, by a seeded generator. A reordered
 * packet is held back until 1 to FAULTS_BEHIND later packets have passed, or FAULTS_WAIT_NS are
 * over. A duplicate is a separate packet, and may also be held back.
 *
 * The random numbers depend on the seed only; which packets they affect depends on the traffic.
 */
#pragma once

#include <stdint.h>

#define FAULTS_BEHIND 8
#define FAULTS_WAIT_NS 2000000
#define FAULTS_HELD 64		     /* above this none is held back */
#define FAULTS_OUT (FAULTS_HELD + 2) /* the most packets that pass at once */
#define FAULTS_CERTAIN 1000000u	     /* rates are fractions of this */

struct fault_rates {
	uint32_t lose, reorder, duplicate;
};

/* How the caller handles its packets. */
struct fault_packets {
	void *(*copy)(void *packet, void *arg); /* NULL: no memory, so no duplicate */
	void (*drop)(void *packet);
	void *arg;
};

struct faults {
	struct fault_rates rates;
	struct fault_packets packets;
	uint64_t dice;
	/* counters */
	uint64_t came, passed, lost, reordered, duplicated;
	/* held back, in order of arrival */
	uint32_t n_held;
	struct fault_held {
		void *packet;
		uint64_t behind; /* passes after this many packets */
		uint64_t until;	 /* or at this time, ns */
	} held[FAULTS_HELD];
};

void faults_init(struct faults *f, const struct fault_rates *rates,
	const struct fault_packets *packets, uint64_t seed);
/* Handle one packet. Fills `out` with the packets that pass now; returns their number. */
uint32_t faults_take(struct faults *f, void *packet, uint64_t now_ns, void *out[FAULTS_OUT]);
/* The held packets whose time is over. */
uint32_t faults_due(struct faults *f, uint64_t now_ns, void *out[FAULTS_OUT]);
