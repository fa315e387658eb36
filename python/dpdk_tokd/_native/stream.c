/* SPDX-License-Identifier: BSD-3-Clause */
/* Stream: a text that comes in pieces. */
#include "libtok.h"

struct stream {
	PyObject_HEAD
	struct vocab *owner; /* strong reference */
	bool closed;
	bool busy;
	int type; /* of the ids */
	struct tok_stream tok;
};

PyTypeObject *stream_type;

PyObject *
vocab_stream(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
	struct vocab *v = (struct vocab *)self;
	struct how h = how_default(v);
	struct stream *s;

	if (n != 1 || !PyType_Check(args[0]) ||
		!PyType_IsSubtype((PyTypeObject *)args[0], stream_type)) {
		PyErr_SetString(PyExc_TypeError, "_stream() takes a type of stream, and keywords");
		return NULL;
	}
	if (!how_take(&h, v, "stream", HOW_STREAM, names, args + n))
		return NULL;
	s = new_object((PyTypeObject *)args[0]);
	if (s == NULL)
		return NULL;
	s->type = h.type;
	s->owner = (struct vocab *)Py_NewRef(self);
	tok_stream_init(&s->tok, v->vocab, NULL, h.flags);
	return (PyObject *)s;
}

static void
stream_dealloc(PyObject *self)
{
	PyObject_GC_UnTrack(self);
	Py_DECREF(((struct stream *)self)->owner);
	free_object(self);
}

/* A Tokenizer may hold its stream. That one's dict is cleared: there is nothing to clear here. */
static int
stream_traverse(PyObject *self, visitproc visit, void *arg)
{
	Py_VISIT(((struct stream *)self)->owner);
	Py_VISIT(Py_TYPE(self));
	return 0;
}

PyObject *
stream_in_use(void)
{
	PyErr_SetString(PyExc_RuntimeError,
		"stream is being fed by another thread: give each thread a stream of its own");
	return NULL;
}

/* By an encoder that is the stream's for this call: what a stream has to keep is in `tok`. */
static PyObject *
feed_by(struct stream *s, struct encoder *e, PyObject *o, struct encoder_text *text, bool last)
{
	struct signals signals = {0};
	enum tok_status status = encoder_utf8(e, text, &signals);
	const size_t bound = encoder_feed_bound(&s->tok, text->n);
	struct tok_result r;
	struct ids ids;

	s->tok.cache = e->cache;
	if (status == TOK_OK && !ids_prepare(&ids, e, bound))
		status = TOK_MORE;
	if (status != TOK_OK) {
		s->closed = atomic_load(&signals.raised);
		return raise_text(status, o, -1);
	}
	if (text->n < GIL_BYTES) {
		r = encoder_feed(&s->tok, text, last, ids.room, bound, &signals);
	} else {
		Py_BEGIN_ALLOW_THREADS
		r = encoder_feed(&s->tok, text, last, ids.room, bound, &signals);
		Py_END_ALLOW_THREADS
	}
	if (r.status == TOK_OK)
		return ids_as(ids_array(&ids, r.produced), s->type);
	ids_free(&ids);
	if (atomic_load(&signals.raised)) {
		s->closed = true; /* the ids are lost */
		return NULL;
	}
	return raise_bad(r, "bytes");
}

static PyObject *
feed(struct stream *s, PyObject *o, struct encoder_text *text, bool last)
{
	PyObject *ids = NULL;
	struct encoder *e;

	if (s->closed) {
		PyErr_SetString(PyExc_ValueError, "the stream is closed");
		return NULL;
	}
	s->busy = true;
	e = encoder_borrow(s->owner);
	if (e != NULL) {
		ids = feed_by(s, e, o, text, last);
		encoder_return(s->owner, e);
	}
	s->busy = false;
	return ids;
}

static PyObject *
stream_feed(PyObject *self, PyObject *o)
{
	struct stream *s = (struct stream *)self;
	struct encoder_text text;
	PyObject *ids;
	Py_buffer b;
	int held;

	held = text_take(&text, &b, o, -1);
	if (held < 0)
		return NULL;
	/* After text_take: an object's own __buffer__ may let other threads run. */
	ids = s->busy ? stream_in_use() : feed(s, o, &text, false);
	if (held)
		PyBuffer_Release(&b);
	return ids;
}

static PyObject *
stream_finish(PyObject *self, PyObject *unused)
{
	struct stream *s = (struct stream *)self;

	return s->busy ? stream_in_use() : feed(s, NULL, &(struct encoder_text){0}, true);
}

static PyObject *
stream_close(PyObject *self, PyObject *unused)
{
	struct stream *s = (struct stream *)self;

	if (s->busy)
		return stream_in_use();
	s->closed = true;
	Py_RETURN_NONE;
}

static PyObject *
stream_waiting(PyObject *self, void *unused)
{
	struct stream *s = (struct stream *)self;

	return s->busy ? stream_in_use() : PyLong_FromSize_t(tok_stream_waiting(&s->tok));
}

static PyMethodDef stream_methods[] = {
	{"feed", stream_feed, METH_O,
		"feed($self, text, /)\n--\n\n"
		"Take the next piece of the text, which may be cut anywhere.\n\n"
		"Returns the ids that became certain, an array of shape (n,), owned by the caller.\n"
		"ValueError: the text is not UTF-8 and the tokenizer is strict, or more bytes are\n"
		"uncertain than a stream may hold, or the stream is over."},
	{"finish", stream_finish, METH_NOARGS,
		"finish($self, /)\n--\n\n"
		"End the text. Returns the ids that were still uncertain; errors as in `feed`."},
	{"close", stream_close, METH_NOARGS,
		"close($self, /)\n--\n\n"
		"End the stream. Ids that are uncertain are lost."},
	{0},
};

static PyGetSetDef stream_properties[] = {
	{"waiting", stream_waiting, NULL, "Bytes taken whose ids have not been released yet.",
		NULL},
	{0},
};

static PyType_Slot stream_slots[] = {
	{Py_tp_doc,
		"A text on its way through: each id is released as soon as no later byte can change "
		"it.\n\n"
		"All ids together are those of the whole text, however it was cut. Made by\n"
		"`Tokenizer.stream()`; one thread at a time, another gets a RuntimeError."},
	{Py_tp_dealloc, stream_dealloc},
	{Py_tp_traverse, stream_traverse},
	{Py_tp_methods, stream_methods},
	{Py_tp_getset, stream_properties},
	{0},
};

PyType_Spec stream_spec = {
	.name = "dpdk_tokd._native.libtok.Stream",
	.basicsize = sizeof(struct stream),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC |
		 Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
	.slots = stream_slots,
};
