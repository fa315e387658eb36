/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Set-up of shm and cuda: maps the agent's memory. For cuda that is GPU memory by its dma-buf, or
 * host memory that the GPU reads: the agent chooses, by the descriptor in the welcome.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "handshake/hello.h"
#include "shm.h"
#include "transport_inside.h"

static_assert(sizeof(struct tokg_back) % 8 == 0, "read in words");

static const struct tokg_transport_ops gpu_ops;

static bool
map(struct tokg_shm *s, int fd, uint64_t bytes, struct tokg_error *err)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (at == MAP_FAILED)
		return tokg_wrong(err, "mapping the agent's region of %" PRIu64 " bytes: %s%s",
			bytes, strerror(errno),
			s->gpu ? ": mapping GPU memory needs the driver of CUDA 13.3 or newer; "
				 "else use verbs"
			       : "");
	s->region = at;
	s->mapped = bytes;
	return true;
}

/*
 * Populates all of it: touching a page that cannot be allocated later would kill the worker.
 */
static bool
populate(struct tokg_shm *s, struct tokg_error *err)
{
	if (madvise(s->region, s->mapped, MADV_POPULATE_WRITE) == 0)
		return true;
	return tokg_wrong(err, "cannot populate %" PRIu64 " bytes of the agent's region: %s: %s",
		s->mapped, strerror(errno),
		errno == EINVAL ? "needs Linux 5.14 or newer (MADV_POPULATE_WRITE), or use verbs"
				: "free memory, or give tokd-gpu fewer --slots");
}

static bool
map_region(struct tokg_shm *s, int fd, struct tokg_error *err)
{
	const struct tokg_geometry *g = &s->t.geometry;
	enum tokg_memory memory;
	struct stat st;
	uint64_t bytes, page, whole;

	memory = tokg_region_fd_proved(fd, s->cuda, g, &bytes, err);
	if (memory == TOKG_MEMORY_WRONG)
		return false;
	if (fstat(fd, &st) != 0)
		return tokg_wrong(err, "the agent's region: %s", strerror(errno));
	s->dev = st.st_dev;
	s->ino = st.st_ino;
	s->gpu = memory == TOKG_MEMORY_GPU;
	if (s->gpu)
		s->t.ops = &gpu_ops;
	page = st.st_blksize >= TOKG_PAGE ? (uint64_t)st.st_blksize : TOKG_PAGE; /* huge pages */
	whole = tokg_align(g->region_bytes, page);
	return map(s, fd, whole <= bytes ? whole : g->region_bytes, err) &&
	       (s->gpu || populate(s, err));
}

static bool
copy_of_back(struct tokg_shm *s, struct tokg_error *err)
{
	const uint64_t bytes = s->t.geometry.back_stride;

	s->t.back = tokg_own_memory(bytes, s->node);
	if (s->t.back == NULL)
		return tokg_wrong(err,
			"cannot allocate %" PRIu64 " bytes for the GPU ring's back area", bytes);
	s->t.done = (uint64_t *)(s->t.back + 1);
	s->t.read_bytes = tokg_back_bytes(&s->t.geometry, true);
	return true;
}

static bool
admit(struct tokg_transport *t, const struct tokg_welcome *w, int region_fd, struct tokg_error *err)
{
	struct tokg_shm *s = (struct tokg_shm *)t;
	const struct tokg_geometry *g = &t->geometry;
	struct stat st;

	(void)w;
	if (s->region != NULL) { /* reconnecting: must be the same memory */
		if (fstat(region_fd, &st) != 0 || st.st_dev != s->dev || st.st_ino != s->ino)
			return tokg_wrong(err, "the agent has another region: it has restarted");
		return true;
	}
	if (!map_region(s, region_fd, err) || !copy_of_back(s, err))
		return false;
	s->hdr = (struct tokg_hdr *)(s->region + tokg_hdr_at(g, t->producer, 0));
	s->payload = s->region + tokg_payload_at(g, t->producer, 0);
	s->ask = (uint64_t *)(s->region + tokg_ask_at(g, t->producer, 0));
	s->back = (const uint64_t *)(s->region + tokg_back_at(g, t->producer));
	return true;
}

static int
reconnect(struct tokg_transport *t, uint64_t *tickets, struct tokg_error *err)
{
	struct tokg_shm *s = (struct tokg_shm *)t;
	const int rc = tokg_session_again(&s->session, t, err);

	for (uint32_t i = 0; rc > 0 && i < t->geometry.slots; i++)
		tickets[i] = __atomic_load_n(&s->hdr[i].ticket, __ATOMIC_ACQUIRE);
	return rc;
}

static void
describe(const struct tokg_transport *t, char path[256])
{
	const struct tokg_shm *s = (const struct tokg_shm *)t;

	snprintf(path, 256,
		"%s, producer %u of %u: %u slots of %u bytes, by stores into %s (%" PRIu64
		" bytes)",
		t->ops->name, t->producer, t->geometry.producers, t->geometry.slots,
		t->geometry.slot_bytes,
		s->gpu	  ? "GPU memory (dma-buf, write-combined)"
		: s->cuda ? "host memory that the GPU reads"
			  : "shared memory",
		s->mapped);
}

static void
close_shm(struct tokg_transport *t)
{
	struct tokg_shm *s = (struct tokg_shm *)t;

	tokg_session_end(&s->session, t);
	if (s->region != NULL)
		munmap(s->region, s->mapped);
	tokg_own_free(t->back, t->geometry.back_stride);
	free(s);
}

static const struct tokg_session_calls calls = {.admit = admit};

#define OPS(kind, with)                                                                            \
	{                                                                                          \
		.name = kind, .post = tokg_##with##_post, .ask = tokg_shm_ask,                     \
		.flush = tokg_##with##_flush, .poll = tokg_shm_poll,                               \
		.read_back = tokg_##with##_read_back, .reconnect = reconnect,                      \
		.describe = describe, .close = close_shm                                           \
	}
static const struct tokg_transport_ops shm_ops = OPS("shm", shm);
static const struct tokg_transport_ops cuda_ops = OPS("cuda", shm);
static const struct tokg_transport_ops gpu_ops = OPS("cuda", cuda);

struct tokg_transport *
tokg_shm_new(const struct tokg_target *target, const struct tokg_source *source,
	struct tokg_session **session, struct tokg_error *err)
{
	struct tokg_shm *s = calloc(1, sizeof(*s));

	if (s == NULL) {
		tokg_wrong(err, "cannot allocate the transport to the GPU ring");
		return NULL;
	}
	s->t.link = -1;
	s->node = source->node;
	s->cuda = target->kind == TOKG_CUDA;
	s->t.ops = s->cuda ? &cuda_ops : &shm_ops;
	*session = &s->session;
	if (!tokg_session_init(&s->session, &calls, target, source, err)) {
		close_shm(&s->t);
		return NULL;
	}
	return &s->t;
}
