/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libtok for Python, and the three memory operations of tokd/ring.h that Python cannot express.
 * Stable ABI of CPython 3.11. Ids leave as a bytearray, into which libtok wrote them and which
 * numpy then wraps: they are not copied.
 *
 * The GIL is released while libtok works. Two rules make that right:
 *   - A cache belongs to one thread at a time: a call or a stream borrows one from its vocabulary
 *     (idle list, guarded by the GIL) and gives it back, so that there are as many caches as there
 *     are calls and streams at once.
 *   - A stream that is being fed says so (`busy`), and refuses a second thread.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdatomic.h>

#include <tok.h>

#include "batch.h"
#include "dlpack.h"
#include "object.h"

#define IDLE_CACHES_MAX BATCH_THREADS_MAX

struct vocab {
	PyObject_HEAD
	struct tok_vocab *vocab;
	struct tok_cache *idle[IDLE_CACHES_MAX];
	int n_idle;
};

struct stream {
	PyObject_HEAD
	struct vocab *owner; /* strong reference */
	struct tok_cache *cache;
	int busy;
	struct tok_stream tok;
};

struct decode_stream {
	PyObject_HEAD
	struct vocab *owner; /* strong reference */
	int busy;
	struct tok_decode_stream tok;
};

struct module_state {
	PyTypeObject *vocab_type;
	PyTypeObject *stream_type;
	PyTypeObject *decode_stream_type;
};

/* ---- common ---- */

/* NULL with MemoryError set if memory is short. */
static struct tok_cache *
cache_borrow(struct vocab *v)
{
	struct tok_cache *c;

	if (v->n_idle > 0)
		return v->idle[--v->n_idle];
	c = tok_cache_create(v->vocab, 0, NULL);
	if (c == NULL)
		PyErr_NoMemory();
	return c;
}

static void
cache_return(struct vocab *v, struct tok_cache *c)
{
	if (c != NULL && v->n_idle < IDLE_CACHES_MAX)
		v->idle[v->n_idle++] = c;
	else
		tok_cache_free(c);
}

static int
ids_of(PyObject *o, Py_buffer *b)
{
	if (PyObject_GetBuffer(o, b, PyBUF_SIMPLE) < 0)
		return -1;
	if (b->len % 4 == 0 && (uintptr_t)b->buf % 4 == 0)
		return 0;
	PyErr_SetString(PyExc_ValueError, "ids: not an aligned array of 4-byte integers");
	PyBuffer_Release(b);
	return -1;
}

/* Of a result that is not TOK_OK. Callers give room enough: the first would be an error of ours. */
static const char *
why_of(struct tok_result r)
{
	return r.status == TOK_MORE ? "room for what is given out ran short"
				    : tok_error_code_text(r.error);
}

static PyObject *
raise_bad(struct tok_result r, const char *unit)
{
	return PyErr_Format(
		PyExc_ValueError, "%s (after %zu %s of this call)", why_of(r), r.consumed, unit);
}

/* Room for `room` ids; the caller shrinks it to what was written. */
static PyObject *
ids_new(size_t room)
{
	if (room > PY_SSIZE_T_MAX / sizeof(uint32_t))
		return PyErr_NoMemory();
	return PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)(room * sizeof(uint32_t)));
}

/* NULL with MemoryError set if memory is short. */
static PyObject *
ids_copy(const uint32_t *ids, uint32_t n)
{
	return PyByteArray_FromStringAndSize((const char *)ids, (Py_ssize_t)(n * sizeof(*ids)));
}

static PyObject *
ids_finish(PyObject *ids, struct tok_result r)
{
	if (r.status != TOK_OK) {
		Py_DECREF(ids);
		return raise_bad(r, "bytes");
	}
	if (PyByteArray_Resize(ids, (Py_ssize_t)(r.produced * sizeof(uint32_t))) < 0) {
		Py_DECREF(ids);
		return NULL;
	}
	return ids;
}

static PyObject *
in_use(void)
{
	PyErr_SetString(PyExc_RuntimeError,
		"stream is being fed by another thread: give each thread a stream of its own");
	return NULL;
}

/* ---- Vocab ---- */

static PyObject *
vocab_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	struct tok_load_opts opts = {0};
	struct tok_error err = {""};
	struct tok_vocab *loaded;
	const char *name;
	struct vocab *v;

	if (!PyArg_ParseTuple(
		    args, "szzz", &name, &opts.pretokenizer, &opts.search_path, &opts.algo))
		return NULL;
	Py_BEGIN_ALLOW_THREADS
	loaded = tok_vocab_load(name, &opts, &err);
	Py_END_ALLOW_THREADS
	if (loaded == NULL)
		return PyErr_Format(PyExc_ValueError, "%s", err.text);
	v = new_object(type);
	if (v == NULL) {
		tok_vocab_free(loaded);
		return NULL;
	}
	v->vocab = loaded;
	return (PyObject *)v;
}

static void
vocab_dealloc(PyObject *self)
{
	struct vocab *v = (struct vocab *)self;

	while (v->n_idle > 0)
		tok_cache_free(v->idle[--v->n_idle]);
	tok_vocab_free(v->vocab);
	free_object(self);
}

static PyObject *
vocab_info(PyObject *self, PyObject *unused)
{
	struct tok_vocab_info i = tok_vocab_info(((struct vocab *)self)->vocab);

	return Py_BuildValue("{s:s,s:s,s:s,s:z,s:s,s:s,s:s,s:I,s:I,s:I,s:I,s:I,s:I,s:n,s:s,s:s}",
		"name", i.name, "path", i.path, "format", i.format, "source", i.source,
		"pretokenizer", i.pretokenizer, "normalizer", i.normalizer, "algo", i.algo,
		"checksum", i.checksum, "n_ids", i.n_ids, "n_merges", i.n_merges, "n_special",
		i.n_special, "n_added", i.n_added, "max_token_bytes", i.max_token_bytes,
		"table_bytes", (Py_ssize_t)i.table_bytes, "storage", i.storage, "isa", i.isa);
}

static PyObject *
vocab_token(PyObject *self, PyObject *id)
{
	unsigned long n = PyLong_AsUnsignedLong(id);
	const uint8_t *bytes;
	uint32_t len;

	if (n == (unsigned long)-1 && PyErr_Occurred())
		return NULL;
	bytes = n > UINT32_MAX ? NULL
			       : tok_vocab_token(((struct vocab *)self)->vocab, (uint32_t)n, &len);
	if (bytes == NULL)
		Py_RETURN_NONE;
	return PyBytes_FromStringAndSize((const char *)bytes, len);
}

/* What a file has done to the ids of a text; None for what it does not say. */
static PyObject *
vocab_shape(PyObject *self, PyObject *unused)
{
	const struct tok_shape *s = tok_vocab_shape(((struct vocab *)self)->vocab);
	const struct tok_truncation *t = &s->truncation;
	const struct tok_padding *p = &s->padding;
	PyObject *truncation, *padding;

	truncation = !t->on ? Py_NewRef(Py_None)
			    : Py_BuildValue("{s:I,s:I,s:N,s:N}", "max_length", t->max_length,
				      "stride", t->stride, "left", PyBool_FromLong(t->left),
				      "pairs_only", PyBool_FromLong(t->pairs_only));
	padding = !p->on ? Py_NewRef(Py_None)
			 : Py_BuildValue("{s:I,s:N,s:I,s:N,s:I}", "length", p->length, "fixed",
				   PyBool_FromLong(p->fixed), "multiple_of", p->multiple_of, "left",
				   PyBool_FromLong(p->left), "id", p->id);
	return Py_BuildValue("{s:N,s:N,s:N,s:N}", "before",
		ids_copy(s->around.before, s->around.n_before), "after",
		ids_copy(s->around.after, s->around.n_after), "truncation", truncation, "padding",
		padding);
}

static PyObject *
vocab_specials(PyObject *self, PyObject *unused)
{
	uint32_t n;
	const uint32_t *ids = tok_vocab_specials(((struct vocab *)self)->vocab, &n);

	return ids_copy(ids, n);
}

/* Of Python's `most`, -1 for all ids: what to keep. False with ValueError set. */
static bool
cut_of(const struct vocab *v, uint32_t flags, Py_ssize_t most, int left, struct batch_cut *cut)
{
	*cut = batch_cut_of(v->vocab, flags, most < 0 ? SIZE_MAX : (size_t)most, left);
	if (cut->n_before + cut->n_after <= cut->most)
		return true;
	PyErr_Format(PyExc_ValueError,
		"truncation to %zd ids: the vocabulary's template alone has %u; give more, or "
		"add_special_tokens=False",
		most, cut->n_before + cut->n_after);
	return false;
}

/* All ids of a text, which must be UTF-8 where offsets are wanted; NULL with an exception set. */
static PyObject *
encode_text(struct vocab *v, const Py_buffer *text, uint32_t flags, bool offsets)
{
	const size_t bound = tok_encode_bound(v->vocab, (size_t)text->len, flags);
	PyObject *ids = ids_new(bound);
	struct tok_cache *cache = ids != NULL ? cache_borrow(v) : NULL;
	struct tok_result r;
	uint32_t *room;

	if (cache == NULL) {
		Py_XDECREF(ids);
		return NULL;
	}
	room = (uint32_t *)PyByteArray_AsString(ids);
	Py_BEGIN_ALLOW_THREADS
	r = tok_encode(v->vocab, cache, text->buf, (size_t)text->len,
		offsets ? flags | TOK_STRICT_UTF8 : flags, room, bound);
	Py_END_ALLOW_THREADS
	cache_return(v, cache);
	if (offsets && r.error == TOK_ERROR_UTF8) {
		Py_DECREF(ids);
		return PyErr_Format(PyExc_ValueError,
			"return_offsets: the text is not UTF-8, whose bytes offsets count (after %zu "
			"bytes)",
			r.consumed);
	}
	return ids_finish(ids, r);
}

/* Cut a bytearray with an item of `size` bytes for each id. False with MemoryError set. */
static bool
cut_array(PyObject *array, size_t size, const struct batch_cut *cut)
{
	const size_t n = (size_t)PyByteArray_Size(array) / size;
	const size_t left = batch_cut(PyByteArray_AsString(array), size, n, cut);

	return PyByteArray_Resize(array, (Py_ssize_t)(left * size)) == 0;
}

static PyObject *
vocab_encode(PyObject *self, PyObject *args)
{
	struct vocab *v = (struct vocab *)self;
	struct batch_cut cut;
	unsigned int flags;
	PyObject *o, *ids;
	Py_buffer text;
	Py_ssize_t most;
	int left;

	if (!PyArg_ParseTuple(args, "OInp", &o, &flags, &most, &left) ||
		!cut_of(v, flags, most, left, &cut) || text_of(o, &text) < 0)
		return NULL;
	ids = encode_text(v, &text, flags, false);
	PyBuffer_Release(&text);
	if (ids != NULL && !cut_array(ids, sizeof(uint32_t), &cut))
		Py_CLEAR(ids);
	return ids;
}

static_assert(sizeof(struct tok_range) == 2 * sizeof(uint64_t), "Python reads it as two uint64");

/* Ranges of the ids of a text; NULL with an exception set. */
static PyObject *
ranges_of(const struct vocab *v, const Py_buffer *text, uint32_t flags, PyObject *ids)
{
	const size_t n = (size_t)PyByteArray_Size(ids) / sizeof(uint32_t);
	const uint32_t *id = (const uint32_t *)PyByteArray_AsString(ids);
	struct tok_range *range;
	PyObject *ranges;
	bool ok;

	if (n > PY_SSIZE_T_MAX / sizeof(*range))
		return PyErr_NoMemory();
	ranges = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)(n * sizeof(*range)));
	if (ranges == NULL)
		return NULL;
	range = (struct tok_range *)PyByteArray_AsString(ranges);
	Py_BEGIN_ALLOW_THREADS
	ok = tok_offsets(v->vocab, text->buf, (size_t)text->len, flags, id, n, range);
	Py_END_ALLOW_THREADS
	if (ok)
		return ranges;
	Py_DECREF(ranges);
	PyErr_SetString(PyExc_ValueError,
		tok_has_offsets(v->vocab)
			? "return_offsets: the text was changed while it was encoded, or offsets of "
			  "this text cannot be told"
			: "return_offsets: not implemented for SentencePiece's .model of kind Unigram, "
			  "or whose text is normalized; a tokenizer.json of the same model has them");
	return NULL;
}

static PyObject *
vocab_encode_offsets(PyObject *self, PyObject *args)
{
	PyObject *o, *ids, *ranges = NULL;
	struct vocab *v = (struct vocab *)self;
	struct batch_cut cut;
	unsigned int flags;
	Py_buffer text;
	Py_ssize_t most;
	int left;

	if (!PyArg_ParseTuple(args, "OInp", &o, &flags, &most, &left) ||
		!cut_of(v, flags, most, left, &cut) || text_of(o, &text) < 0)
		return NULL;
	ids = encode_text(v, &text, flags, true);
	if (ids != NULL)
		ranges = ranges_of(v, &text, flags, ids);
	PyBuffer_Release(&text);
	if (ranges != NULL && cut_array(ids, sizeof(uint32_t), &cut) &&
		cut_array(ranges, sizeof(struct tok_range), &cut))
		return Py_BuildValue("(NN)", ids, ranges);
	Py_XDECREF(ids);
	Py_XDECREF(ranges);
	return NULL;
}

/* ---- many texts at once ---- */

/* Texts as libtok reads them: references that keep them where they are while the GIL is released.
 */
struct texts {
	PyObject *tuple;
	struct batch_text *text;
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

static bool
text_take(struct texts *t, PyObject *o, struct batch_text *text)
{
	Py_ssize_t n;
	char *p;

	if (PyUnicode_Check(o)) {
		p = (char *)PyUnicode_AsUTF8AndSize(o, &n);
		if (p == NULL)
			return false;
	} else if (PyBytes_Check(o)) {
		if (PyBytes_AsStringAndSize(o, &p, &n) < 0)
			return false;
	} else {
		if (PyObject_GetBuffer(o, &t->buffer[t->n_buffers], PyBUF_SIMPLE) < 0)
			return false;
		p = t->buffer[t->n_buffers].buf;
		n = t->buffer[t->n_buffers++].len;
	}
	*text = (struct batch_text){(const uint8_t *)p, (size_t)n};
	return true;
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
	}
	t->text = PyMem_Calloc((size_t)t->n, sizeof(*t->text));
	t->buffer = PyMem_Calloc(others, sizeof(*t->buffer));
	if (t->text == NULL || t->buffer == NULL) {
		PyErr_NoMemory();
		return false;
	}
	for (Py_ssize_t i = 0; i < t->n; i++) {
		if (!text_take(t, PyTuple_GetItem(t->tuple, i), &t->text[i]))
			return false;
	}
	return true;
}

/* As many caches as there will be threads; false with MemoryError set if there is not even one. */
static bool
caches_borrow(struct vocab *v, struct batch *b)
{
	for (uint32_t i = 0; i < b->n_threads; i++) {
		b->cache[i] = cache_borrow(v);
		if (b->cache[i] == NULL)
			return false;
	}
	return true;
}

/* Encode what was taken into an array of ids and one of splits. */
static PyObject *
encode_texts(struct vocab *v, struct batch *b)
{
	PyObject *ids = ids_new(b->room), *splits;
	bool ok;

	splits = PyByteArray_FromStringAndSize(
		NULL, (Py_ssize_t)((b->n_texts + 1) * sizeof(*b->splits)));
	ok = ids != NULL && splits != NULL && caches_borrow(v, b);
	if (ok) {
		b->ids = (uint32_t *)PyByteArray_AsString(ids);
		b->splits = (int64_t *)PyByteArray_AsString(splits);
		Py_BEGIN_ALLOW_THREADS
		ok = batch_encode(b);
		Py_END_ALLOW_THREADS
		if (!ok)
			PyErr_Format(PyExc_ValueError, "text %zu: %s (after %zu bytes)", b->failed,
				why_of(b->why), b->why.consumed);
	}
	for (uint32_t i = 0; i < BATCH_THREADS_MAX; i++) {
		if (b->cache[i] != NULL)
			cache_return(v, b->cache[i]);
	}
	if (ok && PyByteArray_Resize(ids, (Py_ssize_t)((size_t)b->splits[b->n_texts] * 4)) == 0)
		return Py_BuildValue("(NN)", ids, splits);
	Py_XDECREF(ids);
	Py_XDECREF(splits);
	return NULL;
}

static PyObject *
vocab_encode_batch(PyObject *self, PyObject *args)
{
	struct vocab *v = (struct vocab *)self;
	struct batch b = {.vocab = v->vocab};
	PyObject *iterable, *made = NULL;
	unsigned int flags, threads;
	struct texts texts = {0};
	Py_ssize_t most;
	int left;

	if (!PyArg_ParseTuple(args, "OInpI", &iterable, &flags, &most, &left, &threads) ||
		!cut_of(v, flags, most, left, &b.cut))
		return NULL;
	if (texts_take(&texts, iterable)) {
		b.flags = flags;
		b.text = texts.text;
		b.n_texts = (size_t)texts.n;
		if (batch_plan(&b, threads))
			made = encode_texts(v, &b);
		else
			PyErr_NoMemory();
		batch_free(&b);
	}
	texts_release(&texts);
	return made;
}

/* Bytes that `n` ids decode to; an unknown id counts for none, and is found by decoding. */
static size_t
decoded_bytes(const struct tok_vocab *v, const uint32_t *ids, size_t n)
{
	size_t bytes = 0;
	uint32_t len;

	for (size_t i = 0; i < n; i++) {
		if (tok_vocab_token(v, ids[i], &len) != NULL)
			bytes += len + 1; /* a blank may come before it */
	}
	return bytes;
}

static PyObject *
unknown_id(const uint32_t *ids, struct tok_result r)
{
	return PyErr_Format(PyExc_ValueError, "id %u at index %zu: %s",
		(unsigned int)ids[r.consumed], r.consumed, tok_error_code_text(r.error));
}

static PyObject *
vocab_decode(PyObject *self, PyObject *o)
{
	const struct tok_vocab *v = ((struct vocab *)self)->vocab;
	const uint32_t *ids;
	struct tok_result r;
	size_t n, bytes;
	PyObject *text;
	Py_buffer b;

	if (ids_of(o, &b) < 0)
		return NULL;
	ids = b.buf;
	n = (size_t)b.len / 4;
	Py_BEGIN_ALLOW_THREADS
	bytes = decoded_bytes(v, ids, n);
	Py_END_ALLOW_THREADS
	text = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)bytes);
	if (text != NULL) {
		uint8_t *out = (uint8_t *)PyBytes_AsString(text);

		Py_BEGIN_ALLOW_THREADS
		r = tok_decode(v, ids, n, out, bytes);
		Py_END_ALLOW_THREADS
		if (r.status != TOK_OK) {
			Py_DECREF(text);
			text = r.error == TOK_ERROR_ID ? unknown_id(ids, r) : raise_bad(r, "ids");
		} else {
			_PyBytes_Resize(&text, (Py_ssize_t)r.produced);
		}
	}
	PyBuffer_Release(&b);
	return text;
}

static PyObject *
vocab_stream(PyObject *self, PyObject *tok_flags)
{
	struct module_state *state = PyType_GetModuleState(Py_TYPE(self));
	struct vocab *v = (struct vocab *)self;
	unsigned long flags = PyLong_AsUnsignedLong(tok_flags);
	struct stream *s;

	if (flags == (unsigned long)-1 && PyErr_Occurred())
		return NULL;
	s = new_object(state->stream_type);
	if (s == NULL)
		return NULL;
	s->owner = (struct vocab *)Py_NewRef(self);
	s->cache = cache_borrow(v);
	if (s->cache == NULL) {
		Py_DECREF(s);
		return NULL;
	}
	tok_stream_init(&s->tok, v->vocab, s->cache, (uint32_t)flags);
	return (PyObject *)s;
}

static PyObject *
vocab_decode_stream(PyObject *self, PyObject *unused)
{
	struct module_state *state = PyType_GetModuleState(Py_TYPE(self));
	struct decode_stream *d = new_object(state->decode_stream_type);

	if (d == NULL)
		return NULL;
	d->owner = (struct vocab *)Py_NewRef(self);
	tok_decode_stream_init(&d->tok, d->owner->vocab);
	return (PyObject *)d;
}

static PyMethodDef vocab_methods[] = {
	{"info", vocab_info, METH_NOARGS, "What was loaded, as a dict."},
	{"token", vocab_token, METH_O, "Bytes of one id, or None."},
	{"shape", vocab_shape, METH_NOARGS, "Template, truncation and padding, as a dict."},
	{"specials", vocab_specials, METH_NOARGS, "Special ids, rising, 4 bytes each."},
	{"encode", vocab_encode, METH_VARARGS, "Ids of a whole text, 4 bytes each."},
	{"encode_offsets", vocab_encode_offsets, METH_VARARGS,
		"Ids of a whole text, and their ranges of its bytes, 2 times 8 bytes each."},
	{"encode_batch", vocab_encode_batch, METH_VARARGS,
		"Ids of many texts, 4 bytes each, and where each text's begin and end, 8 bytes each."},
	{"decode", vocab_decode, METH_O, "Bytes of ids."},
	{"stream", vocab_stream, METH_O, "A text on its way through."},
	{"decode_stream", vocab_decode_stream, METH_NOARGS, "Ids on their way through."},
	{0},
};

static PyType_Slot vocab_slots[] = {
	{Py_tp_doc, "A loaded vocabulary. Any thread may use it."},
	{Py_tp_new, vocab_new},
	{Py_tp_dealloc, vocab_dealloc},
	{Py_tp_methods, vocab_methods},
	{0},
};

static PyType_Spec vocab_spec = {
	.name = "dpdk_tokd._native.libtok.Vocab",
	.basicsize = sizeof(struct vocab),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
	.slots = vocab_slots,
};

/* ---- Stream ---- */

static void
stream_dealloc(PyObject *self)
{
	struct stream *s = (struct stream *)self;

	cache_return(s->owner, s->cache);
	Py_DECREF(s->owner);
	free_object(self);
}

static PyObject *
stream_feed(PyObject *self, PyObject *args)
{
	struct stream *s = (struct stream *)self;
	struct tok_result r;
	PyObject *o, *ids;
	Py_buffer text;
	uint32_t *out;
	size_t room;
	int last;

	if (!PyArg_ParseTuple(args, "Op", &o, &last))
		return NULL;
	if (s->busy)
		return in_use();
	if (text_of(o, &text) < 0)
		return NULL;
	room = tok_stream_bound(&s->tok, (size_t)text.len);
	ids = ids_new(room);
	if (ids == NULL) {
		PyBuffer_Release(&text);
		return NULL;
	}
	out = (uint32_t *)PyByteArray_AsString(ids);
	s->busy = 1;
	Py_BEGIN_ALLOW_THREADS
	r = tok_stream_feed(&s->tok, text.buf, (size_t)text.len, last, out, room);
	Py_END_ALLOW_THREADS
	s->busy = 0;
	PyBuffer_Release(&text);
	return ids_finish(ids, r);
}

static PyObject *
stream_waiting(PyObject *self, PyObject *unused)
{
	struct stream *s = (struct stream *)self;

	if (s->busy)
		return in_use();
	return PyLong_FromSize_t(tok_stream_waiting(&s->tok));
}

static PyMethodDef stream_methods[] = {
	{"feed", stream_feed, METH_VARARGS, "Feed text; ids that are certain, 4 bytes each."},
	{"waiting", stream_waiting, METH_NOARGS, "Bytes taken whose ids are still uncertain."},
	{0},
};

static PyType_Slot stream_slots[] = {
	{Py_tp_doc, "A text on its way through. One thread at a time."},
	{Py_tp_dealloc, stream_dealloc},
	{Py_tp_methods, stream_methods},
	{0},
};

static PyType_Spec stream_spec = {
	.name = "dpdk_tokd._native.libtok.Stream",
	.basicsize = sizeof(struct stream),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
	.slots = stream_slots,
};

/* ---- DecodeStream ---- */

static void
decode_stream_dealloc(PyObject *self)
{
	Py_DECREF(((struct decode_stream *)self)->owner);
	free_object(self);
}

static PyObject *
decode_stream_feed(PyObject *self, PyObject *args)
{
	struct decode_stream *d = (struct decode_stream *)self;
	const struct tok_vocab *v = d->owner->vocab;
	const uint32_t *ids;
	struct tok_result r;
	PyObject *o, *text;
	Py_buffer b;
	size_t n, room;
	int last;

	if (!PyArg_ParseTuple(args, "Op", &o, &last))
		return NULL;
	if (d->busy)
		return in_use();
	if (ids_of(o, &b) < 0)
		return NULL;
	ids = b.buf;
	n = (size_t)b.len / 4;
	/* What is held, and tok.h's condition on room. */
	room = decoded_bytes(v, ids, n) + sizeof(d->tok.held) + tok_vocab_info(v).max_token_bytes;
	text = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)room);
	if (text != NULL) {
		uint8_t *out = (uint8_t *)PyBytes_AsString(text);

		d->busy = 1;
		Py_BEGIN_ALLOW_THREADS
		r = tok_decode_stream_feed(&d->tok, ids, n, last, out, room);
		Py_END_ALLOW_THREADS
		d->busy = 0;
		if (r.status != TOK_OK) {
			Py_DECREF(text);
			text = r.error == TOK_ERROR_ID ? unknown_id(ids, r) : raise_bad(r, "ids");
		} else {
			_PyBytes_Resize(&text, (Py_ssize_t)r.produced);
		}
	}
	PyBuffer_Release(&b);
	return text;
}

static PyMethodDef decode_stream_methods[] = {
	{"feed", decode_stream_feed, METH_VARARGS,
		"Feed ids; bytes up to the last whole character."},
	{0},
};

static PyType_Slot decode_stream_slots[] = {
	{Py_tp_doc, "Ids on their way through. One thread at a time."},
	{Py_tp_dealloc, decode_stream_dealloc},
	{Py_tp_methods, decode_stream_methods},
	{0},
};

static PyType_Spec decode_stream_spec = {
	.name = "dpdk_tokd._native.libtok.DecodeStream",
	.basicsize = sizeof(struct decode_stream),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
	.slots = decode_stream_slots,
};

/* ---- memory shared with dpdk-tokd ---- */

/* Address of the aligned 8-byte word at `offset` of buffer *b, or NULL with an error set. */
static uint64_t *
word_at(const Py_buffer *b, Py_ssize_t offset)
{
	char *p = (char *)b->buf + offset;

	if (offset < 0 || b->len < 8 || offset > b->len - 8 || (uintptr_t)p % 8 != 0) {
		PyErr_Format(PyExc_IndexError,
			"offset %zd: not an aligned 8-byte word in a buffer of %zd bytes", offset,
			b->len);
		return NULL;
	}
	return (uint64_t *)p;
}

static PyObject *
load_u64(PyObject *args, bool fenced)
{
	Py_ssize_t offset;
	PyObject *o, *value = NULL;
	const uint64_t *p;
	Py_buffer b;

	if (!PyArg_ParseTuple(args, "On", &o, &offset) ||
		PyObject_GetBuffer(o, &b, PyBUF_SIMPLE) < 0)
		return NULL;
	p = word_at(&b, offset);
	if (p != NULL) {
		if (fenced)
			atomic_thread_fence(memory_order_acquire);
		value = PyLong_FromUnsignedLongLong(__atomic_load_n(p, __ATOMIC_ACQUIRE));
	}
	PyBuffer_Release(&b);
	return value;
}

/* ring.h: what is read after this was written before the word's value was stored. */
static PyObject *
load_acquire_u64(PyObject *module, PyObject *args)
{
	return load_u64(args, false);
}

/* ring.h, tail: what was read before this was read before the word's value was loaded. */
static PyObject *
load_fenced_u64(PyObject *module, PyObject *args)
{
	return load_u64(args, true);
}

/* ring.h, cursor: what was read before this is no longer needed by whoever sees the value. */
static PyObject *
store_release_u64(PyObject *module, PyObject *args)
{
	unsigned long long value;
	Py_ssize_t offset;
	PyObject *o, *number;
	uint64_t *p;
	Py_buffer b;

	if (!PyArg_ParseTuple(args, "OnO", &o, &offset, &number))
		return NULL;
	value = PyLong_AsUnsignedLongLong(number);
	if (value == (unsigned long long)-1 && PyErr_Occurred())
		return NULL;
	if (PyObject_GetBuffer(o, &b, PyBUF_WRITABLE) < 0)
		return NULL;
	p = word_at(&b, offset);
	if (p != NULL)
		__atomic_store_n(p, value, __ATOMIC_RELEASE);
	PyBuffer_Release(&b);
	if (p == NULL)
		return NULL;
	Py_RETURN_NONE;
}

static PyMethodDef module_methods[] = {
	{"load_acquire_u64", load_acquire_u64, METH_VARARGS, "Load a word of a buffer, acquire."},
	{"load_fenced_u64", load_fenced_u64, METH_VARARGS, "Acquire fence, then load_acquire_u64."},
	{"store_release_u64", store_release_u64, METH_VARARGS,
		"Store a word of a buffer, release."},
	{"dlpack", tokd_dlpack, METH_VARARGS, "A matrix for other array libraries, read-only."},
	{0},
};

static int
module_exec(PyObject *module)
{
	struct module_state *state = PyModule_GetState(module);

	state->vocab_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &vocab_spec, NULL);
	state->stream_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &stream_spec, NULL);
	state->decode_stream_type =
		(PyTypeObject *)PyType_FromModuleAndSpec(module, &decode_stream_spec, NULL);
	if (state->vocab_type == NULL || state->stream_type == NULL ||
		state->decode_stream_type == NULL)
		return -1;
	if (PyModule_AddIntConstant(module, "STRICT_UTF8", TOK_STRICT_UTF8) < 0 ||
		PyModule_AddIntConstant(module, "TEMPLATE", TOK_TEMPLATE) < 0 ||
		PyModule_AddIntConstant(module, "ADDED_AS_TEXT", TOK_ADDED_AS_TEXT) < 0 ||
		PyModule_AddIntConstant(module, "SPECIAL", TOK_SPECIAL) < 0 ||
		PyModule_AddIntConstant(module, "THREADS_MAX", BATCH_THREADS_MAX) < 0)
		return -1;
	return PyModule_AddType(module, state->vocab_type);
}

static int
module_traverse(PyObject *module, visitproc visit, void *arg)
{
	struct module_state *state = PyModule_GetState(module);

	Py_VISIT(state->vocab_type);
	Py_VISIT(state->stream_type);
	Py_VISIT(state->decode_stream_type);
	return 0;
}

static int
module_clear(PyObject *module)
{
	struct module_state *state = PyModule_GetState(module);

	Py_CLEAR(state->vocab_type);
	Py_CLEAR(state->stream_type);
	Py_CLEAR(state->decode_stream_type);
	return 0;
}

static PyModuleDef_Slot module_slots[] = {
	{Py_mod_exec, module_exec},
	{0},
};

static struct PyModuleDef module_def = {
	PyModuleDef_HEAD_INIT,
	.m_name = "dpdk_tokd._native.libtok",
	.m_doc = "libtok, and memory operations for the token ring.",
	.m_size = sizeof(struct module_state),
	.m_methods = module_methods,
	.m_slots = module_slots,
	.m_traverse = module_traverse,
	.m_clear = module_clear,
};

PyMODINIT_FUNC
PyInit_libtok(void)
{
	return PyModuleDef_Init(&module_def);
}
