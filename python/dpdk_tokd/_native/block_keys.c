/* SPDX-License-Identifier: BSD-3-Clause */
/* Module block_keys: libtokd-block-keys for Python. Apart from libtok, which needs no library. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#define NPY_NO_DEPRECATED_API NPY_1_23_API_VERSION
#include <numpy/arrayobject.h>

#include <tokd/block_keys.h>

#include "ids.h"

#define GIL_IDS 4096 /* fewer take some 30 us: libtok.h */

/* The characters of a str, which keeps them, or nothing for None. */
static int
text_of(PyObject *o, const char *name, struct tokb_text *text)
{
	Py_ssize_t n;

	if (o == Py_None)
		return 0;
	if (!PyUnicode_Check(o)) {
		PyErr_Format(PyExc_TypeError, "%s: expected a str, got %.100s", name,
			Py_TYPE(o)->tp_name);
		return -1;
	}
	text->bytes = PyUnicode_AsUTF8AndSize(o, &n); /* UnicodeEncodeError names a surrogate */
	text->n = (size_t)n;
	return text->bytes != NULL ? 0 : -1;
}

static int
scheme_of(PyObject *o, enum tokb_scheme *scheme)
{
	for (int i = 0; i < TOKB_SCHEMES; i++) {
		*scheme = (enum tokb_scheme)i;
		if (PyUnicode_Check(o) &&
			PyUnicode_CompareWithASCIIString(o, tokb_scheme_name(*scheme)) == 0)
			return 0;
	}
	PyErr_Format(PyExc_ValueError, "scheme: %R: expected \"%s\", \"%s\" or \"%s\"", o,
		tokb_scheme_name(TOKB_LLM_D), tokb_scheme_name(TOKB_VLLM_SHA256_CBOR),
		tokb_scheme_name(TOKB_VLLM_XXHASH_CBOR));
	return -1;
}

/* keys(ids, scheme, block_size, seed, model, cache_salt) */
static PyObject *
keys(PyObject *module, PyObject *args)
{
	struct tokb_options o = {0};
	struct tokb_error err;
	PyObject *o_ids, *scheme, *seed, *model, *salt, *array = NULL;
	unsigned long long block_size;
	struct tokb *k = NULL;
	npy_intp shape[2];
	Py_buffer ids;
	size_t n;

	if (!PyArg_ParseTuple(args, "OOKOOO", &o_ids, &scheme, &block_size, &seed, &model, &salt) ||
		ids_of(o_ids, &ids) < 0)
		return NULL;
	n = (size_t)ids.len / sizeof(uint32_t);
	o.block_size = block_size;
	if (scheme_of(scheme, &o.scheme) < 0 || text_of(seed, "seed", &o.seed) < 0 ||
		text_of(model, "model", &o.model) < 0 ||
		text_of(salt, "cache_salt", &o.cache_salt) < 0)
		goto out;
	k = tokb_create(&o, &err);
	if (k == NULL) {
		PyErr_SetString(PyExc_ValueError, err.text);
		goto out;
	}
	shape[0] = (npy_intp)(n / o.block_size);
	shape[1] = (npy_intp)tokb_key_bytes(o.scheme);
	array = o.scheme == TOKB_LLM_D ? PyArray_SimpleNew(1, shape, NPY_UINT64)
				       : PyArray_SimpleNew(2, shape, NPY_UINT8);
	if (array != NULL) {
		void *data = PyArray_DATA((PyArrayObject *)array);
		PyThreadState *released = n >= GIL_IDS ? PyEval_SaveThread() : NULL;

		tokb_feed(k, ids.buf, n, data);
		if (released != NULL)
			PyEval_RestoreThread(released);
	}
out:
	tokb_free(k);
	PyBuffer_Release(&ids);
	return array;
}

static PyMethodDef methods[] = {
	{"keys", keys, METH_VARARGS, "Keys of the full blocks of uint32 ids."},
	{0},
};

static struct PyModuleDef module_def = {
	PyModuleDef_HEAD_INIT,
	.m_name = "dpdk_tokd._native.block_keys",
	.m_doc = "libtokd-block-keys: keys of blocks of ids.",
	.m_size = -1,
	.m_methods = methods,
};

PyMODINIT_FUNC
PyInit_block_keys(void)
{
	import_array();
	return PyModule_Create(&module_def);
}
