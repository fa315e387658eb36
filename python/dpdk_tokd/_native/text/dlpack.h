/* SPDX-License-Identifier: BSD-3-Clause */
/* A matrix for other array libraries, by DLPack (https://dmlc.github.io/dlpack). */
#pragma once

#include <Python.h>

/*
 * dlpack(owner, address, rows, columns, type code, bits, device type, device id, versioned): a
 * capsule of the contiguous, read-only matrix at `address`. `owner` lives as long as whoever
 * takes it.
 */
PyObject *tokd_dlpack(PyObject *module, PyObject *args);
