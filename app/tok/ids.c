/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "ids.h"

enum ids_state
ids_read(struct ids *in)
{
	ssize_t got = cli_read(in->text);

	in->n_before += in->n;
	in->n = 0;
	if (got < 0)
		return IDS_FAILED;
	for (ssize_t i = 0; i < got; i++) {
		char c = in->text[i];

		if (c >= '0' && c <= '9') {
			in->value = in->value * 10 + (uint64_t)(c - '0');
			in->in_number = true;
			if (in->value > UINT32_MAX) {
				in->bad = c;
				return IDS_BAD;
			}
		} else if (c == '\0' || strchr(" \t\n\v\f\r", c) == NULL) {
			in->bad = c;
			return IDS_BAD;
		} else if (in->in_number) {
			in->ids[in->n++] = (uint32_t)in->value;
			in->value = 0;
			in->in_number = false;
		}
	}
	if (got > 0)
		return IDS_MORE;
	if (in->in_number)
		in->ids[in->n++] = (uint32_t)in->value;
	return IDS_LAST;
}

int
ids_error(const struct ids *in, enum ids_state state)
{
	unsigned long long number = in->n_before + in->n + 1;

	if (state != IDS_BAD)
		return state == IDS_LAST ? 0 : CLI_FAILED;
	if (in->bad >= '0' && in->bad <= '9')
		return cli_error(CLI_FAILED, "standard input: id number %llu is above %u", number,
			UINT32_MAX);
	return cli_error(CLI_FAILED,
		"standard input: id number %llu: expected digits, found byte 0x%02x", number,
		(uint8_t)in->bad);
}
