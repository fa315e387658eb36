/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "build/model_make.h"
#include "sp_model.h"
#include "unicode/utf8.h"

/* Wire types of protocol buffers. */
enum wire {
	WIRE_VARINT = 0,
	WIRE_I64 = 1,
	WIRE_LEN = 2,
	WIRE_I32 = 5,
};

/* The rest of a message. */
struct message {
	const uint8_t *p, *end;
};

struct field {
	uint32_t number;
	enum wire wire;
	uint64_t value;	       /* WIRE_VARINT, WIRE_I32 */
	struct message inside; /* WIRE_LEN */
};

static bool
read_varint(struct message *m, uint64_t *value)
{
	*value = 0;
	for (unsigned int shift = 0; shift < 64; shift += 7) {
		uint8_t byte;

		if (m->p == m->end)
			return false;
		byte = *m->p++;
		*value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return true;
	}
	return false;
}

/* Read the next field. False at the end, where m->p == m->end, or if the message is broken. */
static bool
read_field(struct message *m, struct field *f)
{
	const uint8_t *begin = m->p;
	uint64_t key, n = 0;

	if (m->p == m->end)
		return false;
	if (!read_varint(m, &key) || key >> 3 == 0 || key >> 3 > UINT32_MAX)
		goto broken;
	*f = (struct field){.number = (uint32_t)(key >> 3), .wire = (enum wire)(key & 7)};
	switch (f->wire) {
	case WIRE_VARINT:
		if (read_varint(m, &f->value))
			return true;
		goto broken;
	case WIRE_I64:
		n = 8;
		break;
	case WIRE_LEN:
		if (!read_varint(m, &n))
			goto broken;
		break;
	case WIRE_I32:
		n = 4;
		break;
	default:
		goto broken;
	}
	if (n > (uint64_t)(m->end - m->p))
		goto broken;
	f->inside = (struct message){m->p, m->p + n};
	if (f->wire == WIRE_I32)
		for (uint32_t i = 4; i-- > 0;)
			f->value = f->value << 8 | m->p[i];
	m->p += n;
	return true;
broken:
	m->p = begin;
	return false;
}

static bool
read_piece(struct message m, struct tok_sp_piece *piece)
{
	struct field f;

	*piece = (struct tok_sp_piece){.text = "", .type = TOK_SP_NORMAL};
	while (read_field(&m, &f)) {
		if (f.number == 1 && f.wire == WIRE_LEN) {
			piece->text = (const char *)f.inside.p;
			piece->len = (uint32_t)(f.inside.end - f.inside.p);
		} else if (f.number == 2 && f.wire == WIRE_I32) {
			const uint32_t bits = (uint32_t)f.value;

			memcpy(&piece->score, &bits, sizeof(bits));
		} else if (f.number == 3 && f.wire == WIRE_VARINT) {
			piece->type = f.value <= TOK_SP_BYTE ? (enum tok_sp_type)f.value : 0;
		}
	}
	return m.p == m.end;
}

static bool
read_trainer(struct message m, struct tok_sp_model *sp)
{
	struct field f;

	while (read_field(&m, &f)) {
		if (f.number == 44 && f.wire == WIRE_LEN) {
			sp->unk_surface = (const char *)f.inside.p;
			sp->unk_surface_bytes = (uint32_t)(f.inside.end - f.inside.p);
		}
		if (f.wire != WIRE_VARINT)
			continue;
		if (f.number == 3)
			sp->kind = f.value <= UINT32_MAX ? (uint32_t)f.value : 0;
		else if (f.number == 24)
			sp->whitespace_as_suffix = f.value != 0;
		else if (f.number == 35)
			sp->byte_fallback = f.value != 0;
	}
	return m.p == m.end;
}

static bool
read_normalizer(struct message m, struct tok_sp_model *sp)
{
	struct field f;

	while (read_field(&m, &f)) {
		if (f.number == 2 && f.wire == WIRE_LEN) {
			sp->charsmap = f.inside.p;
			sp->charsmap_bytes = (size_t)(f.inside.end - f.inside.p);
		} else if (f.wire == WIRE_VARINT && f.number == 3) {
			sp->dummy_prefix = f.value != 0;
		} else if (f.wire == WIRE_VARINT && f.number == 4) {
			sp->remove_extra_whitespaces = f.value != 0;
		} else if (f.wire == WIRE_VARINT && f.number == 5) {
			sp->escape_whitespaces = f.value != 0;
		}
	}
	return m.p == m.end;
}

static bool
read_denormalizer(struct message m, struct tok_sp_model *sp)
{
	struct field f;

	while (read_field(&m, &f))
		sp->denormalizes |=
			f.number == 2 && f.wire == WIRE_LEN && f.inside.p < f.inside.end;
	return m.p == m.end;
}

static bool
check_piece(const char *file, uint32_t id, const struct tok_sp_piece *p, struct tok_error *err)
{
	if (p->type == 0)
		return tok_fail(err, "%s: piece %u is of a type that is not known", file, id);
	if (p->len == 0 || p->len > TOK_MAX_TOKEN_BYTES)
		return tok_fail(err, "%s: piece %u has %u bytes, expected 1 to %u", file, id,
			p->len, TOK_MAX_TOKEN_BYTES);
	if (tok_utf8_scan((const uint8_t *)p->text, p->len).valid != p->len ||
		memchr(p->text, '\0', p->len) != NULL)
		return tok_fail(err, "%s: piece %u is not UTF-8 without NUL", file, id);
	if (!(p->score > -1e30f && p->score < 1e30f))
		return tok_fail(err, "%s: piece %u has no score", file, id);
	return true;
}

bool
tok_sp_read(const char *file, const uint8_t *p, size_t n, struct tok_sp_model *sp,
	struct tok_error *err)
{
	static const char unk_surface[] = " \xe2\x81\x87 ";
	struct message m = {p, p + n};
	bool ok = true;
	struct field f;
	uint32_t most = 0;

	*sp = (struct tok_sp_model){
		.kind = TOK_SP_UNIGRAM, /* defaults of absent fields */
		.dummy_prefix = true,
		.remove_extra_whitespaces = true,
		.escape_whitespaces = true,
		.unk_surface = unk_surface,
		.unk_surface_bytes = sizeof(unk_surface) - 1,
	};
	while (read_field(&m, &f))
		most += f.number == 1 && f.wire == WIRE_LEN;
	if (m.p != m.end || most == 0 || most > TOK_MAX_IDS)
		return tok_fail(err,
			"%s: not a SentencePiece model of 1 to %u pieces, or damaged at byte %zu",
			file, TOK_MAX_IDS, (size_t)(m.p - p));
	sp->piece = calloc(most, sizeof(*sp->piece));
	if (sp->piece == NULL)
		return tok_fail(err, "out of memory for %u pieces", most);
	m.p = p;
	while (ok && read_field(&m, &f)) {
		const size_t at = (size_t)(f.inside.p - p);

		if (f.wire != WIRE_LEN)
			continue;
		if (f.number == 1)
			ok = read_piece(f.inside, &sp->piece[sp->n++]);
		else if (f.number == 2)
			ok = read_trainer(f.inside, sp);
		else if (f.number == 3)
			ok = read_normalizer(f.inside, sp);
		else if (f.number == 5)
			ok = read_denormalizer(f.inside, sp);
		if (!ok)
			tok_fail(err, "%s: damaged, the message at byte %zu", file, at);
	}
	for (uint32_t id = 0; ok && id < sp->n; id++)
		ok = check_piece(file, id, &sp->piece[id], err);
	if (ok && (sp->unk_surface_bytes > TOK_MAX_TOKEN_BYTES ||
			  tok_utf8_scan((const uint8_t *)sp->unk_surface, sp->unk_surface_bytes)
					  .valid != sp->unk_surface_bytes))
		ok = tok_fail(err, "%s: trainer_spec.unk_surface is not UTF-8 of at most %u bytes",
			file, TOK_MAX_TOKEN_BYTES);
	if (!ok)
		tok_sp_free(sp);
	return ok;
}

void
tok_sp_free(struct tok_sp_model *sp)
{
	free(sp->piece);
	sp->piece = NULL;
}
