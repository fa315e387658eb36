/* SPDX-License-Identifier: BSD-3-Clause */
/* A token ring as tokd_ring_create leaves it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rte_memzone.h>

#include "fixture.h"
#include "control/token_ring_open.h"

TEST(is_laid_out_as_its_header_says)
{
	struct tokd_ring r;
	struct stat st;

	assert_int_equal(tokd_ring_create(&r, 5, 7, -1, 1 << 20, 0, 0x1234, 99), 0);
	assert_int_equal(r.hdr->magic, TOKD_RING_MAGIC);
	assert_memory_equal(r.hdr, "TOKDRNG1", 8);
	assert_int_equal(r.hdr->version, TOKD_RING_VERSION);
	assert_int_equal(r.hdr->worker, 5);
	assert_int_equal(r.hdr->lcore, 7);
	assert_int_equal(r.hdr->data_off, TOKD_RING_HDR_BYTES);
	assert_int_equal(r.hdr->data_bytes, 1 << 20);
	assert_int_equal(r.hdr->instance, 99);
	assert_int_equal(r.hdr->vocab, 0x1234);
	assert_true(r.hdr->tsc_hz > 0);
	assert_int_equal(r.hdr->head, 0);
	assert_int_equal(r.hdr->tail, 0);

	assert_ptr_equal(r.data, (uint8_t *)r.hdr + TOKD_RING_HDR_BYTES);
	assert_int_equal(r.mask, (1 << 20) - 1);
	assert_int_equal(r.limit, 1 << 20);
	assert_false(r.huge);
	assert_true(r.registered);
	assert_int_equal(fstat(r.fd, &st), 0);
	assert_int_equal(st.st_size, r.map_bytes);
	assert_int_equal(st.st_size, TOKD_RING_HDR_BYTES + (1 << 20));
	/* The last byte is there: nothing is left to fault in, or to fail at. */
	r.data[r.mask] = 1;
	tokd_ring_free(&r);
}

/* The name is kept by EAL for the life of this program: each test has a worker of its own. */
static void
is_a_memzone(uint32_t worker, uint64_t hugepage)
{
	const struct rte_memzone *zone;
	struct tokd_ring r;
	uint8_t *reader;
	char name[32];
	size_t bytes;

	assert_int_equal(tokd_ring_create(&r, worker, 0, -1, 64 << 10, hugepage, 1, 1), 0);
	bytes = r.map_bytes;
	snprintf(name, sizeof(name), "tokd_ring_%u", worker);
	zone = rte_memzone_lookup(name);
	assert_non_null(zone);
	assert_ptr_equal(zone->addr, r.hdr);
	assert_int_equal(zone->len, bytes);
	assert_int_equal(zone->hugepage_sz, r.front_bytes);

	/* EAL's notes about it are elsewhere: a reader sees the header, and zeros. */
	reader = mmap(NULL, bytes, PROT_READ, MAP_SHARED, r.fd, 0);
	assert_ptr_not_equal(reader, MAP_FAILED);
	for (size_t i = sizeof(*r.hdr); i < bytes; i++)
		assert_int_equal(reader[i], 0);

	/* What is written stays readable when the appliance has let go of it. */
	r.data[r.mask] = 7;
	tokd_ring_free(&r);
	assert_memory_equal(reader, "TOKDRNG1", 8);
	assert_int_equal(reader[TOKD_RING_HDR_BYTES + (64 << 10) - 1], 7);
	munmap(reader, bytes);

	/* A second one of that name works, without it. */
	assert_int_equal(tokd_ring_create(&r, worker, 0, -1, 64 << 10, hugepage, 1, 1), 0);
	assert_false(r.memzone);
	assert_true(r.registered);
	tokd_ring_free(&r);
}

TEST(is_a_memzone_in_ordinary_pages)
{
	is_a_memzone(40, 0);
}

TEST(is_a_memzone_in_huge_pages)
{
	is_a_memzone(41, tokd_ring_hugepage(64 << 10));
}

TEST(refuses_sizes_that_are_no_ring)
{
	static const uint64_t bad[] = {0, 1, 4096, 32 << 10, (64 << 10) + 1, 3 << 20, UINT64_MAX};
	struct tokd_ring r;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(tokd_ring_create(&r, 0, 0, -1, bad[i], 0, 1, 1), -EINVAL);
		tokd_ring_free(&r); /* harmless */
	}
	/* Beyond 32 bits a power of two is one still: it is memory that is short. */
	assert_int_equal(tokd_ring_create(&r, 0, 0, -1, UINT64_C(1) << 50, 0, 1, 1), -ENOMEM);
}

TEST(says_that_memory_is_short_instead_of_dying)
{
	struct tokd_ring r;

	/* 1 EiB: mmap refuses; had it not, populating would have, and not by SIGBUS. */
	assert_true(tokd_ring_create(&r, 0, 0, -1, 1ull << 60, 0, 1, 1) < 0);
}

TEST(falls_back_to_ordinary_pages)
{
	struct tokd_ring r;

	/* No kernel has pages of 256 MiB here: memfd_create refuses. */
	assert_int_equal(tokd_ring_create(&r, 0, 0, -1, 64 << 10, 256 << 20, 1, 1), 0);
	assert_false(r.huge);
	assert_int_equal(r.map_bytes, TOKD_RING_HDR_BYTES + (64 << 10));
	tokd_ring_free(&r);
}

TEST(is_mapped_in_huge_pages)
{
	uint64_t page = tokd_ring_hugepage(64 << 10);
	struct tokd_ring r;

	assert_int_not_equal(page, 0);
	assert_int_equal(tokd_ring_create(&r, 0, 0, -1, 64 << 10, page, 1, 1), 0);
	assert_true(r.huge);
	assert_int_equal(r.map_bytes, page);
	assert_int_equal((uintptr_t)r.hdr % page, 0);
	tokd_ring_free(&r);
}

TEST(wants_no_more_huge_pages_than_there_are)
{
	assert_int_equal(tokd_ring_hugepage(1ull << 60), 0);
}

/* What somebody with the descriptor, and any right, may try. */
static void
refuses_writing(int fd, size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	assert_ptr_equal(p, MAP_FAILED);
	assert_int_equal(errno, EPERM);
	assert_true(pwrite(fd, "x", 1, 0) < 0);
	assert_true(ftruncate(fd, 4096) < 0);
	assert_true(ftruncate(fd, (off_t)bytes * 2) < 0);
	assert_true(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096) < 0);

	p = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(p, MAP_FAILED);
	assert_true(mprotect(p, bytes, PROT_READ | PROT_WRITE) < 0);
	munmap(p, bytes);
}

static void
is_sealed(uint64_t hugepage)
{
	struct tokd_ring r;
	char path[64];
	int fd;

	assert_int_equal(tokd_ring_create(&r, 0, 0, -1, 64 << 10, hugepage, 1, 1), 0);
	assert_int_equal(fcntl(r.fd, F_GET_SEALS),
		F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL);
	refuses_writing(r.fd, r.map_bytes);

	/* A received descriptor can be reopened for writing through /proc: the seal holds. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", r.fd);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd >= 0) {
		refuses_writing(fd, r.map_bytes);
		close(fd);
	}
	r.hdr->head = 64; /* ours stays writable */
	tokd_ring_free(&r);
}

TEST(is_sealed_against_writing)
{
	is_sealed(0);
}

TEST(is_sealed_against_writing_in_huge_pages)
{
	uint64_t page = tokd_ring_hugepage(64 << 10);

	assert_int_not_equal(page, 0);
	is_sealed(page);
}

/* cmocka's TAP calls a skipped test failed, so those that need huge pages are a run of their own.
 */
int
main(int argc, char **argv)
{
	if (argc < 2) {
		cmocka_set_skip_filter("*_in_huge_pages");
	} else if (tokd_ring_hugepage(64 << 10) == 0) {
		puts("1..0 # SKIP no huge pages are free");
		return 0;
	} else {
		cmocka_set_test_filter("*_in_huge_pages");
	}
	return fixture_run(argv);
}
