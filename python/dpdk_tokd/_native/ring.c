/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libtokd-reader for Python. Stable ABI of CPython 3.11. Ids are not copied: a Range exports the
 * ring's memory as a read-only buffer. A view keeps its Range, a Range keeps its Reader, and the
 * last of them unmaps the rings.
 *
 * The GIL is released while attaching only, so it guards a Reader and its Ranges: another thread
 * than the reading one may release a range.
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <tokd/reader.h>

#include "libtokd.h"
#include "object.h"

struct range;

struct reader {
	PyObject_HEAD
	struct tokr *r;
	PyTypeObject *range_type;    /* strong reference */
	struct tokr_record current;  /* released by the next call of next() */
	struct range *current_range; /* of that record, if it is still about */
	bool tap, has_current, closed, gone;
};

struct range {
	PyObject_HEAD
	struct reader *reader; /* strong reference */
	struct tokr_record rec;
	struct tokr_keys keys;
	bool released;
};

/* ---- errors ---- */

/* The classes are Python's: ring/errors.py makes one of an enum tokr_result. Always NULL. */
static PyObject *
raise_as(int code, int sys_errno, const char *text, uint64_t lost_bytes, bool overwritten)
{
	PyObject *errors = PyImport_ImportModule("dpdk_tokd.ring.errors");
	PyObject *why = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace"),
		 *error = NULL;

	if (errors != NULL && why != NULL)
		error = PyObject_CallMethod(errors, "from_code", "iiOKO", code, sys_errno, why,
			(unsigned long long)lost_bytes, overwritten ? Py_True : Py_False);
	if (error != NULL)
		PyErr_SetObject((PyObject *)Py_TYPE(error), error);
	Py_XDECREF(error);
	Py_XDECREF(why);
	Py_XDECREF(errors);
	return NULL;
}

/* What a dropped reader did not release: bytes, and whether some of them were overwritten. */
static uint64_t
unreleased(const struct reader *self, bool *overwritten)
{
	struct tokr_ring info;
	uint64_t bytes = 0;

	for (uint32_t i = 0; tokr_ring_info(self->r, i, &info) == 0; i++) {
		bytes += info.unread_bytes + info.held_bytes;
		*overwritten |= info.overwritten_bytes > 0;
	}
	return bytes;
}

/*
 * Release a record. 1: it was intact; 0: a tap's was not; -1: a registered reader's was not, with
 * RingDropped set.
 */
static int
release(struct reader *self, const struct tokr_record *rec)
{
	bool registered = !self->tap, overwritten = true;
	uint64_t lost = 0;
	char text[sizeof(tokr_last_error(NULL)->text)];

	if (registered && tokr_check(self->r, rec) != 0)
		lost = unreleased(self, &overwritten); /* before it is let go of */
	if (tokr_release(self->r, rec) == 0)
		return 1;
	if (!registered)
		return 0;
	if (tokr_last_error(self->r)->code == TOKR_DROPPED)
		snprintf(text, sizeof(text), "%s", tokr_last_error(self->r)->text);
	else
		snprintf(text, sizeof(text),
			"reader was dropped: token ring %u went on past unreleased ids at %llu; "
			"release faster, or raise --reader-timeout or --ring-size",
			rec->worker, (unsigned long long)rec->position);
	raise_as(TOKR_DROPPED, 0, text, lost, overwritten);
	return -1;
}

/* ---- Range ---- */

static void
range_dealloc(PyObject *o)
{
	struct range *self = (struct range *)o;

	if (self->reader->current_range == self)
		self->reader->current_range = NULL;
	Py_DECREF(self->reader);
	free_object(o);
}

/* Where the keys begin in the buffer. */
static Py_ssize_t
keys_at(const struct range *self)
{
	return self->keys.count == 0 ? (Py_ssize_t)(self->rec.count * sizeof(uint32_t))
				     : (const char *)self->keys.keys - (const char *)self->rec.ids;
}

/* The ids and, after padding, the keys. */
static int
range_getbuffer(PyObject *o, Py_buffer *b, int flags)
{
	struct range *self = (struct range *)o;

	return PyBuffer_FillInfo(b, o, (void *)(uintptr_t)self->rec.ids,
		keys_at(self) + (Py_ssize_t)((size_t)self->keys.count * self->keys.key_bytes), 1,
		flags);
}

static Py_ssize_t
range_length(PyObject *o)
{
	return ((struct range *)o)->rec.count;
}

/* The reader no longer releases it by itself. */
static void
keep(struct range *self)
{
	if (self->reader->current_range != self)
		return;
	self->reader->current_range = NULL;
	self->reader->has_current = false;
}

static PyObject *
range_hold(PyObject *o, PyObject *unused)
{
	keep((struct range *)o);
	return Py_NewRef(o);
}

static PyObject *
range_release(PyObject *o, PyObject *unused)
{
	struct range *self = (struct range *)o;
	int intact;

	if (self->released)
		Py_RETURN_TRUE;
	keep(self);
	self->released = true;
	if (self->reader->closed)
		Py_RETURN_FALSE;
	intact = release(self->reader, &self->rec);
	return intact < 0 ? NULL : PyBool_FromLong(intact);
}

static PyObject *
range_intact(PyObject *o, void *unused)
{
	struct range *self = (struct range *)o;

	return PyBool_FromLong(
		!self->reader->closed && tokr_check(self->reader->r, &self->rec) == 0);
}

/* (where they begin in the buffer, how many, bytes of each, enum tokb_scheme) */
static PyObject *
range_keys(PyObject *o, void *unused)
{
	const struct range *self = (struct range *)o;

	return Py_BuildValue(
		"(nIII)", keys_at(self), self->keys.count, self->keys.key_bytes, self->keys.scheme);
}

static PyObject *
range_released(PyObject *o, void *unused)
{
	struct range *self = (struct range *)o;

	return PyBool_FromLong(self->released || self->reader->closed);
}

static PyObject *
range_flag(PyObject *o, void *mask)
{
	return PyBool_FromLong((((struct range *)o)->rec.flags & (uint32_t)(uintptr_t)mask) != 0);
}

static PyMethodDef range_methods[] = {
	{"hold", range_hold, METH_NOARGS,
		"Keep the range until release(). It and everything after it stays in the ring: if\n"
		"held too long, the appliance drops the reader."},
	{"release", range_release, METH_NOARGS,
		"Release `tokens`. A second call does nothing.\n\n"
		"True: what was read was valid. False: a tap's range was overwritten meanwhile, or the\n"
		"reader was closed before. RingDropped: a registered reader was dropped before, so the\n"
		"ids may have been overwritten while they were used."},
	{0},
};

#define FLAG(name, mask, doc)                                                                      \
	{                                                                                          \
		name, range_flag, NULL, doc, (void *)(uintptr_t)(mask)                             \
	}
static PyGetSetDef range_getset[] = {
	FLAG("starts", TOKR_FIRST, "The first range of its stream."),
	FLAG("last", TOKR_LAST | TOKR_ABORT,
		"The stream is complete with this range, or was aborted."),
	FLAG("aborted", TOKR_ABORT,
		"The stream failed, see `reason`: its ids so far are not those of a whole text."),
	{"intact", range_intact, NULL,
		"Whether everything read from `tokens` so far was valid.\n\n"
		"True for a registered reader until the appliance drops it. A tap checks it after\n"
		"each use. False if the reader is closed.",
		NULL},
	{"_released", range_released, NULL, "`tokens` may be overwritten.", NULL},
	{"_keys", range_keys, NULL,
		"Of keys: where they begin in the buffer, how many, bytes of each, scheme.", NULL},
	{0},
};

static PyMemberDef range_members[] = {
	MEMBER(range, "stream_id", T_ULONGLONG, rec.stream_id,
		"The client's number: unique only together with client and `epoch`."),
	MEMBER(range, "serial", T_ULONGLONG, rec.serial, "Unique among the streams of one worker."),
	MEMBER(range, "instance", T_ULONGLONG, rec.instance,
		"The run of dpdk-tokd that published it; `serial` is unique within it."),
	MEMBER(range, "epoch", T_UINT, rec.epoch, "The client's."),
	MEMBER(range, "first", T_UINT, rec.first, "Index of the first id within its stream."),
	MEMBER(range, "vocab", T_UINT, rec.vocab, "Checksum of the vocabulary."),
	MEMBER(range, "text_end", T_UINT, rec.text_end, "Bytes of the text that had been fed."),
	MEMBER(range, "worker", T_UINT, rec.worker, "Index of the worker that published it."),
	MEMBER(range, "position", T_ULONGLONG, rec.position,
		"In the worker's ring: bytes since its start."),
	MEMBER(range, "lost_bytes", T_ULONGLONG, rec.lost_bytes,
		"Bytes of this worker's ring that a tap missed just before this range."),
	MEMBER(range, "t_rx", T_ULONGLONG, rec.t_rx,
		"TSC ticks when the worker took the packet from its queue."),
	MEMBER(range, "t_publish", T_ULONGLONG, rec.t_publish,
		"TSC ticks when the range was published."),
	MEMBER(range, "t_rx_ns", T_ULONGLONG, rec.t_rx_ns, "`t_rx` in ns."),
	MEMBER(range, "t_publish_ns", T_ULONGLONG, rec.t_publish_ns, "`t_publish` in ns."),
	MEMBER(range, "block_size", T_UINT, keys.block_size,
		"Ids of a block; 0: the appliance runs without --block-keys."),
	MEMBER(range, "first_block", T_UINT, keys.first,
		"Index of the block of the first key within its stream."),
	MEMBER(range, "_reason", T_UINT, rec.reason,
		"enum tokd_reason, perhaps of a later release."),
	{0},
};

static PyType_Slot range_slots[] = {
	{Py_tp_doc, "One record of a token ring."},
	{Py_tp_dealloc, range_dealloc},
	{Py_bf_getbuffer, range_getbuffer},
	{Py_sq_length, range_length},
	{Py_tp_methods, range_methods},
	{Py_tp_getset, range_getset},
	{Py_tp_members, range_members},
	{0, NULL},
};

PyType_Spec libtokd_range_spec = {
	.name = "dpdk_tokd._native.libtokd.Range",
	.basicsize = sizeof(struct range),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
	.slots = range_slots,
};

/* ---- Reader ---- */

static int64_t
now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static PyObject *
reader_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	struct libtokd_state *state = PyType_GetModuleState(type);
	int tap, timeout_ms, mode;
	int64_t deadline;
	PyTypeObject *range_type;
	struct tokr_error error;
	struct reader *self;
	const char *path;
	PyObject *bytes;
	struct tokr *r;

	if (!PyArg_ParseTuple(
		    args, "O&piO", PyUnicode_FSConverter, &bytes, &tap, &timeout_ms, &range_type))
		return NULL;
	if (!PyType_Check((PyObject *)range_type) ||
		!PyType_IsSubtype(range_type, state->type[RANGE])) {
		Py_DECREF(bytes);
		return PyErr_Format(PyExc_TypeError, "range_type: expected a subclass of Range");
	}
	path = PyBytes_AsString(bytes);
	mode = (tap ? TOKR_TAP : TOKR_READER) | TOKR_EINTR;
	deadline = now_ms() + (timeout_ms > 0 ? timeout_ms : 0);
	do {
		int64_t left = deadline - now_ms(); /* signals do not prolong it */

		Py_BEGIN_ALLOW_THREADS
		r = tokr_attach(path, mode, left > 0 ? (int)left : 0, &error);
		Py_END_ALLOW_THREADS
	} while (r == NULL && error.code == TOKR_SYSTEM && error.sys_errno == EINTR &&
		 PyErr_CheckSignals() == 0);
	Py_DECREF(bytes);
	if (r == NULL && PyErr_Occurred())
		return NULL;
	if (r == NULL)
		return raise_as(error.code == TOKR_GONE ? TOKR_REFUSED : error.code,
			error.sys_errno, error.text, 0, false);
	self = new_object(type);
	if (self == NULL) {
		tokr_detach(r);
		return NULL;
	}
	self->r = r;
	self->tap = tap;
	self->range_type = (PyTypeObject *)Py_NewRef((PyObject *)range_type);
	return (PyObject *)self;
}

static void
reader_dealloc(PyObject *o)
{
	struct reader *self = (struct reader *)o;

	tokr_detach(self->r);
	Py_DECREF(self->range_type);
	free_object(o);
}

static PyObject *
reader_close(PyObject *o, PyObject *unused)
{
	struct reader *self = (struct reader *)o;

	self->closed = true;
	self->has_current = false;
	tokr_part(self->r);
	Py_RETURN_NONE;
}

static PyObject *
raise_latest(const struct reader *self)
{
	const struct tokr_error *e = tokr_last_error(self->r);
	bool overwritten = false;
	uint64_t lost = e->code == TOKR_DROPPED ? unreleased(self, &overwritten) : 0;

	return raise_as(e->code, e->sys_errno, e->text, lost, overwritten);
}

static PyObject *
reader_next(PyObject *o, PyObject *unused)
{
	struct reader *self = (struct reader *)o;
	struct range *range;
	int rc;

	if (self->closed)
		return raise_as(TOKR_INVALID, 0, "the reader is closed", 0, false);
	if (self->has_current) {
		self->has_current = false;
		if (self->current_range != NULL)
			self->current_range->released = true;
		self->current_range = NULL;
		if (release(self, &self->current) < 0)
			return NULL;
	}
	rc = tokr_next(self->r, &self->current, 0);
	self->gone = rc == TOKR_GONE;
	if (rc == 0 || self->gone)
		Py_RETURN_NONE;
	if (rc < 0)
		return raise_latest(self);
	self->has_current = true;
	range = new_object(self->range_type);
	if (range == NULL)
		return NULL;
	range->reader = (struct reader *)Py_NewRef(o);
	range->rec = self->current;
	tokr_keys(self->r, &range->rec, &range->keys);
	self->current_range = range;
	return (PyObject *)range;
}

/* Of each ring what its header says, then what a tap lost of it. */
static PyObject *
reader_rings(PyObject *o, PyObject *unused)
{
	struct reader *self = (struct reader *)o;
	PyObject *list = PyList_New(0);
	struct tokr_ring ring;
	struct tokr_keys keys;

	tokr_keys(self->r, NULL, &keys);
	for (uint32_t i = 0; list != NULL && tokr_ring_info(self->r, i, &ring) == 0; i++) {
		PyObject *tuple = Py_BuildValue("(IIIKKII)(IKKK)", ring.worker, ring.lcore,
			ring.vocab, (unsigned long long)ring.data_bytes,
			(unsigned long long)ring.tsc_hz, keys.block_size, keys.scheme, ring.worker,
			(unsigned long long)ring.overruns, (unsigned long long)ring.lost_bytes,
			(unsigned long long)ring.broken_records);

		if (tuple == NULL || PyList_Append(list, tuple) < 0)
			Py_CLEAR(list);
		Py_XDECREF(tuple);
	}
	return list;
}

static PyObject *
reader_instance(PyObject *o, void *unused)
{
	return PyLong_FromUnsignedLongLong(tokr_instance(((struct reader *)o)->r));
}

static PyMethodDef reader_methods[] = {
	{"next", reader_next, METH_NOARGS, "The next range or None; releases the previous one."},
	{"close", reader_close, METH_NOARGS, "Detach; the rings stay mapped while views exist."},
	{"rings", reader_rings, METH_NOARGS,
		"((worker, lcore, vocab, data_bytes, tsc_hz, block_size, scheme), (worker, "
		"overruns, bytes, ranges)) of each."},
	{"__class_getitem__", Py_GenericAlias, METH_O | METH_CLASS, "Reader[type of its ranges]"},
	{0},
};

static PyGetSetDef reader_getset[] = {
	{"instance", reader_instance, NULL, "The run of dpdk-tokd that it is attached to.", NULL},
	{0},
};

static PyMemberDef reader_members[] = {
	{"gone", T_BOOL, offsetof(struct reader, gone), READONLY,
		"The appliance has ended, and all its ranges were returned."},
	{"closed", T_BOOL, offsetof(struct reader, closed), READONLY, "close() was called."},
	{0},
};

static PyType_Slot reader_slots[] = {
	{Py_tp_doc, "Reader(path, tap, timeout_ms, range_type): tokr_attach()."},
	{Py_tp_new, reader_new},
	{Py_tp_dealloc, reader_dealloc},
	{Py_tp_methods, reader_methods},
	{Py_tp_getset, reader_getset},
	{Py_tp_members, reader_members},
	{0, NULL},
};

PyType_Spec libtokd_reader_spec = {
	.name = "dpdk_tokd._native.libtokd.Reader",
	.basicsize = sizeof(struct reader),
	.flags = Py_TPFLAGS_DEFAULT,
	.slots = reader_slots,
};
