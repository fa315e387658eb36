/* SPDX-License-Identifier: BSD-3-Clause */
/* Module libtokd: libtokd-client (client.c) and libtokd-reader (ring.c) for Python. */
#include "libtokd.h"

#include <tokd/client.h>
#include <tokd/reader.h>

static const struct {
	const char *name;
	int value;
} constants[] = {
	{"OK", TOKD_OK},
	{"E_REFUSED", TOKD_E_REFUSED},
	{"E_TIMEOUT", TOKD_E_TIMEOUT},
	{"E_NET", TOKD_E_NET},
	{"E_CANCELLED", TOKD_E_CANCELLED},
	{"STREAM", TOKD_REQUEST_STREAM},
	{"DECODE", TOKD_REQUEST_DECODE},
	{"SKIP_SPECIAL", TOKD_REQUEST_SKIP_SPECIAL},
	{"GENERATE", TOKD_REQUEST_GENERATE},
	{"STOP", TOKD_MADE_STOP},
	{"LENGTH", TOKD_MADE_LENGTH},
	{"CANCELLED", TOKD_MADE_CANCELLED},
	{"RING_SYSTEM", TOKR_SYSTEM},
	{"RING_TIMEOUT", TOKR_TIMEOUT},
	{"RING_REFUSED", TOKR_REFUSED},
	{"RING_DROPPED", TOKR_DROPPED},
};

static int
module_exec(PyObject *module)
{
	PyType_Spec *const spec[TYPES] = {[CLIENT] = &libtokd_client_spec,
		[REQUEST] = &libtokd_request_spec,
		[READER] = &libtokd_reader_spec,
		[RANGE] = &libtokd_range_spec};
	struct libtokd_state *state = PyModule_GetState(module);

	for (int i = 0; i < TYPES; i++) {
		state->type[i] = (PyTypeObject *)PyType_FromModuleAndSpec(module, spec[i], NULL);
		if (state->type[i] == NULL || PyModule_AddType(module, state->type[i]) < 0)
			return -1;
	}
	for (size_t i = 0; i < sizeof(constants) / sizeof(constants[0]); i++) {
		if (PyModule_AddIntConstant(module, constants[i].name, constants[i].value) < 0)
			return -1;
	}
	return 0;
}

static int
module_traverse(PyObject *module, visitproc visit, void *arg)
{
	struct libtokd_state *state = PyModule_GetState(module);

	for (int i = 0; i < TYPES; i++)
		Py_VISIT(state->type[i]);
	return 0;
}

static int
module_clear(PyObject *module)
{
	struct libtokd_state *state = PyModule_GetState(module);

	for (int i = 0; i < TYPES; i++)
		Py_CLEAR(state->type[i]);
	return 0;
}

static PyModuleDef_Slot module_slots[] = {
	{Py_mod_exec, module_exec},
	{0, NULL},
};

static struct PyModuleDef module_def = {
	PyModuleDef_HEAD_INIT,
	.m_name = "dpdk_tokd._native.libtokd",
	.m_doc = "libtokd-client and libtokd-reader.",
	.m_size = sizeof(struct libtokd_state),
	.m_slots = module_slots,
	.m_traverse = module_traverse,
	.m_clear = module_clear,
};

PyMODINIT_FUNC
PyInit_libtokd(void)
{
	return PyModuleDef_Init(&module_def);
}
