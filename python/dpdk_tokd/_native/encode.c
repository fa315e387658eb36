/* SPDX-License-Identifier: BSD-3-Clause */
/* Vocab.encode: from a text to an array in one call of libtok. */
#include "libtok.h"

#include <string.h>

struct tok_result
encode_all(const struct vocab *v, struct encoder_text *text, uint32_t flags,
	const struct batch_cut *cut, struct ids *ids, struct encoder *const *e, uint32_t threads)
{
	struct signals signals = {0};
	struct tok_result r = {.status = encoder_utf8(e[0], text, &signals)};
	size_t bound;

	if (r.status != TOK_OK)
		return r;
	if (batch_head(v->vocab, e[0], 0, text, flags, cut, &r)) {
		ids->room = e[0]->ids;
		return r;
	}
	bound = encoder_bound(v->vocab, text->n, flags);
	/* Threads use the encoders' rooms: memory of its own, which the ids do not fill. */
	if (!ids_prepare(ids, e[0], threads > 1 ? bound + ENCODER_ROOM_KEPT : bound))
		return (struct tok_result){.status = TOK_MORE};
	if (threads > 1)
		return long_encode(v->vocab, e, threads, text, flags, ids->room);
	return encoder_encode(e[0], v->vocab, text, flags, ids->room, bound, &signals);
}

/* All of them, with nothing cut off. False with an exception set. `o` has the text. */
static bool
encode_text(struct vocab *v, PyObject *o, struct encoder_text *text, const struct how *h,
	struct ids *ids, struct encoder *const *e, uint32_t threads, struct tok_result *r)
{
	if (text->n < GIL_BYTES) {
		*r = encode_all(v, text, h->flags, &h->cut, ids, e, threads);
	} else {
		Py_BEGIN_ALLOW_THREADS
		*r = encode_all(v, text, h->flags, &h->cut, ids, e, threads);
		Py_END_ALLOW_THREADS
	}
	if (r->status == TOK_OK)
		return true;
	if (r->error == TOK_ERROR_NONE || PyErr_Occurred()) {
		raise_text(r->status, o, -1);
		return false;
	}
	if (h->offsets && r->error == TOK_ERROR_UTF8)
		PyErr_Format(PyExc_ValueError,
			"return_offsets: the text is not UTF-8, whose bytes offsets count (after "
			"%zu bytes)",
			r->consumed);
	else
		raise_bad(*r, "bytes");
	return false;
}

static_assert(sizeof(struct tok_range) == 2 * sizeof(uint64_t), "an array of uint64, (n, 2)");

/* Ranges of the n ids of a text, cut as those will be; NULL with an exception set. */
static PyObject *
ranges_of(const struct vocab *v, const struct encoder_text *text, const struct how *h,
	const uint32_t *ids, size_t n)
{
	struct tok_range *range = PyMem_Calloc(n, sizeof(*range));
	npy_intp shape[2] = {0, 2};
	PyObject *ranges = NULL;
	bool ok;

	if (range == NULL)
		return PyErr_NoMemory();
	Py_BEGIN_ALLOW_THREADS
	ok = tok_offsets(v->vocab, text->p, text->n, h->flags, ids, n, range, NULL);
	Py_END_ALLOW_THREADS
	if (ok) {
		shape[0] = (npy_intp)batch_cut(range, sizeof(*range), n, &h->cut);
		ranges = PyArray_SimpleNew(2, shape, NPY_UINT64);
	} else {
		PyErr_SetString(PyExc_ValueError,
			tok_has_offsets(v->vocab)
				? "return_offsets: the text was changed while it was encoded, or "
				  "offsets of this text cannot be told"
				: "return_offsets: not implemented for SentencePiece's .model of kind "
				  "Unigram, or whose text is normalized; a tokenizer.json of the same "
				  "model has them");
	}
	if (ranges != NULL)
		memcpy(array_data(ranges), range, (size_t)shape[0] * sizeof(*range));
	PyMem_Free(range);
	return ranges;
}

/* The ids, or with the offsets a tuple. NULL with an exception set. `o` has the text. */
static PyObject *
encode(struct vocab *v, PyObject *o, struct encoder_text *text, const struct how *h)
{
	PyObject *made = NULL, *ranges = NULL;
	const uint32_t threads = long_threads(v->vocab, text->n, h->flags);
	struct encoder *e[BATCH_THREADS_MAX];
	struct ids ids = {0};
	struct tok_result r;

	if (!encoders_borrow(v, e, threads))
		return NULL;
	if (encode_text(v, o, text, h, &ids, e, threads, &r) &&
		(!h->offsets || (ranges = ranges_of(v, text, h, ids.room, r.produced)) != NULL))
		made = ids_as(ids_array(&ids,
				      batch_cut(ids.room, sizeof(*ids.room), r.produced, &h->cut)),
			h->type);
	ids_free(&ids);
	encoders_return(v, e, threads);
	if (ranges == NULL)
		return made;
	if (made != NULL)
		return Py_BuildValue("(NN)", made, ranges);
	Py_DECREF(ranges);
	return NULL;
}

PyObject *
vocab_encode(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
	struct vocab *v = (struct vocab *)self;
	struct how h = how_default(v);
	struct encoder_text text;
	PyObject *made;
	Py_buffer b;
	int held;

	if (names != NULL && !how_take(&h, v, "encode", HOW_ENCODE, names, args + n))
		return NULL;
	if (n + (h.text != NULL) != 1)
		return PyErr_Format(PyExc_TypeError,
			"encode() takes one text, then keywords (%zd given)", n + (h.text != NULL));
	if (h.offsets)
		h.flags |= TOK_STRICT_UTF8;
	if (n == 1)
		h.text = args[0];
	held = text_take(&text, &b, h.text, -1);
	if (held < 0)
		return NULL;
	made = encode(v, h.text, &text, &h);
	if (held)
		PyBuffer_Release(&b);
	return made;
}
