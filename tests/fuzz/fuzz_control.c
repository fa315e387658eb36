/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control socket: clients connect, send anything, write anything into their cursors, and leave,
 * while rings are written. However the others lie, a reader that keeps to the rules loses nothing;
 * and when all have left, nothing of them remains.
 */
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "control/token_ring_open.h"
#include "readers/attach.h"
#include "eal.h"
#include "unix_socket.h"
#include "fuzz.h"
#include "datapath/token_ring_write.h"

#define STEPS_MAX 16
#define RINGS 2
#define RING_BYTES (64u << 10)
#define CLIENTS 4
#define PATIENT_MS 1000000
#define TAG_AT (TOKD_CURSOR_BYTES / 8 - 1) /* of the cursor page: whose it is; nobody reads it */
#define END_TURNS 16			   /* each takes three of those that wait to be accepted */

struct client {
	int fd;		  /* -1: not connected */
	uint64_t *cursor; /* NULL: not attached as a reader */
	bool honest;
	uint64_t at[RINGS]; /* an honest one's cursors */
	uint64_t tag;
};

static char folder[] = "/tmp/tokd-fuzz-XXXXXX"; /* of the socket */
static struct tokd_attach attach;
static struct tokd_ring rings[RINGS], *ring[RINGS];
static struct client clients[CLIENTS];
static uint64_t now_ms, tags;
static int first_free_fd; /* at the start of an input */

/* The control plane's clock is the input's. */
int __wrap_clock_gettime(clockid_t clock, struct timespec *ts);

int
__wrap_clock_gettime(clockid_t clock, struct timespec *ts)
{
	ts->tv_sec = (time_t)(now_ms / 1000);
	ts->tv_nsec = (long)(now_ms % 1000) * 1000000;
	return 0;
}

static int
free_fd(void)
{
	const int fd = dup(STDIN_FILENO);

	close(fd);
	return fd;
}

static void
clean_up(void)
{
	tokd_attach_close(&attach);
	rmdir(folder);
}

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	char path[64];

	eal_start();
	for (uint32_t i = 0; i < RINGS; i++) {
		ring[i] = &rings[i];
		MUST(tokd_ring_create(ring[i], i, i, -1, RING_BYTES, 0, 7, 42) == 0);
	}
	MUST(mkdtemp(folder) != NULL);
	snprintf(path, sizeof(path), "%s/socket", folder);
	MUST(tokd_attach_open(&attach, path, 0600, (gid_t)-1, ring, RINGS, 42, PATIENT_MS) == 0);
	for (uint32_t i = 0; i < CLIENTS; i++)
		clients[i].fd = -1;
	atexit(clean_up);
	return 0;
}

/* ---- the clients' side ---- */

static void
hello(struct client *c)
{
	if (c->fd >= 0)
		return;
	c->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (connect(c->fd, (struct sockaddr *)&attach.socket.addr, sizeof(attach.socket.addr)) == 0)
		return;
	close(c->fd); /* the backlog is full */
	c->fd = -1;
}

static void
leave(struct client *c)
{
	if (c->fd >= 0)
		close(c->fd);
	if (c->cursor != NULL)
		munmap(c->cursor, TOKD_CURSOR_BYTES);
	*c = (struct client){.fd = -1};
}

static void
say(const struct client *c, const void *bytes, size_t n)
{
	if (c->fd >= 0)
		(void)!send(c->fd, bytes, n, MSG_NOSIGNAL);
}

static void
take_cursor(struct client *c, const struct tokd_attach_rep *rep, int fd)
{
	c->cursor = mmap(NULL, TOKD_CURSOR_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	MUST(c->cursor != MAP_FAILED);
	c->cursor[TAG_AT] = c->tag = ++tags;
	c->honest = true;
	for (uint32_t w = 0; w < RINGS; w++) {
		c->at[w] = rep->start[w];
		MUST(c->cursor[TOKD_CURSOR_STRIDE / 8 * w] == rep->start[w]);
		MUST(rep->start[w] <= ring[w]->head);
	}
}

/* An answer, a refusal or a farewell: always whole, with the descriptors it says. */
static void
hear(struct client *c)
{
	struct tokd_attach_rep rep;
	int fds[DESCRIPTORS_MAX], n_fds;
	ssize_t got;

	if (c->fd < 0)
		return;
	got = descriptors_receive(c->fd, &rep, sizeof(rep), fds, &n_fds, 0);
	MUST(got <= 0 || got == sizeof(rep));
	if (got <= 0)
		return;
	MUST(rep.magic == TOKD_ATTACH_MAGIC && rep.version == TOKD_RING_VERSION);
	MUST(memchr(rep.message, '\0', sizeof(rep.message)) != NULL);
	MUST((rep.n_rings == 0) == (rep.message[0] != '\0'));
	MUST(n_fds == 0 ? rep.n_rings == 0 : n_fds == RINGS || n_fds == 1 + RINGS);
	if (n_fds == 1 + RINGS)
		take_cursor(c, &rep, fds[0]);
	for (int i = 0; i < n_fds; i++)
		close(fds[i]);
}

static void
request(struct input *in, const struct client *c, uint8_t kind)
{
	struct tokd_attach_req req = {.magic = TOKD_ATTACH_MAGIC,
		.version = TOKD_RING_VERSION,
		.mode = kind & 1 ? TOKD_MODE_TAP : TOKD_MODE_READER};
	const uint8_t *bytes;
	uint32_t n;

	if (kind & 4) { /* any bytes */
		n = input_bytes(in, (uint32_t)input_take(in, 1), &bytes);
		say(c, bytes, n);
		return;
	}
	if (kind & 2) { /* almost right */
		n = (uint32_t)input_take(in, 1);
		((uint8_t *)&req)[n % sizeof(req)] ^= (uint8_t)input_take(in, 1);
	}
	say(c, &req, sizeof(req));
}

/* A cursor of the input's choice; finished with everything if `kind` says so, and honest then. */
static void
move_cursor(struct input *in, struct client *c, uint8_t kind)
{
	const uint32_t w = kind & 1;
	uint64_t *word;

	if (c->cursor == NULL)
		return;
	word = &c->cursor[TOKD_CURSOR_STRIDE / 8 * w];
	switch (kind >> 1 & 3) {
	case 0:
		*word = c->at[w] = ring[w]->head;
		return;
	case 1:
		*word = ring[w]->head - 16 * input_take(in, 1);
		break;
	case 2:
		*word = ring[w]->tail + 16 * input_take(in, 1);
		break;
	default:
		*word = input_take(in, 8);
		break;
	}
	c->honest = false;
}

/* ---- the appliance's ---- */

static void
workers(void)
{
	for (uint32_t w = 0; w < RINGS; w++)
		tokd_ring_readers(ring[w]);
}

static void
publish(struct input *in)
{
	const uint8_t what = (uint8_t)input_take(in, 1);
	struct tokd_ring *r = ring[what & 1];
	const uint32_t count = 64u * (what >> 1);
	const uint64_t pos = tokd_ring_reserve(r, tokd_rec_bytes(count));

	if (pos == TOKD_RING_FULL)
		return;
	*tokd_ring_at(r, pos) = (struct tokd_rec){.count = count, .stream_id = 7};
	tokd_ring_publish(r, pos, TOKD_REC_TOKENS);
}

static uint64_t
tag_of(const struct tokd_conn *conn)
{
	return ((const uint64_t *)(const void *)conn->cursor)[TAG_AT];
}

/* Nothing at or above the cursor of an honest reader was given to the writer again. */
static void
check_readers(void)
{
	for (uint32_t i = 0; i < RTE_DIM(attach.conn); i++) {
		const struct tokd_conn *conn = &attach.conn[i];

		for (uint32_t k = 0; conn->state == TOKD_CONN_READING && k < CLIENTS; k++) {
			const struct client *c = &clients[k];

			if (!c->honest || c->tag != tag_of(conn))
				continue;
			for (uint32_t w = 0; w < RINGS; w++)
				MUST(ring[w]->tail <= c->at[w]);
		}
	}
}

static void
check_rings(void)
{
	for (uint32_t w = 0; w < RINGS; w++) {
		const struct tokd_ring *r = ring[w];
		uint64_t pos = r->tail;

		MUST(r->tail <= r->head && r->head - r->tail <= r->mask + 1);
		MUST(r->hdr->head == r->head && r->hdr->tail == r->tail);
		while (pos < r->head)
			pos += tokd_ring_at(r, pos)->bytes;
		MUST(pos == r->head);
		for (uint32_t i = 0; i < TOKD_READERS_MAX; i++)
			MUST(r->reader[i].state != TOKD_READER_ACTIVE ||
				(r->tail <= r->reader[i].seen && r->reader[i].seen <= r->head));
	}
}

static void
look(void)
{
	struct tokd_reader_info info[TOKD_SLOTS_MAX];
	struct tokd_attach_counts counts;
	uint64_t held[RINGS];
	const uint32_t n = tokd_attach_list(&attach, info, TOKD_SLOTS_MAX, &counts);

	MUST(n <= TOKD_SLOTS_MAX); /* some have left, and nobody has looked since */
	for (uint32_t i = 0; i < n; i++)
		MUST(info[i].lag_bytes <= RING_BYTES && info[i].lag_ring < RINGS);
	tokd_attach_held(&attach, held);
	MUST(held[0] <= RING_BYTES && held[1] <= RING_BYTES);
	MUST(tokd_attach_wait_ms(&attach) > 0);
}

static void
settle(void)
{
	tokd_attach_poll(&attach);
	tokd_attach_poll(&attach); /* what was accepted has said something */
	workers();
	tokd_attach_poll(&attach);
}

static void
step(struct input *in)
{
	const uint8_t what = (uint8_t)input_take(in, 1), kind = what >> 4;
	struct client *c = &clients[kind % CLIENTS];

	switch (what & 15) {
	case 0:
		hello(c);
		break;
	case 1:
	case 2:
		request(in, c, (uint8_t)input_take(in, 1));
		break;
	case 3:
		leave(c);
		break;
	case 4:
		hear(c);
		break;
	case 5:
	case 6:
		move_cursor(in, c, (uint8_t)input_take(in, 1));
		break;
	case 7:
		tokd_attach_poll(&attach);
		break;
	case 8:
		workers();
		break;
	case 9: /* from 1 ms to half a minute */
		now_ms += (uint64_t)1 << kind;
		tokd_attach_poll(&attach);
		break;
	case 10: /* for once, whoever stands in the way is dropped at once */
		attach.reader_timeout_ms = 0;
		tokd_attach_poll(&attach);
		attach.reader_timeout_ms = PATIENT_MS;
		break;
	case 11:
		look();
		break;
	case 12: /* the whole of it */
		hello(c);
		request(in, c, kind >> 2 & 1);
		settle();
		hear(c);
		break;
	default:
		publish(in);
		check_readers();
		break;
	}
}

static bool
nobody_is_left(void)
{
	/* One that waits to be accepted is in no place yet. */
	struct pollfd p = {.fd = attach.socket.fd, .events = POLLIN};
	uint32_t i = 0;

	while (i < RTE_DIM(attach.conn) && attach.conn[i].state == TOKD_CONN_FREE &&
		attach.conn[i].cursor == NULL)
		i++;
	return i == RTE_DIM(attach.conn) && poll(&p, 1, 0) == 0;
}

static void
end(void)
{
	for (uint32_t i = 0; i < CLIENTS; i++)
		leave(&clients[i]);
	for (uint32_t i = 0; i < END_TURNS && !nobody_is_left(); i++)
		settle();
	MUST(nobody_is_left());
	for (uint32_t i = 0; i < TOKD_SLOTS_MAX; i++)
		MUST(attach.slot[i] == NULL);
	check_rings();
	MUST(free_fd() == first_free_fd);
	for (uint32_t w = 0; w < RINGS; w++) {
		struct tokd_ring *r = ring[w];

		for (uint32_t i = 0; i < TOKD_READERS_MAX; i++)
			MUST(r->reader[i].state == TOKD_READER_FREE && r->reader[i].since == 0);
		MUST(r->n_active == 0);
		r->head = r->tail = r->hdr->head = r->hdr->tail = r->wanted = 0;
		r->limit = r->mask + 1;
		r->full = false;
		memset(r->reader, 0, sizeof(r->reader));
	}
	attach.counts = (struct tokd_attach_counts){0};
	now_ms = 1;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, data + size};

	first_free_fd = free_fd();
	for (uint32_t i = 0; i < STEPS_MAX && input_more(&in); i++)
		step(&in);
	check_rings();
	end();
	return 0;
}
