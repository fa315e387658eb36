/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tokd-gpu's options: from the command line, else the environment (TOKD_GPU_NAME), else the
 * default.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <opt.h>

#include "handshake/peer.h"

#define TOKG_LISTEN_MAX 4
#define TOKG_SUBSCRIBERS_SOCKET "/run/tokd-gpu-subscribers.sock"

struct tokg_listen {
	char path[108]; /* unix; "": TCP */
	char host[108];
	uint16_t port;
};

struct tokg_options {
	const char *device_text, *ring_text, *launch_text;
	struct opt_texts listen_texts;
	uint32_t socket_mode;
	const char *subscribers_socket;
	uint32_t subscribers_mode;
	uint32_t subscriber_timeout_ms;
	uint32_t producers, slots, lanes;
	uint64_t slot_bytes, out_bytes; /* out_bytes 0: by the size of rows */
	const char *table;
	const char *kind_text, *dtype_text;
	const char *text_vocab; /* NULL: texts are not tokenized */
	const char *engine_text;
	uint32_t workers; /* as in struct tokg_device_config */
	int32_t first_cpu;
	bool heads, no_check, spin;
	const char *rdma_device;
	int32_t rdma_port, rdma_gid;
	uint32_t rdma_tclass, rdma_sl;
	uint32_t stuck_ms, drain_ms;
	/* derived */
	bool cuda, host_ring, graphs, external_engine;
	int index;	      /* cuda:N */
	uint32_t kind, dtype; /* 0: the table's */
	struct tokg_listen listen[TOKG_LISTEN_MAX];
	uint32_t n_listen;
};

/* -1: run; else an exit code, after help, version or an error was printed. Strings point into argv
 * and environment. */
int tokg_options_parse(int argc, char **argv, struct tokg_options *o);
