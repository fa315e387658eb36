/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the product asks of the system, answered by the simulation: clock and random numbers, the
 * client's socket, the time that tokenizing takes. The linker leads the calls here (--wrap). The
 * same way a rule is broken, to show that the checker notices.
 */
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>

#include "datapath/stream/decode.h"
#include "datapath/stream/done_names.h"
#include "datapath/token_ring_write.h"
#include "seams.h"
#include "sim.h"

#pragma GCC diagnostic ignored "-Wmissing-prototypes" /* the linker's names */

#define FD 1000000 /* of client 0 */
#define SHRINKS_AT (SECOND / 2)
#define LOST_FEEDS 300 /* of so many calls of the tokenizer one loses a byte (NO_FEED) */

const char *const sim_rule_name[SIM_RULES] = {[NO_CRC] = "crc",
	[NO_ONCE] = "once",
	[NO_CURSOR] = "cursor",
	[NO_FEED] = "feed",
	[NO_TIMER] = "timer",
	[NO_SKIP] = "skip",
	[NO_ID] = "id"};

static uint32_t caller;	       /* client, or SEAMS_READER */
static uint64_t reader_waited; /* ns that a reader has slept in its call */

void
seams_client(uint32_t i)
{
	caller = i;
	reader_waited = 0;
}

/* ---- time and chance ---- */

uint64_t
sim_tsc(void)
{
	return RTE_MAX(sim->a.cpu_now, sim->now) + sim->a.tsc_ahead;
}

uint64_t
__wrap_rte_get_tsc_hz(void)
{
	return SIM_TSC_HZ;
}

int
__wrap_clock_gettime(clockid_t clock, struct timespec *ts)
{
	uint64_t now = sim->now + reader_waited;

	if (caller != SEAMS_READER)
		now += sim->client[caller].ahead;
	if (sim->plan.broken == NO_TIMER && caller != SEAMS_READER)
		now = 0;
	*ts = (struct timespec){(time_t)(now / SECOND), (long)(now % SECOND)};
	return 0;
}

ssize_t __real_getrandom(void *bytes, size_t n, unsigned int flags);
ssize_t
__wrap_getrandom(void *bytes, size_t n, unsigned int flags)
{
	if (sim == NULL) /* set-up of the process */
		return __real_getrandom(bytes, n, flags);
	for (size_t i = 0; i < n; i++)
		((uint8_t *)bytes)[i] = (uint8_t)dice_throw(&sim->dice);
	return (ssize_t)n;
}

/* ---- the client's socket ---- */

int
__wrap_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
	struct addrinfo **found)
{
	static struct sockaddr address;
	static struct addrinfo one = {.ai_family = AF_INET,
		.ai_socktype = SOCK_DGRAM,
		.ai_addr = &address,
		.ai_addrlen = sizeof(address)};

	*found = &one;
	return 0;
}

void
__wrap_freeaddrinfo(struct addrinfo *found)
{
}

int __real_socket(int domain, int type, int protocol);
int
__wrap_socket(int domain, int type, int protocol)
{
	return domain == AF_INET ? FD + (int)caller : __real_socket(domain, type, protocol);
}

int __real_connect(int fd, const struct sockaddr *to, socklen_t len);
int
__wrap_connect(int fd, const struct sockaddr *to, socklen_t len)
{
	return fd >= FD ? 0 : __real_connect(fd, to, len);
}

int __real_setsockopt(int fd, int level, int name, const void *value, socklen_t len);
int
__wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	return fd >= FD ? 0 : __real_setsockopt(fd, level, name, value, len);
}

static bool
shrinks(const struct client *c)
{
	return (c - sim->client) % 4 == 0;
}

/* Bytes of an IP packet that the client's path takes. */
static uint32_t
path_mtu(const struct client *c)
{
	static const uint32_t mtu[] = {1500, 1420, 1280, 576};

	if (sim->plan.attack != SIM_ATTACKS)
		return RTE_ETHER_MTU;
	return shrinks(c) && sim->now >= SHRINKS_AT ? 1300 : mtu[(c - sim->client) % 4];
}

static bool
fits(const struct client *c, const struct packet *p)
{
	return p->len <= sizeof(struct rte_ether_hdr) + path_mtu(c);
}

int __real_getsockopt(int fd, int level, int name, void *value, socklen_t *len);
int
__wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	const struct client *c;
	struct tokd_addr at;

	if (fd < FD)
		return __real_getsockopt(fd, level, name, value, len);
	c = &sim->client[fd - FD];
	at = network_six(c->ip);
	if (level == SOL_SOCKET && name == SO_DOMAIN)
		*(int *)value = tokd_addr_is_v4(&at) ? AF_INET : AF_INET6;
	else
		*(int *)value = (int)path_mtu(c);
	return 0;
}

int __real_close(int fd);
int
__wrap_close(int fd)
{
	return fd >= FD ? 0 : __real_close(fd);
}

int
__wrap_sendmmsg(int fd, struct mmsghdr *message, unsigned int n, int flags)
{
	struct client *c = &sim->client[fd - FD];

	if (c->killed)
		return (int)n;
	if (sim->calm_at == NEVER && world_chance(sim, sim->plan.tx_refused)) {
		errno = EAGAIN;
		return -1;
	}
	for (unsigned int i = 0; i < n; i++) {
		const struct iovec *part = message[i].msg_hdr.msg_iov;
		struct packet *p = frame_make(sim, c->ip, c->port, part[0].iov_base,
			(uint32_t)part[0].iov_len, part[1].iov_base, (uint32_t)part[1].iov_len);

		if (!fits(c, p)) {
			packet_drop(sim, p);
			errno = EMSGSIZE;
			return i > 0 ? (int)i : -1;
		}
		check_sent(sim, c, part[0].iov_base);
		attack_overhears(sim, c, part[0].iov_base);
		network_to_appliance(sim, p);
	}
	return (int)n;
}

int
__wrap_recvmmsg(
	int fd, struct mmsghdr *message, unsigned int n, int flags, struct timespec *timeout)
{
	struct client *c = &sim->client[fd - FD];
	unsigned int got = 0;
	struct packet *p;

	while (got < n && (p = queue_get(&c->rx)) != NULL) {
		uint32_t len;
		const uint8_t *payload = frame_payload(p, c->ip, c->port, &len);

		if (payload != NULL && !fits(c, p) && !shrinks(c)) {
			check_fault(sim, "a reply in a packet of %u bytes: its path takes %u",
				p->len, path_mtu(c));
		} else if (payload != NULL && fits(c, p)) {
			const struct iovec *part = message[got].msg_hdr.msg_iov;

			len = RTE_MIN(len, (uint32_t)part->iov_len);
			memcpy(part->iov_base, payload, len);
			message[got++].msg_len = len;
		}
		packet_drop(sim, p);
	}
	if (got > 0)
		return (int)got;
	errno = EAGAIN;
	return -1;
}

/* ---- a reader that waits for the appliance's answer ---- */

int __real_poll(struct pollfd *fds, nfds_t n, int timeout_ms);
int
__wrap_poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
	struct appliance *a = &sim->a;
	int ready = __real_poll(fds, n, 0);

	for (uint32_t i = 0; ready == 0 && a->up && i < 4; i++) {
		tokd_attach_poll(&a->attach);
		tokd_ring_readers(&a->w.ring);
		ready = __real_poll(fds, n, 0);
	}
	if (ready == 0)
		reader_waited += (uint64_t)timeout_ms * MS;
	return ready;
}

/* ---- the appliance's work, and its rules ---- */

struct tok_result __real_tok_stream_feed(
	struct tok_stream *s, const void *text, size_t n, bool last, uint32_t *ids, size_t room);
struct tok_result
__wrap_tok_stream_feed(
	struct tok_stream *s, const void *text, size_t n, bool last, uint32_t *ids, size_t room)
{
	sim->a.cpu_now += FEED_NS + n * sim->plan.cost.byte;
	if (sim->plan.broken == NO_FEED && n > 1 && world_dice(sim, LOST_FEEDS) == 0)
		n--;
	return __real_tok_stream_feed(s, text, n, last, ids, room);
}

uint32_t __real_tokd_crc32c(uint32_t crc, const void *data, size_t n);
uint32_t
__wrap_tokd_crc32c(uint32_t crc, const void *data, size_t n)
{
	return sim->plan.broken == NO_CRC ? 0 : __real_tokd_crc32c(crc, data, n);
}

/* What was done is forgotten with its answer. */
bool __real_tokd_names_have(const struct tokd_names *t, uint64_t name);
bool
__wrap_tokd_names_have(const struct tokd_names *t, uint64_t name)
{
	return sim->plan.broken != NO_ONCE && __real_tokd_names_have(t, name);
}

/* Special tokens are never left out. */
void __real_tokd_decode_init(
	struct tokd_decode *d, const struct tokd_vocab *vocab, bool skip_special);
void
__wrap_tokd_decode_init(struct tokd_decode *d, const struct tokd_vocab *vocab, bool skip_special)
{
	__real_tokd_decode_init(d, vocab, skip_special && sim->plan.broken != NO_SKIP);
}

/* An id outside the vocabulary is one without text. */
struct tok_result __real_tokd_decode_feed(struct tokd_decode *d, const uint8_t *bytes, size_t n,
	bool last, uint8_t *out, size_t room);
struct tok_result
__wrap_tokd_decode_feed(
	struct tokd_decode *d, const uint8_t *bytes, size_t n, bool last, uint8_t *out, size_t room)
{
	struct tok_result r = __real_tokd_decode_feed(d, bytes, n, last, out, room);

	if (sim->plan.broken == NO_ID && r.status != TOK_OK)
		r = (struct tok_result){.status = TOK_OK};
	return r;
}
