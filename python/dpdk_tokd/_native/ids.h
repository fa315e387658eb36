/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <Python.h>

/* A buffer of ids; -1 with an exception set. PyBuffer_Release(b) when done. */
static inline int
ids_of(PyObject *o, Py_buffer *b)
{
	if (PyObject_GetBuffer(o, b, PyBUF_SIMPLE) < 0)
		return -1;
	if (b->len % 4 == 0 && (uintptr_t)b->buf % 4 == 0)
		return 0;
	PyErr_SetString(PyExc_ValueError, "ids: not an aligned array of 4-byte integers");
	PyBuffer_Release(b);
	return -1;
}
