/* SPDX-License-Identifier: BSD-3-Clause */
/* Producer slots and their delivery, over a device that is only memory. */
#pragma once

#include "handshake/peer.h"
#include "tokd-gpu/delivery.h"
#include "tokd-gpu/producers.h"
#include "fake_device.h"

#define S 1000000000ull

struct fixture {
	struct fake fake;
	struct tokg_producers producers;
	struct tokg_delivery delivery;
	uint64_t now, disconnected, fenced_at_epoch;
	uint32_t n_fences;
};

int setup(void **state);
int teardown(void **state);
/* The low half of the word is the agent's, the high half the incarnation. */
uint64_t epoch_word(const struct fixture *f, uint32_t producer);
struct tokg_hello hello(uint32_t worker);
/* The producer slot that this worker gets. */
uint32_t granted(struct fixture *f, uint32_t worker, uint64_t link);
/* A turn of tokd-gpu without subscribers. */
void turn(struct fixture *f);
/* An entry of the outbox: producer slot 0, its first epoch, two rows. */
struct tokg_out_entry entry(uint32_t slot, uint64_t ticket);
void tell(struct fixture *f, uint32_t slot, uint64_t ticket);
uint64_t released(const struct fixture *f, uint32_t producer);
