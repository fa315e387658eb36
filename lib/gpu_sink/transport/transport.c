/* SPDX-License-Identifier: BSD-3-Clause */
/* Set-up: which transport it is. */
#include "transport.h"

#include <numa.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "handshake/link.h"
#include "transport_inside.h"

bool
tokg_wrong(struct tokg_error *why, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(why->text, sizeof(why->text), format, ap);
	va_end(ap);
	return false;
}

void
tokg_printable(char *to, size_t room, const char *from, size_t bytes)
{
	size_t n = 0;

	for (; n + 1 < room && n < bytes && from[n] != '\0'; n++)
		to[n] = from[n] >= ' ' && from[n] <= '~' ? from[n] : '?';
	to[n] = '\0';
}

uint64_t
tokg_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

void *
tokg_own_memory(size_t bytes, int node)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		return NULL;
	if (node >= 0 && numa_available() >= 0)
		numa_tonode_memory(at, bytes, node);
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
	uint32_t timeout_ms, char path[256], struct tokg_error *why)
{
	struct tokg_session *session = NULL;
	struct tokg_transport *t =
		target->kind == TOKG_VERBS
			? tokg_verbs_new(target, source, timeout_ms, &session, why)
			: tokg_shm_new(target, source, &session, why);

	if (t == NULL)
		return NULL;
	if (!tokg_session_open(session, t, timeout_ms, why)) {
		t->ops->close(t);
		return NULL;
	}
	t->ops->describe(t, path);
	return t;
}

bool
tokg_transport_look(struct tokg_transport *t)
{
	const bool stands = t->link >= 0 && tokg_link_stands(t->link);

	if (!stands)
		__atomic_store_n(&t->gone, true, __ATOMIC_RELAXED);
	return stands;
}
