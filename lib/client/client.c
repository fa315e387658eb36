/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening and closing a client. */
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/epoll.h>
#include <sys/random.h>

#include "client_inside.h"

#define REQUESTS_MAX 65536u
#define PACKETS_MAX 65536u
#define RTO_MAX_MS 60000u
#define TIMEOUT_MAX_MS 86400000u
#define SILENCE_MOST (500 * NS_A_MS)
#define DATAGRAM_LEAST 512 /* accounted by Linux per datagram; the buffer is doubled */
/* The limit of RFC 768's length field, minus headers of UDP, IPv4 (RFC 791 3.1) and DATA. */
#define PAYLOAD_MAX (65507u - (uint32_t)sizeof(struct tokd_req))

struct limit {
	const char *name;
	uint32_t value, most;
};

static bool
check(const struct tokd_client_options *o, char error[TOKD_ERROR_MAX])
{
	const struct limit limits[] = {{"requests", o->requests, REQUESTS_MAX},
		{"packets", o->packets, PACKETS_MAX}, {"rto_ms", o->rto_ms, RTO_MAX_MS},
		{"timeout_ms", o->timeout_ms, TIMEOUT_MAX_MS},
		{"receive_buffer", o->receive_buffer, INT32_MAX},
		{"payload", o->payload, PAYLOAD_MAX}, {"mtu", o->mtu, UINT16_MAX}};

	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		if (limits[i].value <= limits[i].most)
			continue;
		snprintf(error, TOKD_ERROR_MAX, "%s = %u: must be at most %u", limits[i].name,
			limits[i].value, limits[i].most);
		return false;
	}
	if (o->mtu != 0 && o->mtu < MTU_LEAST)
		snprintf(error, TOKD_ERROR_MAX, "mtu = %u: must be at least %u", o->mtu, MTU_LEAST);
	return error[0] == '\0';
}

static uint32_t
or_else(uint32_t value, uint32_t otherwise)
{
	return value != 0 ? value : otherwise;
}

static int
connect_to(const struct addrinfo *found, int *error_no)
{
	for (; found != NULL; found = found->ai_next) {
		int type = found->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK;
		int fd = socket(found->ai_family, type, found->ai_protocol);

		if (fd >= 0 && connect(fd, found->ai_addr, found->ai_addrlen) == 0)
			return fd;
		*error_no = errno;
		if (fd >= 0)
			close(fd);
	}
	return -1;
}

static int
open_socket(const struct appliance *a, const struct host *host, char error[TOKD_ERROR_MAX])
{
	const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_DGRAM};
	struct addrinfo *found;
	char service[8];
	int code, fd, error_no = 0;

	snprintf(service, sizeof(service), "%u", host->port);
	code = getaddrinfo(host->name, service, &hints, &found);
	if (code != 0) {
		snprintf(error, TOKD_ERROR_MAX, "%s: %s: give a name that resolves, or an address",
			a->peer, code == EAI_SYSTEM ? strerror(errno) : gai_strerror(code));
		if (code != EAI_SYSTEM)
			errno = code;
		return -1;
	}
	fd = connect_to(found, &error_no);
	freeaddrinfo(found);
	if (fd < 0) {
		snprintf(error, TOKD_ERROR_MAX, "%s: %s: %s", a->peer, strerror(error_no),
			client_remedy(error_no));
		errno = error_no;
	}
	return fd;
}

/* FORCE, for root, exceeds the system's limit. A smaller buffer only causes retransmits. */
static void
set_buffers(int fd, uint32_t bytes)
{
	int size = (int)bytes;

	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) != 0)
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)) != 0)
		(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
}

static bool
make_engine(struct tokd_client *c, struct appliance *a, const struct tokd_client_options *o,
	char error[TOKD_ERROR_MAX])
{
	struct tokd_engine_config config = {
		.vocab = o->vocab,
		.requests = c->requests,
		.packets = or_else(o->packets, 256),
		.payload = path_payload(a),
		.reply_max = path_reply_max(a),
		.timeout_ns = NS_A_MS * c->timeout_ms,
		.rto_least_ns = NS_A_MS * or_else(o->rto_ms, 5),
		.first_stream_id = o->first_stream_id,
		.no_resend = o->no_resend,
		.no_last_ack = o->no_last_ack,
		.failed = c->several ? spread_failed : NULL,
		.user = c,
	};
	void *memory;

	/* All bits at random: who does not see the packets cannot name a stream. */
	if (getrandom(&config.epoch, sizeof(config.epoch), 0) != sizeof(config.epoch) ||
		(config.first_stream_id == 0 &&
			getrandom(&config.first_stream_id, sizeof(config.first_stream_id), 0) !=
				sizeof(config.first_stream_id))) {
		snprintf(error, TOKD_ERROR_MAX, "getrandom: %s", strerror(errno));
		return false;
	}
	memory = malloc(tokd_engine_bytes(&config));
	if (memory == NULL) {
		snprintf(error, TOKD_ERROR_MAX,
			"out of memory: %u requests need %zu bytes; lower `requests`",
			config.requests, tokd_engine_bytes(&config));
		return false;
	}
	a->engine = tokd_engine_init(memory, &config);
	return true;
}

static void
set_bursts(struct tokd_client *c)
{
	for (uint32_t i = 0; i < RX_BURST; i++) {
		c->rx_part[i] = (struct iovec){c->rx_data[i], RX_BYTES};
		c->rx[i].msg_hdr = (struct msghdr){.msg_iov = &c->rx_part[i], .msg_iovlen = 1};
	}
	for (uint32_t i = 0; i < TX_BURST; i++) {
		c->tx_part[i][0] = (struct iovec){&c->packet[i].req, sizeof(c->packet[i].req)};
		c->tx[i].msg_hdr = (struct msghdr){.msg_iov = c->tx_part[i], .msg_iovlen = 2};
	}
}

static bool
is_same_peer(int a, int b)
{
	struct sockaddr_storage one = {0}, two = {0};
	socklen_t len = sizeof(one), len_two = sizeof(two);

	return getpeername(a, (struct sockaddr *)&one, &len) == 0 &&
	       getpeername(b, (struct sockaddr *)&two, &len_two) == 0 && len == len_two &&
	       memcmp(&one, &two, len) == 0;
}

static bool
open_appliance(struct tokd_client *c, const struct host *host, const struct tokd_client_options *o,
	char error[TOKD_ERROR_MAX])
{
	const uint32_t buffer = or_else(o->receive_buffer, 4 << 20);
	struct appliance *a = &c->appliance[c->n];
	uint64_t random;

	snprintf(a->peer, sizeof(a->peer), strchr(host->name, ':') != NULL ? "[%s]:%u" : "%s:%u",
		host->name, host->port);
	a->fd = open_socket(a, host, error);
	if (a->fd < 0)
		return false;
	c->n++; /* to be closed from now on */
	for (uint32_t i = 0; i < c->n - 1; i++) {
		if (!is_same_peer(c->appliance[i].fd, a->fd))
			continue;
		snprintf(error, TOKD_ERROR_MAX, "%s: the same address as %s: give each once",
			a->peer, c->appliance[i].peer);
		errno = EINVAL;
		return false;
	}
	path_begin(a, o);
	if (!make_engine(c, a, o, error))
		return false;
	if (getrandom(&random, sizeof(random), 0) != sizeof(random)) {
		snprintf(error, TOKD_ERROR_MAX, "getrandom: %s", strerror(errno));
		return false;
	}
	spread_join(a, host, c->vocab, random);
	set_buffers(a->fd, buffer);
	c->unread_max = buffer / (DATAGRAM_LEAST / 2);
	return true;
}

/* One descriptor for all sockets. */
static bool
open_epoll(struct tokd_client *c, char error[TOKD_ERROR_MAX])
{
	c->fd = epoll_create1(EPOLL_CLOEXEC);
	for (uint32_t i = 0; i < c->n && c->fd >= 0; i++) {
		struct epoll_event event = {.events = EPOLLIN};

		if (epoll_ctl(c->fd, EPOLL_CTL_ADD, c->appliance[i].fd, &event) == 0)
			continue;
		close(c->fd);
		c->fd = -1;
	}
	if (c->fd < 0)
		snprintf(error, TOKD_ERROR_MAX, "epoll: %s", strerror(errno));
	return c->fd >= 0;
}

static bool
open_all(struct tokd_client *c, const char *hosts, uint16_t port,
	const struct tokd_client_options *o, char error[TOKD_ERROR_MAX])
{
	const uint32_t n = hosts_count(hosts);
	struct host host;

	for (uint32_t i = 0; i < n; i++) {
		if (!hosts_next(&hosts, port, &host, error) || !open_appliance(c, &host, o, error))
			return false;
	}
	if (n > 1)
		return open_epoll(c, error);
	c->fd = c->appliance[0].fd;
	return true;
}

static bool
check_hosts(const char *hosts, uint32_t n, uint16_t port, const struct tokd_client_options *o,
	char error[TOKD_ERROR_MAX])
{
	struct host host;

	for (uint32_t i = 0; i < n && n <= TOKD_APPLIANCES_MAX; i++) {
		if (!hosts_next(&hosts, port, &host, error))
			return false;
	}
	if (n > TOKD_APPLIANCES_MAX)
		snprintf(
			error, TOKD_ERROR_MAX, "%u appliances: at most %u", n, TOKD_APPLIANCES_MAX);
	else if (n > 1 && o->vocab == 0)
		snprintf(error, TOKD_ERROR_MAX,
			"%u appliances: give the checksum of the vocabulary, which all of them "
			"must have: dpdk-tokd logs it at start, tok vocab info prints it",
			n);
	return error[0] == '\0';
}

struct tokd_client *
tokd_client_open(const char *hosts, uint16_t port, const struct tokd_client_options *options,
	char error[TOKD_ERROR_MAX])
{
	static const struct tokd_client_options none;
	const uint32_t n = hosts_count(hosts);
	struct tokd_client *c;
	size_t bytes;

	error[0] = '\0';
	if (options == NULL)
		options = &none;
	if (!check(options, error) || !check_hosts(hosts, n, port, options, error)) {
		errno = EINVAL;
		return NULL;
	}
	bytes = sizeof(*c) + n * sizeof(c->appliance[0]);
	c = calloc(1, bytes);
	if (c == NULL) {
		snprintf(error, TOKD_ERROR_MAX, "out of memory: %zu bytes", bytes);
		return NULL;
	}
	c->fd = -1;
	c->pid = getpid();
	c->several = n > 1;
	c->spin = options->spin;
	c->timeout_ms = or_else(options->timeout_ms, 5000);
	c->silence_most = SILENCE_MOST;
	c->requests = or_else(options->requests, 64);
	c->vocab = options->vocab;
	set_bursts(c);
	if (!open_all(c, hosts, port, options, error)) {
		int error_no = errno;

		tokd_client_close(c);
		errno = error_no;
		return NULL;
	}
	return c;
}

void
tokd_client_close(struct tokd_client *c)
{
	if (c == NULL)
		return;
	/* A child by fork has the same sockets: answers are its parent's. */
	if (c->pid == getpid())
		client_leave(c);
	if (c->n > 1 && c->fd >= 0)
		close(c->fd);
	for (uint32_t i = 0; i < c->n; i++) {
		close(c->appliance[i].fd);
		free(c->appliance[i].engine);
	}
	free(c);
}
