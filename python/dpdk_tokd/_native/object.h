/* SPDX-License-Identifier: BSD-3-Clause */
/* What the objects of all modules here need. Stable ABI of CPython 3.11. */
#pragma once

#include <Python.h>
#include <stdbool.h>
#include <string.h>

/* An array of numbers, or of more dimensions, is memory as well, but no text. */
static inline bool
is_bytes(const Py_buffer *b)
{
	const char *format = b->format == NULL ? "B" : b->format;

	format += *format != 0 && strchr("@=<>!", *format) != NULL;
	return b->ndim == 1 && b->itemsize == 1 && *format != 0 && strchr("Bbc", *format) != NULL &&
	       format[1] == 0;
}

/* Sets TypeError. index: the text's in a batch, or -1. */
static inline void
refuse_text(PyObject *o, const Py_buffer *b, Py_ssize_t index)
{
	PyObject *where =
		index < 0 ? PyUnicode_FromString("text") : PyUnicode_FromFormat("text %zd", index);
	PyObject *type = PyType_GetQualName(Py_TYPE(o));

	if (where == NULL || type == NULL)
		;
	else if (b == NULL)
		PyErr_Format(PyExc_TypeError,
			"%U: expected str, bytes or another buffer of bytes, got %U", where, type);
	else
		PyErr_Format(PyExc_TypeError,
			"%U: expected str, bytes or another buffer of bytes, got %U with %d "
			"dimensions of %zd-byte items (format \"%s\")",
			where, type, b->ndim, b->itemsize, b->format == NULL ? "B" : b->format);
	Py_XDECREF(where);
	Py_XDECREF(type);
}

/* Text of a str (as UTF-8, kept by it) or of a buffer of bytes. PyBuffer_Release(b) when done. */
static inline int
text_of(PyObject *o, Py_buffer *b)
{
	Py_ssize_t n;
	const char *utf8;

	if (!PyUnicode_Check(o)) {
		if (!PyObject_CheckBuffer(o)) {
			refuse_text(o, NULL, -1);
			return -1;
		}
		if (PyObject_GetBuffer(o, b, PyBUF_ND | PyBUF_FORMAT) < 0)
			return -1;
		if (is_bytes(b))
			return 0;
		refuse_text(o, b, -1);
		PyBuffer_Release(b);
		return -1;
	}
	utf8 = PyUnicode_AsUTF8AndSize(o, &n); /* UnicodeEncodeError names a surrogate's place */
	if (utf8 == NULL)
		return -1;
	return PyBuffer_FillInfo(b, o, (void *)utf8, n, 1, PyBUF_SIMPLE);
}

static inline void
free_object(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);
	freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

	release(self);
	Py_DECREF(type);
}

static inline void *
new_object(PyTypeObject *type)
{
	allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);

	return alloc(type, 0); /* zeroed */
}
