/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One worker of the appliance on a CPU of virtual time. Its turns run when a frame has come, when
 * text waits for one, and each ms for housekeeping. It is set up and ended by the product's own
 * code; its token ring is a memfd as token_ring_open.c makes it, without huge pages and EAL's name,
 * which a process cannot give twice.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_ethdev.h>

#include "control/gpu_sink_control.h"
#include "control/port/port.h"
#include "control/vocabs/terms.h"
#include "control/worker_open.h"
#include "datapath/loop/housekeeping.h"
#include "datapath/net.h"
#include "datapath/stream/stream.h"
#include "datapath/token_ring_write.h"
#include "sim.h"

#define MBUFS 2047
#define IDLE_TURN MS
#define CONTROL_EVERY (5 * MS)
#define DRAIN_TURNS 20

static struct rte_mempool *pool;

/* ---- the port ---- */

static uint16_t
rx_burst(void *queue, struct rte_mbuf **m, uint16_t most)
{
	struct appliance *a = &sim->a;
	uint16_t n = 0;

	for (; n < most && a->rx.n > 0; n++) {
		struct packet *p;

		m[n] = rte_pktmbuf_alloc(pool);
		if (m[n] == NULL)
			break; /* they wait in the queue, as without descriptors */
		p = queue_get(&a->rx);
		memcpy(rte_pktmbuf_append(m[n], (uint16_t)p->len), p->bytes, p->len);
		packet_drop(sim, p);
		a->cpu_now += sim->plan.cost.frame;
	}
	return n;
}

static uint16_t
tx_burst(void *queue, struct rte_mbuf **m, uint16_t n)
{
	const bool refused = sim->calm_at == NEVER && world_chance(sim, sim->plan.tx_refused);
	const uint16_t taken = refused ? (uint16_t)world_dice(sim, n) : n;
	const uint64_t now = sim->now;

	if (refused)
		world_fault(sim, FRAMES_NO_TX);
	sim->a.cpu_now += TX_CALL_NS;
	for (uint16_t i = 0; i < taken; i++) {
		struct packet *p = packet_take(sim);

		p->len = rte_pktmbuf_pkt_len(m[i]);
		memcpy(p->bytes, rte_pktmbuf_mtod(m[i], const void *), p->len);
		rte_pktmbuf_free(m[i]);
		sim->a.cpu_now += sim->plan.cost.frame;
		sim->now = sim->a.cpu_now;
		network_to_clients(sim, p);
	}
	sim->now = now;
	return taken;
}

static void
port_make(void)
{
	static void *none; /* of queue 0: no data, no callbacks */

	if (pool != NULL)
		return;
	pool = rte_pktmbuf_pool_create(
		"sim", MBUFS, 0, 0, RTE_PKTMBUF_HEADROOM + FRAME_MAX, SOCKET_ID_ANY);
	if (pool == NULL)
		abort();
	rte_eth_fp_ops[0].rx_pkt_burst = rx_burst;
	rte_eth_fp_ops[0].tx_pkt_burst = tx_burst;
	rte_eth_fp_ops[0].rxq = (struct rte_ethdev_qdata){&none, &none};
	rte_eth_fp_ops[0].txq = (struct rte_ethdev_qdata){&none, &none};
}

/* ---- the ring ---- */

static void
ring_make(struct tokd_ring *r, uint64_t bytes, uint64_t instance, uint32_t vocab)
{
	r->map_bytes = TOKD_RING_HDR_BYTES + bytes;
	r->fd = memfd_create("tokd-ring-0", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (r->fd < 0 || ftruncate(r->fd, (off_t)r->map_bytes) != 0)
		abort();
	r->hdr = mmap(
		NULL, r->map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, r->fd, 0);
	if (r->hdr == MAP_FAILED || fcntl(r->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0)
		abort();
	r->data = (uint8_t *)r->hdr + TOKD_RING_HDR_BYTES;
	r->mask = bytes - 1;
	r->limit = bytes;
	*r->hdr = (struct tokd_ring_hdr){.magic = TOKD_RING_MAGIC,
		.version = TOKD_RING_VERSION,
		.data_off = TOKD_RING_HDR_BYTES,
		.data_bytes = bytes,
		.instance = instance,
		.tsc_hz = SIM_TSC_HZ,
		.vocab = vocab};
}

/* The checker sees every record. */
static void
walk(struct world *w)
{
	const struct tokd_ring *r = &w->a.w.ring;

	while (w->a.walked != r->head) {
		struct tokd_rec *rec = tokd_ring_at(r, w->a.walked);

		if (rec->kind != TOKD_REC_PAD)
			check_record(w, rec, rec + 1);
		w->a.walked += rec->bytes;
	}
}

static void
before_reuse(void *worker, uint64_t from, uint64_t to)
{
	walk(sim);
	tokd_spill_before_reuse(worker, from, to);
}

/* ---- the life of the appliance ---- */

void
appliance_start(struct world *w)
{
	const struct plan *p = &w->plan;
	struct appliance *a = &w->a;
	static struct tokd_vocabs vocabs = {.node = SOCKET_ID_ANY, .n = 1};
	static struct tokd_ring *ring[1];
	const struct tokd_port port = {.rx_desc = (uint16_t)p->rx_desc, .tx_desc = 128};
	struct tok_error error;

	port_make();
	a->opt = (struct tokd_options){.ip = RTE_BE32(SERVER_IP),
		.udp_port = TOKD_WIRE_PORT,
		.streams = p->streams,
		.max_text = 1 << 20,
		.stream_timeout_ms = p->stream_ms,
		.done_timeout_ms = p->done_ms,
		.names_bytes = p->names_bytes,
		.reader_timeout_ms = p->reader_ms,
		.mbufs = MBUFS,
		.mbuf_room = FRAME_MAX,
		.cache_entries = 256,
		.side_bytes = p->side_bytes};
	a->stop = TOKD_RUN;
	vocabs.tok[0] = sim_vocab;
	a->w = (struct tokd_worker){.pool = pool,
		.terms = tokd_terms_create(&a->opt, &vocabs, 0, &error),
		.ip = a->opt.ip,
		.udp_port = RTE_BE16(TOKD_WIRE_PORT),
		.mac = frame_mac(SERVER_IP),
		.mtu = RTE_ETHER_MTU,
		.ip6 = network_six(SERVER_IP),
		.opt = &a->opt,
		.stop = &a->stop,
		.node = SOCKET_ID_ANY};
	a->instance++;
	ring_make(&a->w.ring, p->ring_bytes, a->instance, tok_vocab_info(sim_vocab).checksum);
	if (a->w.terms == NULL || tokd_worker_init(&a->w, &port) != 0)
		abort();
	a->w.ring.before_reuse = before_reuse;
	ring[0] = &a->w.ring;
	if (tokd_attach_open(&a->attach, sim_socket, 0600, (gid_t)-1, ring, 1, a->instance,
		    p->reader_ms) != 0)
		abort();
	a->w.turn_kind = C_CYCLES_IDLE;
	a->w.t_burst = sim_tsc();
	a->walked = 0;
	a->up = true;
	check_new_ring(w);
	if (p->attack == STOPPED_SINK)
		sink_make(a);
	if (p->lanes > 0)
		generator_make(w);
	world_trace(w, "appliance up", a->instance, 0, 0);
	a->turn_at = w->now;
	world_put(w, w->now, TURN, (uint32_t)a->instance, NULL);
}

void
appliance_boot(struct world *w)
{
	w->a.turn_at = NEVER;
	appliance_start(w);
}

/* A process that dies leaves no mbufs to return; ours lives on. */
static void
free_held(struct tokd_worker *w)
{
	for (uint32_t i = 0; i <= w->streams->n; i++) {
		struct tokd_stream *s = &w->streams->stream[i];

		if (s->state != TOKD_STREAM_OPEN)
			continue;
		for (; s->held_bits != 0; s->held_bits &= s->held_bits - 1)
			rte_pktmbuf_free(
				s->held[(s->next + (uint32_t)__builtin_ctzll(s->held_bits)) %
					 TOKD_WIRE_WINDOW]
					.m);
	}
}

/* With `drain` as by SIGTERM, else as by SIGKILL. */
void
appliance_stop(struct world *w, bool drain)
{
	struct appliance *a = &w->a;

	world_trace(w, "appliance down", a->instance, drain, 0);
	if (drain) {
		a->cpu_now = w->now;
		a->stop = TOKD_DRAIN;
		for (uint32_t i = 0; i < DRAIN_TURNS; i++)
			tokd_worker_turn(&a->w);
		tokd_shutdown(&a->w);
		answers_shut_down(w);
	}
	walk(w);
	free_held(&a->w);
	queue_empty(w, &a->rx);
	w->check.drops += a->attach.counts.dropped;
	tokd_attach_close(&a->attach);
	a->attach.counts.dropped = 0;
	for (uint32_t i = 0; i < C_COUNT; i++)
		a->sum[i] += a->w.counter[i];
	tokd_worker_free(&a->w);
	tokd_terms_free(a->w.terms);
	tokd_sink_close(&a->w);
	munmap(a->w.ring.hdr, a->w.ring.map_bytes);
	close(a->w.ring.fd);
	a->up = false;
	a->turn_at = NEVER;
	if (!rte_mempool_full(pool))
		check_fault(w, "%u mbufs are missing", rte_mempool_in_use_count(pool));
}

static void
turn_by(struct world *w, uint64_t at)
{
	if (at >= w->a.turn_at)
		return;
	w->a.turn_at = at;
	world_put(w, at, TURN, (uint32_t)w->a.instance, NULL);
}

void
appliance_takes(struct world *w, struct packet *p)
{
	struct appliance *a = &w->a;

	if (!a->up || a->rx.n >= w->plan.rx_desc) {
		world_fault(w, FRAMES_NO_RX);
		world_trace(w, "not received", a->up, a->rx.n, p->len);
		packet_drop(w, p);
		return;
	}
	queue_put(&a->rx, p);
	turn_by(w, RTE_MAX(w->now, a->busy_until));
}

/* The rule broken: the writer does not wait for its readers. */
static void
ignore_cursors(struct tokd_ring *r)
{
	for (uint32_t i = 0; i < TOKD_READERS_MAX; i++) {
		if (r->reader[i].state == TOKD_READER_ACTIVE)
			atomic_store(r->reader[i].cursor, r->head);
	}
}

void
appliance_turn(struct world *w)
{
	struct appliance *a = &w->a;
	const uint32_t n = a->rx.n;
	uint64_t next;

	if (!a->up || a->turn_at != w->now)
		return; /* another turn was due before */
	a->turn_at = NEVER;
	if (w->now < a->stalled_until) {
		turn_by(w, a->stalled_until);
		return;
	}
	a->cpu_now = w->now;
	if (w->plan.broken == NO_CURSOR)
		ignore_cursors(&a->w.ring);
	tokd_worker_turn(&a->w);
	walk(w);
	a->busy_until = a->cpu_now;
	if (n > 0)
		world_trace(w, "turn", n, a->cpu_now - w->now, a->w.ring.head);
	next = a->busy_until;
	if (a->rx.n == 0 && !tokd_drr_waits(&a->w.drr))
		next += IDLE_TURN;
	else
		next += 1;
	turn_by(w, next);
}

/* The control thread: readers join, leave, are dropped; the sink looks for its agent. */
void
appliance_control(struct world *w)
{
	if (w->a.up && w->now >= w->a.stalled_until) {
		tokd_attach_poll(&w->a.attach);
		sink_control(&w->a);
	}
	world_put(w, w->now + CONTROL_EVERY, CONTROL, 0, NULL);
}
