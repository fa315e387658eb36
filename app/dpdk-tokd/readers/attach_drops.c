/* SPDX-License-Identifier: BSD-3-Clause */
/* Back-off for readers that were dropped: attach.h, struct tokd_drops. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <rte_common.h>

#include "attach.h"

#define FNV_BASIS UINT64_C(0xcbf29ce484222325)
#define FNV_PRIME UINT64_C(0x100000001b3)

static uint64_t
hash(uint64_t h, const void *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		h = (h ^ ((const uint8_t *)bytes)[i]) * FNV_PRIME;
	return h;
}

uint64_t
tokd_drops_owner(pid_t pid, uid_t uid)
{
	char path[32], group[4096];
	ssize_t n = 0;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/cgroup", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, group, sizeof(group));
		close(fd);
	}
	return hash(hash(FNV_BASIS, &uid, sizeof(uid)), group, n > 0 ? (size_t)n : 0);
}

static const struct tokd_drops *
find(const struct tokd_attach *a, uint64_t owner, uint64_t now_ms)
{
	for (uint32_t i = 0; i < TOKD_DROPS_OWNERS; i++) {
		const struct tokd_drops *d = &a->drops[i];

		if (d->n > 0 && d->owner == owner && now_ms < d->forget_ms)
			return d;
	}
	return NULL;
}

/* The free or soonest forgotten one: free ones have forget_ms 0. */
static uint32_t
oldest(const struct tokd_attach *a)
{
	uint32_t at = 0;

	for (uint32_t i = 1; i < TOKD_DROPS_OWNERS; i++) {
		if (a->drops[i].forget_ms < a->drops[at].forget_ms)
			at = i;
	}
	return at;
}

void
tokd_drops_add(struct tokd_attach *a, uint64_t owner, uint64_t now_ms)
{
	const struct tokd_drops *known = find(a, owner, now_ms);
	const uint32_t n = known != NULL ? RTE_MIN(known->n + 1, (uint32_t)TOKD_DROPS_MAX) : 1;
	const uint64_t until_ms = now_ms + ((uint64_t)a->reader_timeout_ms << (n - 1));

	a->drops[known != NULL ? (uint32_t)(known - a->drops) : oldest(a)] =
		(struct tokd_drops){.owner = owner,
			.n = n,
			.until_ms = until_ms,
			.forget_ms = until_ms + TOKD_HOLD_WINDOW_MS};
}

uint64_t
tokd_drops_wait(const struct tokd_attach *a, uint64_t owner, uint64_t now_ms, uint32_t *n)
{
	const struct tokd_drops *d = find(a, owner, now_ms);

	*n = d != NULL ? d->n : 0;
	return d != NULL && now_ms < d->until_ms ? d->until_ms - now_ms : 0;
}
