/* SPDX-License-Identifier: BSD-3-Clause */
/* Words that both forms of the report have. */
#include "show.h"

#include <arpa/inet.h>

const char *
known_text(enum known k)
{
	return k == YES ? "yes" : k == NO ? "no" : "not known";
}

const char *
gid_type_text(enum tokg_gid_type type)
{
	static const char *const text[] = {[TOKG_GID_OTHER] = "not known",
		[TOKG_GID_IB] = "InfiniBand",
		[TOKG_GID_ROCE_V1] = "RoCE v1",
		[TOKG_GID_ROCE_V2] = "RoCE v2"};

	return text[type];
}

const char *
gid_text(const struct gid *gid, char out[46])
{
	return inet_ntop(AF_INET6, gid->raw, out, 46);
}

const char *
gid_scope(const struct gid *gid)
{
	if (tokg_gid_is_ipv4(gid->raw))
		return "IPv4";
	return tokg_gid_is_link_local(gid->raw) ? "link-local" : "global";
}

const char *
order_text(const struct gpu *g)
{
	if (!g->asked || g->order < ORDER_NONE)
		return "not known";
	if (g->order < ORDER_OWNER)
		return "none";
	return g->order < ORDER_ALL ? "owner" : "all devices";
}
