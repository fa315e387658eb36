/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One direction of a wire that loses, doubles and reorders packets, by the dice of a seed. A packet
 * that is reordered is held back until 1 to FAULTS_BEHIND later ones have passed, or FAULTS_WAIT_NS
 * are over. A duplicate is a packet of its own, which may be held back as well.
 *
 * The sequence of dice is the seed's; which packets they fall on is the traffic's.
 */
#ifndef TOKD_LOAD_FAULTS_H
#define TOKD_LOAD_FAULTS_H

#include <stdint.h>

#define FAULTS_BEHIND 8
#define FAULTS_WAIT_NS 2000000
#define FAULTS_HELD 64		     /* above that none is held back */
#define FAULTS_OUT (FAULTS_HELD + 2) /* packets that may go on at once */
#define FAULTS_CERTAIN 1000000u	     /* rates are parts of it */

struct fault_rates {
	uint32_t lose, reorder, duplicate;
};

/* What a packet is to the caller. */
struct fault_packets {
	void *(*copy)(void *packet, void *arg); /* NULL: no memory, it is not doubled */
	void (*drop)(void *packet);
	void *arg;
};

struct faults {
	struct fault_rates rates;
	struct fault_packets packets;
	uint64_t dice;
	/* counted */
	uint64_t came, passed, lost, reordered, duplicated;
	/* held back, in the order in which they came */
	uint32_t n_held;
	struct fault_held {
		void *packet;
		uint64_t behind; /* goes on when so many have passed */
		uint64_t until;	 /* or at this time, ns */
	} held[FAULTS_HELD];
};

void faults_init(struct faults *f, const struct fault_rates *rates,
	const struct fault_packets *packets, uint64_t seed);
/* A packet comes. Those that go on now are in `out`: how many. */
uint32_t faults_take(struct faults *f, void *packet, uint64_t now_ns, void *out[FAULTS_OUT]);
/* Those whose time is over. */
uint32_t faults_due(struct faults *f, uint64_t now_ns, void *out[FAULTS_OUT]);

#endif
