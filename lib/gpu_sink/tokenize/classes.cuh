/* SPDX-License-Identifier: BSD-3-Clause */
/* The first phase: is the text well-formed and normalized? The class of each character. */
#pragma once

#include "arrays.cuh"
#include "unicode/nfc_tables.h"
#include "unicode/utf8.h"

/* Bytes between `at` and the character's first byte, which may be missing: then 4. */
TOKG_DEV uint32_t
tokg_behind_lead(const struct tokg_text *t, uint32_t at)
{
	uint32_t back = 0;

	while (back < 4 && back <= at && (t->bytes[at - back] & 0xc0) == 0x80)
		back++;
	return back <= at ? back : 4;
}

/* Length of the character that begins at `at`; 0: it is malformed. */
TOKG_DEV uint32_t
tokg_length_at(const struct tokg_text *t, uint32_t at)
{
	const uint8_t lead = t->bytes[at];
	const uint32_t len = tok_utf8_length(lead);

	if (at + len > t->n)
		return 0;
	for (uint32_t i = 1; i < len; i++) {
		if (!tok_utf8_follows(lead, i, t->bytes[at + i]))
			return 0;
	}
	return len;
}

/* As tok_nfc_props_of(), whose tables a GPU does not have. */
TOKG_DEV uint32_t
tokg_nfc_of(const struct tokg_view *view, uint32_t cp)
{
	return view->nfc_props[(uint32_t)view->nfc_page[cp >> 8] << 8 | (cp & 255)];
}

/*
 * May form C change a text at this character? It does not if no character of the text has
 * NFC_Quick_Check other than Yes, and no mark follows one of a higher combining class (Unicode
 * Standard Annex 15, section 9).
 */
TOKG_DEV bool
tokg_nfc_changes(const struct tokg_view *view, const struct tokg_text *t, uint32_t at, uint32_t cp)
{
	const uint32_t props = tokg_nfc_of(view, cp), own = props & TOK_NFC_CCC;
	uint32_t lead, before;

	if (props & TOK_NFC_CHECK)
		return true;
	if (own == 0 || at == 0)
		return false;
	lead = tokg_behind_lead(t, at - 1);
	if (lead > 3 || tokg_length_at(t, at - 1 - lead) != lead + 1)
		return true; /* malformed */
	before = tokg_nfc_of(view, tok_utf8_decode(t->bytes + at - 1 - lead, lead + 1));
	return (before & TOK_NFC_CCC) > own;
}

/* Look at one byte of the text. False: the CPU must encode it. */
TOKG_DEV bool
tokg_classify_byte(const struct tokg_view *view, const struct tokg_text *t,
	const struct tokg_arrays *a, uint32_t at)
{
	const uint8_t byte = t->bytes[at];
	uint32_t len, cp = byte;

	if (byte >= 0x80) {
		const uint32_t back = tokg_behind_lead(t, at);

		if (back > 0)
			return back < 4 && tok_utf8_length(t->bytes[at - back]) > back;
		len = tokg_length_at(t, at);
		if (len == 0)
			return false;
		cp = tok_utf8_decode(t->bytes + at, len);
		if (view->nfc_props != NULL && tokg_nfc_changes(view, t, at, cp))
			return false;
	}
	a->of_class[at] = (uint8_t)tok_class_of(view->v, cp);
	return true;
}

/* False: the CPU must encode the text. */
TOKG_DEV bool
tokg_classify(tokg_block *b, const struct tokg_view *view, const struct tokg_text *t,
	const struct tokg_arrays *a)
{
	uint64_t wrong = 0;

	for (uint32_t i = b->tid; i < t->n; i += b->n)
		wrong += !tokg_classify_byte(view, t, a, i);
	return tokg_sum(b, wrong) == 0;
}
