/* SPDX-License-Identifier: BSD-3-Clause */
#include <sys/mman.h>

#include "huge.h"
#include "vocab_table.h"

#ifdef TOK_HUGETLBFS
#include <hugetlbfs.h>

bool
tok_huge_move(struct tok_vocab *v, struct tok_error *err)
{
	const long page = gethugepagesize();
	uint64_t off[TOK_N_TABLES], bytes = tok_vocab_layout(v->table_bytes, 0, off);
	uint8_t *home;

	if (page <= 0)
		return tok_fail(err, "this system has no huge pages: leave the option out");
	bytes = (bytes + (uint64_t)page - 1) & ~((uint64_t)page - 1);
	/* Says so itself on standard error where HUGETLB_VERBOSE asks for it. */
	home = get_huge_pages(bytes, GHP_DEFAULT);
	if (home == NULL)
		return tok_fail(err,
			"no %llu huge pages of %ld KiB are free: reserve more (sysctl "
			"vm.nr_hugepages), or leave the option out",
			(unsigned long long)(bytes / (uint64_t)page), page / 1024);
	for (enum tok_table t = 0; t < TOK_N_TABLES; t++) {
		if (v->table_bytes[t] > 0)
			memcpy(home + off[t], tok_vocab_table(v, t), v->table_bytes[t]);
	}
	tok_vocab_leave(v);
	for (enum tok_table t = 0; t < TOK_N_TABLES; t++) {
		if (v->table_bytes[t] > 0)
			tok_vocab_table_set(v, t, home + off[t], v->table_bytes[t]);
	}
	mprotect(home, bytes, PROT_READ); /* where it cannot be, it is as safe as other memory */
	v->home_kind = TOK_HOME_HUGE;
	v->home = home;
	v->home_bytes = bytes;
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
