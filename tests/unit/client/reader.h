/* SPDX-License-Identifier: BSD-3-Clause */
/* Of tests of answers. */
#pragma once

#include "world.h"

/* A caller that takes items, and knows which must come. */
struct reader {
	uint32_t n; /* ids */
	uint32_t end;
};

/* Up to `most` items, each of which is checked. Returns how many there were. */
uint32_t take(struct world *w, struct text *t, struct reader *reader, uint32_t most);
/* Until the request is finished. A caller that takes all each time that it is returned. */
void read_all(struct world *w, struct text *t, struct reader *reader);
/* It is whole. Frees the text. */
void answer_right(struct text *t, const struct reader *reader);
/* Until the appliance has heard of all cancels. */
void finish_cancels(struct world *w);
