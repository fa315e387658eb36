/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory operations of tokd/ring.h that Python cannot express. */
#include "libtok.h"

#include <stdatomic.h>

/* Address of the aligned 8-byte word at `offset` of buffer *b, or NULL with an error set. */
static uint64_t *
word_at(const Py_buffer *b, Py_ssize_t offset)
{
	char *p = (char *)b->buf + offset;

	if (offset < 0 || b->len < 8 || offset > b->len - 8 || (uintptr_t)p % 8 != 0) {
		PyErr_Format(PyExc_IndexError,
			"offset %zd: not an aligned 8-byte word in a buffer of %zd bytes", offset,
			b->len);
		return NULL;
	}
	return (uint64_t *)p;
}

static PyObject *
load_u64(PyObject *args, bool fenced)
{
	Py_ssize_t offset;
	PyObject *o, *value = NULL;
	const uint64_t *p;
	Py_buffer b;

	if (!PyArg_ParseTuple(args, "On", &o, &offset) ||
		PyObject_GetBuffer(o, &b, PyBUF_SIMPLE) < 0)
		return NULL;
	p = word_at(&b, offset);
	if (p != NULL) {
		if (fenced)
			atomic_thread_fence(memory_order_acquire);
		value = PyLong_FromUnsignedLongLong(__atomic_load_n(p, __ATOMIC_ACQUIRE));
	}
	PyBuffer_Release(&b);
	return value;
}

/* ring.h: what is read after this was written before the word's value was stored. */
static PyObject *
load_acquire_u64(PyObject *module, PyObject *args)
{
	return load_u64(args, false);
}

/* ring.h, tail: what was read before this was read before the word's value was loaded. */
static PyObject *
load_fenced_u64(PyObject *module, PyObject *args)
{
	return load_u64(args, true);
}

/* ring.h, cursor: what was read before this is no longer needed by whoever sees the value. */
static PyObject *
store_release_u64(PyObject *module, PyObject *args)
{
	unsigned long long value;
	Py_ssize_t offset;
	PyObject *o, *number;
	uint64_t *p;
	Py_buffer b;

	if (!PyArg_ParseTuple(args, "OnO", &o, &offset, &number))
		return NULL;
	value = PyLong_AsUnsignedLongLong(number);
	if (value == (unsigned long long)-1 && PyErr_Occurred())
		return NULL;
	if (PyObject_GetBuffer(o, &b, PyBUF_WRITABLE) < 0)
		return NULL;
	p = word_at(&b, offset);
	if (p != NULL)
		__atomic_store_n(p, value, __ATOMIC_RELEASE);
	PyBuffer_Release(&b);
	if (p == NULL)
		return NULL;
	Py_RETURN_NONE;
}

PyMethodDef words_methods[] = {
	{"load_acquire_u64", load_acquire_u64, METH_VARARGS, "Load a word of a buffer, acquire."},
	{"load_fenced_u64", load_fenced_u64, METH_VARARGS, "Acquire fence, then load_acquire_u64."},
	{"store_release_u64", store_release_u64, METH_VARARGS,
		"Store a word of a buffer, release."},
	{0},
};
