/* SPDX-License-Identifier: BSD-3-Clause */
/* What errors mean, for people. Not for the hot path. */
#include <assert.h>

#include "tok.h"

static_assert(TOK_CARRY_MAX == 2048 && TOK_ADDED_HELD_MAX == 1024 && TOK_NFC_MARKS_MAX == 256 &&
		      TOK_SPM_WHITE_MAX == 1000,
	"as said below");

const char *
tok_error_code_text(enum tok_error_code error)
{
	switch (error) {
	case TOK_ERROR_NONE:
		return "no error";
	case TOK_ERROR_UTF8:
		return "the text is not UTF-8, and strict UTF-8 was asked for";
	case TOK_ERROR_CARRY:
		return "more than 2048 bytes of one pretoken have uncertain ids";
	case TOK_ERROR_ADDED:
		return "more than 1024 bytes that an added token may take";
	case TOK_ERROR_WHITE:
		return "more than 1000 bytes of white space that may be left out";
	case TOK_ERROR_MARKS:
		return "more than 256 combining marks in a row: a limit of streams";
	case TOK_ERROR_ID:
		return "no such id in the vocabulary";
	case TOK_ERROR_FINISHED:
		return "the stream has ended";
	}
	return "unknown";
}
