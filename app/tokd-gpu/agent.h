/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The main loop of tokd-gpu: one thread for producers, subscribers, and the consumer's outbox. Ids
 * and rows do not pass through it.
 */
#pragma once

#include "handshake/handshake_server.h"
#include "transport/verbs_server.h"
#include "consumer.h"
#include "delivery.h"
#include "subscribers.h"
#include "options.h"
#include "producers.h"

struct tokg_agent;

/* A listener for producers. */
struct tokg_agent_listener {
	struct tokg_agent *agent;
	uint32_t index;
	struct tokg_server *server;
	struct tokg_verbs_server *verbs; /* of a TCP listener, at its address */
};

struct tokg_agent {
	const struct tokg_options *o;
	struct tokg_device *device;
	uint64_t instance;
	uint32_t ring_epoch;
	uint32_t text_vocab, text_flags; /* for the welcome; the caller sets them before it runs */
	struct tokg_producers producers;
	struct tokg_delivery delivery;
	struct tokg_subscribers subscribers;
	struct tokg_consumer consumer;
	struct tokg_agent_listener listener[TOKG_LISTEN_MAX];
	struct tokg_error unfenced; /* of a queue pair that cannot be destroyed: fatal */
	int epoll, signals;
	uint32_t n_signals;		   /* SIGINT or SIGTERM so far */
	uint64_t watchdog_ns, notified_ns; /* systemd's; 0: none */
};

/* Opens all but the consumer, and takes over the device. False and `err`; call tokg_agent_close
 * in any case. */
bool tokg_agent_open(struct tokg_agent *a, const struct tokg_options *o, struct tokg_device *device,
	uint64_t instance, uint32_t ring_epoch, struct tokg_error *err);
/*
 * Starts the consumer and waits for its first heartbeat, or for a signal. False and `err`: it
 * cannot start, or gives no sign of life, also after restarts.
 */
bool tokg_agent_start(struct tokg_agent *a, struct tokg_error *err);
/* After that: runs until a signal (true) or a fatal error (false and `err`). */
bool tokg_agent_run(struct tokg_agent *a, struct tokg_error *err);
/* False: the consumer does not end: leave by _exit (device.h). */
bool tokg_agent_close(struct tokg_agent *a);
