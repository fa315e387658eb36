/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A subscriber where there is no Python: what it gets, one after the other, each as its entry of
 * tokd/embeddings.h (128 bytes) and its rows, into a file or device.
 *
 *   subscriber SOCKET OUT       says: holding ROW_BYTES; ends when tokd-gpu does
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tokd/embeddings.h>

#include "../../../support/unix_socket.h"

#define LOOK_MS 5
#define N_FDS 3 /* cursor, ring, outputs */

struct subscriber {
	int socket, out;
	struct tokg_subscribe_rep rep;
	uint64_t *cursor;
	const struct tokg_emb_ring *ring;
	const struct tokg_embedding *entries;
	const uint8_t *outputs;
};

static int
failed(const char *what, const char *why)
{
	fprintf(stderr, "subscriber: %s: %s\n", what, why);
	return 1;
}

/* The reply and its descriptors. False: there is none, or it has no memory. */
static bool
ask(struct subscriber *h, int fds[DESCRIPTORS_MAX])
{
	const struct tokg_subscribe_req req = {
		.magic = TOKG_SUBSCRIBE_MAGIC, .version = TOKG_EMB_VERSION};
	int n_fds;

	return send(h->socket, &req, sizeof(req), 0) == sizeof(req) &&
	       descriptors_receive(h->socket, &h->rep, sizeof(h->rep), fds, &n_fds, 0) ==
		       sizeof(h->rep) &&
	       h->rep.outputs == TOKG_OUTPUTS_MEMFD && n_fds == N_FDS;
}

static void *
map(int fd, int protection)
{
	struct stat st;
	void *p = fstat(fd, &st) == 0
			  ? mmap(NULL, (size_t)st.st_size, protection, MAP_SHARED, fd, 0)
			  : MAP_FAILED;

	close(fd);
	return p == MAP_FAILED ? NULL : p;
}

static bool
attach(struct subscriber *h)
{
	int fds[DESCRIPTORS_MAX];

	if (!ask(h, fds))
		return false;
	h->cursor = map(fds[0], PROT_READ | PROT_WRITE);
	h->ring = map(fds[1], PROT_READ);
	h->outputs = map(fds[2], PROT_READ);
	if (h->cursor == NULL || h->ring == NULL || h->outputs == NULL)
		return false;
	h->entries = (const void *)((const uint8_t *)h->ring + TOKG_EMB_DATA);
	return true;
}

static bool
write_all(int fd, const void *data, size_t bytes)
{
	const uint8_t *p = data;

	while (bytes > 0) {
		const ssize_t n = write(fd, p, bytes);

		if (n < 0)
			return false;
		p += n;
		bytes -= (size_t)n;
	}
	return true;
}

/* What is there from `at` on. The position behind it, or UINT64_MAX: it could not be written. */
static uint64_t
hand_on(struct subscriber *h, uint64_t at)
{
	const uint64_t head = __atomic_load_n(&h->ring->head, __ATOMIC_ACQUIRE);

	for (; at < head; at++) {
		const struct tokg_embedding *e = &h->entries[at & (h->ring->entries - 1)];

		if (!write_all(h->out, e, sizeof(*e)) ||
			!write_all(h->out, h->outputs + e->offset,
				(size_t)e->tokens * h->rep.row_bytes))
			return UINT64_MAX;
		__atomic_store_n(h->cursor, at + 1, __ATOMIC_RELEASE);
	}
	return at;
}

int
main(int argc, char **argv)
{
	struct subscriber h = {.out = -1};
	struct pollfd end;
	uint64_t at;

	if (argc != 3)
		return failed("usage", "subscriber SOCKET OUT");
	h.socket = unix_connect(argv[1], SOCK_SEQPACKET);
	if (h.socket < 0 || !attach(&h))
		return failed(argv[1], h.rep.message[0] != '\0' ? h.rep.message : strerror(errno));
	h.out = open(argv[2], O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (h.out < 0)
		return failed(argv[2], strerror(errno));
	printf("holding %u\n", h.rep.row_bytes);
	fflush(stdout);
	end = (struct pollfd){.fd = h.socket, .events = POLLIN};
	for (at = h.rep.start; at != UINT64_MAX && poll(&end, 1, LOOK_MS) == 0;)
		at = hand_on(&h, at);
	if (at != UINT64_MAX)
		at = hand_on(&h, at);
	return at == UINT64_MAX ? failed(argv[2], strerror(errno)) : 0;
}
