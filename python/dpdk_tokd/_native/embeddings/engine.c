/* SPDX-License-Identifier: BSD-3-Clause */
/* tokd/engine.h for Python: lanes as arrays of numbers, over memory that Python has mapped. */
#include "libtok.h"

#include <tokd/engine.h>

/* The engine's memory, and what a call says about its lanes. */
struct call {
	struct tokd_engine e;
	Py_buffer outputs, made, own;
	Py_buffer lanes, with; /* what is with each lane: ids, or where the answer goes */
	uint32_t n;	       /* lanes of the call */
};

static void
release(struct call *c)
{
	PyBuffer_Release(&c->outputs);
	PyBuffer_Release(&c->made);
	PyBuffer_Release(&c->own);
	PyBuffer_Release(&c->lanes);
	PyBuffer_Release(&c->with);
}

static bool
fits(const Py_buffer *b, unsigned long long offset, uint64_t bytes)
{
	return offset % 8 == 0 && (uintptr_t)b->buf % 8 == 0 && offset <= (uint64_t)b->len &&
	       bytes <= (uint64_t)b->len - offset;
}

/* (outputs, shown_off, made, own, lanes, room) */
static bool
take_memory(struct call *c, PyObject *memory)
{
	PyObject *outputs, *made, *own;
	unsigned long long shown_off;
	uint64_t of_made;

	if (!PyArg_ParseTuple(
		    memory, "OKOOII", &outputs, &shown_off, &made, &own, &c->e.lanes, &c->e.room) ||
		PyObject_GetBuffer(outputs, &c->outputs, PyBUF_SIMPLE) < 0 ||
		PyObject_GetBuffer(made, &c->made, PyBUF_WRITABLE) < 0 ||
		PyObject_GetBuffer(own, &c->own, PyBUF_WRITABLE) < 0)
		return false;
	of_made = sizeof(*c->e.made) * (uint64_t)c->e.lanes;
	if (c->e.room == 0 || (c->e.room & (c->e.room - 1)) != 0 ||
		!fits(&c->outputs, shown_off, sizeof(*c->e.shown) * (uint64_t)c->e.lanes) ||
		!fits(&c->made, 0, of_made + 4 * (uint64_t)c->e.lanes * c->e.room) ||
		!fits(&c->own, 0, of_made)) {
		PyErr_Format(PyExc_ValueError, "%u lanes of %u ids are not in this memory",
			c->e.lanes, c->e.room);
		return false;
	}
	c->e.shown = (const void *)((const char *)c->outputs.buf + shown_off);
	c->e.made = c->made.buf;
	c->e.own = c->own.buf;
	c->e.ids = (uint32_t *)((char *)c->made.buf + of_made);
	return true;
}

/* uint64[n], and what is `each` bytes for one of them. */
static bool
take_lanes(struct call *c, PyObject *lanes, PyObject *with, size_t each, int flags)
{
	if (PyObject_GetBuffer(lanes, &c->lanes, PyBUF_SIMPLE) < 0 ||
		PyObject_GetBuffer(with, &c->with, flags) < 0)
		return false;
	c->n = (uint32_t)(c->lanes.len / 8);
	if (c->lanes.len % 8 == 0 && (uintptr_t)c->lanes.buf % 8 == 0 &&
		(uintptr_t)c->with.buf % 4 == 0 && (uint64_t)c->with.len == each * c->n)
		return true;
	PyErr_Format(PyExc_ValueError, "%zd bytes of lanes, %zd bytes with them", c->lanes.len,
		c->with.len);
	return false;
}

static PyObject *
engine_look(PyObject *module, PyObject *args)
{
	struct call c = {0};
	PyObject *memory, *lanes, *looks, *result = NULL;

	if (PyArg_ParseTuple(args, "O!OO", &PyTuple_Type, &memory, &lanes, &looks) &&
		take_memory(&c, memory) &&
		take_lanes(&c, lanes, looks, sizeof(struct tokd_lane_look), PyBUF_WRITABLE)) {
		for (uint32_t i = 0; i < c.n; i++)
			((struct tokd_lane_look *)c.with.buf)[i] =
				tokd_engine_look(&c.e, ((const uint64_t *)c.lanes.buf)[i]);
		result = Py_NewRef(Py_None);
	}
	release(&c);
	return result;
}

static PyObject *
engine_put(PyObject *module, PyObject *args)
{
	struct call c = {0};
	PyObject *memory, *lanes, *ids, *result = NULL;

	if (PyArg_ParseTuple(args, "O!OO", &PyTuple_Type, &memory, &lanes, &ids) &&
		take_memory(&c, memory) && take_lanes(&c, lanes, ids, 4, PyBUF_SIMPLE))
		result = PyBytes_FromStringAndSize(NULL, c.n);
	if (result != NULL)
		tokd_engine_put_all(
			&c.e, c.lanes.buf, c.with.buf, c.n, (uint8_t *)PyBytes_AS_STRING(result));
	release(&c);
	return result;
}

static PyObject *
engine_end(PyObject *module, PyObject *args)
{
	struct call c = {0};
	unsigned long long lane;
	unsigned int how;
	PyObject *memory, *result = NULL;

	if (PyArg_ParseTuple(args, "O!KI", &PyTuple_Type, &memory, &lane, &how) &&
		take_memory(&c, memory))
		result = PyBool_FromLong(tokd_engine_end(&c.e, lane, how));
	release(&c);
	return result;
}

PyMethodDef engine_methods[] = {
	{"engine_look", engine_look, METH_VARARGS, "What an engine may do with each lane now."},
	{"engine_put", engine_put, METH_VARARGS, "An id for each lane; bytes: which were put."},
	{"engine_end", engine_end, METH_VARARGS, "End the text of a lane. False: it has ended."},
	{0},
};
