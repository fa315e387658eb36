/* SPDX-License-Identifier: BSD-3-Clause */
#include "subscribers.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "log.h"
#include "tables_inside.h"

#define LISTENER UINT32_MAX
#define EVENTS_MAX 16
#define SUBSCRIBE_FDS 4
#define NOT_KNOWN UINT64_MAX

/* The consumer reads which engine there is: a lane of another one ends. 0: none. */
static bool
tell_engine(struct tokg_subscribers *s, uint64_t engine)
{
	return s->device->ops->write_u64(s->device, offsetof(struct tokg_ctl, engine), engine) == 0;
}

static void
disconnect(struct tokg_subscribers *s, struct tokg_subscriber *c)
{
	if (c->is_engine && !tell_engine(s, 0))
		tokg_log_warning("engine of pid %d: the device does not answer", c->pid);
	if (c->word != NULL)
		munmap((void *)c->word, TOKG_CURSOR_BYTES);
	close(c->fd); /* which takes it out of epoll */
	*c = (struct tokg_subscriber){.fd = -1};
}

/* Logs the reason and sends it, if the socket has room. */
static void __attribute__((format(printf, 2, 3)))
send_reason(const struct tokg_subscriber *c, const char *format, ...)
{
	struct tokg_subscribe_rep rep = {
		.magic = TOKG_SUBSCRIBE_MAGIC, .version = TOKG_EMB_VERSION};
	va_list ap;

	va_start(ap, format);
	vsnprintf(rep.message, sizeof(rep.message), format, ap);
	va_end(ap);
	tokg_log_warning("subscriber of pid %d: %s", c->pid, rep.message);
	(void)!send(c->fd, &rep, sizeof(rep), MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Sealed against resizing: truncation would kill this process by SIGBUS. -1: errno. */
static int
make_cursor(struct tokg_subscriber *c, uint64_t start)
{
	const int fd = memfd_create("tokd-gpu-cursor", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	void *page = MAP_FAILED;

	if (fd >= 0 && ftruncate(fd, TOKG_CURSOR_BYTES) == 0 &&
		fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
		page = mmap(NULL, TOKG_CURSOR_BYTES, PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_POPULATE, fd, 0);
	if (page == MAP_FAILED) {
		if (fd >= 0)
			close(fd);
		return -1;
	}
	c->word = page;
	c->cursor = start;
	atomic_store_explicit(c->word, start, memory_order_relaxed);
	return fd;
}

/* What an engine gets besides. */
static void
fill_engine(const struct tokg_subscribers *s, struct tokg_engine_rep *rep)
{
	const struct tokg_engine_area *a = &s->delivery->area;

	rep->rep.reserved = TOKG_SUBSCRIBE_ENGINE;
	rep->lanes = a->lanes;
	rep->room = a->room;
	rep->n_ids = s->device->geometry.n_ids;
	rep->ids_off = a->ids_off;
	rep->shown_off = a->shown_off;
	rep->made_off = s->device->made_fd >= 0 ? 0 : a->made_off;
}

static int
reply(const struct tokg_subscribers *s, const struct tokg_subscriber *c, int cursor_fd)
{
	const struct tokg_device *d = s->device;
	const struct tokg_geometry *g = &d->geometry;
	int fds[SUBSCRIBE_FDS] = {cursor_fd, s->delivery->ring_fd};
	size_t fd_bytes = 2 * sizeof(int);
	struct tokg_engine_rep rep = {
		.rep = {
			.magic = TOKG_SUBSCRIBE_MAGIC,
			.version = TOKG_EMB_VERSION,
			.outputs = d->outputs_fd >= 0 ? TOKG_OUTPUTS_MEMFD : TOKG_OUTPUTS_CUDA_IPC,
			.instance = s->delivery->ring->instance,
			.start = c->cursor,
			.out_bytes = g->producers * g->out_bytes,
			.kind = g->kind,
			.dtype = g->dtype,
			.dim = g->dim,
			.row_bytes = g->row_bytes,
		}};
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int) * SUBSCRIBE_FDS)];
	} control = {0};
	struct iovec iov = {&rep, c->is_engine ? sizeof(rep) : sizeof(rep.rep)};
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
	};
	struct cmsghdr *cmsg;

	if (d->outputs_fd >= 0) {
		fds[fd_bytes / sizeof(int)] = d->outputs_fd;
		fd_bytes += sizeof(int);
	}
	if (c->is_engine)
		fill_engine(s, &rep);
	if (c->is_engine && d->made_fd >= 0) {
		fds[fd_bytes / sizeof(int)] = d->made_fd;
		fd_bytes += sizeof(int);
	}
	memcpy(rep.rep.ipc, d->ipc, sizeof(rep.rep.ipc));
	memcpy(rep.rep.uuid, d->uuid, sizeof(rep.rep.uuid));
	msg.msg_controllen = CMSG_SPACE(fd_bytes);
	cmsg = CMSG_FIRSTHDR(&msg);
	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(fd_bytes);
	memcpy(CMSG_DATA(cmsg), fds, fd_bytes);
	return sendmsg(c->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -1 : 0;
}

static const struct tokg_subscriber *
engine_of(const struct tokg_subscribers *s)
{
	for (uint32_t i = 0; i < TOKG_SUBSCRIBERS_CONNS; i++) {
		if (s->subscriber[i].is_engine)
			return &s->subscriber[i];
	}
	return NULL;
}

/* May it be the engine? Else it is told why not. */
static bool
is_engine_wanted(const struct tokg_subscribers *s, const struct tokg_subscriber *c)
{
	const struct tokg_subscriber *other = engine_of(s);

	if (!s->device->external_engine)
		send_reason(c, "no engine is wanted: start tokd-gpu with --engine external");
	else if (other != NULL)
		send_reason(
			c, "the engine of pid %d is attached: there is one at a time", other->pid);
	else
		return true;
	return false;
}

static uint32_t
n_attached(const struct tokg_subscribers *s)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < TOKG_SUBSCRIBERS_CONNS; i++)
		n += s->subscriber[i].state == TOKG_SUBSCRIBER_ATTACHED;
	return n;
}

/* An IPC handle is never all zeros. */
static bool
has_outputs(const struct tokg_device *d)
{
	static const uint8_t none[sizeof(d->ipc)];

	return d->outputs_fd >= 0 || memcmp(d->ipc, none, sizeof(none)) != 0;
}

/* Else it is told why not. Nothing of the engines before it reaches what it gets. */
static bool
begin_engine(struct tokg_subscribers *s, const struct tokg_subscriber *c)
{
	struct tokg_error err = {""};

	if (s->device->ops->renew_made(s->device, &err) < 0)
		send_reason(c, "%s", err.text);
	else if (!tell_engine(s, ++s->engines))
		send_reason(c, "the device does not answer");
	else
		return true;
	return false;
}

static bool
attach(struct tokg_subscribers *s, struct tokg_subscriber *c, bool as_engine)
{
	int fd;

	if (as_engine && !is_engine_wanted(s, c))
		return false;

	if (!has_outputs(s->device)) {
		send_reason(c,
			"rows are in GPU memory, and this system cannot share it between processes "
			"(no CUDA IPC)");
		return false;
	}
	if (n_attached(s) == TOKG_SUBSCRIBERS_MAX) {
		send_reason(c, "%d subscribers are attached, the limit: detach one",
			TOKG_SUBSCRIBERS_MAX);
		return false;
	}
	fd = make_cursor(c, s->delivery->head);
	if (fd < 0) {
		send_reason(c, "no memory or descriptors for a cursor: %s", strerror(errno));
		return false;
	}
	/* Before the reply: from here on producers wait for it. */
	c->state = TOKG_SUBSCRIBER_ATTACHED;
	c->since_ns = 0;
	c->is_engine = as_engine;
	if (as_engine && !begin_engine(s, c)) {
		close(fd);
		return false;
	}
	if (reply(s, c, fd) != 0) {
		send_reason(c, "cannot send the reply: %s", strerror(errno));
		close(fd);
		return false;
	}
	close(fd);
	s->counts.attached++;
	tokg_delivery_tell_shed(s->delivery);
	tokg_log("%s of pid %d attached", as_engine ? "engine" : "subscriber", c->pid);
	return true;
}

static void
read_request(struct tokg_subscribers *s, struct tokg_subscriber *c)
{
	struct tokg_subscribe_req req = {0};
	/* MSG_TRUNC: the length that was sent. The kernel discards descriptors sent along. */
	const ssize_t n = recv(c->fd, &req, sizeof(req), MSG_DONTWAIT | MSG_TRUNC);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		disconnect(s, c);
		return;
	}
	if (n != sizeof(req))
		send_reason(c, "subscribe request of %zd bytes: must have %zu", n, sizeof(req));
	else if (req.magic != TOKG_SUBSCRIBE_MAGIC)
		send_reason(c, "not a subscribe request: magic 0x%08x, must be 0x%08x", req.magic,
			TOKG_SUBSCRIBE_MAGIC);
	else if (req.version != TOKG_EMB_VERSION || (req.flags & ~TOKG_SUBSCRIBE_ENGINE) != 0 ||
		 req.reserved != 0)
		send_reason(c, "version %u, or a field it lacks, is not supported: use %u",
			req.version, TOKG_EMB_VERSION);
	else if (attach(s, c, req.flags & TOKG_SUBSCRIBE_ENGINE))
		return;
	s->counts.refused++;
	disconnect(s, c);
}

/* After its request a subscriber only closes. */
static void
read_end(struct tokg_subscribers *s, struct tokg_subscriber *c)
{
	char byte;
	const ssize_t n = recv(c->fd, &byte, sizeof(byte), MSG_DONTWAIT | MSG_TRUNC);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0)
		send_reason(c, "detached: it sent bytes after its request");
	else
		tokg_log("%s of pid %d detached", c->is_engine ? "engine" : "subscriber", c->pid);
	s->counts.detached++;
	disconnect(s, c);
}

static void
listen_to(struct tokg_subscribers *s, bool on)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.u32 = LISTENER};

	if (s->listening != on &&
		epoll_ctl(s->epoll, on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, s->listener.fd, &ev) == 0)
		s->listening = on;
}

static uint32_t
free_connection(const struct tokg_subscribers *s)
{
	uint32_t i = 0;

	while (i < TOKG_SUBSCRIBERS_CONNS && s->subscriber[i].state != TOKG_SUBSCRIBER_FREE)
		i++;
	return i;
}

static void
accept_one(struct tokg_subscribers *s, uint64_t now_ns)
{
	struct epoll_event ev = {.events = EPOLLIN};
	struct ucred peer = {0};
	socklen_t len = sizeof(peer);
	const uint32_t i = free_connection(s);
	struct tokg_error err;
	int fd;

	if (i == TOKG_SUBSCRIBERS_CONNS)
		return;
	fd = tokg_listen_accept(&s->listener, &err);
	if (err.text[0] != '\0')
		tokg_log_warning("subscribers: %s", err.text);
	if (fd < 0)
		return;
	ev.data.u32 = i;
	if (epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &ev) != 0) {
		close(fd);
		return;
	}
	getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len);
	s->subscriber[i] = (struct tokg_subscriber){
		.state = TOKG_SUBSCRIBER_CONNECTED, .fd = fd, .pid = peer.pid, .since_ns = now_ns};
}

/* The position that subscribers must reach before producers can continue; 0: none waits. */
static uint64_t
needed(const struct tokg_subscribers *s)
{
	const struct tokg_delivery *d = s->delivery;
	uint64_t position = d->full ? d->tail + 1 : 0;

	for (uint32_t i = 0; i < d->producers->geometry.producers; i++) {
		const struct tokg_postings *p = &d->producers->producer[i].postings;

		/* An ending one waits, too. */
		if (p->filled > p->released &&
			(tokg_postings_full(p) ||
				d->producers->producer[i].state == TOKG_PRODUCER_ENDING) &&
			tokg_postings_oldest(p) > position)
			position = tokg_postings_oldest(p);
	}
	return position;
}

/* When the oldest embedding that it keeps was published. It blocks, so there is one. */
static uint64_t
oldest_ns(const struct tokg_subscribers *s, const struct tokg_subscriber *c)
{
	const struct tokg_delivery *d = s->delivery;

	return d->entry[c->cursor & (d->ring->entries - 1)].t_ready;
}

static void
check_time(
	struct tokg_subscribers *s, struct tokg_subscriber *c, uint64_t position, uint64_t now_ns)
{
	const uint64_t limit_ns = s->timeout_ms * 1000000ull;
	bool stuck, slow;

	if (c->since_ns != 0 && c->cursor >= c->needed)
		c->since_ns = 0;
	if (c->since_ns == 0 && c->cursor < position) {
		c->since_ns = now_ns;
		c->needed = position;
	}
	if (c->cursor >= position)
		c->blocks_ns = 0;
	else if (c->blocks_ns == 0)
		c->blocks_ns = now_ns;
	stuck = c->since_ns != 0 && now_ns - c->since_ns > limit_ns;
	slow = c->blocks_ns != 0 && now_ns - c->blocks_ns > TOKG_SUBSCRIBER_SLOW * limit_ns &&
	       now_ns > oldest_ns(s, c) + TOKG_SUBSCRIBER_SLOW * limit_ns;
	if (!stuck && !slow)
		return;
	if (stuck)
		send_reason(c,
			"dropped: it blocked full outputs for more than %u ms: release them "
			"earlier, or raise --out-bytes or --subscriber-timeout",
			s->timeout_ms);
	else
		send_reason(c,
			"dropped: it blocked producers and kept one embedding for more than %u ms: "
			"raise --out-bytes or --subscriber-timeout",
			TOKG_SUBSCRIBER_SLOW * s->timeout_ms);
	s->counts.dropped++;
	disconnect(s, c);
}

void
tokg_subscribers_poll(struct tokg_subscribers *s, uint64_t now_ns)
{
	struct epoll_event ev[EVENTS_MAX];
	const int n = epoll_wait(s->epoll, ev, EVENTS_MAX, 0);
	uint64_t passed, position;

	for (int i = 0; i < n; i++) {
		struct tokg_subscriber *c;

		if (ev[i].data.u32 == LISTENER) {
			accept_one(s, now_ns);
			continue;
		}
		c = &s->subscriber[ev[i].data.u32];
		if (c->state == TOKG_SUBSCRIBER_CONNECTED)
			read_request(s, c);
		else if (c->state == TOKG_SUBSCRIBER_ATTACHED)
			read_end(s, c);
	}
	passed = tokg_subscribers_passed(s);
	position = needed(s);
	/* All have passed it, and it is released next: only then it shows who blocks. */
	if (passed >= position && position != 0)
		position = NOT_KNOWN;
	for (uint32_t i = 0; i < TOKG_SUBSCRIBERS_CONNS; i++) {
		struct tokg_subscriber *c = &s->subscriber[i];

		if (c->state == TOKG_SUBSCRIBER_ATTACHED) {
			if (position != NOT_KNOWN)
				check_time(s, c, position, now_ns);
		} else if (c->state == TOKG_SUBSCRIBER_CONNECTED &&
			   now_ns - c->since_ns > TOKG_SUBSCRIBE_NS) {
			send_reason(c, "no subscribe request within 1 s");
			s->counts.refused++;
			disconnect(s, c);
		}
	}
	/* epoll would report a connection that cannot be accepted again and again. */
	listen_to(s, free_connection(s) < TOKG_SUBSCRIBERS_CONNS &&
			     !tokg_listen_is_paused(&s->listener));
}

uint64_t
tokg_subscribers_passed(struct tokg_subscribers *s)
{
	const uint64_t head = s->delivery->head;
	uint64_t passed = head;

	for (uint32_t i = 0; i < TOKG_SUBSCRIBERS_CONNS; i++) {
		struct tokg_subscriber *c = &s->subscriber[i];
		uint64_t word;

		if (c->state != TOKG_SUBSCRIBER_ATTACHED)
			continue;
		/* After its last use of these rows. */
		word = atomic_load_explicit(c->word, memory_order_acquire);
		if (word > c->cursor && word <= head) /* else it is invalid */
			c->cursor = word;
		if (c->cursor < passed)
			passed = c->cursor;
	}
	return passed;
}

/* The device may have sealed them already. */
static bool
seal_outputs(const struct tokg_device *device, struct tokg_error *err)
{
	const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE;

	if (device->outputs_fd < 0)
		return true;
	(void)!fcntl(device->outputs_fd, F_ADD_SEALS, seals | F_SEAL_SEAL);
	if ((fcntl(device->outputs_fd, F_GET_SEALS) & seals) == seals)
		return true;
	return tokg_agent_wrong(
		err, "cannot seal the outputs against writing (F_ADD_SEALS): %s", strerror(errno));
}

bool
tokg_subscribers_open(struct tokg_subscribers *s, struct tokg_delivery *delivery,
	struct tokg_device *device, const char *path, uint32_t mode, uint32_t timeout_ms,
	struct tokg_error *err)
{
	memset(s, 0, sizeof(*s));
	s->delivery = delivery;
	s->device = device;
	s->timeout_ms = timeout_ms;
	s->listener.fd = -1;
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (s->epoll < 0)
		return tokg_agent_wrong(err,
			"listening for subscribers (epoll_create): %s: raise LimitNOFILE or ulimit "
			"-n",
			strerror(errno));
	if (!seal_outputs(device, err) ||
		!tokg_listen_unix(&s->listener, path, SOCK_SEQPACKET, mode, err)) {
		tokg_subscribers_close(s);
		return false;
	}
	listen_to(s, true);
	return true;
}

void
tokg_subscribers_close(struct tokg_subscribers *s)
{
	tokg_listen_close(&s->listener);
	for (uint32_t i = 0; i < TOKG_SUBSCRIBERS_CONNS; i++) {
		if (s->subscriber[i].state != TOKG_SUBSCRIBER_FREE)
			disconnect(s, &s->subscriber[i]);
	}
	if (s->epoll >= 0)
		close(s->epoll);
	s->epoll = -1;
}

int
tokg_subscribers_fd(const struct tokg_subscribers *s)
{
	return s->epoll;
}
