/* SPDX-License-Identifier: BSD-3-Clause */
#include "session.h"

#include <string.h>
#include <unistd.h>
#include <monotonic.h>

#include "handshake/hello.h"
#include "handshake/inside.h"

#define STEP_MS 50

bool
tokg_session_init(struct tokg_session *s, const struct tokg_session_calls *calls,
	const struct tokg_target *target, const struct tokg_source *source, struct tokg_error *err)
{
	s->calls = calls;
	s->text_vocab = source->text_vocab;
	s->text_flags = source->text_flags;
	tokg_dial_init(&s->dial);
	return tokg_hello_fill(&s->hello, target, source, err) &&
	       tokg_where_resolve(&s->where, target, err);
}

void
tokg_session_end(struct tokg_session *s, struct tokg_transport *t)
{
	t->link = -1;
	tokg_dial_end(&s->dial);
	if (s->calls != NULL && s->calls->undo != NULL)
		s->calls->undo(t);
}

static bool
begin(struct tokg_session *s, struct tokg_transport *t, struct tokg_error *err)
{
	if (s->calls->prepare != NULL && !s->calls->prepare(t, &s->hello, err))
		return false;
	s->dial.hello = s->hello;
	tokg_dial_begin(&s->dial);
	return true;
}

/* Does the agent encode the texts that we want to post? */
static bool
encodes_ours(const struct tokg_session *s, const struct tokg_welcome *w, struct tokg_error *err)
{
	if (s->text_vocab == 0)
		return true;
	if (w->text_vocab == 0)
		return tokg_wrong(err,
			"%s: it tokenizes no text, vocabulary 0x%08x is needed: start tokd-gpu "
			"with --text-vocab",
			s->where.name, s->text_vocab);
	if (w->text_vocab != s->text_vocab)
		return tokg_wrong(err,
			"%s: it tokenizes text with vocabulary 0x%08x, 0x%08x is needed: give "
			"--text-vocab of tokd-gpu the first --vocab of dpdk-tokd",
			s->where.name, w->text_vocab, s->text_vocab);
	return w->text_flags == s->text_flags ||
	       tokg_wrong(err,
		       "%s: it tokenizes text with flags 0x%x, 0x%x are needed: install the same "
		       "version on both",
		       s->where.name, w->text_flags, s->text_flags);
}

static bool
admitted(struct tokg_session *s, struct tokg_transport *t, struct tokg_error *err)
{
	const struct tokg_welcome *w = &s->dial.welcome;

	if (!encodes_ours(s, w, err)) {
		s->dial.final = true;
		return false;
	}
	if (s->hello.resume != TOKG_NO_PRODUCER &&
		memcmp(&t->geometry, &w->geometry, sizeof(w->geometry)) != 0) {
		s->dial.final = true;
		return tokg_wrong(err, "%s: its geometry changed: it has restarted", s->where.name);
	}
	t->geometry = w->geometry;
	t->producer = w->producer;
	t->epoch = w->epoch;
	t->ring_epoch = w->ring_epoch;
	t->shed_below = s->hello.shed_below;
	t->order = (enum tokg_order)w->order;
	if (!s->calls->admit(t, w, s->dial.region_fd, err)) {
		s->dial.final = true;
		return false;
	}
	if (s->dial.region_fd >= 0)
		close(s->dial.region_fd); /* the mapping stays */
	s->dial.region_fd = -1;
	return true;
}

/* 1: connected; 0: not yet; below 0: this attempt failed. */
static int
step(struct tokg_session *s, struct tokg_transport *t, struct tokg_error *err)
{
	int rc = tokg_dial_step(&s->dial, &s->where, err);

	if (rc != 1 || s->dial.at == TOKG_DIAL_DONE)
		return rc;
	if (!admitted(s, t, err))
		return -1;
	tokg_dial_ready(&s->dial);
	return tokg_dial_step(&s->dial, &s->where, err);
}

/* From now on the hello asks to resume this producer slot. */
static void
settled(struct tokg_session *s, struct tokg_transport *t)
{
	s->hello.resume = t->producer;
	s->hello.epoch = t->epoch;
	s->hello.ring_epoch = t->ring_epoch;
	s->under_way = false;
	t->link = s->dial.fd;
	__atomic_store_n(&t->gone, false, __ATOMIC_RELAXED);
}

/* On a separate connection: the agent allows one second for a hello. */
bool
tokg_session_answered(struct tokg_session *s, uint32_t timeout_ms, struct tokg_error *err)
{
	const uint64_t end = monotonic_ms() + timeout_ms;
	int rc;

	tokg_dial_begin(&s->dial);
	while ((rc = tokg_dial_connect(&s->dial, &s->where, err)) == 0 && monotonic_ms() < end)
		tokg_dial_wait(&s->dial, STEP_MS);
	if (rc == 0)
		tokg_wrong(err, "%s: no connection within %u ms", s->where.name, timeout_ms);
	tokg_dial_end(&s->dial);
	return rc > 0;
}

bool
tokg_session_open(struct tokg_session *s, struct tokg_transport *t, uint32_t timeout_ms,
	struct tokg_error *err)
{
	const uint64_t end = monotonic_ms() + timeout_ms;
	int rc = begin(s, t, err) ? 0 : -1;

	while (rc == 0) {
		rc = step(s, t, err);
		if (rc == 0 && monotonic_ms() >= end) {
			tokg_wrong(err, "%s: no answer within %u ms", s->where.name, timeout_ms);
			rc = -1;
		} else if (rc == 0) {
			tokg_dial_wait(&s->dial, STEP_MS);
		}
	}
	if (rc > 0)
		settled(s, t);
	return rc > 0;
}

/* The next attempt starts from scratch. */
static int
failed(struct tokg_session *s, struct tokg_transport *t, uint64_t now)
{
	const bool final = s->dial.final || now >= s->give_up_ms;

	tokg_session_end(s, t);
	s->not_before_ms = now + TOKG_RECONNECT_PAUSE_MS;
	s->under_way = !final;
	return final ? -1 : 0;
}

int
tokg_session_again(struct tokg_session *s, struct tokg_transport *t, struct tokg_error *err)
{
	const uint64_t now = monotonic_ms();
	int rc;

	if (!s->under_way) {
		tokg_session_end(s, t);
		s->under_way = true;
		s->give_up_ms = now + TOKG_RECONNECT_MS;
		s->not_before_ms = now;
	}
	if (now < s->not_before_ms)
		return 0;
	if (s->dial.at == TOKG_DIAL_IDLE && !begin(s, t, err))
		return failed(s, t, now);
	rc = step(s, t, err);
	if (rc == 0 && now >= s->give_up_ms) {
		tokg_wrong(err, "%s: no answer within %u ms", s->where.name, TOKG_RECONNECT_MS);
		rc = -1;
	}
	if (rc < 0)
		return failed(s, t, now);
	if (rc > 0)
		settled(s, t);
	return rc;
}
