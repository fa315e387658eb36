/* SPDX-License-Identifier: BSD-3-Clause */
/* Error messages: the thing, the value, the limit, the remedy. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "client_inside.h"
#include "engine.h"

static const struct {
	const char *name, *remedy;
} reasons[TOKD_R_MAX] = {
	[TOKD_R_NONE] = {"NONE", "nothing is wrong"},
	[TOKD_R_VERSION] = {"VERSION", "use client and appliance of the same release"},
	[TOKD_R_VOCAB] = {"VOCAB",
		"request a vocabulary that the appliance has loaded (--vocab), or 0"},
	[TOKD_R_LENGTH] = {"LENGTH", "packets were corrupted, or are of another protocol"},
	[TOKD_R_OFFSET] = {"OFFSET", "packets were corrupted, or are of another protocol"},
	[TOKD_R_TEXT_TOO_LONG] = {"TEXT_TOO_LONG",
		"send a shorter text, or raise the appliance's --max-text"},
	[TOKD_R_TEXT_CRC] = {"TEXT_CRC", "the text was corrupted: send it again"},
	[TOKD_R_ID_REUSED] = {"ID_REUSED", "the stream id belongs to another text: use a new one"},
	[TOKD_R_BUSY] = {"BUSY",
		"the appliance is overloaded: try again later, or raise its --streams"},
	[TOKD_R_TIMEOUT] = {"TIMEOUT",
		"the text made no progress: send it again, or raise --stream-timeout"},
	[TOKD_R_UTF8] = {"UTF8", "the appliance runs with --strict-utf8: send valid UTF-8"},
	[TOKD_R_CARRY] = {"CARRY", "the text has a pretoken that is too long: split it"},
	[TOKD_R_EXPIRED] = {"EXPIRED", "the ids are no longer available: send the text again"},
	[TOKD_R_SHUTDOWN] = {"SHUTDOWN",
		"the appliance is shutting down: send the text to another, or when it is back"},
	[TOKD_R_UNKNOWN] = {"UNKNOWN",
		"the appliance restarted, or has dropped the text: send it again"},
	[TOKD_R_SHARE] = {"SHARE",
		"the appliance's streams are all open, and this host has the most: send fewer "
		"texts at once, or raise its --streams"},
	[TOKD_R_SINK] = {"SINK", "the appliance's GPU could not embed the ids: see its log"},
	[TOKD_R_VALIDATE] = {"VALIDATE",
		"the appliance does not recognise its own cookie: does something on the path "
		"change this client's port between packets?"},
	[TOKD_R_RING] = {"RING",
		"the appliance's token ring is full: a reader or the GPU sink is behind"},
	[TOKD_R_ID] = {"ID", "an id is not in the appliance's vocabulary"},
	[TOKD_R_LANES] = {"LANES",
		"all lanes of the appliance's GPU are busy: try again later, or raise tokd-gpu's "
		"--lanes"},
};

static bool
is_known(enum tokd_reason reason)
{
	return (uint32_t)reason < TOKD_R_MAX && reasons[reason].name != NULL;
}

const char *
tokd_reason_name(enum tokd_reason reason)
{
	return is_known(reason) ? reasons[reason].name : "unknown reason";
}

const char *
tokd_reason_remedy(enum tokd_reason reason)
{
	return is_known(reason) ? reasons[reason].remedy
				: "use client and appliance of the same release";
}

/* What else a reason may mean for a prompt; NULL: nothing. */
static const char *
generate_remedy(const struct tokd_request *r)
{
	switch (r->reason) {
	case TOKD_R_SINK:
		return r->n_ids > 0 ? "its GPU or tokd-gpu failed: the ids so far are right; see "
				      "its log"
				    : "no model there: it needs --sink, and a tokd-gpu with "
				      "--lanes and an engine; or see its log";
	case TOKD_R_TIMEOUT:
		if (r->arrived < r->packets)
			return "no lane of its GPU was free for its --stream-timeout: try again "
			       "later, or raise it or tokd-gpu's --lanes";
		return "no id was made or taken for its --stream-timeout: read the answer as it "
		       "comes, or raise it";
	default:
		return NULL;
	}
}

static void
refused(const struct tokd_client *c, const struct tokd_request *r, char text[TOKD_ERROR_MAX])
{
	const char *remedy = tokd_reason_remedy(r->reason);
	const char *peer = c->appliance[r->appliance].peer;
	char times[32] = "", asked[96] = "";

	if (r->resends > 0)
		snprintf(times, sizeof(times), " %u times", r->resends + 1);
	if (r->reason == TOKD_R_VOCAB)
		snprintf(asked, sizeof(asked), " (requested: 0x%08x)", c->vocab);
	if (r->reason == TOKD_R_ID)
		snprintf(asked, sizeof(asked), " at index %d", r->error);
	if (r->reason == TOKD_R_VERSION && r->error != TOKD_WIRE_VERSION) {
		remedy = r->error > TOKD_WIRE_VERSION ? "upgrade the client"
						      : "upgrade the appliance";
		snprintf(asked, sizeof(asked),
			": the appliance speaks version %d of the protocol, this client %d",
			r->error, TOKD_WIRE_VERSION);
	}
	if ((r->flags & TOKD_REQUEST_GENERATE) && generate_remedy(r) != NULL)
		remedy = generate_remedy(r);
	snprintf(text, TOKD_ERROR_MAX, "%s: %s (%u)%s%s: %s", peer, tokd_reason_name(r->reason),
		(uint32_t)r->reason, times, asked, remedy);
}

const char *
client_remedy(int error)
{
	switch (error) {
	case ECONNREFUSED:
		return "nothing listens there: is dpdk-tokd running, with this --ip and --udp-port?";
	case EADDRNOTAVAIL:
		return "no address of this machine can be used yet: a new interface needs two "
		       "seconds (ip addr: tentative)";
	case EMSGSIZE:
		return "the path must carry an MTU of 576";
	case EINVAL: /* connect() to a link-local address */
		return "an address of fe80::/10 needs its interface, as in fe80::1%eth0";
	default:
		return "is there a route to it?";
	}
}

/* What may help a text without progress. */
static const char *
timeout_remedy(const struct tokd_request *r)
{
	if (r->reason == TOKD_R_RING || r->reason == TOKD_R_LANES)
		return tokd_reason_remedy(r->reason);
	if ((r->flags & TOKD_REQUEST_GENERATE) && r->arrived == r->packets)
		return "the model makes no ids: see the logs there, or raise the time limit";
	return "is it running and reachable?";
}

static void
argument(const struct tokd_request *r, char text[TOKD_ERROR_MAX])
{
	const bool decodes = r->flags & TOKD_REQUEST_DECODE;

	if ((r->flags & ~REQUEST_FLAGS) != 0)
		snprintf(text, TOKD_ERROR_MAX,
			"flags 0x%x: 0x%x is unknown: use those of enum tokd_request_flags",
			r->flags, r->flags & ~REQUEST_FLAGS);
	else if (r->len <= UINT32_MAX && (r->flags & TOKD_REQUEST_GENERATE))
		snprintf(text, TOKD_ERROR_MAX,
			"GENERATE needs limit from 1 to %u, out with max_ids = TOKD_GENERATE_ROOM, "
			"and no DECODE",
			TOKD_GENERATE_MOST);
	else
		snprintf(text, TOKD_ERROR_MAX, "%s of %zu bytes: the limit of the protocol is %u%s",
			decodes ? "ids" : "text", r->len, UINT32_MAX,
			decodes ? ", and an id has 4" : "");
}

static void
no_room(const char *peer, const struct tokd_request *r, char text[TOKD_ERROR_MAX])
{
	if (r->flags & TOKD_REQUEST_GENERATE)
		snprintf(text, TOKD_ERROR_MAX,
			"%s: the text of an id has more than half of max_ids = %u bytes: "
			"TOKD_GENERATE_ROOM is enough",
			peer, r->max_ids);
	else
		snprintf(text, TOKD_ERROR_MAX, "%s: %u %s or more, but max_ids is %u: %s", peer,
			r->total, client_unit(r), r->max_ids,
			r->flags & TOKD_REQUEST_DECODE
				? "raise it"
				: "1 per byte suffices for UTF-8, 3 per byte for any text");
}

void
tokd_client_describe(
	const struct tokd_client *c, const struct tokd_request *r, char text[TOKD_ERROR_MAX])
{
	const char *peer = c->appliance[r->appliance].peer;
	const char *all = c->n > 1 && !spread_any_is_up(c) ? "; all the others are down, too" : "";

	switch (r->status) {
	case TOKD_E_REFUSED:
		refused(c, r, text);
		return;
	case TOKD_E_TIMEOUT:
		snprintf(text, TOKD_ERROR_MAX,
			"%s%s: no progress for %u ms: %u of %u packets have arrived there, %u of "
			"%u %s here: %s%s",
			peer, client_refusal(&c->appliance[r->appliance]), c->timeout_ms,
			r->arrived, r->packets, r->n_ids, r->total, client_unit(r),
			timeout_remedy(r), all);
		return;
	case TOKD_E_ROOM:
		no_room(peer, r, text);
		return;
	case TOKD_E_ANSWER:
		snprintf(text, TOKD_ERROR_MAX,
			"%s: the answer is malformed after byte %u: use client and appliance of "
			"the same release",
			peer, r->n_ids);
		return;
	case TOKD_E_IDS_CRC:
		snprintf(text, TOKD_ERROR_MAX,
			"%s: %u %s have a wrong CRC32C: they were corrupted, send the text again",
			peer, r->n_ids, client_unit(r));
		return;
	case TOKD_E_NET:
		snprintf(text, TOKD_ERROR_MAX, "%s: %s: %s%s", peer, strerror(r->error),
			client_remedy(r->error), all);
		return;
	case TOKD_E_FULL:
		snprintf(text, TOKD_ERROR_MAX,
			"%s: too many requests in progress: wait for one to finish, or raise "
			"`requests`",
			peer);
		return;
	case TOKD_E_ARGUMENT:
		argument(r, text);
		return;
	case TOKD_E_CANCELLED:
		snprintf(text, TOKD_ERROR_MAX, "%s: cancelled", peer);
		return;
	default:
		snprintf(text, TOKD_ERROR_MAX, "%s: %u %s%s", peer, r->n_ids, client_unit(r),
			r->status == TOKD_OK ? "" : " so far");
		return;
	}
}
