/* SPDX-License-Identifier: BSD-3-Clause */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "unix_socket.h"
#include "server.h"

int
server_memfd(off_t bytes, int seals)
{
	int fd = memfd_create("tokd-test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, bytes) != 0 ||
		(seals != 0 && fcntl(fd, F_ADD_SEALS, seals) != 0))
		return -1;
	return fd;
}

int
server_setup(void **state)
{
	struct server *s = calloc(1, sizeof(*s));

	strcpy(s->folder, "/tmp/tokd-test-XXXXXX");
	if (mkdtemp(s->folder) == NULL)
		return -1;
	snprintf(s->path, sizeof(s->path), "%s/socket", s->folder);
	s->listener = unix_listen(s->path, SOCK_SEQPACKET, 1);
	if (s->listener < 0)
		return -1;
	s->reader = -1;
	s->accepts = s->answers = true;
	s->cursor_fd = server_memfd(TOKD_CURSOR_BYTES, F_SEAL_SHRINK);
	s->ring_fd = server_memfd(TOKD_RING_HDR_BYTES + SERVER_DATA, F_SEAL_SHRINK);
	s->cursor =
		mmap(NULL, TOKD_CURSOR_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, s->cursor_fd, 0);
	s->hdr = mmap(NULL, TOKD_RING_HDR_BYTES + SERVER_DATA, PROT_READ | PROT_WRITE, MAP_SHARED,
		s->ring_fd, 0);
	*s->hdr = (struct tokd_ring_hdr){.magic = TOKD_RING_MAGIC,
		.version = TOKD_RING_VERSION,
		.data_off = TOKD_RING_HDR_BYTES,
		.data_bytes = SERVER_DATA,
		.instance = 42,
		.tsc_hz = 1000000000};
	s->rep = (struct tokd_attach_rep){.magic = TOKD_ATTACH_MAGIC,
		.version = TOKD_RING_VERSION,
		.n_rings = 1,
		.instance = 42};
	s->rep_bytes = sizeof(s->rep);
	s->fds[0] = s->cursor_fd;
	s->fds[1] = s->ring_fd;
	s->n_fds = 2;
	*state = s;
	return 0;
}

int
server_teardown(void **state)
{
	struct server *s = *state;

	if (s->reader >= 0)
		close(s->reader);
	close(s->listener);
	munmap(s->cursor, TOKD_CURSOR_BYTES);
	munmap(s->hdr, TOKD_RING_HDR_BYTES + SERVER_DATA);
	close(s->cursor_fd);
	close(s->ring_fd);
	unlink(s->path);
	rmdir(s->folder);
	free(s);
	return 0;
}

static void
answer(struct server *s)
{
	char bytes[2 * sizeof(s->rep)] = {0};

	memcpy(bytes, &s->rep, sizeof(s->rep));
	(void)!descriptors_send(
		s->reader, bytes, s->rep_bytes, s->fds, (size_t)s->n_fds, MSG_NOSIGNAL);
}

static void *
take_one(void *arg)
{
	struct server *s = arg;
	struct tokd_attach_req req;

	if (!s->accepts)
		return NULL;
	s->reader = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC);
	if (s->in_a_hurry) {
		answer(s);
		close(s->reader);
		s->reader = -1;
		return NULL;
	}
	if (recv(s->reader, &req, sizeof(req), 0) == sizeof(req) && s->answers)
		answer(s);
	return NULL;
}

void
server_start(struct server *s)
{
	pthread_create(&s->thread, NULL, take_one, s);
}

void
server_join(struct server *s)
{
	pthread_join(s->thread, NULL);
}

struct tokd_rec *
server_publish(struct server *s, uint32_t count)
{
	struct tokd_rec *rec =
		(void *)((uint8_t *)s->hdr + TOKD_RING_HDR_BYTES + (s->head & (SERVER_DATA - 1)));

	*rec = (struct tokd_rec){
		.bytes = (64 + 4 * count + 63) / 64 * 64, .kind = TOKD_REC_TOKENS, .count = count};
	s->head += rec->bytes;
	__atomic_store_n(&s->hdr->head, s->head, __ATOMIC_RELEASE);
	return rec;
}
