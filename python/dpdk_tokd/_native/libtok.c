/* SPDX-License-Identifier: BSD-3-Clause */
/* Module libtok: libtok for Python, and what Python cannot do with memory itself. */
#define LIBTOK_IMPORTS_NUMPY
#include "libtok.h"

static PyObject *
limit_threads(PyObject *module, PyObject *n)
{
	const unsigned long most = PyLong_AsUnsignedLong(n);

	if (PyErr_Occurred())
		return NULL;
	long_threads_most = most < BATCH_THREADS_MAX ? (uint32_t)most : BATCH_THREADS_MAX;
	Py_RETURN_NONE;
}

static PyMethodDef module_methods[] = {
	{"limit_threads", limit_threads, METH_O, "The most threads that one text is encoded by."},
	{"list_of", list_of_ids, METH_O, "Ids as a list: `tolist`, in a fifth of its time."},
	{"lists", lists_of, METH_VARARGS, "Ids of many texts, and their splits, as lists."},
	{"json_ids", json_ids, METH_O, "Ids as an array of JSON."},
	{"varints", varints, METH_O, "Ids as protobuf packs numbers."},
	{"json_lines", json_lines, METH_VARARGS, "A string of each line of JSON lines, or None."},
	{"dlpack", tokd_dlpack, METH_VARARGS, "A matrix for other array libraries, read-only."},
	{0},
};

static PyTypeObject *
add_type(PyObject *module, PyType_Spec *spec)
{
	PyTypeObject *type = (PyTypeObject *)PyType_FromModuleAndSpec(module, spec, NULL);

	if (type != NULL && PyModule_AddType(module, type) < 0)
		Py_CLEAR(type);
	return type;
}

/* Single-phase: numpy is loaded once in a process, and so is this. */
static struct PyModuleDef module_def = {
	PyModuleDef_HEAD_INIT,
	.m_name = "dpdk_tokd._native.libtok",
	.m_doc = "libtok, and memory operations for the token ring.",
	.m_size = -1,
	.m_methods = module_methods,
};

PyMODINIT_FUNC
PyInit_libtok(void)
{
	PyObject *module;
	PyTypeObject *vocab_type;

	import_array();
	module = PyModule_Create(&module_def);
	if (module == NULL)
		return NULL;
	vocab_type = add_type(module, &vocab_spec);
	stream_type = add_type(module, &stream_spec);
	decode_stream_type = add_type(module, &decode_stream_spec);
	if (vocab_type != NULL && stream_type != NULL && decode_stream_type != NULL &&
		options_init() && PyModule_AddFunctions(module, words_methods) == 0 &&
		PyModule_AddFunctions(module, engine_methods) == 0 &&
		PyModule_AddIntConstant(module, "THREADS_MAX", BATCH_THREADS_MAX) == 0) {
		Py_DECREF(vocab_type);
		return module;
	}
	Py_DECREF(module);
	return NULL;
}
