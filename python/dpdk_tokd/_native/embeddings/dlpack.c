/* SPDX-License-Identifier: BSD-3-Clause */
/* A matrix for other array libraries, by DLPack (https://dmlc.github.io/dlpack). */
#include "libtok.h"

#include <stdint.h>
#include <stdlib.h>

/* dlpack.h of DLPack 1.0: ABI. */
struct dl_tensor {
	void *data;
	int32_t device_type, device_id;
	int32_t ndim;
	uint8_t code, bits;
	uint16_t lanes;
	int64_t *shape, *strides;
	uint64_t byte_offset;
};

struct dl_managed {
	struct dl_tensor tensor;
	void *context;
	void (*deleter)(struct dl_managed *);
};

#define DL_READ_ONLY 1ull
struct dl_versioned {
	uint32_t major, minor;
	void *context;
	void (*deleter)(struct dl_versioned *);
	uint64_t flags;
	struct dl_tensor tensor;
};

/* One allocation: which of the two is meant, the capsule's name says. */
struct export
{
	union {
		struct dl_managed managed;
		struct dl_versioned versioned;
	};
	int64_t shape[2], strides[2];
};

/* Whoever took it may let go of it in any thread. */
static void
let_go(void *context, void *self)
{
	PyGILState_STATE state;

	if (!Py_IsInitialized()) /* at the end of the process, as from a static object of C++ */
		return;
	state = PyGILState_Ensure();
	Py_DECREF((PyObject *)context);
	PyGILState_Release(state);
	free(self);
}

static void
delete_managed(struct dl_managed *m)
{
	let_go(m->context, m);
}

static void
delete_versioned(struct dl_versioned *v)
{
	let_go(v->context, v);
}

/* Of a capsule that nobody took: who takes it renames it. */
static void
capsule_gone(PyObject *capsule)
{
	if (PyCapsule_IsValid(capsule, "dltensor"))
		delete_managed(PyCapsule_GetPointer(capsule, "dltensor"));
	else if (PyCapsule_IsValid(capsule, "dltensor_versioned"))
		delete_versioned(PyCapsule_GetPointer(capsule, "dltensor_versioned"));
}

/*
 * dlpack(owner, address, rows, columns, type code, bits, device type, device id, versioned): a
 * capsule of the contiguous, read-only matrix at `address`. Who takes the matrix holds `owner`
 * until it is released.
 */
PyObject *
tokd_dlpack(PyObject *module, PyObject *args)
{
	unsigned long long address;
	long long rows, columns;
	int code, bits, device_type, device_id, versioned;
	struct dl_tensor *tensor;
	struct export *e;
	PyObject *owner, *capsule;

	if (!PyArg_ParseTuple(args, "OKLLiiiip", &owner, &address, &rows, &columns, &code, &bits,
		    &device_type, &device_id, &versioned))
		return NULL;
	e = calloc(1, sizeof(*e));
	if (e == NULL)
		return PyErr_NoMemory();
	tensor = versioned ? &e->versioned.tensor : &e->managed.tensor;
	*tensor = (struct dl_tensor){
		.data = (void *)(uintptr_t)address,
		.device_type = device_type,
		.device_id = device_id,
		.ndim = 2,
		.code = (uint8_t)code,
		.bits = (uint8_t)bits,
		.lanes = 1,
		.shape = e->shape,
		.strides = e->strides,
	};
	e->shape[0] = rows;
	e->shape[1] = e->strides[0] = columns;
	e->strides[1] = 1;
	if (versioned) {
		e->versioned.major = 1;
		e->versioned.flags = DL_READ_ONLY;
		e->versioned.context = owner;
		e->versioned.deleter = delete_versioned;
	} else {
		e->managed.context = owner;
		e->managed.deleter = delete_managed;
	}
	capsule = PyCapsule_New(e, versioned ? "dltensor_versioned" : "dltensor", capsule_gone);
	if (capsule == NULL) {
		free(e);
		return NULL;
	}
	Py_INCREF(owner);
	return capsule;
}
