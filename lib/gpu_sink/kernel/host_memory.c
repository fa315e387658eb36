/* SPDX-License-Identifier: BSD-3-Clause */
#include "host_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/memfd.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ring/gpu_ring.h"
#include "ring/numa_place.h"

#define PAGE_2M (2ull << 20)
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

void
tokg_memory_free(struct tokg_memory *m)
{
	if (m->at != NULL)
		munmap(m->at, m->bytes);
	if (m->fd >= 0)
		close(m->fd);
	*m = tokg_memory_none();
}

/* On huge pages, all or none. */
static bool
map(struct tokg_memory *m, uint64_t bytes, const char *name, bool huge)
{
	const unsigned int flags =
		MFD_CLOEXEC | MFD_ALLOW_SEALING | (huge ? MFD_HUGETLB | MFD_HUGE_2MB : 0u);

	*m = tokg_memory_none();
	m->huge = huge;
	m->bytes = tokg_align(bytes, huge ? PAGE_2M : TOKG_PAGE);
	if (name != NULL) {
		m->fd = memfd_create(name, flags);
		if (m->fd < 0 || ftruncate(m->fd, (off_t)m->bytes) < 0) {
			tokg_memory_free(m);
			return false;
		}
	}
	m->at = mmap(NULL, m->bytes, PROT_READ | PROT_WRITE,
		m->fd >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, m->fd, 0);
	if (m->at != MAP_FAILED)
		return true;
	m->at = NULL;
	tokg_memory_free(m);
	return false;
}

/*
 * A container may map huge pages beyond its limit: fail here, rather than by SIGBUS at the first
 * store. Not possible on kernels without MADV_POPULATE_WRITE (before 5.14).
 */
static bool
map_huge(struct tokg_memory *m, uint64_t bytes, const char *name, int node)
{
	if (!map(m, bytes, name, true))
		return false;
	tokg_numa_place(m->at, m->bytes, node);
	if (madvise(m->at, m->bytes, MADV_POPULATE_WRITE) == 0 || errno == EINVAL)
		return true;
	tokg_memory_free(m);
	return false;
}

bool
tokg_memory_get(struct tokg_memory *m, uint64_t bytes, const char *name, int seals, int node,
	struct tokg_error *err)
{
	if (!(name != NULL && map_huge(m, bytes, name, node)) && !map(m, bytes, name, false)) {
		snprintf(err->text, sizeof(err->text),
			"device: %" PRIu64 " bytes of memory (%s): %s", bytes,
			name != NULL ? name : "private", strerror(errno));
		return false;
	}
	if (m->fd >= 0 && fcntl(m->fd, F_ADD_SEALS, seals | F_SEAL_SHRINK | F_SEAL_GROW) < 0) {
		snprintf(err->text, sizeof(err->text), "device: cannot seal memory %s: %s", name,
			strerror(errno));
		return false;
	}
	tokg_numa_place(m->at, m->bytes, node);
	return true;
}

bool
tokg_memory_of_others(
	struct tokg_memory *m, uint64_t bytes, const char *name, int node, struct tokg_error *err)
{
	const uint64_t all = tokg_align(bytes, TOKG_PAGE);
	const int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	void *at = MAP_FAILED;

	if (fd >= 0 && ftruncate(fd, (off_t)all) == 0 &&
		fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
		at = mmap(NULL, all, PROT_READ, MAP_SHARED, fd, 0);
	/* Only when all else is done: a mapping that fails at its address may remove what is there.
	 */
	if (at != MAP_FAILED && m->at != NULL) {
		void *const moved = mremap(at, all, all, MREMAP_MAYMOVE | MREMAP_FIXED, m->at);

		if (moved == MAP_FAILED)
			munmap(at, all);
		at = moved;
	}
	if (at == MAP_FAILED) {
		snprintf(err->text, sizeof(err->text),
			"device: %" PRIu64 " bytes of memory (%s): %s", bytes, name,
			strerror(errno));
		if (fd >= 0)
			close(fd);
		return false;
	}
	if (m->fd >= 0)
		close(m->fd);
	*m = (struct tokg_memory){.at = at, .bytes = all, .fd = fd};
	tokg_numa_place(at, all, node);
	return true;
}
