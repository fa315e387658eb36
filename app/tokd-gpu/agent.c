/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>
#include <monotonic.h>

#include "log.h"
#include "notify.h"
#include "tables.h"
#include "tables_inside.h"

#define LINK_SHIFT 56		 /* link: index of the listener, then its connection's id */
#define CONTROL_NS 1000000ull	 /* between polls of sockets while there is data */
#define SPIN_NS 100000ull	 /* after the last data, before sleeping */
#define PAUSE_FIRST_NS 50000l	 /* sleep, doubled up to */
#define PAUSE_LAST_NS 1000000l	 /* ... with producers, */
#define PAUSE_ALONE_NS 20000000l /* ... without */
#define DRAIN_SLICE_MS 20

static void
disconnect(void *owner, uint64_t link)
{
	struct tokg_agent *a = owner;

	tokg_server_drop(a->listener[link >> LINK_SHIFT].server, link & ((1ull << LINK_SHIFT) - 1));
}

static void
fence(void *owner, uint32_t producer)
{
	struct tokg_agent *a = owner;

	for (uint32_t i = 0; i < a->o->n_listen; i++) {
		if (a->listener[i].verbs != NULL &&
			!tokg_verbs_end(a->listener[i].verbs, producer, &a->unfenced))
			a->producers.broken = true;
	}
}

static uint64_t
link_of(const struct tokg_agent_listener *l, uint64_t id)
{
	return (uint64_t)l->index << LINK_SHIFT | id;
}

static void
refuse(struct tokg_welcome *w, const struct tokg_error *err)
{
	snprintf(w->message, sizeof(w->message), "%.*s", (int)sizeof(w->message) - 1, err->text);
}

static const char *
transport_name(uint32_t transport)
{
	return transport == TOKG_VERBS ? "verbs" : transport == TOKG_CUDA ? "cuda" : "shm";
}

/* The descriptor for producers of this transport: a dma-buf of GPU memory, else a memfd. -1: none.
 */
static int
fd_for(const struct tokg_device *d, uint32_t transport)
{
	return transport == TOKG_CUDA && d->region_dmabuf >= 0 ? d->region_dmabuf : d->region_fd;
}

static const char *
fd_missing(const struct tokg_device *d)
{
	return d->region_dmabuf >= 0
		       ? "the ring is in GPU memory, which shm cannot map: use --sink gpu=cuda:PATH, or "
			 "tokd-gpu --ring host"
		       : "the ring is in GPU memory, and the driver exports no dma-buf of it: use --sink "
			 "gpu=verbs:HOST with nvidia-peermem, or tokd-gpu --ring host";
}

/* A resumed producer may have used another listener before. */
static bool
grant_verbs(const struct tokg_agent_listener *l, uint32_t producer, const struct tokg_hello *hello,
	struct tokg_welcome *w, struct tokg_error *err)
{
	fence(l->agent, producer);
	if (l->agent->unfenced.text[0] != '\0') {
		*err = l->agent->unfenced;
		return false;
	}
	return tokg_verbs_grant(l->verbs, producer, &hello->qp, w, err);
}

static int
grant(void *owner, uint64_t id, const struct tokg_hello *hello, struct tokg_welcome *w, int *fd)
{
	const struct tokg_agent_listener *l = owner;
	struct tokg_agent *a = l->agent;
	struct tokg_error err = {""};
	uint32_t producer;
	int rc;

	if (a->n_signals > 0 || a->producers.broken) {
		snprintf(w->message, sizeof(w->message), "tokd-gpu is stopping");
		return -1;
	}
	if (hello->transport != TOKG_VERBS && fd_for(a->device, hello->transport) < 0) {
		snprintf(w->message, sizeof(w->message), "%s", fd_missing(a->device));
		return -1;
	}
	rc = tokg_producers_grant(
		&a->producers, hello, link_of(l, id), monotonic_ns(), &producer, &err);
	if (rc <= 0) {
		refuse(w, &err);
		if (rc < 0)
			tokg_log_warning("worker %u of %016" PRIx64 " refused: %s", hello->worker,
				hello->instance, err.text);
		return rc;
	}
	w->producer = producer;
	w->epoch = a->producers.producer[producer].epoch;
	w->ring_epoch = a->ring_epoch;
	w->order = a->device->order;
	w->instance = a->instance;
	w->text_vocab = a->text_vocab;
	w->text_flags = a->text_flags;
	w->geometry = a->device->geometry;
	if (hello->transport != TOKG_VERBS) {
		*fd = fd_for(a->device, hello->transport);
	} else if (!grant_verbs(l, producer, hello, w, &err)) {
		tokg_log_warning("worker %u of %016" PRIx64 " refused: %s", hello->worker,
			hello->instance, err.text);
		/* Its connection stays open for the answer. */
		tokg_producers_left(&a->producers, link_of(l, id), monotonic_ns());
		tokg_producers_end(&a->producers, producer);
		refuse(w, &err);
		w->producer = TOKG_NO_PRODUCER;
		return -1;
	}
	if (hello->shed_below != 0 && hello->resume == TOKG_NO_PRODUCER)
		tokg_log_warning("worker %u of %016" PRIx64 ": texts below serial %" PRIu64
				 " that are not embedded were shed",
			hello->worker, hello->instance, hello->shed_below);
	tokg_log("producer %u, epoch %u: worker %u of %016" PRIx64 " by %s%s", producer, w->epoch,
		hello->worker, hello->instance, transport_name(hello->transport),
		hello->resume != TOKG_NO_PRODUCER ? ", resumed" : "");
	return 1;
}

static void
joined(void *owner, uint64_t id)
{
}

static void
left(void *owner, uint64_t id)
{
	const struct tokg_agent_listener *l = owner;

	tokg_producers_left(&l->agent->producers, link_of(l, id), monotonic_ns());
}

static void
starved(void *owner, const struct tokg_error *err)
{
	tokg_log_warning("producers: %s", err->text);
}

static bool
watch_fd(struct tokg_agent *a, int fd, struct tokg_error *err)
{
	struct epoll_event ev = {.events = EPOLLIN};

	return epoll_ctl(a->epoll, EPOLL_CTL_ADD, fd, &ev) == 0 ||
	       tokg_agent_wrong(err,
		       "watching descriptor %d (epoll_ctl): %s: see "
		       "fs.epoll.max_user_watches",
		       fd, strerror(errno));
}

static bool
open_verbs(struct tokg_agent *a, struct tokg_agent_listener *l, const char *host,
	struct tokg_error *err)
{
	const struct tokg_verbs_server_config c = {
		.geometry = &a->device->geometry,
		.region = a->device->region,
		.region_address = a->device->region_address,
		.region_dmabuf = a->device->region_dmabuf,
		.host = host,
		.rdma_device = a->o->rdma_device,
		.rdma_port = a->o->rdma_port,
		.rdma_gid = a->o->rdma_gid,
		.rdma_tclass = (uint8_t)a->o->rdma_tclass,
		.rdma_sl = (uint8_t)a->o->rdma_sl,
	};
	struct tokg_error why = {""};
	char path[256] = "";

	l->verbs = tokg_verbs_server_open(&c, path, &why);
	if (l->verbs == NULL)
		return tokg_agent_wrong(err, "--listen tcp needs RDMA: %.*s; see tokd-diag",
			(int)(sizeof(err->text) - 64), why.text);
	tokg_log("verbs: %s; order: %s (%s)", path,
		a->device->order == TOKG_ORDER_FAST ? "fast" : "strict", a->device->order_reason);
	return true;
}

static bool
open_listener(struct tokg_agent *a, uint32_t i, struct tokg_error *err)
{
	const struct tokg_listen *at = &a->o->listen[i];
	struct tokg_agent_listener *l = &a->listener[i];
	const struct tokg_server_config c = {
		.path = at->path[0] != '\0' ? at->path : NULL,
		.mode = a->o->socket_mode,
		.host = at->path[0] != '\0' ? NULL : at->host,
		.port = at->port,
		.calls = {grant, joined, left, starved},
		.owner = l,
	};

	if (c.path == NULL && !open_verbs(a, l, at->host, err))
		return false;
	l->agent = a;
	l->index = i;
	l->server = tokg_server_open(&c, err);
	return l->server != NULL && watch_fd(a, tokg_server_fd(l->server), err);
}

/* Blocked before any thread is created: only this thread gets them. */
static bool
open_signals(struct tokg_agent *a, struct tokg_error *err)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	a->signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (a->signals < 0)
		return tokg_agent_wrong(err,
			"waiting for SIGTERM (signalfd): %s: raise LimitNOFILE or ulimit -n",
			strerror(errno));
	return watch_fd(a, a->signals, err);
}

bool
tokg_agent_open(struct tokg_agent *a, const struct tokg_options *o, struct tokg_device *device,
	uint64_t instance, uint32_t ring_epoch, struct tokg_error *err)
{
	const struct tokg_producers_calls calls = {disconnect, fence, a};

	memset(a, 0, sizeof(*a));
	a->o = o;
	a->device = device;
	a->instance = instance;
	a->ring_epoch = ring_epoch;
	a->watchdog_ns = tokd_notify_watchdog_ms() * 1000000ull;
	a->delivery.ring_fd = a->subscribers.epoll = a->subscribers.listener.fd = a->signals = -1;
	a->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (a->epoll < 0)
		return tokg_agent_wrong(err,
			"watching sockets (epoll_create): %s: raise LimitNOFILE or ulimit -n",
			strerror(errno));
	if (!tokg_producers_create(&a->producers, device, ring_epoch, &calls))
		return tokg_agent_wrong(
			err, "cannot allocate %u producer slots", device->geometry.producers);
	if (!open_signals(a, err) ||
		!tokg_delivery_create(&a->delivery, &a->producers, instance, err) ||
		!tokg_subscribers_open(&a->subscribers, &a->delivery, device, o->subscribers_socket,
			o->subscribers_mode, o->subscriber_timeout_ms, err) ||
		!watch_fd(a, tokg_subscribers_fd(&a->subscribers), err))
		return false;
	for (uint32_t i = 0; i < o->n_listen; i++) {
		if (!open_listener(a, i, err))
			return false;
	}
	return true;
}

static void
read_signals(struct tokg_agent *a)
{
	struct signalfd_siginfo info;

	while (read(a->signals, &info, sizeof(info)) == sizeof(info))
		a->n_signals++;
}

static void
consumer_ended(void *owner)
{
	struct tokg_agent *a = owner;

	tokg_delivery_consumer_ended(&a->delivery);
}

static void
during_stop(void *owner)
{
	struct tokg_agent *a = owner;

	tokg_producers_poll(&a->producers, monotonic_ns(), a->delivery.n_read);
}

/* Delivers and releases. Returns the number of entries. */
static uint32_t
poll_data(struct tokg_agent *a)
{
	const uint32_t n = tokg_delivery_poll(&a->delivery);

	tokg_delivery_passed(&a->delivery, tokg_subscribers_passed(&a->subscribers));
	return n;
}

static void
poll_control(struct tokg_agent *a, uint64_t now_ns)
{
	if (a->watchdog_ns != 0 && now_ns - a->notified_ns >= a->watchdog_ns) {
		a->notified_ns = now_ns;
		tokd_notify("WATCHDOG=1");
	}
	read_signals(a);
	for (uint32_t i = 0; i < a->o->n_listen; i++)
		tokg_server_poll(a->listener[i].server);
	tokg_subscribers_poll(&a->subscribers, now_ns);
	tokg_producers_poll(&a->producers, now_ns, a->delivery.n_read);
}

static bool
is_alone(const struct tokg_agent *a)
{
	for (uint32_t i = 0; i < a->producers.geometry.producers; i++) {
		if (a->producers.producer[i].state != TOKG_PRODUCER_FREE)
			return false;
	}
	return true;
}

/* Sleeps until a socket is readable, or for `ns`: the outbox has no wake-up. */
static void
pause_ns(const struct tokg_agent *a, long ns)
{
	const struct timespec t = {.tv_nsec = ns};
	struct pollfd p = {.fd = a->epoll, .events = POLLIN};

	ppoll(&p, 1, &t, NULL);
}

/* Finishes published slots, then waits for subscribers, both within --drain. A second signal
 * ends it. */
static bool
drain(struct tokg_agent *a, struct tokg_error *err)
{
	const uint64_t end_ns = monotonic_ns() + a->o->drain_ms * 1000000ull;
	struct tokg_device *d = a->device;
	bool ended = false;
	uint64_t now_ns = 0;

	tokg_log("stopping: finishing published slots for up to %u ms; a second signal stops at "
		 "once",
		a->o->drain_ms);
	tokd_notify_draining(a->o->drain_ms);
	while (a->n_signals < 2 && now_ns < end_ns) {
		if (!ended) {
			ended = d->ops->stop(d, TOKG_STOP_DRAIN, DRAIN_SLICE_MS, err) >= 0;
			if (ended)
				tokg_delivery_consumer_ended(&a->delivery);
		}
		while (poll_data(a) > 0)
			;
		if (ended && tokg_delivery_idle(&a->delivery))
			return true;
		now_ns = monotonic_ns();
		poll_control(a, now_ns);
		if (ended)
			pause_ns(a, PAUSE_LAST_NS);
	}
	tokg_log_warning("stopped before all slots were finished");
	return ended || d->ops->stop(d, TOKG_STOP_NOW, TOKG_STOP_MS, err) >= 0;
}

bool
tokg_agent_start(struct tokg_agent *a, struct tokg_error *err)
{
	const struct tokg_consumer_calls calls = {consumer_ended, during_stop, a};

	if (!tokg_consumer_start(&a->consumer, a->device, a->o->stuck_ms, monotonic_ns(), err))
		return false;
	while (a->consumer.heartbeat == 0 && a->n_signals == 0) {
		pause_ns(a, PAUSE_LAST_NS);
		poll_control(a, monotonic_ns());
		if (tokg_consumer_watch(&a->consumer, monotonic_ns(), &calls, err) < 0)
			return false;
	}
	return true;
}

bool
tokg_agent_run(struct tokg_agent *a, struct tokg_error *err)
{
	const struct tokg_consumer_calls calls = {consumer_ended, during_stop, a};
	uint64_t now_ns = monotonic_ns(), control_ns = 0, busy_ns = 0;
	long pause = PAUSE_FIRST_NS;

	while (a->n_signals == 0) {
		const uint32_t n = poll_data(a);

		now_ns = monotonic_ns();
		if (n > 0) {
			busy_ns = now_ns;
			pause = PAUSE_FIRST_NS;
		}
		if (n == 0 || now_ns - control_ns > CONTROL_NS) {
			control_ns = now_ns;
			poll_control(a, now_ns);
			if (tokg_consumer_watch(&a->consumer, now_ns, &calls, err) < 0)
				return false;
		}
		if (a->unfenced.text[0] != '\0')
			return tokg_agent_wrong(err,
				"%.160s: it could write into its successor's slots: see dmesg",
				a->unfenced.text);
		if (a->producers.broken)
			return tokg_agent_wrong(err,
				"the device %s does not answer: see dmesg, and restart tokd-gpu",
				a->device->ops->name);
		if (n > 0)
			continue;
		if (now_ns - busy_ns < SPIN_NS || (a->o->spin && !is_alone(a))) {
			sched_yield();
			continue;
		}
		pause_ns(a, is_alone(a) ? PAUSE_ALONE_NS : pause);
		pause = 2 * pause < PAUSE_LAST_NS ? 2 * pause : PAUSE_LAST_NS;
	}
	return drain(a, err);
}

static void
summary(const struct tokg_agent *a)
{
	const struct tokg_delivery_counts *c = &a->delivery.counts;
	const struct tokg_subscriber_counts *h = &a->subscribers.counts;
	uint64_t twins = 0;

	for (uint32_t i = 0; i < a->producers.geometry.producers; i++)
		twins += a->producers.producer[i].postings.twins;
	tokg_log("embedded: %" PRIu64 " entries, %" PRIu64 " rows; slots ok %" PRIu64
		 ", badsum %" PRIu64 ", stale %" PRIu64 ", badhdr %" PRIu64 ", badid %" PRIu64
		 ", badpos %" PRIu64 ", cpu %" PRIu64 "; %" PRIu64
		 " notices of texts that were shed",
		c->entries, c->rows, c->status[TOKG_OK], c->status[TOKG_BADSUM],
		c->status[TOKG_STALE], c->status[TOKG_BADHDR], c->status[TOKG_BADID],
		c->status[TOKG_BADPOS], c->status[TOKG_CPU], c->status[TOKG_SHED]);
	tokg_log("producers: %" PRIu64 " granted, %" PRIu64 " resumed, %" PRIu64
		 " ended; consumer: %" PRIu64 " restarts, %" PRIu64 " twins dropped, %" PRIu64
		 " holes, %" PRIu64 " impossible, %" PRIu64 " overruns",
		a->producers.grants, a->producers.resumes, a->producers.ended,
		a->consumer.all_restarts, twins, c->holes, c->impossible, c->overruns);
	tokg_log("subscribers: %" PRIu64 " attached, %" PRIu64 " detached, %" PRIu64
		 " refused, %" PRIu64 " dropped",
		h->attached, h->detached, h->refused, h->dropped);
}

bool
tokg_agent_close(struct tokg_agent *a)
{
	if (a->consumer.device != NULL)
		summary(a);
	for (uint32_t i = 0; i < TOKG_LISTEN_MAX; i++) {
		if (a->listener[i].server != NULL)
			tokg_server_close(a->listener[i].server);
		if (a->listener[i].verbs != NULL)
			tokg_verbs_server_close(a->listener[i].verbs);
	}
	tokg_subscribers_close(&a->subscribers);
	tokg_delivery_free(&a->delivery);
	tokg_producers_free(&a->producers);
	if (a->signals >= 0)
		close(a->signals);
	if (a->epoll >= 0)
		close(a->epoll);
	return a->device->ops->close(a->device);
}
