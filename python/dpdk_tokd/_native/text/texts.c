/* SPDX-License-Identifier: BSD-3-Clause */
/* What is taken for a text, and arrays for its ids. */
#include "libtok.h"

#include <string.h>

#include "tables/mem.h"

/* Of a batch: the exception that is set says which text it is about. */
static void
note_index(Py_ssize_t index)
{
	PyObject *type, *error, *traceback, *done;

	PyErr_Fetch(&type, &error, &traceback);
	PyErr_NormalizeException(&type, &error, &traceback);
	done = PyObject_CallMethod(
		error, "add_note", "N", PyUnicode_FromFormat("text %zd of the batch", index));
	Py_XDECREF(done);
	PyErr_Restore(type, error, traceback);
}

int
text_take(struct encoder_text *text, Py_buffer *b, PyObject *o, Py_ssize_t index)
{
	*text = (struct encoder_text){0};
	if (PyUnicode_Check(o)) {
		if (PyUnicode_READY(o) < 0)
			return -1;
		text->p = PyUnicode_DATA(o);
		text->n = (size_t)PyUnicode_GET_LENGTH(o);
		text->width = PyUnicode_IS_ASCII(o) ? 0 : PyUnicode_KIND(o);
	} else if (PyBytes_Check(o)) {
		text->p = PyBytes_AS_STRING(o);
		text->n = (size_t)PyBytes_GET_SIZE(o);
	} else {
		if (!PyObject_CheckBuffer(o)) {
			refuse_text(o, NULL, index);
			return -1;
		}
		if (PyObject_GetBuffer(o, b, PyBUF_ND | PyBUF_FORMAT) < 0) {
			if (index >= 0)
				note_index(index);
			return -1;
		}
		if (!is_bytes(b)) {
			refuse_text(o, b, index);
			PyBuffer_Release(b);
			return -1;
		}
		text->p = b->buf;
		text->n = (size_t)b->len;
		return 1;
	}
	return 0;
}

PyObject *
raise_text(enum tok_status status, PyObject *o, Py_ssize_t index)
{
	if (PyErr_Occurred()) /* of a signal's handler */
		return NULL;
	if (status == TOK_MORE)
		return PyErr_NoMemory();
	if (PyUnicode_AsUTF8AndSize(o, NULL) == NULL && index >= 0) /* names the surrogate */
		note_index(index);
	return NULL;
}

#define ARRAY_LARGE ((size_t)4 << 20) /* bytes */

static void
free_array(PyObject *capsule)
{
	tok_mem_default.free(NULL, PyCapsule_GetPointer(capsule, NULL),
		(size_t)(uintptr_t)PyCapsule_GetContext(capsule));
}

/*
 * An array of a block of tok_mem_default, which it frees. NULL with an exception set, and the block
 * gone.
 */
static PyObject *
array_adopt(void *block, size_t bytes, size_t n, int type)
{
	npy_intp size = (npy_intp)n;
	PyObject *array = PyArray_SimpleNewFromData(1, &size, type, block);
	PyObject *owner = array == NULL ? NULL : PyCapsule_New(block, NULL, free_array);

	if (owner == NULL) {
		Py_XDECREF(array);
		tok_mem_default.free(NULL, block, bytes);
		return NULL;
	}
	PyCapsule_SetContext(owner, (void *)(uintptr_t)bytes);
	if (PyArray_SetBaseObject((PyArrayObject *)array, owner) == 0)
		return array;
	Py_DECREF(array);
	return NULL;
}

/* A large one has huge pages, aligned: small ones take longer to get than their ids to make. */
PyObject *
array_new(size_t n, int type)
{
	const size_t bytes = n * (type == NPY_INT64 ? 8 : 4);
	npy_intp size = (npy_intp)n;
	void *block;

	if (bytes < ARRAY_LARGE)
		return PyArray_SimpleNew(1, &size, type);
	block = tok_mem_default.alloc(NULL, bytes, 64);
	return block == NULL ? PyErr_NoMemory() : array_adopt(block, bytes, n, type);
}

bool
ids_prepare(struct ids *ids, struct encoder *e, size_t bound)
{
	*ids = (struct ids){0};
	if (bound <= ENCODER_ROOM_KEPT) {
		ids->room = encoder_room(e, bound) ? e->ids : NULL;
	} else if (bound <= PY_SSIZE_T_MAX / sizeof(*ids->room)) {
		ids->own_bytes = bound * sizeof(*ids->room);
		ids->room = ids->own = tok_mem_default.alloc(NULL, ids->own_bytes, 64);
	}
	return ids->room != NULL;
}

void
ids_free(struct ids *ids)
{
	if (ids->own != NULL)
		tok_mem_default.free(NULL, ids->own, ids->own_bytes);
	ids->own = NULL;
}

PyObject *
ids_array(struct ids *ids, size_t n)
{
	uint32_t *own = ids->own;
	PyObject *array;

	if (own == NULL) {
		array = array_new(n, NPY_UINT32);
		if (array != NULL)
			memcpy(array_data(array), ids->room, n * sizeof(*ids->room));
		return array;
	}
	ids->own = NULL;
	ids->own_bytes = tok_mem_shrink(own, ids->own_bytes, n * sizeof(*own));
	return array_adopt(own, ids->own_bytes, n, NPY_UINT32);
}

PyObject *
ids_as(PyObject *array, int type)
{
	PyObject *other;

	if (array == NULL || type == NPY_UINT32)
		return array;
	if (type == NPY_INT32) /* of the same size, and ids are below 2^31 */
		other = PyArray_View((PyArrayObject *)array, PyArray_DescrFromType(type), NULL);
	else
		other = PyArray_Cast((PyArrayObject *)array, type);
	Py_DECREF(array);
	return other;
}

const char *
why_of(struct tok_result r)
{
	return r.status == TOK_MORE ? "room for what is given out ran short"
				    : tok_error_code_text(r.error);
}

PyObject *
raise_bad(struct tok_result r, const char *unit)
{
	return PyErr_Format(
		PyExc_ValueError, "%s (after %zu %s of this call)", why_of(r), r.consumed, unit);
}
