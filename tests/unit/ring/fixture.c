/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_eal.h>

#include "fixture.h"
#include "control/token_ring_open.h"
#include "datapath/token_ring_write.h"

#define TURN_US 200
#define TURNS_MAX 25000

int
fixture_run(char **argv)
{
	char *eal[] = {argv[0], "--no-huge", "--no-pci", "--no-shconf", "-m", "64", "-l", "0",
		"--no-telemetry", "--log-level=lib.eal:error", "--log-level=tokd.*:emerg"};

	if (rte_eal_init(RTE_DIM(eal), eal) < 0) {
		printf("Bail out! EAL does not start without huge pages\n");
		return 1;
	}
	return tests_run();
}

int
setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	if (f == NULL)
		return -1;
	strcpy(f->folder, "/tmp/tokd-test-XXXXXX");
	if (mkdtemp(f->folder) == NULL)
		return -1;
	snprintf(f->path, sizeof(f->path), "%s/socket", f->folder);
	for (uint32_t w = 0; w < N_RINGS; w++) {
		f->ring[w] = &f->rings[w];
		if (tokd_ring_create(f->ring[w], w, w, -1, RING_BYTES, 0, 0xabcd, 42) != 0)
			return -1;
	}
	*state = f;
	return tokd_attach_open(
		&f->a, f->path, 0600, (gid_t)-1, f->ring, N_RINGS, 42, READER_TIMEOUT_MS);
}

int
teardown(void **state)
{
	struct fixture *f = *state;

	tokd_attach_close(&f->a);
	for (uint32_t w = 0; w < N_RINGS; w++)
		tokd_ring_free(f->ring[w]);
	rmdir(f->folder);
	free(f);
	return 0;
}

void
turn(struct fixture *f, bool workers)
{
	tokd_attach_poll(&f->a);
	for (uint32_t w = 0; workers && w < N_RINGS; w++)
		tokd_ring_readers(f->ring[w]);
}

bool
turn_until(struct fixture *f, bool workers, bool (*done)(struct fixture *f))
{
	for (int i = 0; i < TURNS_MAX; i++) {
		turn(f, workers);
		if (done(f))
			return true;
		usleep(TURN_US);
	}
	return false;
}

bool
nobody_attached(struct fixture *f)
{
	struct tokd_reader_info info[TOKD_SLOTS_MAX];
	struct tokd_attach_counts counts;

	return tokd_attach_list(&f->a, info, RTE_DIM(info), &counts) == 0;
}

void
publish(struct tokd_ring *r, uint32_t count)
{
	uint64_t pos = tokd_ring_reserve(r, tokd_rec_bytes(count));
	struct tokd_rec *rec = tokd_ring_at(r, pos);

	assert_int_not_equal(pos, TOKD_RING_FULL);
	memset(rec, 0, sizeof(*rec));
	rec->count = count;
	rec->stream_id = 7;
	for (uint32_t i = 0; i < count; i++)
		tokd_rec_ids(rec)[i] = i;
	tokd_ring_publish(r, pos, TOKD_REC_TOKENS);
}

int
connect_to(const struct fixture *f)
{
	return unix_connect(f->path, SOCK_SEQPACKET);
}

struct tokd_attach_req
good_request(void)
{
	return (struct tokd_attach_req){
		.magic = TOKD_ATTACH_MAGIC, .version = TOKD_RING_VERSION, .mode = TOKD_MODE_READER};
}

static bool
take_answer(struct reader *r)
{
	const ssize_t n = descriptors_receive(
		r->fd, &r->rep, sizeof(r->rep), r->fds, &r->n_fds, MSG_DONTWAIT);

	if (n < 0)
		return false;
	assert_int_equal(n, sizeof(r->rep));
	return true;
}

bool
ask(struct fixture *f, struct reader *r, const void *request, size_t bytes)
{
	if (send(r->fd, request, bytes, MSG_NOSIGNAL) != (ssize_t)bytes)
		return false;
	for (int i = 0; i < TURNS_MAX; i++) {
		turn(f, true);
		if (take_answer(r))
			return true;
		if (errno != EAGAIN)
			return false;
		usleep(TURN_US);
	}
	return false;
}

bool
try_attach(struct fixture *f, struct reader *r)
{
	const struct tokd_attach_req req = good_request();

	memset(r, 0, sizeof(*r));
	r->fd = connect_to(f);
	assert_true(r->fd >= 0);
	assert_true(ask(f, r, &req, sizeof(req)));
	if (r->rep.message[0] != '\0') {
		close(r->fd);
		return false;
	}
	assert_int_equal(r->rep.n_rings, N_RINGS);
	assert_int_equal(r->n_fds, 1 + N_RINGS);
	r->cursor = mmap(NULL, TOKD_CURSOR_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, r->fds[0], 0);
	assert_ptr_not_equal(r->cursor, MAP_FAILED);
	for (int w = 0; w < N_RINGS; w++) {
		void *p = mmap(NULL, TOKD_RING_HDR_BYTES + RING_BYTES, PROT_READ, MAP_SHARED,
			r->fds[1 + w], 0);

		assert_ptr_not_equal(p, MAP_FAILED);
		r->hdr[w] = p;
	}
	return true;
}

void
attach(struct fixture *f, struct reader *r)
{
	if (!try_attach(f, r))
		fail_msg("%s", r->rep.message);
}

void
detach(struct reader *r)
{
	close(r->fd);
	munmap(r->cursor, TOKD_CURSOR_BYTES);
	for (int w = 0; w < N_RINGS; w++)
		munmap((void *)(uintptr_t)r->hdr[w], TOKD_RING_HDR_BYTES + RING_BYTES);
	for (int i = 0; i < r->n_fds; i++)
		close(r->fds[i]);
}
