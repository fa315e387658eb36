/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses --sink's target: "shm[:PATH]", "cuda[:PATH]", "verbs:HOST[:PORT]". */
#include <stdlib.h>
#include <string.h>

#include "handshake.h"
#include "inside.h"
#include "peer.h"

static bool
take_address(
	struct tokg_target *t, const char *from, size_t n, const char *what, struct tokg_error *err)
{
	if (n == 0)
		return tokg_wrong(err, "%s is empty", what);
	if (n >= sizeof(t->address))
		return tokg_wrong(err, "%s has %zu bytes: must have at most %zu: %.40s...", what, n,
			sizeof(t->address) - 1, from);
	memcpy(t->address, from, n);
	t->address[n] = '\0';
	return true;
}

static bool
take_port(struct tokg_target *t, const char *text, struct tokg_error *err)
{
	uint32_t n = 0;

	for (const char *p = text; *p != '\0'; p++) {
		if (*p < '0' || *p > '9' || n > UINT16_MAX)
			return tokg_wrong(err, "port \"%.40s\": must be 1 to 65535", text);
		n = 10 * n + (uint32_t)(*p - '0');
	}
	if (n == 0 || n > UINT16_MAX)
		return tokg_wrong(err, "port \"%.40s\": must be 1 to 65535", text);
	t->port = (uint16_t)n;
	return true;
}

/* HOST, HOST:PORT, [IPv6], [IPv6]:PORT. */
static bool
take_host(struct tokg_target *t, const char *text, struct tokg_error *err)
{
	const char *end, *after;

	t->port = TOKG_TCP_PORT;
	if (text[0] == '[') {
		end = strchr(++text, ']');
		if (end == NULL)
			return tokg_wrong(err, "host \"[%.80s\": no ] after the address", text);
		after = end + 1;
		if (*after != '\0' && *after != ':')
			return tokg_wrong(err, "\"%.40s\" after ]: must be :PORT", after);
	} else {
		end = after = strchrnul(text, ':');
		if (*after == ':' && strchr(after + 1, ':') != NULL)
			return tokg_wrong(err,
				"host \"%.80s\" has several colons: write an IPv6 address in "
				"brackets, verbs:[%.80s]",
				text, text);
	}
	return take_address(t, text, (size_t)(end - text), "the host", err) &&
	       (*after == '\0' || take_port(t, after + 1, err));
}

bool
tokg_target_parse(struct tokg_target *t, const char *text, struct tokg_error *err)
{
	const char *colon = strchrnul(text, ':');
	const size_t n = (size_t)(colon - text);
	const char *rest = *colon == ':' ? colon + 1 : NULL;

	memset(t, 0, sizeof(*t));
	t->rdma_port = -1;
	t->rdma_gid = -1;
	if (n == 3 && memcmp(text, "shm", n) == 0)
		t->kind = TOKG_SHM;
	else if (n == 4 && memcmp(text, "cuda", n) == 0)
		t->kind = TOKG_CUDA;
	else if (n == 5 && memcmp(text, "verbs", n) == 0)
		t->kind = TOKG_VERBS;
	else
		return tokg_wrong(err,
			"GPU target \"%.80s\": must be shm[:PATH], cuda[:PATH] or "
			"verbs:HOST[:PORT]",
			text);
	if (t->kind != TOKG_VERBS)
		return take_address(t, rest != NULL ? rest : TOKG_SOCKET,
			strlen(rest != NULL ? rest : TOKG_SOCKET), "the path of the agent's socket",
			err);
	if (rest == NULL)
		return tokg_wrong(
			err, "GPU target \"verbs\": give the agent's host: verbs:HOST[:PORT]");
	return take_host(t, rest, err);
}
