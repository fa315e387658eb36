/* SPDX-License-Identifier: BSD-3-Clause */
/* tokd-load: how long a client waits for the ids of a text it sends, and whether they are right. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "client.h"
#include "judge.h"
#include "options.h"
#include "pin.h"

#define FAILURES_SHOWN 5
#define SOCKET_BUFFER (4 << 20) /* bytes; a whole window of replies with room to spare */

static int
open_socket(struct client *c, const struct options *o)
{
	int type = o->mode == MODE_TCP ? SOCK_STREAM : SOCK_DGRAM;
	int size = SOCKET_BUFFER, at_once = 1;

	c->timeout_ns = UINT64_C(1000000) * o->timeout_ms;
	c->fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
	if (c->fd < 0 || connect(c->fd, (const void *)&o->server, sizeof(o->server)) != 0) {
		perror("tokd-load: socket");
		return -1;
	}
	/* FORCE, for root, goes beyond the system's limit. Less shows as retransmits, no worse. */
	if (setsockopt(c->fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) != 0)
		setsockopt(c->fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	if (setsockopt(c->fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)) != 0)
		setsockopt(c->fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	if (o->mode == MODE_TCP)
		setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof(at_once));
	return 0;
}

static int
open_tokd(struct client *c, const struct options *o)
{
	const struct tokd_client_options options = {
		.requests = 1,
		.first_stream_id = o->first_id,
		.rto_ms = o->timeout_ms,
		.timeout_ms = CLIENT_TRIES * o->timeout_ms,
		/* Nothing is measured but what leads to ids, and each text has one stream id. */
		.no_last_ack = true,
		.no_resend = true,
		.receive_buffer = SOCKET_BUFFER,
	};
	char host[INET_ADDRSTRLEN], error[TOKD_ERROR_MAX];

	inet_ntop(AF_INET, &o->server.sin_addr, host, sizeof(host));
	c->tokd = tokd_client_open(host, ntohs(o->server.sin_port), &options, error);
	if (c->tokd == NULL)
		fprintf(stderr, "tokd-load: %s\n", error);
	return c->tokd != NULL ? 0 : -1;
}

static int
client_open(struct client *c, const struct options *o, const struct slices *slices)
{
	/* Room for a few wrong ids more, so that too many of them are seen to be wrong. */
	c->max_ids = slices->max_ids + 1024;
	c->ids = malloc(sizeof(*c->ids) * c->max_ids);
	c->room = 4 * ((size_t)c->max_ids + 1);
	if (c->room < CLIENT_DATAGRAM_MAX)
		c->room = CLIENT_DATAGRAM_MAX;
	c->got = malloc(c->room);
	if (c->ids == NULL || c->got == NULL) {
		perror("tokd-load");
		return -1;
	}
	return o->mode == MODE_TOKD ? open_tokd(c, o) : open_socket(c, o);
}

static void
client_close(struct client *c)
{
	if (c->fd >= 0)
		close(c->fd);
	tokd_client_close(c->tokd);
	free(c->ids);
	free(c->got);
}

/* How many requests failed, or -1. */
static int64_t
run(struct client *c, const struct options *o, const struct slices *slices, FILE *out)
{
	static client_request *const requests[] = {
		[MODE_TOKD] = client_tokd, [MODE_PLAIN] = client_plain, [MODE_TCP] = client_tcp};
	client_request *request = requests[o->mode];
	int64_t failed = 0;

	fprintf(out, "index,ns,ok,retransmits,failure\n");
	for (uint32_t i = 0; i < slices->count; i++) {
		const struct slice *slice = &slices->slice[i];
		uint64_t begin, end;
		struct answer answer;
		const char *wrong;

		begin = now_ns();
		request(c, slice, &answer);
		end = now_ns();

		wrong = answer.failure != NULL ? answer.failure
					       : judge_ids(slice, c->ids, answer.n_ids);
		if (wrong != NULL && failed++ < FAILURES_SHOWN)
			fprintf(stderr,
				"tokd-load: request %" PRIu32 " (%" PRIu32 " bytes, %" PRIu32
				" of %" PRIu32 " ids): %s, reason %" PRIu32 "\n",
				i, slice->text_len, answer.n_ids, slice->n_ids, wrong,
				answer.reason);
		if (i >= o->warmup)
			fprintf(out, "%" PRIu32 ",%" PRIu64 ",%d,%" PRIu32 ",%s\n", i, end - begin,
				wrong == NULL, answer.retransmits, wrong == NULL ? "" : wrong);
	}
	return failed;
}

int
main(int argc, char **argv)
{
	struct client client = {.fd = -1};
	struct slices slices = {0};
	struct options options;
	int64_t failed = -1;
	FILE *out = NULL;
	int parsed;

	parsed = options_parse(&options, argc, argv);
	if (parsed != 0)
		return parsed > 0 ? 0 : 2;
	if (pin_to(options.cpu) != 0 || slices_load(&slices, options.slices) != 0)
		return 1;
	out = fopen(options.out, "w");
	if (out == NULL)
		perror(options.out);
	else if (client_open(&client, &options, &slices) == 0) {
		/* Without the privilege a page fault may be measured now and then. */
		(void)mlockall(MCL_CURRENT | MCL_FUTURE);
		failed = run(&client, &options, &slices, out);
	}
	if (out != NULL && fclose(out) != 0) {
		perror(options.out);
		failed = -1;
	}
	client_close(&client);
	slices_free(&slices);
	if (failed > 0)
		fprintf(stderr, "tokd-load: %" PRId64 " requests failed\n", failed);
	return failed == 0 ? 0 : 1;
}
