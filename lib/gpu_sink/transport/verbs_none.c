/* SPDX-License-Identifier: BSD-3-Clause */
/* Replaces the verbs transport, both ends, in a build without libibverbs: returns errors. */
#include "transport_inside.h"
#include "verbs_server.h"

static void
refuse(struct tokg_error *err)
{
	tokg_wrong(err, "verbs: this program was built without RDMA: install libibverbs and build "
			"again, or use a unix socket (shm, cuda)");
}

struct tokg_transport *
tokg_verbs_new(const struct tokg_target *target, const struct tokg_source *source,
	uint32_t timeout_ms, struct tokg_session **session, struct tokg_error *err)
{
	refuse(err);
	return NULL;
}

struct tokg_verbs_server *
tokg_verbs_server_open(
	const struct tokg_verbs_server_config *c, char path[256], struct tokg_error *err)
{
	refuse(err);
	return NULL;
}

void
tokg_verbs_server_close(struct tokg_verbs_server *s)
{
}

bool
tokg_verbs_grant(struct tokg_verbs_server *s, uint32_t producer, const struct tokg_qp *theirs,
	struct tokg_welcome *w, struct tokg_error *err)
{
	refuse(err);
	return false;
}

bool
tokg_verbs_end(struct tokg_verbs_server *s, uint32_t producer, struct tokg_error *err)
{
	return true;
}
