/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libtokd-client for Python. Stable ABI of CPython 3.11. The library writes ids into a bytearray,
 * which NumPy then wraps without a copy. Only ids returned before the text is finished are copied.
 * With DECODE ids are the text, and the bytes of their text are the ids. With GENERATE the
 * bytearray is where the answer passes through, and its items are copied.
 *
 * The GIL is released in poll and wait, in which the library writes to requests in flight; `busy`
 * then refuses a second thread. Members of a request are read once it is `finished`, or by the
 * thread that polls. A request in flight is in its client's set `pending`, which keeps its text and
 * its buffer for ids until the library is done with them.
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <tokd/client.h>

#include "libtokd.h"
#include "object.h"

#define BURST 256    /* requests given out at once */
#define SLICE_MS 50  /* of a wait, between looks for signals: Ctrl-C ends it within that */
#define ROOM_MORE 16 /* ids beyond one a byte: for a short text with a prefix */
/* Some characters become many: U+FDFA, of three bytes, 18 by NFKC. What a reply says is not asked.
 */
#define ROOM_A_BYTE 64
#define ROOM_DECODE 4 /* the same for text, at first: 16 bytes an id */

struct client {
	PyObject_HEAD
	struct tokd_client *c;		/* NULL: closed */
	PyObject *pending;		/* set of requests */
	struct tokd_client_stats stats; /* as they were before it was closed, or became busy */
	uint64_t number;		/* among the clients of this process */
	uint32_t server_vocab;
	bool busy;
};

struct request {
	PyObject_HEAD
	struct tokd_request r;
	struct client *under_way; /* its client; NULL: it is finished */
	Py_buffer text;		  /* of `text.obj`, while it is under way */
	PyObject *ids;		  /* bytearray of r.max_ids; NULL: given out whole */
	uint32_t given;		  /* ids given out one by one */
	uint64_t client;	  /* its number */
	PyObject *error_text;	  /* str: what failed, and the remedy */
};

/* False with an exception set. */
static bool
is_usable(const struct client *c)
{
	if (c->busy)
		PyErr_SetString(PyExc_RuntimeError,
			"client is in use by another thread: give each thread a client of its own");
	else if (c->c == NULL)
		PyErr_SetString(PyExc_ConnectionAbortedError, "the client was closed");
	return !c->busy && c->c != NULL;
}

/* ---- Request ---- */

/* Bytes of what is counted as an id. */
static size_t
each(const struct request *q)
{
	return q->r.flags & (TOKD_REQUEST_DECODE | TOKD_REQUEST_GENERATE) ? 1 : sizeof(uint32_t);
}

static bool
is_pending(const struct request *q)
{
	return q->r.status == TOKD_PENDING;
}

static bool
generates(const struct request *q)
{
	return q->r.flags & TOKD_REQUEST_GENERATE;
}

/* Room for more ids; what is there stays. False with MemoryError set. */
static bool
make_room(struct request *q, size_t max_ids)
{
	if (max_ids > UINT32_MAX)
		max_ids = UINT32_MAX;
	if (PyByteArray_Resize(q->ids, (Py_ssize_t)(max_ids * each(q))) < 0)
		return false;
	q->r.ids = (uint32_t *)(void *)PyByteArray_AsString(q->ids);
	q->r.max_ids = (uint32_t)max_ids;
	return true;
}

static void
request_dealloc(PyObject *self)
{
	struct request *q = (struct request *)self;

	if (q->text.obj != NULL)
		PyBuffer_Release(&q->text);
	Py_XDECREF(q->ids);
	Py_XDECREF(q->error_text);
	free_object(self);
}

/* A copy of the ids that have come since the last call; None: none have. */
static PyObject *
request_take(PyObject *self, PyObject *unused)
{
	struct request *q = (struct request *)self;
	uint32_t first = q->given, end;

	if (generates(q)) {
		PyErr_SetString(PyExc_TypeError, "take: an answer is read by Client.made");
		return NULL;
	}
	if (q->under_way != NULL && !is_usable(q->under_way))
		return NULL;
	end = q->r.n_ids;
	if (q->ids == NULL || end <= first)
		Py_RETURN_NONE;
	q->given = end;
	return PyByteArray_FromStringAndSize(
		q->r.out + first * each(q), (Py_ssize_t)((end - first) * each(q)));
}

/* All ids of a finished text, once. */
static PyObject *
request_ids(PyObject *self, PyObject *unused)
{
	struct request *q = (struct request *)self;
	PyObject *ids = q->ids;

	if (generates(q)) {
		PyErr_SetString(PyExc_TypeError, "ids: an answer is read by Client.made");
		return NULL;
	}
	if (ids == NULL || q->under_way != NULL || q->r.status != TOKD_OK) {
		PyErr_SetString(PyExc_RuntimeError, "the ids are not there, or were given out");
		return NULL;
	}
	if (PyByteArray_Resize(ids, (Py_ssize_t)(q->r.n_ids * each(q))) < 0)
		return NULL;
	q->ids = NULL;
	return ids;
}

/* With its error: not before poll or wait has given it out, whichever call made it fail. */
static PyObject *
request_finished(PyObject *self, void *unused)
{
	return PyBool_FromLong(((struct request *)self)->under_way == NULL);
}

static PyMethodDef request_methods[] = {
	{"take", request_take, METH_NOARGS, "Ids that have come since the last call."},
	{"ids", request_ids, METH_NOARGS, "All ids of a finished text, once."},
	{0},
};

static PyGetSetDef request_getset[] = {
	{"finished", request_finished, NULL, "Nothing more will come.", NULL},
	{0},
};

static PyMemberDef request_members[] = {
	MEMBER(request, "status", T_INT, r.status, "enum tokd_status"),
	MEMBER(request, "reason", T_INT, r.reason, "enum tokd_reason, with E_REFUSED"),
	MEMBER(request, "error", T_INT, r.error, "errno, with E_NET"),
	MEMBER(request, "stream_id", T_ULONGLONG, r.stream_id, "As in the token ring."),
	MEMBER(request, "error_text", T_OBJECT, error_text,
		"What failed, and the remedy; None: nothing did."),
	{0},
};

static PyType_Slot request_slots[] = {
	{Py_tp_doc, "One text under way."},
	{Py_tp_dealloc, request_dealloc},
	{Py_tp_methods, request_methods},
	{Py_tp_getset, request_getset},
	{Py_tp_members, request_members},
	{0, NULL},
};

PyType_Spec libtokd_request_spec = {
	.name = "dpdk_tokd._native.libtokd.Request",
	.basicsize = sizeof(struct request),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
	.slots = request_slots,
};

/* ---- Client ---- */

static uint64_t clients; /* opened in this process */

static PyObject *
client_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	struct tokd_client_options options = {0};
	char error[TOKD_ERROR_MAX];
	struct tokd_client *opened;
	struct client *c;
	const char *host;
	int port, why;

	if (!PyArg_ParseTuple(args, "siIIII", &host, &port, &options.vocab, &options.timeout_ms,
		    &options.requests, &options.mtu))
		return NULL;
	Py_BEGIN_ALLOW_THREADS
	opened = tokd_client_open(host, (uint16_t)port, &options, error);
	why = errno;
	Py_END_ALLOW_THREADS
	if (opened == NULL && why == EINVAL)
		return PyErr_Format(PyExc_ValueError, "%s", error);
	if (opened == NULL) { /* socket.gaierror has the negative ones */
		PyObject *value = Py_BuildValue("is", why, error);

		PyErr_SetObject(PyExc_OSError, value);
		Py_XDECREF(value);
		return NULL;
	}
	c = new_object(type);
	if (c != NULL)
		c->pending = PySet_New(NULL);
	if (c == NULL || c->pending == NULL) {
		tokd_client_close(opened);
		Py_XDECREF((PyObject *)c);
		return NULL;
	}
	c->c = opened;
	c->number = ++clients;
	return (PyObject *)c;
}

/* The library is done with it. */
static void
let_go(struct client *c, struct request *q)
{
	q->under_way = NULL;
	PyBuffer_Release(&q->text);
	if (PySet_Discard(c->pending, (PyObject *)q) < 0)
		PyErr_Clear(); /* a set of objects that hash by identity */
}

static void
close_client(struct client *c)
{
	PyObject *q;

	if (c->c == NULL)
		return;
	c->stats = tokd_client_stats(c->c);
	tokd_client_close(c->c);
	c->c = NULL;
	while (PySet_Size(c->pending) > 0 && (q = PySet_Pop(c->pending)) != NULL) {
		((struct request *)q)->under_way = NULL;
		PyBuffer_Release(&((struct request *)q)->text);
		Py_DECREF(q);
	}
}

static void
client_dealloc(PyObject *self)
{
	struct client *c = (struct client *)self;

	close_client(c);
	Py_XDECREF(c->pending);
	free_object(self);
}

static PyObject *
client_close(PyObject *self, PyObject *unused)
{
	struct client *c = (struct client *)self;

	if (c->busy && !is_usable(c))
		return NULL;
	close_client(c);
	Py_RETURN_NONE;
}

static PyObject *
client_submit(PyObject *self, PyObject *args)
{
	struct client *c = (struct client *)self;
	struct libtokd_state *state = PyType_GetModuleState(Py_TYPE(self));
	char error[TOKD_ERROR_MAX];
	struct request *q;
	PyObject *text;
	unsigned int flags, limit = 0;
	size_t room;
	int taken;

	if (!PyArg_ParseTuple(args, "OI|I", &text, &flags, &limit))
		return NULL;
	q = new_object(state->type[REQUEST]);
	if (q == NULL)
		goto fail;
	if (flags & TOKD_REQUEST_DECODE) /* whose text is an array of ids */
		taken = PyObject_GetBuffer(text, &q->text, PyBUF_SIMPLE);
	else
		taken = text_of(text, &q->text);
	/* is_usable after them: an object's own __buffer__ may close the client, or use it. */
	if (taken < 0 || !is_usable(c))
		goto fail;
	q->r.text = q->text.buf;
	q->r.len = (size_t)q->text.len;
	q->r.flags = flags;
	q->r.limit = limit;
	q->client = c->number;
	q->under_way = c;
	room = flags & TOKD_REQUEST_GENERATE ? TOKD_GENERATE_ROOM
	       : flags & TOKD_REQUEST_DECODE ? ROOM_DECODE * q->r.len
					     : q->r.len;
	q->ids = PyByteArray_FromStringAndSize(NULL, 0);
	if (q->ids == NULL || (q->r.len <= UINT32_MAX && !make_room(q, room + ROOM_MORE)) ||
		PySet_Add(c->pending, (PyObject *)q) < 0)
		goto fail;
	if (tokd_client_submit(c->c, &q->r) != TOKD_PENDING) {
		tokd_client_describe(c->c, &q->r, error);
		PyErr_SetString(
			q->r.status == TOKD_E_ARGUMENT ? PyExc_ValueError : PyExc_RuntimeError,
			error);
		let_go(c, q);
		goto fail;
	}
	return (PyObject *)q;

fail:
	Py_XDECREF((PyObject *)q);
	return NULL;
}

/*
 * A request that the library gave out: into `news`, unless it only wants more room. False: memory
 * is short; it is let go of all the same, as the library does not give it out again.
 */
static bool
take_news(struct client *c, struct request *q, PyObject *news)
{
	char error[TOKD_ERROR_MAX];
	bool noted = true;

	if (q->r.status == TOKD_E_ROOM && !(q->r.flags & TOKD_REQUEST_GENERATE)) {
		size_t room = q->r.max_ids;

		/* The same text has the same ids: what was given out before stands. */
		if (room < UINT32_MAX && room / ROOM_A_BYTE < q->r.len + ROOM_MORE) {
			if (!make_room(q, 2 * room))
				PyErr_Clear(); /* E_ROOM has words for it */
			else if (tokd_client_submit(c->c, &q->r) == TOKD_PENDING)
				return true;
		}
	}
	if (q->r.status >= 0)
		c->server_vocab = q->r.vocab;
	if (q->r.status < 0) {
		tokd_client_describe(c->c, &q->r, error);
		q->error_text = PyUnicode_DecodeUTF8(error, (Py_ssize_t)strlen(error), "replace");
		noted = q->error_text != NULL;
	}
	noted = PyList_Append(news, (PyObject *)q) == 0 && noted;
	if (!noted)
		PyErr_Clear();
	if (!is_pending(q))
		let_go(c, q);
	return noted;
}

/* Receive and send; wait up to `wait_ms`. The requests with news, or NULL with an exception set. */
static PyObject *
take_turn(struct client *c, int wait_ms)
{
	struct tokd_request *done[BURST];
	PyObject *news = PyList_New(0);
	uint32_t n = BURST;
	bool noted = true;

	while (news != NULL && n == BURST) {
		c->stats = tokd_client_stats(c->c);
		c->busy = true;
		Py_BEGIN_ALLOW_THREADS
		n = wait_ms > 0 ? tokd_client_wait(c->c, done, BURST, wait_ms)
				: tokd_client_poll(c->c, done, BURST);
		Py_END_ALLOW_THREADS
		for (uint32_t i = 0; i < n; i++) {
			struct request *q =
				(struct request *)((char *)done[i] - offsetof(struct request, r));

			noted &= take_news(c, q, news);
		}
		c->busy = false; /* only now: closing it earlier would release what is still in
				    done[] */
		if (!noted) {
			Py_CLEAR(news);
			PyErr_NoMemory();
		}
		wait_ms = 0;
	}
	return news;
}

static PyObject *
client_poll(PyObject *self, PyObject *unused)
{
	struct client *c = (struct client *)self;

	return is_usable(c) ? take_turn(c, 0) : NULL;
}

static PyObject *
client_wait(PyObject *self, PyObject *unused)
{
	struct client *c = (struct client *)self;

	return is_usable(c) ? take_turn(c, SLICE_MS) : NULL;
}

static PyObject *
client_cancel(PyObject *self, PyObject *o)
{
	struct client *c = (struct client *)self;
	struct request *q = (struct request *)o;
	int under_way = PySet_Contains(c->pending, o); /* so it is a Request */

	if (under_way < 0 || (under_way > 0 && !is_usable(c)))
		return NULL;
	if (under_way > 0) {
		tokd_client_cancel(c->c, &q->r);
		let_go(c, q);
	}
	Py_RETURN_NONE;
}

static PyObject *
client_made(PyObject *self, PyObject *o)
{
	struct client *c = (struct client *)self;
	struct libtokd_state *state = PyType_GetModuleState(Py_TYPE(self));
	struct request *q = (struct request *)o;
	struct tokd_made made;
	const char *text;

	if (Py_TYPE(o) != state->type[REQUEST] || !generates(q) || q->client != c->number) {
		PyErr_SetString(
			PyExc_TypeError, "made: expected a Request of this client, with GENERATE");
		return NULL;
	}
	if (c->c == NULL)
		Py_RETURN_NONE;
	if (!is_usable(c))
		return NULL;
	if (!tokd_client_made(c->c, &q->r, &made, &text))
		Py_RETURN_NONE;
	return Py_BuildValue("Iy#I", made.id, text, (Py_ssize_t)made.text, (unsigned int)made.end);
}

static PyObject *
client_stats(PyObject *self, PyObject *unused)
{
	struct client *c = (struct client *)self;
	struct tokd_client_stats stats =
		c->c != NULL && !c->busy ? tokd_client_stats(c->c) : c->stats;

	return Py_BuildValue("KKKIKI", (unsigned long long)stats.retransmits,
		(unsigned long long)stats.polls, (unsigned long long)stats.resends, c->server_vocab,
		(unsigned long long)stats.moved, stats.healthy);
}

static PyObject *
client_hooks(PyObject *self, PyObject *unused)
{
	struct client *c = (struct client *)self;
	uint64_t next;

	if (!is_usable(c))
		return NULL;
	next = tokd_client_next_ns(c->c);
	return Py_BuildValue("iNN", tokd_client_fd(c->c),
		PyBool_FromLong(tokd_client_wants_write(c->c)),
		next != UINT64_MAX ? PyFloat_FromDouble((double)next / 1e9) : Py_NewRef(Py_None));
}

static PyObject *
client_pending(PyObject *self, void *unused)
{
	return PyLong_FromSsize_t(PySet_Size(((struct client *)self)->pending));
}

static PyMethodDef client_methods[] = {
	{"submit", client_submit, METH_VARARGS,
		"Add a text, or with DECODE uint32 ids; the next poll or wait sends it. With "
		"GENERATE: and how many ids a model may make of it."},
	{"poll", client_poll, METH_NOARGS,
		"Send and receive without sleeping: the requests with news."},
	{"wait", client_wait, METH_NOARGS,
		"The same, but sleep until there are some, at most 50 ms."},
	{"cancel", client_cancel, METH_O, "Cancel a request; no effect if it is finished."},
	{"made", client_made, METH_O,
		"With GENERATE the next (id, text, end) of the answer; None: wait, or finished."},
	{"stats", client_stats, METH_NOARGS,
		"(retransmits, polls, resends, server_vocab, moved, healthy)."},
	{"hooks", client_hooks, METH_NOARGS,
		"For an event loop: (descriptor, whether to wait for writing, seconds until due)."},
	{"close", client_close, METH_NOARGS, "Close the socket; requests in flight are cancelled."},
	{0},
};

static PyGetSetDef client_getset[] = {
	{"pending", client_pending, NULL, "The number of requests in flight.", NULL},
	{0},
};

static PyType_Slot client_slots[] = {
	{Py_tp_doc, "Client(hosts, port, vocab, timeout_ms, requests, mtu): tokd_client_open()."},
	{Py_tp_new, client_new},
	{Py_tp_dealloc, client_dealloc},
	{Py_tp_methods, client_methods},
	{Py_tp_getset, client_getset},
	{0, NULL},
};

PyType_Spec libtokd_client_spec = {
	.name = "dpdk_tokd._native.libtokd.Client",
	.basicsize = sizeof(struct client),
	.flags = Py_TPFLAGS_DEFAULT,
	.slots = client_slots,
};
