/* SPDX-License-Identifier: BSD-3-Clause */
#include <sys/mman.h>

#include "vocab_table.h"

#ifdef TOK_HUGETLBFS
#include <stdio.h>

#include <hugetlbfs.h>

static uint64_t
read_pages(long page, const char *what)
{
	unsigned long long n = 0;
	char path[96];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/kernel/mm/hugepages/hugepages-%ldkB/%s_hugepages",
		page / 1024, what);
	f = fopen(path, "re");
	if (f == NULL)
		return 0;
	if (fscanf(f, "%llu", &n) != 1)
		n = 0;
	fclose(f);
	return n;
}

/* Number of available pages. Free pages include reserved ones, which belong to other mappings. */
static uint64_t
pages_free(long page)
{
	uint64_t have = read_pages(page, "free") + read_pages(page, "nr_overcommit");
	uint64_t taken = read_pages(page, "resv") + read_pages(page, "surplus");

	return have > taken ? have - taken : 0;
}

bool
tok_huge_move(struct tok_vocab *v, struct tok_error *err)
{
	const long page = gethugepagesize();
	uint64_t off[TOK_N_TABLES], bytes = tok_vocab_layout(v->table_bytes, 0, off);
	uint64_t pages, left;
	uint8_t *storage = NULL;

	if (page <= 0)
		return tok_fail(err, "this system has no huge pages: leave the option out");
	pages = (bytes + (uint64_t)page - 1) / (uint64_t)page;
	bytes = pages * (uint64_t)page;
	left = pages_free(page);
	/* Check first: if it failed, the library would print a message of its own. */
	if (left >= pages)
		storage = get_huge_pages(bytes, GHP_DEFAULT);
	if (storage == NULL)
		return tok_fail(err,
			"its tables take %llu huge pages of %ld KiB, %llu are free: reserve more "
			"(sysctl vm.nr_hugepages), or leave the option out",
			(unsigned long long)pages, page / 1024, (unsigned long long)left);
	for (enum tok_table t = 0; t < TOK_N_TABLES; t++) {
		if (v->table_bytes[t] > 0)
			memcpy(storage + off[t], tok_vocab_table(v, t), v->table_bytes[t]);
	}
	tok_vocab_leave(v);
	for (enum tok_table t = 0; t < TOK_N_TABLES; t++) {
		if (v->table_bytes[t] > 0)
			tok_vocab_table_set(v, t, storage + off[t], v->table_bytes[t]);
	}
	mprotect(storage, bytes, PROT_READ); /* if this fails, the tables stay writable */
	v->storage_kind = TOK_STORAGE_HUGE;
	v->storage = storage;
	v->storage_bytes = bytes;
	return true;
}

void
tok_huge_free(void *pages)
{
	free_huge_pages(pages);
}

#else

bool
tok_huge_move(struct tok_vocab *v, struct tok_error *err)
{
	return tok_fail(err,
		"this libtok was built without libhugetlbfs: install libhugetlbfs-dev and build "
		"again, or leave the option out");
}

void
tok_huge_free(void *pages)
{
}

#endif
