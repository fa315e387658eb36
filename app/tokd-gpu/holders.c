/* SPDX-License-Identifier: BSD-3-Clause */
#include "holders.h"

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
#define HOLD_FDS 3
#define NOT_KNOWN UINT64_MAX

static void
hang_up(struct tokg_holders *h, struct tokg_holder *c)
{
	if (c->word != NULL)
		munmap((void *)c->word, TOKG_CURSOR_BYTES);
	close(c->fd); /* which takes it out of epoll */
	*c = (struct tokg_holder){.fd = -1};
}

/* The reason; who does not wait for it does not get it. */
static void __attribute__((format(printf, 2, 3)))
say(const struct tokg_holder *c, const char *format, ...)
{
	struct tokg_hold_rep rep = {.magic = TOKG_HOLD_MAGIC, .version = TOKG_EMB_VERSION};
	va_list ap;

	va_start(ap, format);
	vsnprintf(rep.message, sizeof(rep.message), format, ap);
	va_end(ap);
	tokg_log("holder of pid %d: %s", c->pid, rep.message);
	(void)!send(c->fd, &rep, sizeof(rep), MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Sealed against resizing: a holder that truncated it would kill us by SIGBUS. -1: errno. */
static int
make_cursor(struct tokg_holder *c, uint64_t start)
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

static int
welcome(const struct tokg_holders *h, const struct tokg_holder *c, int cursor_fd)
{
	const struct tokg_geometry *g = &h->device->geometry;
	const int fds[HOLD_FDS] = {cursor_fd, h->delivery->ring_fd, h->device->outputs_fd};
	const size_t fd_bytes = sizeof(int) * (h->device->outputs_fd >= 0 ? 3 : 2);
	struct tokg_hold_rep rep = {
		.magic = TOKG_HOLD_MAGIC,
		.version = TOKG_EMB_VERSION,
		.outputs = h->device->outputs_fd >= 0 ? TOKG_OUTPUTS_MEMFD : TOKG_OUTPUTS_CUDA_IPC,
		.instance = h->delivery->ring->instance,
		.start = c->cursor,
		.out_bytes = g->producers * g->out_bytes,
		.kind = g->kind,
		.dtype = g->dtype,
		.dim = g->dim,
		.row_bytes = g->row_bytes,
	};
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int) * HOLD_FDS)];
	} control = {0};
	struct iovec iov = {&rep, sizeof(rep)};
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = CMSG_SPACE(fd_bytes),
	};
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);

	memcpy(rep.ipc, h->device->ipc, sizeof(rep.ipc));
	memcpy(rep.uuid, h->device->uuid, sizeof(rep.uuid));
	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(fd_bytes);
	memcpy(CMSG_DATA(cmsg), fds, fd_bytes);
	return sendmsg(c->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -1 : 0;
}

static uint32_t
n_holding(const struct tokg_holders *h)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < TOKG_HOLDERS_CONNS; i++)
		n += h->holder[i].state == TOKG_HOLDER_HOLDING;
	return n;
}

/* An IPC handle is never all zeros. */
static bool
has_outputs(const struct tokg_device *d)
{
	static const uint8_t none[sizeof(d->ipc)];

	return d->outputs_fd >= 0 || memcmp(d->ipc, none, sizeof(none)) != 0;
}

static bool
let_in(struct tokg_holders *h, struct tokg_holder *c)
{
	int fd;

	if (!has_outputs(h->device)) {
		say(c, "rows are in GPU memory, which this system does not share among processes "
		       "(no CUDA IPC)");
		return false;
	}
	if (n_holding(h) == TOKG_HOLDERS_MAX) {
		say(c, "all holders' places are taken (%d): detach one", TOKG_HOLDERS_MAX);
		return false;
	}
	fd = make_cursor(c, h->delivery->head);
	if (fd < 0) {
		say(c, "no memory or descriptors for a cursor: %s", strerror(errno));
		return false;
	}
	/* Before it hears of it: from here on it is waited for. */
	c->state = TOKG_HOLDER_HOLDING;
	c->since_ns = 0;
	if (welcome(h, c, fd) != 0) {
		say(c, "the answer could not be sent: %s", strerror(errno));
		close(fd);
		return false;
	}
	close(fd);
	h->counts.attached++;
	tokg_log("holder of pid %d attached", c->pid);
	return true;
}

static void
greet(struct tokg_holders *h, struct tokg_holder *c)
{
	struct tokg_hold_req req = {0};
	/* MSG_TRUNC: the length that was sent. The kernel discards descriptors sent along. */
	const ssize_t n = recv(c->fd, &req, sizeof(req), MSG_DONTWAIT | MSG_TRUNC);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		hang_up(h, c);
		return;
	}
	if (n != sizeof(req))
		say(c, "hold request of %zd bytes: must have %zu", n, sizeof(req));
	else if (req.magic != TOKG_HOLD_MAGIC)
		say(c, "not a hold request: magic 0x%08x, must be 0x%08x", req.magic,
			TOKG_HOLD_MAGIC);
	else if (req.version != TOKG_EMB_VERSION || req.reserved[0] != 0 || req.reserved[1] != 0)
		say(c, "version %u, or a field it lacks, is not supported: use %u", req.version,
			TOKG_EMB_VERSION);
	else if (let_in(h, c))
		return;
	h->counts.refused++;
	hang_up(h, c);
}

/* After the request a holder only ever closes. */
static void
hear(struct tokg_holders *h, struct tokg_holder *c)
{
	char byte;
	const ssize_t n = recv(c->fd, &byte, sizeof(byte), MSG_DONTWAIT | MSG_TRUNC);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0)
		say(c, "it sent bytes after its request: detached");
	else
		tokg_log("holder of pid %d detached", c->pid);
	h->counts.detached++;
	hang_up(h, c);
}

static void
listen_to(struct tokg_holders *h, bool on)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.u32 = LISTENER};

	if (h->deaf == on)
		h->deaf = epoll_ctl(h->epoll, on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, h->listener.fd,
				  &ev) == 0
				  ? !on
				  : h->deaf;
}

static uint32_t
place_for_newcomer(const struct tokg_holders *h)
{
	uint32_t i = 0;

	while (i < TOKG_HOLDERS_CONNS && h->holder[i].state != TOKG_HOLDER_FREE)
		i++;
	return i;
}

static void
accept_one(struct tokg_holders *h, uint64_t now_ns)
{
	struct epoll_event ev = {.events = EPOLLIN};
	struct ucred peer = {0};
	socklen_t len = sizeof(peer);
	const uint32_t i = place_for_newcomer(h);
	struct tokg_error why;
	int fd;

	if (i == TOKG_HOLDERS_CONNS)
		return;
	fd = tokg_listen_take(&h->listener, &why);
	if (why.text[0] != '\0')
		tokg_log("holders: %s", why.text);
	if (fd < 0)
		return;
	ev.data.u32 = i;
	if (epoll_ctl(h->epoll, EPOLL_CTL_ADD, fd, &ev) != 0) {
		close(fd);
		return;
	}
	getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len);
	h->holder[i] = (struct tokg_holder){
		.state = TOKG_HOLDER_GREETING, .fd = fd, .pid = peer.pid, .since_ns = now_ns};
}

/* A position that holders must reach for producers to go on; 0: nobody waits for them. */
static uint64_t
needed(const struct tokg_holders *h)
{
	const struct tokg_delivery *d = h->delivery;
	uint64_t position = d->full ? d->tail + 1 : 0;

	for (uint32_t i = 0; i < d->places->geometry.producers; i++) {
		const struct tokg_postings *p = &d->places->place[i].postings;

		/* An ending place is waited for, too. */
		if (p->filled > p->released &&
			(tokg_postings_full(p) || d->places->place[i].state == TOKG_PLACE_ENDING) &&
			tokg_postings_oldest(p) > position)
			position = tokg_postings_oldest(p);
	}
	return position;
}

/* When the oldest that it holds was handed out. It is in the way: there is one. */
static uint64_t
oldest_ns(const struct tokg_holders *h, const struct tokg_holder *c)
{
	const struct tokg_delivery *d = h->delivery;

	return d->entry[c->cursor & (d->ring->entries - 1)].t_ready;
}

static void
watch(struct tokg_holders *h, struct tokg_holder *c, uint64_t position, uint64_t now_ns)
{
	const uint64_t limit_ns = h->timeout_ms * 1000000ull;
	bool stands, slow;

	if (c->since_ns != 0 && c->cursor >= c->needed)
		c->since_ns = 0;
	if (c->since_ns == 0 && c->cursor < position) {
		c->since_ns = now_ns;
		c->needed = position;
	}
	if (c->cursor >= position)
		c->way_ns = 0;
	else if (c->way_ns == 0)
		c->way_ns = now_ns;
	stands = c->since_ns != 0 && now_ns - c->since_ns > limit_ns;
	slow = c->way_ns != 0 && now_ns - c->way_ns > TOKG_HOLDER_SLOW * limit_ns &&
	       now_ns > oldest_ns(h, c) + TOKG_HOLDER_SLOW * limit_ns;
	if (!stands && !slow)
		return;
	if (stands)
		say(c,
			"dropped: it held full outputs for more than %u ms: let go of embeddings "
			"earlier, or raise --out-bytes or --holder-timeout",
			h->timeout_ms);
	else
		say(c,
			"dropped: too slow: in the way, it held one embedding for more than %u ms: "
			"raise --out-bytes or --holder-timeout",
			TOKG_HOLDER_SLOW * h->timeout_ms);
	h->counts.dropped++;
	hang_up(h, c);
}

void
tokg_holders_turn(struct tokg_holders *h, uint64_t now_ns)
{
	struct epoll_event ev[EVENTS_MAX];
	const int n = epoll_wait(h->epoll, ev, EVENTS_MAX, 0);
	uint64_t passed, position;

	for (int i = 0; i < n; i++) {
		struct tokg_holder *c;

		if (ev[i].data.u32 == LISTENER) {
			accept_one(h, now_ns);
			continue;
		}
		c = &h->holder[ev[i].data.u32];
		if (c->state == TOKG_HOLDER_GREETING)
			greet(h, c);
		else if (c->state == TOKG_HOLDER_HOLDING)
			hear(h, c);
	}
	passed = tokg_holders_passed(h);
	position = needed(h);
	/* All are past it, and it is about to be given back: who is in the way shows after that. */
	if (passed >= position && position != 0)
		position = NOT_KNOWN;
	for (uint32_t i = 0; i < TOKG_HOLDERS_CONNS; i++) {
		struct tokg_holder *c = &h->holder[i];

		if (c->state == TOKG_HOLDER_HOLDING) {
			if (position != NOT_KNOWN)
				watch(h, c, position, now_ns);
		} else if (c->state == TOKG_HOLDER_GREETING &&
			   now_ns - c->since_ns > TOKG_HOLD_GREETING_NS) {
			say(c, "no hold request within a second");
			h->counts.refused++;
			hang_up(h, c);
		}
	}
	/* One that waits and cannot be taken would be reported at once, for ever. */
	listen_to(
		h, place_for_newcomer(h) < TOKG_HOLDERS_CONNS && !tokg_listen_rests(&h->listener));
}

uint64_t
tokg_holders_passed(struct tokg_holders *h)
{
	const uint64_t head = h->delivery->head;
	uint64_t passed = head;

	for (uint32_t i = 0; i < TOKG_HOLDERS_CONNS; i++) {
		struct tokg_holder *c = &h->holder[i];
		uint64_t word;

		if (c->state != TOKG_HOLDER_HOLDING)
			continue;
		/* Its last use of rows comes before it. */
		word = atomic_load_explicit(c->word, memory_order_acquire);
		if (word > c->cursor && word <= head) /* what it says else is not believed */
			c->cursor = word;
		if (c->cursor < passed)
			passed = c->cursor;
	}
	return passed;
}

/* The device may have done so. */
static bool
seal_outputs(const struct tokg_device *device, struct tokg_error *why)
{
	const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE;

	if (device->outputs_fd < 0)
		return true;
	(void)!fcntl(device->outputs_fd, F_ADD_SEALS, seals | F_SEAL_SEAL);
	if ((fcntl(device->outputs_fd, F_GET_SEALS) & seals) == seals)
		return true;
	return tokg_agent_wrong(
		why, "the outputs' memory cannot be sealed against writing: %s", strerror(errno));
}

bool
tokg_holders_open(struct tokg_holders *h, struct tokg_delivery *delivery,
	const struct tokg_device *device, const char *path, uint32_t mode, uint32_t timeout_ms,
	struct tokg_error *why)
{
	memset(h, 0, sizeof(*h));
	h->delivery = delivery;
	h->device = device;
	h->timeout_ms = timeout_ms;
	h->listener.fd = -1;
	h->deaf = true;
	h->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (h->epoll < 0)
		return tokg_agent_wrong(why,
			"listening for holders (epoll_create): %s: raise LimitNOFILE or ulimit -n",
			strerror(errno));
	if (!seal_outputs(device, why) ||
		!tokg_listen_unix(&h->listener, path, SOCK_SEQPACKET, mode, why)) {
		tokg_holders_close(h);
		return false;
	}
	listen_to(h, true);
	return true;
}

void
tokg_holders_close(struct tokg_holders *h)
{
	tokg_listen_end(&h->listener);
	for (uint32_t i = 0; i < TOKG_HOLDERS_CONNS; i++) {
		if (h->holder[i].state != TOKG_HOLDER_FREE)
			hang_up(h, &h->holder[i]);
	}
	if (h->epoll >= 0)
		close(h->epoll);
	h->epoll = -1;
}

int
tokg_holders_fd(const struct tokg_holders *h)
{
	return h->epoll;
}
