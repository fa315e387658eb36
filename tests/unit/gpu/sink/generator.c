/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A producer of prompts for tests in Python: the sink as it is, by the transport that dpdk-tokd
 * takes, on a tokd-gpu of this host.
 *
 *   generator SOCKET         says: granted PRODUCER LANES, or refused WHY
 *   prompt LIMIT GRANT ID... says: serial SERIAL, or busy: no lane is free. In records of 200 ids
 *   grant SERIAL N           takes so many more
 *   cancel SERIAL
 *   quit
 *
 * Whenever it comes: token SERIAL INDEX ID; ended SERIAL HOW; failed SERIAL STATUS; lost.
 */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sink/sink.h"

#define RING (1u << 20)
#define VOCAB 0x1234u
#define RECORD_IDS 200

static struct {
	struct tokg_sink *sink;
	uint8_t *ring;
	uint64_t head, now, serial;
	uint64_t of_lane[TOKG_LANES_MAX]; /* serials; 0: none */
} g;

static void
on_token(void *owner, uint32_t lane, uint64_t serial, uint32_t index, uint32_t id)
{
	(void)owner;
	printf("token %" PRIu64 " %u %u\n", serial, index, id);
}

static void
on_ended(void *owner, uint32_t lane, uint64_t serial, enum tokg_end how)
{
	(void)owner;
	g.of_lane[lane] = 0;
	printf("ended %" PRIu64 " %d\n", serial, how);
}

static void
on_failed(void *owner, uint64_t serial, enum tokg_status status)
{
	(void)owner;
	printf("failed %" PRIu64 " %d\n", serial, status);
}

/* The ring is larger than all that a test writes. */
static void
publish(const uint32_t *ids, uint32_t first, uint32_t count, bool last)
{
	struct tokd_rec *rec = (struct tokd_rec *)(g.ring + (g.head & (RING - 1)));
	const uint32_t bytes = (uint32_t)tokg_align(sizeof(*rec) + 4ull * count, TOKD_RING_ALIGN);

	if (g.head + bytes > RING)
		exit(3);
	*rec = (struct tokd_rec){.bytes = bytes,
		.kind = TOKD_REC_TOKENS,
		.serial = g.serial,
		.first = first,
		.count = count,
		.vocab = VOCAB,
		.flags = (first == 0 ? TOKD_REC_FIRST : 0) | (last ? TOKD_REC_LAST : 0)};
	memcpy(rec + 1, ids, 4ull * count);
	g.head += bytes;
}

static uint32_t
lane_of(const char *line, const char *format, uint32_t *n)
{
	uint64_t serial = 0;
	uint32_t i = 0;

	if (sscanf(line, format, &serial, n) < 1)
		exit(3);
	while (i < TOKG_LANES_MAX && g.of_lane[i] != serial)
		i++;
	return i;
}

static void
prompt(const char *line)
{
	static uint32_t ids[RING / 4];
	uint32_t limit, grant, n = 0, lane;
	int used;

	if (sscanf(line, "prompt %" SCNu32 " %" SCNu32 "%n", &limit, &grant, &used) != 2)
		exit(3);
	for (line += used; sscanf(line, "%" SCNu32 "%n", &ids[n], &used) == 1; line += used)
		n++;
	lane = tokg_sink_generate(g.sink, ++g.serial, limit);
	if (lane == TOKG_NO_LANE) {
		printf("busy\n");
		return;
	}
	g.of_lane[lane] = g.serial;
	printf("serial %" PRIu64 "\n", g.serial);
	for (uint32_t i = 0; i < n || n == 0; i += RECORD_IDS) {
		const uint32_t count = n - i < RECORD_IDS ? n - i : RECORD_IDS;

		publish(ids + i, i, count, i + count == n);
		if (i + count == n)
			break;
	}
	tokg_sink_grant(g.sink, lane, grant);
}

/* False: quit. */
static bool
obey(const char *line)
{
	uint32_t lane, n = 0;

	if (strncmp(line, "prompt", 6) == 0) {
		prompt(line);
	} else if (strncmp(line, "grant", 5) == 0) {
		lane = lane_of(line, "grant %" SCNu64 " %" SCNu32, &n);
		if (lane < TOKG_LANES_MAX)
			tokg_sink_grant(g.sink, lane, n);
	} else if (strncmp(line, "cancel", 6) == 0) {
		lane = lane_of(line, "cancel %" SCNu64, &n);
		if (lane < TOKG_LANES_MAX) {
			g.of_lane[lane] = 0;
			tokg_sink_cancel(g.sink, lane);
		}
	} else {
		return false;
	}
	return true;
}

static struct tokg_transport *
connect_to(const char *path, struct tokg_error *err)
{
	static const uint32_t vocab[1] = {VOCAB}, n_ids[1] = {1};
	struct tokg_source source = {.bytes = RING,
		.fd = memfd_create("source", MFD_CLOEXEC),
		.instance = (uint64_t)getpid(),
		.n_vocabs = 1,
		.vocab = vocab,
		.n_ids = n_ids,
		.node = -1};
	struct tokg_target target;
	char text[128], how[256];

	if (ftruncate(source.fd, RING) != 0)
		return NULL;
	g.ring = mmap(NULL, RING, PROT_READ | PROT_WRITE, MAP_SHARED, source.fd, 0);
	source.base = g.ring;
	snprintf(text, sizeof(text), "shm:%s", path);
	return tokg_target_parse(&target, text, err)
		       ? tokg_transport_open(&target, &source, 5000, how, err)
		       : NULL;
}

int
main(int argc, char **argv)
{
	struct tokg_error err = {""};
	struct tokg_transport *t = argc == 2 ? connect_to(argv[1], &err) : NULL;
	static const uint32_t vocab[1] = {VOCAB};
	struct tokg_sink_config c = {.transport = t,
		.data = g.ring,
		.mask = RING - 1,
		.n_vocabs = 1,
		.vocab = vocab,
		.read_ticks = 1,
		.read_ticks_lanes = 1,
		.read_ticks_most = 10,
		.dead_ticks = UINT64_MAX / 2,
		.node = -1,
		.failed = on_failed,
		.token = on_token,
		.ended = on_ended};
	static char line[1 << 20];
	struct pollfd in = {.events = POLLIN};

	setvbuf(stdout, NULL, _IOLBF, 0);
	setvbuf(stdin, NULL, _IONBF, 0);
	if (t != NULL)
		g.sink = tokg_sink_create(&c, &err);
	if (g.sink == NULL) {
		printf("refused %s\n", err.text);
		return 1;
	}
	printf("granted %u %u\n", t->producer, t->geometry.lanes);
	for (;;) {
		if (!tokg_sink_poll(g.sink, g.head, ++g.now, true)) {
			tokg_sink_cut(g.sink);
			printf("lost\n");
			return 0;
		}
		/* A whole line comes at once. */
		if (poll(&in, 1, 1) == 1 &&
			(fgets(line, sizeof(line), stdin) == NULL || !obey(line)))
			break;
	}
	tokg_sink_free(g.sink);
	t->ops->close(t);
	return 0;
}
