/* SPDX-License-Identifier: BSD-3-Clause */
/* Ids as lists of Python's numbers, each of which is made once and shared by all lists; and as the
 * bytes that JSON and protobuf have for them. */
#include "libtok.h"

#include <sys/mman.h>

/* Ids from here on, which few vocabularies have, are made anew each time. */
#define NUMBERS (1u << 18)

static PyObject *
number_of(uint32_t id)
{
	static PyObject *number[NUMBERS];

	if (id >= NUMBERS)
		return PyLong_FromUnsignedLong(id);
	if (number[id] == NULL) {
		number[id] = PyLong_FromUnsignedLong(id);
		if (number[id] == NULL)
			return NULL;
	}
	return Py_NewRef(number[id]);
}

/* Where a list keeps its items. Of a long one it is not touched yet: small pages would take longer
 * to get than the items to write. */
static void
ask_for_huge_pages(PyObject *list)
{
	uintptr_t begin = (uintptr_t)((PyListObject *)list)->ob_item;
	uintptr_t end = begin + (size_t)PyList_GET_SIZE(list) * sizeof(PyObject *);

	begin = (begin + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
	end = end / HUGE_PAGE * HUGE_PAGE;
	if (begin < end)
		madvise((void *)begin, end - begin, MADV_HUGEPAGE); /* only advice */
}

static PyObject *
list_of(const uint32_t *id, int64_t n)
{
	PyObject *list = PyList_New((Py_ssize_t)n);

	if (list != NULL && (size_t)n >= HUGE_PAGE / sizeof(PyObject *))
		ask_for_huge_pages(list);
	for (int64_t i = 0; list != NULL && i < n; i++) {
		PyObject *number = number_of(id[i]);

		if (number == NULL)
			Py_CLEAR(list);
		else
			PyList_SET_ITEM(list, (Py_ssize_t)i, number);
	}
	return list;
}

/* The array as type has it, or NULL with an exception set. */
static PyArrayObject *
vector(PyObject *o, int type)
{
	return (PyArrayObject *)PyArray_FROMANY(o, type, 1, 1, NPY_ARRAY_CARRAY_RO);
}

PyObject *
list_of_ids(PyObject *module, PyObject *o)
{
	PyArrayObject *ids = vector(o, NPY_UINT32);
	PyObject *list = ids == NULL ? NULL : list_of(PyArray_DATA(ids), PyArray_DIM(ids, 0));

	Py_XDECREF(ids);
	return list;
}

PyObject *
lists_of(PyObject *module, PyObject *args)
{
	PyArrayObject *ids = NULL, *splits = NULL;
	PyObject *o_ids, *o_splits, *lists = NULL;
	const int64_t *at;
	npy_intp n;

	if (!PyArg_ParseTuple(args, "OO", &o_ids, &o_splits))
		return NULL;
	ids = vector(o_ids, NPY_UINT32);
	splits = ids == NULL ? NULL : vector(o_splits, NPY_INT64);
	if (splits == NULL)
		goto end;
	at = PyArray_DATA(splits);
	n = PyArray_DIM(splits, 0) - 1;
	lists = PyList_New(n < 0 ? 0 : n);
	for (npy_intp i = 0; lists != NULL && i < n; i++) {
		PyObject *list = NULL;

		if (at[i] < 0 || at[i + 1] < at[i] || at[i + 1] > PyArray_DIM(ids, 0))
			PyErr_Format(PyExc_ValueError,
				"splits: text %zd is from %lld to %lld of %zd ids", i,
				(long long)at[i], (long long)at[i + 1], PyArray_DIM(ids, 0));
		else
			list = list_of(
				(const uint32_t *)PyArray_DATA(ids) + at[i], at[i + 1] - at[i]);
		if (list == NULL)
			Py_CLEAR(lists);
		else
			PyList_SET_ITEM(lists, i, list);
	}
end:
	Py_XDECREF(ids);
	Py_XDECREF(splits);
	return lists;
}

#define DECIMAL_MAX 10 /* digits of an id */

static char *
put_decimal(char *to, uint32_t v)
{
	char digit[DECIMAL_MAX];
	int n = 0;

	do
		digit[n++] = (char)('0' + v % 10);
	while ((v /= 10) != 0);
	while (n > 0)
		*to++ = digit[--n];
	return to;
}

/* Writes n ids, and returns where they end. */
typedef char *put_ids(char *to, const uint32_t *id, npy_intp n);

static char *
put_json(char *to, const uint32_t *id, npy_intp n)
{
	*to++ = '[';
	for (npy_intp i = 0; i < n; i++) {
		if (i > 0)
			*to++ = ',';
		to = put_decimal(to, id[i]);
	}
	*to++ = ']';
	return to;
}

#define VARINT_MAX 5 /* bytes of an id */

static char *
put_varints(char *to, const uint32_t *id, npy_intp n)
{
	for (npy_intp i = 0; i < n; i++) {
		uint32_t v = id[i];

		for (; v >= 0x80; v >>= 7)
			*to++ = (char)(v | 0x80);
		*to++ = (char)v;
	}
	return to;
}

/* Ids as bytes, at most so many each and two around them. */
static PyObject *
bytes_of(PyObject *o_ids, npy_intp each, put_ids *put)
{
	PyArrayObject *ids = vector(o_ids, NPY_UINT32);
	PyObject *made;
	npy_intp n;

	if (ids == NULL)
		return NULL;
	n = PyArray_DIM(ids, 0);
	made = PyBytes_FromStringAndSize(NULL, 2 + n * each);
	if (made != NULL) {
		char *begin = PyBytes_AS_STRING(made);

		_PyBytes_Resize(&made, put(begin, PyArray_DATA(ids), n) - begin);
	}
	Py_DECREF(ids);
	return made;
}

PyObject *
json_ids(PyObject *module, PyObject *o_ids)
{
	return bytes_of(o_ids, DECIMAL_MAX + 1, put_json);
}

PyObject *
varints(PyObject *module, PyObject *o_ids)
{
	return bytes_of(o_ids, VARINT_MAX, put_varints);
}
