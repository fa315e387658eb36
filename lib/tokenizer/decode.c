/* SPDX-License-Identifier: BSD-3-Clause */
/* Ids back to bytes, whole and streaming. */
#include "unicode/utf8.h"
#include "encode/wordpiece.h"
#include "vocab.h"

const uint8_t *
tok_vocab_token(const struct tok_vocab *v, uint32_t id, uint32_t *len)
{
	if (id >= v->info.n_ids || v->span[id].len == 0)
		return NULL;
	if (v->word_end) {
		*len = v->wordpiece.behind[id].len;
		return v->wordpiece.text + v->wordpiece.behind[id].off;
	}
	*len = v->span[id].len;
	return v->bytes + v->span[id].off;
}

/* Is the blank that this first id begins with dropped? In a .model, that of the byte <0x20> is
 * kept.
 */
static bool
is_stripped(const struct tok_vocab *v, uint32_t id, uint32_t len)
{
	return v->metaspace.strip &&
	       (v->metaspace.prefix != TOK_PREFIX_TEXT || len > 1 || id == v->ext[' ']);
}

/* *begun: at least one id was decoded before. */
static struct tok_result
decode(const struct tok_vocab *v, bool *begun, const uint32_t *ids, size_t n, uint8_t *out,
	size_t room)
{
	struct tok_result r = {.status = TOK_OK};

	if (v->kind != TOK_KIND_BPE || v->unigram.norm.sentencepiece || v->word_end)
		return tok_wordpiece_decode(v, begun, ids, n, out, room);
	for (; r.consumed < n; r.consumed++) {
		uint32_t len;
		const uint8_t *bytes = tok_vocab_token(v, ids[r.consumed], &len);

		if (bytes == NULL) {
			r.status = TOK_BAD;
			r.error = TOK_ERROR_ID;
			break;
		}
		if (!*begun && r.consumed == 0 && *bytes == ' ' && is_stripped(v, ids[0], len)) {
			bytes++;
			len--;
		}
		if (len > room - r.produced) {
			r.status = TOK_MORE;
			break;
		}
		memcpy(out + r.produced, bytes, len);
		r.produced += len;
	}
	*begun |= r.consumed > 0;
	return r;
}

struct tok_result
tok_decode(const struct tok_vocab *v, const uint32_t *ids, size_t n, uint8_t *out, size_t room)
{
	bool begun = false;

	return decode(v, &begun, ids, n, out, room);
}

void
tok_decode_stream_init(struct tok_decode_stream *d, const struct tok_vocab *v)
{
	d->vocab = v;
	d->n_held = 0;
	d->begun = 0;
}

/* Number of bytes at the end of p[0 .. n) that are an incomplete character (0-3). */
static unsigned int
incomplete(const uint8_t *p, size_t n)
{
	for (unsigned int back = 1; back <= 3 && back <= n; back++) {
		const uint8_t *lead = p + n - back;
		unsigned int len = tok_utf8_length(*lead), i;

		if (len == 1)
			return 0;
		if (len == 0)
			continue; /* a continuation byte, or none: look further back */
		for (i = 1; i < back && tok_utf8_follows(*lead, i, lead[i]); i++)
			;
		return i == back && back < len ? back : 0;
	}
	return 0;
}

struct tok_result
tok_decode_stream_feed(struct tok_decode_stream *d, const uint32_t *ids, size_t n, bool last,
	uint8_t *out, size_t room)
{
	struct tok_result r = {.status = TOK_MORE};
	unsigned int held = d->n_held;
	bool begun;

	if (room < held)
		return r;
	memcpy(out, d->held, held);
	begun = d->begun;
	r = decode(d->vocab, &begun, ids, n, out + held, room - held);
	d->begun = begun;
	r.produced += held;
	d->n_held = 0;
	if (last && r.status == TOK_OK)
		return r;
	d->n_held = (uint8_t)incomplete(out, r.produced);
	r.produced -= d->n_held;
	memcpy(d->held, out + r.produced, d->n_held);
	return r;
}
