/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Set-up of a token ring: a memfd is mapped, bound to a node, populated, registered as a memzone
 * and sealed. EAL's own memory would not do: other processes must not map its files.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <linux/memfd.h>

#include <hugetlbfs.h>
#include <numa.h>
#include <numaif.h>

#include <rte_common.h>
#include <rte_cycles.h>
#include <rte_errno.h>
#include <rte_malloc.h>
#include <rte_memory.h>
#include <rte_memzone.h>

#include "log.h"
#include "token_ring_open.h"

#define RING_BYTES_MIN (64u << 10)
#define HUGEPAGE_SIZES_MAX 8
#define HEAP "tokd_rings"
#define FRONT_MAX ((uint64_t)2 << 20) /* EAL writes all of it, so not a whole page of 1 GB */

static uint64_t
read_pages(long page_bytes, const char *what)
{
	unsigned long long n = 0;
	char path[96];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/kernel/mm/hugepages/hugepages-%ldkB/%s_hugepages",
		page_bytes / 1024, what);
	f = fopen(path, "re");
	if (f == NULL)
		return 0;
	if (fscanf(f, "%llu", &n) != 1)
		n = 0;
	fclose(f);
	return n;
}

uint64_t
tokd_ring_hugepage(uint64_t data_bytes)
{
	const uint64_t bytes = TOKD_RING_HDR_BYTES + data_bytes;
	uint64_t best = 0, best_total = UINT64_MAX;
	long size[HUGEPAGE_SIZES_MAX];
	int n = gethugepagesizes(size, HUGEPAGE_SIZES_MAX);

	for (int i = 0; i < n; i++) {
		const uint64_t total = RTE_ALIGN_CEIL(bytes, (uint64_t)size[i]);
		const uint64_t free_pages = read_pages(size[i], "free");
		/* The kernel counts reserved pages as free. */
		const uint64_t reserved = read_pages(size[i], "resv");

		if (free_pages < reserved + total / size[i])
			continue;
		/* The least waste; then the larger page, for fewer TLB entries. */
		if (total < best_total || (total == best_total && (uint64_t)size[i] > best)) {
			best = size[i];
			best_total = total;
		}
	}
	return best;
}

/* MemAvailable in bytes; UINT64_MAX: unknown. */
static uint64_t
memory_available(void)
{
	unsigned long long kb = 0;
	char line[128];
	bool found = false;
	FILE *f = fopen("/proc/meminfo", "re");

	if (f == NULL)
		return UINT64_MAX;
	while (!found && fgets(line, sizeof(line), f) != NULL)
		found = sscanf(line, "MemAvailable: %llu kB", &kb) == 1;
	fclose(f);
	return found ? (uint64_t)kb * 1024 : UINT64_MAX;
}

/* The node of the first page, or -1. */
static int
node_of(void *va)
{
	int node = -1;

	if (get_mempolicy(&node, NULL, 0, va, MPOL_F_NODE | MPOL_F_ADDR) != 0)
		return -1;
	return node;
}

/*
 * Maps `front` bytes of ordinary memory, followed by `bytes` of reserved addresses at a multiple of
 * `align`. Returns the latter, or MAP_FAILED with errno set.
 */
static void *
reserve_addresses(size_t front, size_t bytes, size_t align)
{
	const size_t all = front + align + bytes;
	char *const start =
		mmap(NULL, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	char *va;

	if (start == MAP_FAILED)
		return MAP_FAILED;
	va = RTE_PTR_ALIGN_CEIL(start + front, align);
	if (va - front > start)
		munmap(start, (size_t)(va - front - start));
	munmap(va + bytes, (size_t)(start + all - (va + bytes)));
	if (mprotect(va - front, front, PROT_READ | PROT_WRITE) == 0)
		return va;
	munmap(va - front, front + bytes);
	return MAP_FAILED;
}

/*
 * Map `bytes` of a new memfd, populated, after `front` bytes of other memory. Returns the mapping
 * and *fd, or NULL with errno set. MADV_POPULATE_WRITE returns an error where a store would raise
 * SIGBUS.
 */
static void *
map_pages(uint32_t worker, size_t front, uint64_t bytes, uint64_t hugepage_bytes, int node, int *fd)
{
	unsigned int flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	char name[32];
	void *va;
	int err;

	if (hugepage_bytes != 0)
		flags |= MFD_HUGETLB | (unsigned int)__builtin_ctzll(hugepage_bytes)
					       << MFD_HUGE_SHIFT;
	snprintf(name, sizeof(name), "tokd-ring-%" PRIu32, worker);
	/* Populating more ordinary pages than there are would start the OOM killer. */
	if (hugepage_bytes == 0 && bytes > memory_available()) {
		*fd = -1;
		errno = ENOMEM;
		return NULL;
	}
	*fd = memfd_create(name, flags);
	if (*fd < 0)
		return NULL;
	if (ftruncate(*fd, (off_t)bytes) != 0)
		goto fail;
	/* Not MAP_POPULATE: the node must be set before pages exist. */
	va = reserve_addresses(front, bytes, front > hugepage_bytes ? front : hugepage_bytes);
	if (va == MAP_FAILED)
		goto fail;
	if (mmap(va, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, *fd, 0) == MAP_FAILED)
		goto unmap;
	if (node >= 0 && numa_available() == 0)
		numa_tonode_memory(va, bytes, node);
	if (madvise(va, bytes, MADV_POPULATE_WRITE) == 0)
		return va;
unmap:
	err = errno;
	munmap(RTE_PTR_SUB(va, front), front + bytes);
	errno = err;
fail:
	err = errno;
	close(*fd);
	*fd = -1;
	errno = err;
	return NULL;
}

/*
 * Forbids new writable mappings, by this descriptor or through /proc, and resizing, which could
 * raise SIGBUS in the worker or a reader. The existing mapping stays writable.
 */
static int
seal(const struct tokd_ring *r)
{
	const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL;

	if (fcntl(r->fd, F_ADD_SEALS, seals) == 0)
		return 0;
	TOKD_LOG(ring, ERR,
		"cannot seal the token ring's memfd against writing (F_ADD_SEALS): %s; needs Linux "
		"5.14 or newer\n",
		strerror(errno));
	return -errno;
}

static void
write_header(struct tokd_ring *r, uint32_t worker, uint32_t lcore, uint64_t data_bytes,
	uint32_t vocab, uint64_t instance)
{
	*r->hdr = (struct tokd_ring_hdr){
		.magic = TOKD_RING_MAGIC,
		.version = TOKD_RING_VERSION,
		.worker = worker,
		.data_off = TOKD_RING_HDR_BYTES,
		.data_bytes = data_bytes,
		.instance = instance,
		.tsc_hz = rte_get_tsc_hz(),
		.vocab = vocab,
		.lcore = lcore,
	};
}

/*
 * The ring as memzone tokd_ring_N, from a heap over its memory: EAL lists it, and packets may point
 * into it. EAL writes a header before each part of a heap: it goes to the front, as readers map the
 * memfd. EAL zeroes all of the memory.
 */
static bool
name_memzone(struct tokd_ring *r, uint32_t worker)
{
	void *const start = RTE_PTR_SUB(r->hdr, r->front_bytes);
	const size_t bytes = r->front_bytes + r->map_bytes;
	const struct rte_memzone *mz;
	char name[RTE_MEMZONE_NAMESIZE];

	snprintf(name, sizeof(name), "tokd_ring_%" PRIu32, worker);
	if (rte_memzone_lookup(name) != NULL) {
		rte_errno = EEXIST; /* a freed ring's */
		return false;
	}
	if (rte_malloc_heap_get_socket(HEAP) < 0 && rte_malloc_heap_create(HEAP) != 0)
		return false;
	if (rte_malloc_heap_memory_add(HEAP, start, bytes, NULL, 0, r->front_bytes) != 0)
		return false;
	mz = rte_memzone_reserve_aligned(name, r->map_bytes, rte_malloc_heap_get_socket(HEAP), 0,
		(unsigned int)r->front_bytes);
	if (mz != NULL && mz->addr == r->hdr)
		return true;
	rte_memzone_free(mz);
	rte_malloc_heap_memory_remove(HEAP, start, bytes);
	return false;
}

/* If there is no memzone, register the memory only; if that fails, replies carry copies of ids. */
static void
register_memory(struct tokd_ring *r, uint32_t worker)
{
	r->registered = r->memzone = name_memzone(r, worker);
	if (r->memzone)
		return;
	TOKD_LOG(ring, NOTICE,
		"worker %u: cannot make a memzone of the token ring (%zu bytes): %s\n", worker,
		r->map_bytes, rte_strerror(rte_errno));
	r->registered = rte_extmem_register(r->hdr, r->map_bytes, NULL, 0, r->front_bytes) == 0;
	if (!r->registered)
		TOKD_LOG(ring, WARNING,
			"worker %u: cannot register the token ring (%zu bytes) with DPDK: %s; "
			"replies carry copies of ids\n",
			worker, r->map_bytes, rte_strerror(rte_errno));
}

int
tokd_ring_create(struct tokd_ring *r, uint32_t worker, uint32_t lcore, int node,
	uint64_t data_bytes, uint64_t hugepage_bytes, uint32_t vocab, uint64_t instance)
{
	const uint64_t small = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t page = hugepage_bytes != 0 ? hugepage_bytes : small;
	void *va;
	int rc;

	memset(r, 0, sizeof(*r));
	r->fd = -1;
	if (data_bytes < RING_BYTES_MIN || (data_bytes & (data_bytes - 1)) != 0) {
		TOKD_LOG(ring, ERR,
			"--ring-size: token ring of %" PRIu64
			" bytes: must be a power of two, at least %u\n",
			data_bytes, RING_BYTES_MIN);
		return -EINVAL;
	}
	r->map_bytes = RTE_ALIGN_CEIL(TOKD_RING_HDR_BYTES + data_bytes, page);
	r->front_bytes = RTE_MIN(page, FRONT_MAX);
	va = map_pages(worker, r->front_bytes, r->map_bytes, hugepage_bytes, node, &r->fd);
	if (va == NULL && hugepage_bytes != 0) {
		TOKD_LOG(ring, WARNING,
			"worker %u: no huge pages of %" PRIu64
			" kB for a token ring of %zu bytes on NUMA node %d (%s): using ordinary "
			"pages; reserve more huge pages\n",
			worker, hugepage_bytes / 1024, r->map_bytes, node, strerror(errno));
		page = small;
		r->map_bytes = RTE_ALIGN_CEIL(TOKD_RING_HDR_BYTES + data_bytes, page);
		r->front_bytes = small;
		va = map_pages(worker, small, r->map_bytes, 0, node, &r->fd);
	}
	if (va == NULL) {
		rc = -errno;
		TOKD_LOG(ring, ERR,
			"worker %u: cannot allocate a token ring of %zu bytes on NUMA node %d: %s; "
			"lower --ring-size or use fewer lcores\n",
			worker, r->map_bytes, node, strerror(errno));
		return rc;
	}
	r->hdr = va;
	r->data = (uint8_t *)va + TOKD_RING_HDR_BYTES;
	r->mask = data_bytes - 1;
	r->limit = data_bytes;
	r->huge = page != small;
	register_memory(r, worker);
	write_header(r, worker, lcore, data_bytes, vocab, instance);
	rc = seal(r);
	if (rc != 0) {
		tokd_ring_free(r);
		return rc;
	}
	if (node >= 0 && node_of(va) != node && node_of(va) >= 0)
		TOKD_LOG(ring, WARNING,
			"worker %u: the token ring is on NUMA node %d, its lcore on %d; reserve "
			"huge pages on node %d\n",
			worker, node_of(va), node, node);
	TOKD_LOG(ring, INFO, "worker %u: token ring of %zu bytes in %s pages of %" PRIu64 " kB\n",
		worker, r->map_bytes, r->huge ? "huge" : "ordinary", page / 1024);
	return 0;
}

void
tokd_ring_free(struct tokd_ring *r)
{
	if (r->hdr == NULL)
		return;
	/*
	 * Freeing the memzone would zero memory that readers still read: EAL keeps the name and the
	 * addresses until it ends, and the memory behind them is unmapped.
	 */
	if (r->memzone) {
		mmap(r->hdr, r->map_bytes, PROT_NONE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
	} else {
		if (r->registered)
			rte_extmem_unregister(r->hdr, r->map_bytes);
		munmap(RTE_PTR_SUB(r->hdr, r->front_bytes), r->front_bytes + r->map_bytes);
	}
	close(r->fd);
	r->hdr = NULL;
	r->fd = -1;
}
