/* SPDX-License-Identifier: BSD-3-Clause */
/* Set-up: selects the transport. */
#include "transport.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "handshake/link.h"
#include "ring/numa_place.h"
#include "transport_inside.h"

void *
tokg_own_memory(size_t bytes, int node)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		return NULL;
	tokg_numa_place(at, bytes, node);
	memset(at, 0, bytes);
	return at;
}

void
tokg_own_free(void *at, size_t bytes)
{
	if (at != NULL)
		munmap(at, bytes);
}

struct tokg_transport *
tokg_transport_open(const struct tokg_target *target, const struct tokg_source *source,
	uint32_t timeout_ms, char path[256], struct tokg_error *err)
{
	struct tokg_session *session = NULL;
	struct tokg_transport *t =
		target->kind == TOKG_VERBS
			? tokg_verbs_new(target, source, timeout_ms, &session, err)
			: tokg_shm_new(target, source, &session, err);

	if (t == NULL)
		return NULL;
	if (!tokg_session_open(session, t, timeout_ms, err)) {
		t->ops->close(t);
		return NULL;
	}
	t->ops->describe(t, path);
	return t;
}

bool
tokg_transport_check(struct tokg_transport *t)
{
	const bool stands = t->link >= 0 && tokg_link_is_quiet(t->link);

	if (!stands)
		__atomic_store_n(&t->gone, true, __ATOMIC_RELAXED);
	return stands;
}
