/* SPDX-License-Identifier: BSD-3-Clause */
/* What the objects of all modules here need. Stable ABI of CPython 3.11. */
#pragma once

#include <Python.h>

/* Text of a str (as UTF-8, kept by it) or of a buffer. PyBuffer_Release(b) when done. */
static inline int
text_of(PyObject *o, Py_buffer *b)
{
	Py_ssize_t n;
	const char *utf8;

	if (!PyUnicode_Check(o))
		return PyObject_GetBuffer(o, b, PyBUF_SIMPLE);
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
