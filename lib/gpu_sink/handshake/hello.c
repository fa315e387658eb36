/* SPDX-License-Identifier: BSD-3-Clause */
#include "hello.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "ring/geometry.h"
#include "inside.h"

bool
tokg_hello_fill(struct tokg_hello *h, const struct tokg_target *target,
	const struct tokg_source *source, struct tokg_error *err)
{
	if (source->n_vocabs == 0 || source->n_vocabs > TOKG_VOCABS_MAX)
		return tokg_wrong(err, "%u vocabularies for the GPU: must be 1 to %u",
			source->n_vocabs, TOKG_VOCABS_MAX);
	memset(h, 0, sizeof(*h));
	h->magic = TOKG_HELLO_MAGIC;
	h->version = TOKG_VERSION;
	h->transport = target->kind;
	h->worker = source->worker;
	h->instance = source->instance;
	h->shed_below = source->shed_below;
	h->resume = TOKG_NO_PRODUCER;
	h->n_vocabs = source->n_vocabs;
	memcpy(h->vocab, source->vocab, source->n_vocabs * sizeof(h->vocab[0]));
	memcpy(h->n_ids, source->n_ids, source->n_vocabs * sizeof(h->n_ids[0]));
	return true;
}

bool
tokg_hello_proved(const struct tokg_hello *h, bool tcp, struct tokg_error *err)
{
	if (h->magic != TOKG_HELLO_MAGIC)
		return tokg_wrong(err, "hello with magic 0x%x: must be 0x%x: is it a dpdk-tokd?",
			h->magic, TOKG_HELLO_MAGIC);
	if (h->version != TOKG_VERSION)
		return tokg_wrong(err,
			"version %u: this agent has version %u: install the same on both",
			h->version, TOKG_VERSION);
	if (tcp ? h->transport != TOKG_VERBS
		: h->transport != TOKG_SHM && h->transport != TOKG_CUDA)
		return tokg_wrong(err, "transport %u: not supported on this socket", h->transport);
	if (h->n_vocabs == 0 || h->n_vocabs > TOKG_VOCABS_MAX)
		return tokg_wrong(
			err, "%u vocabularies: must be 1 to %u", h->n_vocabs, TOKG_VOCABS_MAX);
	if (h->resume != TOKG_NO_PRODUCER &&
		(h->resume >= TOKG_PRODUCERS_MAX || h->epoch == 0 || h->ring_epoch == 0))
		return tokg_wrong(
			err, "resume of producer %u, epoch %u: never granted", h->resume, h->epoch);
	return true;
}

bool
tokg_welcome_proved(
	const struct tokg_hello *h, const struct tokg_welcome *w, struct tokg_error *err)
{
	char reason[sizeof(w->message) + 1];

	if (w->magic != TOKG_WELCOME_MAGIC)
		return tokg_wrong(err, "answer with magic 0x%x, must be 0x%x: is it a tokd-gpu?",
			w->magic, TOKG_WELCOME_MAGIC);
	if (w->producer == TOKG_NO_PRODUCER) {
		tokg_printable(reason, sizeof(reason), w->message, sizeof(w->message));
		return tokg_wrong(err, "refused: %s", reason);
	}
	if (w->version != TOKG_VERSION)
		return tokg_wrong(err,
			"the agent has version %u, this program %u: install the same on both",
			w->version, TOKG_VERSION);
	if (!tokg_geometry_proved(&w->geometry, w->geometry.region_bytes, err))
		return false;
	if (w->producer >= w->geometry.producers)
		return tokg_wrong(err, "the agent granted producer %u of %u", w->producer,
			w->geometry.producers);
	if (w->epoch == 0 || w->ring_epoch == 0)
		return tokg_wrong(err, "the agent granted epoch %u of ring epoch %u: must not be 0",
			w->epoch, w->ring_epoch);
	if (w->order != TOKG_ORDER_FAST && w->order != TOKG_ORDER_STRICT)
		return tokg_wrong(err, "the agent asks for order %u: must be at most %u", w->order,
			TOKG_ORDER_STRICT);
	if (h->resume != TOKG_NO_PRODUCER && (w->producer != h->resume || w->epoch != h->epoch ||
						     w->ring_epoch != h->ring_epoch))
		return tokg_wrong(err,
			"the agent granted producer %u, epoch %u/%u, not %u, %u/%u: it has "
			"restarted",
			w->producer, w->ring_epoch, w->epoch, h->resume, h->ring_epoch, h->epoch);
	return true;
}

static bool
is_dmabuf(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && fs.f_type == DMA_BUF_MAGIC;
}

static bool
memfd_proved(int fd, bool gpu, uint64_t *bytes, struct tokg_error *err)
{
	const int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;

	if (seals < 0)
		return tokg_wrong(err, "the agent's region is not a memfd%s: %s",
			gpu ? " or dma-buf" : "", strerror(errno));
	if ((seals & F_SEAL_SHRINK) == 0)
		return tokg_wrong(err, "the agent's region has no F_SEAL_SHRINK: it could shrink");
	if (fstat(fd, &st) != 0)
		return tokg_wrong(err, "the agent's region: %s", strerror(errno));
	*bytes = (uint64_t)st.st_size;
	return true;
}

enum tokg_memory
tokg_region_fd_proved(
	int fd, bool gpu, const struct tokg_geometry *g, uint64_t *bytes, struct tokg_error *err)
{
	const bool dmabuf = gpu && is_dmabuf(fd);
	off_t end;

	if (dmabuf) {
		end = lseek(fd, 0, SEEK_END);
		*bytes = end > 0 ? (uint64_t)end : 0;
	} else if (!memfd_proved(fd, gpu, bytes, err)) {
		return TOKG_MEMORY_WRONG;
	}
	if (!tokg_geometry_proved(g, *bytes, err))
		return TOKG_MEMORY_WRONG;
	return dmabuf ? TOKG_MEMORY_GPU : TOKG_MEMORY_HOST;
}
