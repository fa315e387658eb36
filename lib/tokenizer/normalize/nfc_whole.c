/* SPDX-License-Identifier: BSD-3-Clause */
/* Room for any number of marks, of a whole text. Allocates. */
#include <stdlib.h>
#include <string.h>

#include "nfc.h"

static bool
double_marks(struct tok_nfc *n)
{
	const uint32_t room = 2 * n->room;
	uint32_t *more;

	if (room < n->room)
		return false;
	more = realloc(n->more, 2 * (size_t)room * sizeof(*more));
	if (more == NULL)
		return false;
	if (n->more == NULL)
		memcpy(more, n->own, n->n * sizeof(*more));
	n->held = n->more = more;
	n->room = room;
	return true;
}

void
tok_nfc_open_whole(struct tok_nfc *n)
{
	n->more = NULL;
	n->grow = double_marks;
}

void
tok_nfc_close_whole(struct tok_nfc *n)
{
	free(n->more);
}
