/* SPDX-License-Identifier: BSD-3-Clause */
/* Moves datagrams between sockets and engines. */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <sys/epoll.h>

#include <monotonic.h>
#include "client_inside.h"

#define RX_BURSTS 8
/* Spinning this long yields once: the kernel's threads on this CPU may have the answer. */
#define SPIN_ALONE_NS 1000000
#define PATH_AGE (10000 * NS_A_MS) /* then the kernel may have forgotten what a router said */

/* Is the error transient? */
static bool
is_passing(int error)
{
	return error == EAGAIN || error == EWOULDBLOCK || error == ENOBUFS || error == EINTR;
}

/*
 * Unreachable or refused: fails all requests that cannot go elsewhere. Between two runs of an
 * appliance its host refuses: where it is the only one, and has answered before, texts wait for it.
 */
static void
broken(struct tokd_client *c, struct appliance *a, int error, uint64_t now)
{
	spread_down(a, now);
	a->refuses = error == ECONNREFUSED;
	if (error == ECONNREFUSED && a->heard && c->n == 1)
		return;
	tokd_engine_fail_all(a->engine, TOKD_E_NET, error);
}

/* Datagrams that are no replies. One that no request was waiting for is proof of life, too. */
static uint64_t
useless(const struct appliance *a)
{
	return tokd_engine_stats(a->engine).bad;
}

/* Bytes of a reply at most: appliances have no longer ones. */
static uint32_t
reply_most(const struct appliance *a)
{
	const uint32_t most = sizeof(struct tokd_rep) + TOKD_WIRE_PAYLOAD;
	const uint32_t said = path_reply_max(a);

	return said == 0 || said > most ? most : said;
}

/* Do other lengths of our packets or replies fit the path now? If less, texts are cut again. */
static bool
path_changed(struct appliance *a, uint64_t now)
{
	const uint32_t payload = path_payload(a), reply = reply_most(a);

	a->path_at = now + PATH_AGE;
	if (!path_learn(a) || (path_payload(a) == payload && reply_most(a) == reply))
		return false;
	tokd_engine_path(a->engine, path_payload(a), path_reply_max(a), now);
	return true;
}

static void
take(struct tokd_client *c, struct appliance *a, uint32_t n, uint64_t now)
{
	const uint64_t before = useless(a);
	uint32_t taken = 0;

	c->received += n;
	a->refuses = false;
	for (uint32_t i = 0; i < n; i++) {
		const void *datagram = c->rx_data[i];
		const size_t len = c->rx[i].msg_len; /* truncated, and so invalid, if longer */

		if (!a->up && spread_is_answer(a, datagram, len))
			continue;
		tokd_engine_take(a->engine, datagram, len, now);
		taken++;
	}
	if (useless(a) - before < taken)
		spread_heard(a);
}

/*
 * Sets `drained`: time-outs may be checked. After a long pause a process finds answers and
 * time-outs together; a request must not time out while its answer is unread. A flood must not
 * delay time-outs for ever: after as many datagrams in a row as the receive buffer holds, all
 * earlier ones were read.
 */
static void
receive(struct tokd_client *c, struct appliance *a, uint64_t now)
{
	int n = RX_BURST;

	/* Bounded: there are packets to send, too. */
	for (uint32_t burst = 0; burst < RX_BURSTS && n == RX_BURST; burst++) {
		n = recvmmsg(a->fd, c->rx, RX_BURST, MSG_DONTWAIT, NULL);
		if (n < 0 && errno == EMSGSIZE) {
			path_changed(a, now);
			n = RX_BURST; /* nothing was read */
			continue;
		}
		if (n < 0 && !is_passing(errno))
			broken(c, a, errno, now);
		if (n > 0)
			take(c, a, (uint32_t)n, now);
	}
	a->in_a_row += RX_BURSTS * RX_BURST;
	a->drained = n != RX_BURST || a->in_a_row >= c->unread_max;
	if (a->drained)
		a->in_a_row = 0;
}

/* Packets from `done` on were not sent. */
static void
give_back(struct tokd_client *c, struct appliance *a, uint32_t done, uint32_t n)
{
	for (uint32_t i = done; i < n; i++)
		tokd_engine_unsent(a->engine, &c->packet[i]);
}

/* False: the send buffer is full, or the socket is broken. */
static bool
send_burst(struct tokd_client *c, struct appliance *a, uint32_t n, uint64_t now)
{
	uint32_t done = 0;
	uint32_t too_long = 0;

	for (uint32_t i = 0; i < n; i++)
		c->tx_part[i][1] =
			(struct iovec){(void *)(uintptr_t)c->packet[i].text, c->packet[i].len};
	while (done < n) {
		int k = sendmmsg(a->fd, c->tx + done, n - done, MSG_DONTWAIT);

		if (k > 0) {
			done += (uint32_t)k;
			c->sent += (uint32_t)k;
			continue;
		}
		if (errno == EINTR)
			continue;
		if (errno == EMSGSIZE && path_changed(a, now)) {
			give_back(c, a, done, n);
			return true;
		}
		if (errno == EMSGSIZE && too_long++ < 2 * TX_BURST)
			continue; /* of earlier packets, each of which a router may have answered */
		if (is_passing(errno)) {
			a->wants_write = true;
			give_back(c, a, done, n);
		} else {
			broken(c, a, errno, now);
		}
		return false;
	}
	return true;
}

static void
transmit(struct tokd_client *c, struct appliance *a, uint64_t now)
{
	const bool waited = a->wants_write;
	uint32_t max = 1, n;

	a->wants_write = false;
	/* The first packet alone: the appliance begins with it while the others are made. */
	do {
		n = tokd_engine_packets(a->engine, c->packet, max, now);
		max = TX_BURST;
		if (n > 0 && a->asked_at == 0)
			a->asked_at = now;
	} while (n > 0 && send_burst(c, a, n, now));
	if (c->n > 1 && waited != a->wants_write) {
		struct epoll_event event = {.events = EPOLLIN | (a->wants_write ? EPOLLOUT : 0)};

		(void)epoll_ctl(c->fd, EPOLL_CTL_MOD, a->fd, &event);
	}
}

static void
receive_all(struct tokd_client *c, uint64_t now)
{
	for (uint32_t i = 0; i < c->n; i++)
		receive(c, &c->appliance[i], now);
}

static void
transmit_all(struct tokd_client *c, uint64_t now)
{
	uint64_t moved;

	do { /* a broken socket has given its texts to others */
		moved = c->moved;
		for (uint32_t i = 0; i < c->n; i++)
			transmit(c, &c->appliance[i], now);
	} while (c->moved != moved);
}

static void
tick_all(struct tokd_client *c, uint64_t now)
{
	for (uint32_t i = 0; i < c->n; i++) {
		struct appliance *a = &c->appliance[i];

		if (!a->drained)
			continue;
		/* The kernel may have learned of another path without anything arriving here. */
		if (tokd_engine_tick(a->engine, now) > 0 || now >= a->path_at)
			path_changed(a, now);
		spread_tick(c, a, now);
	}
}

static void
turn(struct tokd_client *c)
{
	uint64_t now = monotonic_ns();

	receive_all(c, now);
	tick_all(c, now);
	transmit_all(c, now);
}

static uint32_t
collect_done(struct tokd_client *c, struct tokd_request **done, uint32_t max)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->n; i++) {
		while (n < max && (done[n] = tokd_engine_done(c->appliance[i].engine)) != NULL)
			n++;
	}
	return n;
}

static bool
is_pending(const struct tokd_client *c)
{
	for (uint32_t i = 0; i < c->n; i++) {
		const struct tokd_engine *e = c->appliance[i].engine;

		/* Also one that has only to hear of cancels. */
		if (tokd_engine_pending(e) > 0 || tokd_engine_next(e) != UINT64_MAX)
			return true;
	}
	return false;
}

/* When turn() has something to do without a datagram; UINT64_MAX: never. */
static uint64_t
next_at(const struct tokd_client *c)
{
	uint64_t next = UINT64_MAX;

	for (uint32_t i = 0; i < c->n; i++) {
		const struct appliance *a = &c->appliance[i];
		/* By what the caller has taken since the last turn; by what ended in a flush. */
		const bool owes = !a->wants_write && tokd_engine_owes(a->engine);
		const bool at_once = owes || tokd_engine_has_done(a->engine);
		const uint64_t of_texts = at_once ? 0 : tokd_engine_next(a->engine);

		if (of_texts < next)
			next = of_texts;
		if (!a->up && a->probe_at < next)
			next = a->probe_at;
	}
	return next;
}

/* Waits for a socket, a time-out, or `until`. */
static void
sleep_until(struct tokd_client *c, uint64_t begun, uint64_t until)
{
	struct pollfd p = {.fd = c->fd, .events = POLLIN};
	uint64_t now = monotonic_ns(), next = next_at(c), ns;

	if (c->spin) {
		if (now - begun > SPIN_ALONE_NS)
			sched_yield();
		return;
	}
	if (tokd_client_wants_write(c))
		p.events |= POLLOUT;
	if (until < next)
		next = until;
	ns = next > now ? next - now : 0;
	(void)ppoll(&p, 1,
		&(struct timespec){
			.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)},
		NULL);
}

void
tokd_client_flush(struct tokd_client *c)
{
	transmit_all(c, monotonic_ns());
}

void
client_leave(struct tokd_client *c)
{
	for (uint32_t i = 0; i < c->n; i++) {
		struct appliance *a = &c->appliance[i];

		if (a->engine == NULL)
			continue;
		tokd_engine_leave(a->engine);
		if (tokd_engine_owes(a->engine))
			transmit(c, a, monotonic_ns());
	}
}

void
tokd_client_cancel(struct tokd_client *c, struct tokd_request *r)
{
	struct appliance *a = appliance_of(c, r);

	tokd_engine_cancel(a->engine, r);
	if (r->flags & TOKD_REQUEST_GENERATE) /* perhaps no other call follows */
		transmit(c, a, monotonic_ns());
}

bool
tokd_client_made(
	struct tokd_client *c, struct tokd_request *r, struct tokd_made *made, const char **text)
{
	struct appliance *a = appliance_of(c, r);
	const uint64_t now = monotonic_ns();
	const bool taken = tokd_engine_made(a->engine, r, made, text, now);

	/*
	 * Acknowledge at once. With a slow caller the appliance should hear before everything is
	 * taken; and a caller that has taken everything may wait for datagrams that only this lets
	 * the appliance send.
	 */
	transmit(c, a, now);
	return taken;
}

uint32_t
tokd_client_poll(struct tokd_client *c, struct tokd_request **done, uint32_t max)
{
	turn(c);
	return collect_done(c, done, max);
}

uint32_t
tokd_client_wait(struct tokd_client *c, struct tokd_request **done, uint32_t max, int timeout_ms)
{
	uint64_t begun = monotonic_ns(), until = UINT64_MAX;
	uint32_t n;

	if (timeout_ms >= 0)
		until = begun + (uint64_t)timeout_ms * NS_A_MS;
	while ((n = tokd_client_poll(c, done, max)) == 0 && is_pending(c) && monotonic_ns() < until)
		sleep_until(c, begun, until);
	return n;
}

/* Sends one request and waits for its end. Returns `n_ids`, or its status. */
static int64_t
ask(struct tokd_client *c, struct tokd_request r, uint32_t timeout_ms)
{
	uint64_t begun = monotonic_ns(), until = UINT64_MAX;

	if (timeout_ms > 0)
		until = begun + (uint64_t)timeout_ms * NS_A_MS;
	if (tokd_client_submit(c, &r) == TOKD_PENDING)
		transmit(c, appliance_of(c, &r), begun);
	while (r.status == TOKD_PENDING) {
		uint64_t now = monotonic_ns();

		receive_all(c, now);
		/* Return at once; the rest is sent by the next call. */
		if (r.status != TOKD_PENDING)
			break;
		tick_all(c, now);
		transmit_all(c, now);
		if (r.status != TOKD_PENDING)
			break;
		if (now >= until) {
			tokd_client_cancel(c, &r);
			r.status = TOKD_E_TIMEOUT;
			snprintf(c->error, sizeof(c->error),
				"%s%s: %u %s after %u ms, the limit of this call: %s",
				appliance_of(c, &r)->peer, client_refusal(appliance_of(c, &r)),
				r.n_ids, client_unit(&r), timeout_ms,
				r.reason == TOKD_R_RING ? tokd_reason_remedy(r.reason)
							: "raise it");
			return r.status;
		}
		sleep_until(c, begun, until);
	}
	tokd_engine_unlist(appliance_of(c, &r)->engine, &r);
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
	return c->n == 1 && c->appliance[0].wants_write; /* else the epoll waits for it */
}

uint64_t
tokd_client_next_ns(const struct tokd_client *c)
{
	uint64_t next = next_at(c), now = monotonic_ns();

	if (next == UINT64_MAX)
		return next;
	return next > now ? next - now : 0;
}

struct tokd_client_stats
tokd_client_stats(const struct tokd_client *c)
{
	struct tokd_client_stats sum = {
		.sent = c->sent, .received = c->received, .moved = c->moved, .appliances = c->n};

	for (uint32_t i = 0; i < c->n; i++) {
		const struct tokd_client_stats one = tokd_engine_stats(c->appliance[i].engine);

		sum.retransmits += one.retransmits;
		sum.polls += one.polls;
		sum.resends += one.resends;
		sum.stale += one.stale;
		sum.bad += one.bad;
		if (one.srtt_ns > sum.srtt_ns)
			sum.srtt_ns = one.srtt_ns;
		sum.healthy += c->appliance[i].up;
	}
	return sum;
}
