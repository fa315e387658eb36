/* SPDX-License-Identifier: BSD-3-Clause */
/* What ids stand for: the bytes of the text, and its pretokens. */
#include "libtok.h"

#include "ids.h"

static PyObject *
spans_of(const struct tok_vocab *v, const char *text, Py_ssize_t n, uint32_t flags,
	const Py_buffer *ids)
{
	const npy_intp n_ids = ids->len / (npy_intp)sizeof(uint32_t), shape[2] = {n_ids, 2};
	PyObject *ranges = PyArray_SimpleNew(2, (npy_intp *)shape, NPY_UINT64);
	PyObject *words = PyArray_SimpleNew(1, (npy_intp *)shape, NPY_UINT32);
	bool ok;

	if (ranges == NULL || words == NULL) {
		Py_XDECREF(ranges);
		Py_XDECREF(words);
		return NULL;
	}
	Py_BEGIN_ALLOW_THREADS
	ok = tok_offsets(v, text, (size_t)n, flags, ids->buf, (size_t)n_ids, array_data(ranges),
		array_data(words));
	Py_END_ALLOW_THREADS
	if (ok)
		return Py_BuildValue("(NN)", ranges, words);
	Py_DECREF(ranges);
	Py_DECREF(words);
	PyErr_SetString(PyExc_ValueError, "offsets of this text cannot be told");
	return NULL;
}

PyObject *
vocab_spans(PyObject *self, PyObject *args)
{
	PyObject *spans, *ids;
	const char *text;
	Py_ssize_t n;
	Py_buffer b;
	int special;

	if (!PyArg_ParseTuple(args, "s#Op", &text, &n, &ids, &special) || ids_of(ids, &b) < 0)
		return NULL;
	spans = spans_of(((struct vocab *)self)->vocab, text, n, special ? TOK_SPECIAL : 0, &b);
	PyBuffer_Release(&b);
	return spans;
}
