/* SPDX-License-Identifier: BSD-3-Clause */
/* The types of module libtokd: client.c and ring.c define them, libtokd.c makes them. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <structmember.h>

enum { CLIENT, REQUEST, READER, RANGE, TYPES };

struct libtokd_state {
	PyTypeObject *type[TYPES];
};

extern PyType_Spec libtokd_client_spec, libtokd_request_spec, libtokd_reader_spec,
	libtokd_range_spec;

#define MEMBER(of, name, type, field, doc)                                                         \
	{                                                                                          \
		name, type, offsetof(struct of, field), READONLY, doc                              \
	}
