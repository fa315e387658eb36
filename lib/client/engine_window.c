/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Congestion control: how many packets of text may be in flight to the appliance, of all requests
 * together. A loss halves the window, once a round trip; if a time-out has found it and was too
 * early, that is undone. It grows by a packet when a window of them has arrived (RFC 5681, 3.1,
 * congestion avoidance). There is no slow start: it begins with all that the caller allows, as most
 * networks of appliances carry that. So it also grows while it is not used (RFC 7661 would not):
 * else clients of short texts would be left with two packets by some losses that had other reasons.
 */
#include "engine.h"

#define WINDOW_LEAST 2

void
engine_window_arrived(struct tokd_engine *e, uint32_t packets)
{
	if (e->window == e->config.packets)
		return;
	e->towards += packets;
	if (e->towards < e->window)
		return;
	e->towards -= e->window;
	e->window++;
}

void
engine_window_lost(struct tokd_engine *e, uint64_t sent_at, bool timed_out, uint64_t now)
{
	const uint32_t half = e->window / 2;

	if (sent_at < e->reduced_at || e->window <= WINDOW_LEAST)
		return;
	if (!timed_out)
		e->undo = 0;
	else if (e->undo == 0)
		e->undo = e->window;
	e->window = half > WINDOW_LEAST ? half : WINDOW_LEAST;
	e->towards = 0;
	e->reduced_at = now;
}

void
engine_window_undo(struct tokd_engine *e)
{
	if (e->window < e->undo)
		e->window = e->undo;
	e->undo = 0;
}
