/* SPDX-License-Identifier: BSD-3-Clause */
/* Errors in words: the thing, the value, the limit, the remedy. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "client_inside.h"

static const struct {
	const char *name, *remedy;
} reasons[TOKD_R_MAX] = {
	[TOKD_R_NONE] = {"NONE", "nothing is wrong"},
	[TOKD_R_VERSION] = {"VERSION", "use client and appliance of the same release"},
	[TOKD_R_VOCAB] = {"VOCAB",
		"ask for a vocabulary the appliance has loaded (its --vocab), or for 0"},
	[TOKD_R_LENGTH] = {"LENGTH", "packets were damaged or are not this protocol's"},
	[TOKD_R_OFFSET] = {"OFFSET", "packets were damaged or are not this protocol's"},
	[TOKD_R_TEXT_TOO_LONG] = {"TEXT_TOO_LONG",
		"send a shorter text, or start the appliance with a larger --max-text"},
	[TOKD_R_TEXT_CRC] = {"TEXT_CRC", "the text was changed on its way: send it again"},
	[TOKD_R_ID_REUSED] = {"ID_REUSED", "the stream id belongs to another text: use a new one"},
	[TOKD_R_BUSY] = {"BUSY",
		"all streams of the appliance are open: try again, or raise its --streams"},
	[TOKD_R_TIMEOUT] = {"TIMEOUT",
		"the text came too slowly: send it again, or raise --stream-timeout"},
	[TOKD_R_UTF8] = {"UTF8", "the appliance runs with --strict-utf8: send valid UTF-8"},
	[TOKD_R_CARRY] = {"CARRY",
		"the text holds a pretoken too long for this appliance: break it up"},
	[TOKD_R_EXPIRED] = {"EXPIRED", "ids are no longer held there: send the text again"},
	[TOKD_R_SHUTDOWN] = {"SHUTDOWN", "the appliance is going away: send the text to another"},
	[TOKD_R_UNKNOWN] = {"UNKNOWN",
		"the appliance was started anew, or forgot the text: send it again"},
	[TOKD_R_SINK] = {"SINK", "the appliance's GPU could not embed the ids: its log says why"},
};

const char *
tokd_reason_name(enum tokd_reason reason)
{
	return (uint32_t)reason < TOKD_R_MAX ? reasons[reason].name : "a reason not known here";
}

const char *
tokd_reason_remedy(enum tokd_reason reason)
{
	return (uint32_t)reason < TOKD_R_MAX ? reasons[reason].remedy
					     : "use client and appliance of the same release";
}

static void
refused(const struct tokd_client *c, const struct tokd_request *r, char text[TOKD_ERROR_MAX])
{
	char times[32] = "", asked[32] = "";

	if (r->resends > 0)
		snprintf(times, sizeof(times), " for %u times", r->resends + 1);
	if (r->reason == TOKD_R_VOCAB)
		snprintf(asked, sizeof(asked), " (asked: 0x%08x)", c->vocab);
	snprintf(text, TOKD_ERROR_MAX, "%s: %s (%u)%s%s: %s", c->peer, tokd_reason_name(r->reason),
		(uint32_t)r->reason, times, asked, tokd_reason_remedy(r->reason));
}

static const char *
remedy_of(int error)
{
	switch (error) {
	case ECONNREFUSED:
		return "nothing listens there: is dpdk-tokd running, and its --udp-port this one?";
	case EMSGSIZE:
		return "the path must carry an MTU of 1500";
	default:
		return "is there a route to it?";
	}
}

void
tokd_client_describe(
	const struct tokd_client *c, const struct tokd_request *r, char text[TOKD_ERROR_MAX])
{
	switch (r->status) {
	case TOKD_E_REFUSED:
		refused(c, r, text);
		return;
	case TOKD_E_TIMEOUT:
		snprintf(text, TOKD_ERROR_MAX,
			"%s: nothing moved for %u ms: %u of %u packets have arrived there, %u of "
			"%u ids here: is it running, and reachable?",
			c->peer, c->timeout_ms, r->arrived, r->packets, r->n_ids, r->total);
		return;
	case TOKD_E_ROOM:
		snprintf(text, TOKD_ERROR_MAX,
			"%s: %u ids or more, room for %u: one a byte is enough for UTF-8, three a "
			"byte for anything",
			c->peer, r->total, r->max_ids);
		return;
	case TOKD_E_IDS_CRC:
		snprintf(text, TOKD_ERROR_MAX,
			"%s: %u ids do not have the CRC32C that the appliance published: they "
			"were changed on their way, send the text again",
			c->peer, r->n_ids);
		return;
	case TOKD_E_NET:
		snprintf(text, TOKD_ERROR_MAX, "%s: %s: %s", c->peer, strerror(r->error),
			remedy_of(r->error));
		return;
	case TOKD_E_FULL:
		snprintf(text, TOKD_ERROR_MAX,
			"%s: as many requests as the client was opened for are under way: wait for "
			"one to finish, or open it with more",
			c->peer);
		return;
	case TOKD_E_ARGUMENT:
		snprintf(text, TOKD_ERROR_MAX, "text of %zu bytes: the protocol carries %u at most",
			r->len, UINT32_MAX);
		return;
	case TOKD_E_CANCELLED:
		snprintf(text, TOKD_ERROR_MAX, "%s: cancelled", c->peer);
		return;
	default:
		snprintf(text, TOKD_ERROR_MAX, "%s: %u ids%s", c->peer, r->n_ids,
			r->status == TOKD_OK ? "" : " so far");
		return;
	}
}
