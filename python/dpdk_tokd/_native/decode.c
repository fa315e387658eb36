/* SPDX-License-Identifier: BSD-3-Clause */
/* From ids to bytes: Vocab.decode, and DecodeStream. */
#include "libtok.h"

#include "ids.h"

struct decode_stream {
	PyObject_HEAD
	struct vocab *owner; /* strong reference */
	int busy;
	struct tok_decode_stream tok;
};

/* Bytes that `n` ids decode to; an unknown id counts for none, and is found by decoding. */
static size_t
decoded_bytes(const struct tok_vocab *v, const uint32_t *ids, size_t n)
{
	size_t bytes = 0;
	uint32_t len;

	for (size_t i = 0; i < n; i++) {
		if (tok_vocab_token(v, ids[i], &len) != NULL)
			bytes += len + 1; /* a blank may come before it */
	}
	return bytes;
}

static PyObject *
unknown_id(const uint32_t *ids, struct tok_result r)
{
	return PyErr_Format(PyExc_ValueError, "id %u at index %zu: %s",
		(unsigned int)ids[r.consumed], r.consumed, tok_error_code_text(r.error));
}

PyObject *
vocab_decode(PyObject *self, PyObject *o)
{
	const struct tok_vocab *v = ((struct vocab *)self)->vocab;
	const uint32_t *ids;
	struct tok_result r;
	size_t n, bytes;
	PyObject *text;
	Py_buffer b;

	if (ids_of(o, &b) < 0)
		return NULL;
	ids = b.buf;
	n = (size_t)b.len / 4;
	Py_BEGIN_ALLOW_THREADS
	bytes = decoded_bytes(v, ids, n);
	Py_END_ALLOW_THREADS
	text = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)bytes);
	if (text != NULL) {
		uint8_t *out = (uint8_t *)PyBytes_AsString(text);

		Py_BEGIN_ALLOW_THREADS
		r = tok_decode(v, ids, n, out, bytes);
		Py_END_ALLOW_THREADS
		if (r.status != TOK_OK) {
			Py_DECREF(text);
			text = r.error == TOK_ERROR_ID ? unknown_id(ids, r) : raise_bad(r, "ids");
		} else {
			_PyBytes_Resize(&text, (Py_ssize_t)r.produced);
		}
	}
	PyBuffer_Release(&b);
	return text;
}

/* ---- DecodeStream ---- */

PyTypeObject *decode_stream_type;

PyObject *
vocab_decode_stream(PyObject *self, PyObject *unused)
{
	struct decode_stream *d = new_object(decode_stream_type);

	if (d == NULL)
		return NULL;
	d->owner = (struct vocab *)Py_NewRef(self);
	tok_decode_stream_init(&d->tok, d->owner->vocab);
	return (PyObject *)d;
}

static void
decode_stream_dealloc(PyObject *self)
{
	PyObject_GC_UnTrack(self);
	Py_DECREF(((struct decode_stream *)self)->owner);
	free_object(self);
}

/* As stream_traverse. */
static int
decode_stream_traverse(PyObject *self, visitproc visit, void *arg)
{
	Py_VISIT(((struct decode_stream *)self)->owner);
	Py_VISIT(Py_TYPE(self));
	return 0;
}

static PyObject *
decode_stream_feed(PyObject *self, PyObject *args)
{
	struct decode_stream *d = (struct decode_stream *)self;
	const struct tok_vocab *v = d->owner->vocab;
	const uint32_t *ids;
	struct tok_result r;
	PyObject *o, *text;
	Py_buffer b;
	size_t n, room;
	int last;

	if (!PyArg_ParseTuple(args, "Op", &o, &last))
		return NULL;
	if (ids_of(o, &b) < 0)
		return NULL;
	if (d->busy) { /* after ids_of: an object's own __buffer__ may let other threads run */
		PyBuffer_Release(&b);
		return stream_in_use();
	}
	ids = b.buf;
	n = (size_t)b.len / 4;
	/* What is held, and tok.h's condition on room. */
	room = decoded_bytes(v, ids, n) + sizeof(d->tok.held) + tok_vocab_info(v).max_token_bytes;
	text = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)room);
	if (text != NULL) {
		uint8_t *out = (uint8_t *)PyBytes_AsString(text);

		d->busy = 1;
		Py_BEGIN_ALLOW_THREADS
		r = tok_decode_stream_feed(&d->tok, ids, n, last, out, room);
		Py_END_ALLOW_THREADS
		d->busy = 0;
		if (r.status != TOK_OK) {
			Py_DECREF(text);
			text = r.error == TOK_ERROR_ID ? unknown_id(ids, r) : raise_bad(r, "ids");
		} else {
			_PyBytes_Resize(&text, (Py_ssize_t)r.produced);
		}
	}
	PyBuffer_Release(&b);
	return text;
}

static PyMethodDef decode_stream_methods[] = {
	{"feed", decode_stream_feed, METH_VARARGS,
		"Feed ids; bytes up to the last whole character."},
	{0},
};

static PyType_Slot decode_stream_slots[] = {
	{Py_tp_doc, "Ids on their way through. One thread at a time."},
	{Py_tp_dealloc, decode_stream_dealloc},
	{Py_tp_traverse, decode_stream_traverse},
	{Py_tp_methods, decode_stream_methods},
	{0},
};

PyType_Spec decode_stream_spec = {
	.name = "dpdk_tokd._native.libtok.DecodeStream",
	.basicsize = sizeof(struct decode_stream),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE |
		 Py_TPFLAGS_DISALLOW_INSTANTIATION,
	.slots = decode_stream_slots,
};
