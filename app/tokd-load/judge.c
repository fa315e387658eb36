/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "judge.h"

const char *
judge_status(enum tokd_status status)
{
	switch (status) {
	case TOKD_OK:
		return NULL;
	case TOKD_E_REFUSED:
		return "refused";
	case TOKD_E_TIMEOUT:
		return "no answer";
	case TOKD_E_ROOM:
		return "too many ids";
	case TOKD_E_IDS_CRC:
		return "CRC32C of the ids is wrong";
	default:
		return "the socket failed";
	}
}

const char *
judge_ids(const struct slice *slice, const uint32_t *ids, uint32_t n_ids)
{
	if (n_ids != slice->n_ids)
		return "wrong number of ids";
	if (memcmp(ids, slice->ids, (size_t)4 * n_ids) != 0)
		return "wrong ids";
	return NULL;
}
