/* SPDX-License-Identifier: BSD-3-Clause */
/* Moves datagrams between socket and engine. */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <time.h>

#include "client_inside.h"

#define NS_A_MS 1000000
#define RX_BURSTS 8
/* Spinning this long yields once: the kernel's threads on this CPU may have the answer. */
#define SPIN_ALONE_NS 1000000

static uint64_t
now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Is the error transient? */
static bool
is_passing(int error)
{
	return error == EAGAIN || error == EWOULDBLOCK || error == ENOBUFS || error == EINTR;
}

/* Unreachable or refused: fails all requests. */
static void
broken(struct tokd_client *c, int error)
{
	tokd_engine_fail_all(c->engine, TOKD_E_NET, error);
}

/*
 * True: time-outs may be checked. After a long pause a process finds answers and time-outs
 * together; a request must not time out while its answer is unread. A flood must not delay
 * time-outs for ever: after as many datagrams in a row as the receive buffer holds, all earlier
 * ones were read.
 */
static bool
receive(struct tokd_client *c, uint64_t now)
{
	int n = RX_BURST;

	/* Bounded: there are packets to send, too. */
	for (uint32_t burst = 0; burst < RX_BURSTS && n == RX_BURST; burst++) {
		n = recvmmsg(c->fd, c->rx, RX_BURST, MSG_DONTWAIT, NULL);
		if (n < 0 && !is_passing(errno))
			broken(c, errno);
		for (int i = 0; i < n; i++) {
			/* A longer datagram is truncated, and so invalid. */
			c->received++;
			tokd_engine_take(c->engine, c->rx_data[i], c->rx[i].msg_len, now);
		}
	}
	c->in_a_row += RX_BURSTS * RX_BURST;
	if (n == RX_BURST && c->in_a_row < c->unread_max)
		return false;
	c->in_a_row = 0;
	return true;
}

/* False: the send buffer is full, or the socket is broken. */
static bool
send_burst(struct tokd_client *c, uint32_t n)
{
	uint32_t done = 0;

	for (uint32_t i = 0; i < n; i++)
		c->tx_part[i][1] =
			(struct iovec){(void *)(uintptr_t)c->packet[i].text, c->packet[i].len};
	while (done < n) {
		int k = sendmmsg(c->fd, c->tx + done, n - done, MSG_DONTWAIT);

		if (k > 0) {
			done += (uint32_t)k;
			c->sent += (uint32_t)k;
			continue;
		}
		if (errno == EINTR)
			continue;
		if (is_passing(errno)) {
			c->wants_write = true;
			for (uint32_t i = done; i < n; i++)
				tokd_engine_unsent(c->engine, &c->packet[i]);
		} else {
			broken(c, errno);
		}
		return false;
	}
	return true;
}

static void
transmit(struct tokd_client *c, uint64_t now)
{
	uint32_t max = 1, n;

	c->wants_write = false;
	/* The first packet alone: the appliance begins with it while the others are made. */
	do {
		n = tokd_engine_packets(c->engine, c->packet, max, now);
		max = TX_BURST;
	} while (n > 0 && send_burst(c, n));
}

static void
turn(struct tokd_client *c)
{
	uint64_t now = now_ns();

	if (receive(c, now))
		tokd_engine_tick(c->engine, now);
	transmit(c, now);
}

static uint32_t
give_out(struct tokd_client *c, struct tokd_request **done, uint32_t max)
{
	uint32_t n = 0;

	while (n < max && (done[n] = tokd_engine_done(c->engine)) != NULL)
		n++;
	return n;
}

/* Waits for the socket, a time-out, or `until`. */
static void
sleep_until(struct tokd_client *c, uint64_t begun, uint64_t until)
{
	struct pollfd p = {.fd = c->fd, .events = POLLIN};
	uint64_t now = now_ns(), next = tokd_engine_next(c->engine), ns;

	if (c->spin) {
		if (now - begun > SPIN_ALONE_NS)
			sched_yield();
		return;
	}
	if (c->wants_write)
		p.events |= POLLOUT;
	if (until < next)
		next = until;
	ns = next > now ? next - now : 0;
	(void)ppoll(&p, 1,
		&(struct timespec){
			.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)},
		NULL);
}

enum tokd_status
tokd_client_submit(struct tokd_client *c, struct tokd_request *r)
{
	return tokd_engine_submit(c->engine, r);
}

void
tokd_client_flush(struct tokd_client *c)
{
	transmit(c, now_ns());
}

void
tokd_client_cancel(struct tokd_client *c, struct tokd_request *r)
{
	tokd_engine_cancel(c->engine, r);
}

uint32_t
tokd_client_poll(struct tokd_client *c, struct tokd_request **done, uint32_t max)
{
	turn(c);
	return give_out(c, done, max);
}

uint32_t
tokd_client_wait(struct tokd_client *c, struct tokd_request **done, uint32_t max, int timeout_ms)
{
	uint64_t begun = now_ns(), until = UINT64_MAX;
	uint32_t n;

	if (timeout_ms >= 0)
		until = begun + (uint64_t)timeout_ms * NS_A_MS;
	while ((n = tokd_client_poll(c, done, max)) == 0 && tokd_engine_pending(c->engine) > 0 &&
		now_ns() < until)
		sleep_until(c, begun, until);
	return n;
}

/* Sends one request and waits for its end. Returns `n_ids`, or its status. */
static int64_t
ask(struct tokd_client *c, struct tokd_request r, uint32_t timeout_ms)
{
	uint64_t begun = now_ns(), until = UINT64_MAX;

	if (timeout_ms > 0)
		until = begun + (uint64_t)timeout_ms * NS_A_MS;
	if (tokd_client_submit(c, &r) == TOKD_PENDING)
		transmit(c, begun);
	while (r.status == TOKD_PENDING) {
		uint64_t now = now_ns();
		bool due = receive(c, now);

		/* Return at once; the rest is sent by the next call. */
		if (r.status != TOKD_PENDING)
			break;
		if (due)
			tokd_engine_tick(c->engine, now);
		transmit(c, now);
		if (r.status != TOKD_PENDING)
			break;
		if (now >= until) {
			tokd_client_cancel(c, &r);
			r.status = TOKD_E_TIMEOUT;
			snprintf(c->error, sizeof(c->error),
				"%s: %u %s after %u ms, the limit of this call: %s", c->peer,
				r.n_ids, client_unit(&r), timeout_ms,
				r.reason == TOKD_R_RING ? tokd_reason_remedy(r.reason)
							: "raise it");
			return r.status;
		}
		sleep_until(c, begun, until);
	}
	tokd_engine_unlist(c->engine, &r);
	if (r.status == TOKD_OK)
		return r.n_ids;
	tokd_client_describe(c, &r, c->error);
	return r.status;
}

int64_t
tokd_client_tokenize(struct tokd_client *c, const void *text, size_t len, uint32_t *ids,
	uint32_t max_ids, uint32_t timeout_ms)
{
	return ask(c,
		(struct tokd_request){.text = text, .len = len, .ids = ids, .max_ids = max_ids},
		timeout_ms);
}

int64_t
tokd_client_detokenize(struct tokd_client *c, const uint32_t *ids, size_t n, uint32_t flags,
	char *text, uint32_t room, uint32_t timeout_ms)
{
	const size_t most = UINT32_MAX / sizeof(*ids); /* one more is refused */

	return ask(c,
		(struct tokd_request){.text = ids,
			.len = (n <= most ? n : most + 1) * sizeof(*ids),
			.out = text,
			.max_ids = room,
			.flags = flags | TOKD_REQUEST_DECODE},
		timeout_ms);
}

const char *
tokd_client_error(const struct tokd_client *c)
{
	return c->error;
}

int
tokd_client_fd(const struct tokd_client *c)
{
	return c->fd;
}

bool
tokd_client_wants_write(const struct tokd_client *c)
{
	return c->wants_write;
}

uint64_t
tokd_client_next_ns(const struct tokd_client *c)
{
	uint64_t next = tokd_engine_next(c->engine), now = now_ns();

	if (next == UINT64_MAX)
		return next;
	return next > now ? next - now : 0;
}

struct tokd_client_stats
tokd_client_stats(const struct tokd_client *c)
{
	struct tokd_client_stats stats = tokd_engine_stats(c->engine);

	stats.sent = c->sent;
	stats.received = c->received;
	return stats;
}
