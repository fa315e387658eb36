/* SPDX-License-Identifier: BSD-3-Clause */
/* Vocab.encode_texts: many texts to one array. */
#include "libtok.h"

/* Texts as libtok reads them: references that keep them where they are while the GIL is released.
 */
struct texts {
	PyObject *tuple;
	struct encoder_text *text;
	Py_buffer *buffer; /* of those that are neither str nor bytes */
	Py_ssize_t n, n_buffers;
};

static void
texts_release(struct texts *t)
{
	while (t->n_buffers > 0)
		PyBuffer_Release(&t->buffer[--t->n_buffers]);
	PyMem_Free(t->buffer);
	PyMem_Free(t->text);
	Py_XDECREF(t->tuple);
}

/* A look for signals at every 65,536th text, as the GIL is held. False with an exception set. */
static bool
go_on(Py_ssize_t i)
{
	return i % (1 << 16) != 0 || PyErr_CheckSignals() == 0;
}

/* False with an exception set; texts_release() either way. */
static bool
texts_take(struct texts *t, PyObject *iterable)
{
	size_t others = 0;

	*t = (struct texts){.tuple = PySequence_Tuple(iterable)};
	if (t->tuple == NULL)
		return false;
	t->n = PyTuple_Size(t->tuple);
	for (Py_ssize_t i = 0; i < t->n; i++) {
		PyObject *o = PyTuple_GetItem(t->tuple, i);

		others += !PyUnicode_Check(o) && !PyBytes_Check(o);
		if (!go_on(i))
			return false;
	}
	t->text = PyMem_Calloc((size_t)t->n, sizeof(*t->text));
	t->buffer = PyMem_Calloc(others, sizeof(*t->buffer));
	if (t->text == NULL || t->buffer == NULL) {
		PyErr_NoMemory();
		return false;
	}
	for (Py_ssize_t i = 0; i < t->n; i++) {
		int held = text_take(
			&t->text[i], &t->buffer[t->n_buffers], PyTuple_GetItem(t->tuple, i), i);

		if (held < 0)
			return false;
		t->n_buffers += held;
		if (!go_on(i))
			return false;
	}
	return true;
}

/* Set the exception for the one of the tuple of texts that failed. False. */
static bool
refuse(const struct batch *b, PyObject *texts)
{
	if (b->why.error == TOK_ERROR_NONE || PyErr_Occurred())
		raise_text(b->why.status, PyTuple_GET_ITEM(texts, (Py_ssize_t)b->failed),
			(Py_ssize_t)b->failed);
	else
		PyErr_Format(PyExc_ValueError, "text %zu: %s (after %zu bytes)", b->failed,
			why_of(b->why), b->why.consumed);
	return false;
}

/* Of the tuple of texts, into splits and the encoders. False with an exception set. */
static bool
encode(struct batch *b, PyObject *texts)
{
	bool ok;

	if (b->n_threads == 1 && b->cost < GIL_BYTES) {
		ok = batch_encode(b);
	} else {
		Py_BEGIN_ALLOW_THREADS
		ok = batch_encode(b);
		Py_END_ALLOW_THREADS
	}
	return ok || refuse(b, texts);
}

/* Into one array, where it takes as long as a text that the GIL is released for. */
static void
take(const struct batch *b, uint32_t *ids)
{
	if (b->n_ids < GIL_BYTES) {
		batch_take(b, ids);
		return;
	}
	Py_BEGIN_ALLOW_THREADS
	batch_take(b, ids);
	Py_END_ALLOW_THREADS
}

/* An array of the ids of the one text, which is long: by several threads, and without a copy. */
static PyObject *
encode_long_text(struct vocab *v, struct batch *b, PyObject *texts)
{
	struct encoder_text text = b->text[0];
	struct ids ids = {0};
	PyObject *made = NULL;

	Py_BEGIN_ALLOW_THREADS
	b->why = encode_all(v, &text, b->flags, &b->cut, &ids, b->encoder, b->n_threads);
	Py_END_ALLOW_THREADS
	if (b->why.status != TOK_OK) {
		refuse(b, texts);
	} else {
		b->n_ids = batch_cut(ids.room, sizeof(*ids.room), b->why.produced, &b->cut);
		b->splits[0] = 0;
		b->splits[1] = (int64_t)b->n_ids;
		made = ids_array(&ids, b->n_ids);
	}
	ids_free(&ids);
	return made;
}

/* Encode the tuple of texts into an array of ids and one of splits. */
static PyObject *
encode_texts(struct vocab *v, struct batch *b, PyObject *texts, uint32_t threads, int type)
{
	PyObject *splits = array_new(b->n_texts + 1, NPY_INT64), *ids = NULL;
	const bool is_long = b->n_texts == 1 && b->text[0].n >= LONG_BYTES;

	if (splits == NULL)
		return NULL;
	b->splits = array_data(splits);
	if (is_long) {
		b->n_threads = long_threads(v->vocab, b->text[0].n, b->flags);
		b->n_threads = b->n_threads < threads ? b->n_threads : threads;
	}
	if (encoders_borrow(v, b->encoder, b->n_threads)) {
		if (is_long)
			ids = encode_long_text(v, b, texts);
		else if (encode(b, texts) && (ids = array_new(b->n_ids, NPY_UINT32)) != NULL)
			take(b, array_data(ids));
		encoders_return(v, b->encoder, b->n_threads);
	}
	ids = ids_as(ids, type);
	if (ids != NULL)
		return Py_BuildValue("(NN)", ids, splits);
	Py_DECREF(splits);
	return NULL;
}

PyObject *
vocab_encode_texts(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
	struct vocab *v = (struct vocab *)self;
	struct batch b = {.vocab = v->vocab};
	struct how h = how_default(v);
	struct texts texts = {0};
	PyObject *made = NULL;
	long threads;

	if (n != 2) {
		PyErr_SetString(PyExc_TypeError, "encode_texts() takes texts and threads");
		return NULL;
	}
	threads = PyLong_AsLong(args[1]);
	if (threads < 1 || threads > BATCH_THREADS_MAX) { /* encode_batch() has checked it */
		PyErr_BadInternalCall();
		return NULL;
	}
	if (!how_take(&h, v, "encode_batch", HOW_BATCH, names, args + n))
		return NULL;
	if (texts_take(&texts, args[0])) {
		b.flags = h.flags;
		b.cut = h.cut;
		b.text = texts.text;
		b.n_texts = (size_t)texts.n;
		if (batch_plan(&b, (uint32_t)threads))
			made = encode_texts(v, &b, texts.tuple, (uint32_t)threads, h.type);
		else
			PyErr_NoMemory();
		batch_free(&b);
	}
	texts_release(&texts);
	return made;
}
