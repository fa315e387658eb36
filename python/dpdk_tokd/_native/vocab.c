/* SPDX-License-Identifier: BSD-3-Clause */
/* Vocab: a loaded vocabulary, and its encoders. */
#include "libtok.h"

#include <stdatomic.h>

/* Has the characters of a str that are not those of UTF-8. */
#define FIRST_TEXT "A text of some words, not all of which are tokens; caf\u00e9, na\u00efve."

struct encoder *
encoder_borrow(struct vocab *v)
{
	struct encoder *e;

	if (v->n_idle > 0)
		return v->idle[--v->n_idle];
	return encoders_borrow(v, &e, 1) ? e : NULL;
}

void
encoder_return(struct vocab *v, struct encoder *e)
{
	if (e == NULL || v->n_idle == ENCODERS_IDLE_MAX) {
		encoder_free(e);
		return;
	}
	encoder_trim(e);
	v->idle[v->n_idle++] = e;
}

void
encoders_return(struct vocab *v, struct encoder *const *e, uint32_t n)
{
	while (n > 0)
		encoder_return(v, e[--n]);
}

struct missing {
	const struct tok_vocab *vocab;
	struct encoder **e;
	uint32_t n;
	atomic_uint next;
	struct signals signals;
};

static void
create_missing(void *arg)
{
	struct missing *m = arg;
	uint32_t i;

	while ((i = atomic_fetch_add(&m->next, 1)) < m->n)
		m->e[i] = encoder_create(m->vocab);
}

/* Making one takes milliseconds: without the GIL, and several by as many threads. */
bool
encoders_borrow(struct vocab *v, struct encoder **e, uint32_t n)
{
	struct missing m = {.vocab = v->vocab, .e = e, .n = n};
	uint32_t n_idle = 0;
	bool all = true;

	while (n_idle < n && v->n_idle > 0)
		e[n_idle++] = v->idle[--v->n_idle];
	if (n_idle == n)
		return true;
	m.next = n_idle;
	Py_BEGIN_ALLOW_THREADS
	pool_run(create_missing, &m, n - n_idle - 1, &m.signals);
	Py_END_ALLOW_THREADS
	for (uint32_t i = n_idle; i < n; i++)
		all = all && e[i] != NULL;
	if (all && !atomic_load(&m.signals.raised))
		return true;
	encoders_return(v, e, n);
	if (!PyErr_Occurred())
		PyErr_NoMemory();
	return false;
}

/*
 * Encode a text, so that the first call waits neither for its encoder nor for pages of code, of
 * Python's and numpy's as well. If it fails, the first call says why.
 */
static void
prepare_first_call(struct vocab *v)
{
	PyObject *text = PyUnicode_FromString(FIRST_TEXT), *ids = NULL;

	if (text != NULL)
		ids = vocab_encode((PyObject *)v, &text, 1, NULL);
	PyErr_Clear();
	Py_XDECREF(ids);
	Py_XDECREF(text);
}

/* A converter of PyArg_ParseTuple: a str to bytes, as the path need not be UTF-8. */
static int
path_bytes_or_none(PyObject *o, void *bytes)
{
	return o == Py_None ? 1 : PyUnicode_FSConverter(o, bytes);
}

static PyObject *
vocab_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	struct tok_load_opts opts = {0};
	struct tok_error err = {""};
	struct tok_vocab *loaded;
	PyObject *name = NULL, *search_path = NULL;
	Py_buffer text = {0};
	const char *path;
	struct vocab *v;
	int strict;

	if (PyTuple_Size(args) < 5) /* by a user */
		return PyErr_Format(PyExc_TypeError, "use Tokenizer.load(name_or_path)");
	if (!PyArg_ParseTuple(args, "O&zO&zp|y*", PyUnicode_FSConverter, &name, &opts.pretokenizer,
		    path_bytes_or_none, &search_path, &opts.algo, &strict, &text))
		return NULL;
	path = PyBytes_AS_STRING(name);
	opts.search_path = search_path == NULL ? NULL : PyBytes_AS_STRING(search_path);
	Py_BEGIN_ALLOW_THREADS
	loaded = text.obj == NULL
			 ? tok_vocab_load(path, &opts, &err)
			 : tok_vocab_load_memory(path, text.buf, (size_t)text.len, &opts, &err);
	Py_END_ALLOW_THREADS
	Py_DECREF(name);
	Py_XDECREF(search_path);
	PyBuffer_Release(&text);
	if (loaded == NULL)
		return PyErr_Format(PyExc_ValueError, "%s", err.text);
	v = new_object(type);
	if (v == NULL) {
		tok_vocab_free(loaded);
		return NULL;
	}
	v->vocab = loaded;
	v->flags = strict ? TOK_STRICT_UTF8 : 0;
	prepare_first_call(v);
	return (PyObject *)v;
}

static void
vocab_dealloc(PyObject *self)
{
	struct vocab *v = (struct vocab *)self;

	while (v->n_idle > 0)
		encoder_free(v->idle[--v->n_idle]);
	tok_vocab_free(v->vocab);
	free_object(self);
}

static PyObject *
ids_copy(const uint32_t *ids, size_t n)
{
	return ids_array(&(struct ids){.room = (uint32_t *)ids}, n);
}

static PyObject *
vocab_info(PyObject *self, PyObject *unused)
{
	struct tok_vocab_info i = tok_vocab_info(((struct vocab *)self)->vocab);
	PyObject *source =
		i.source == NULL ? Py_NewRef(Py_None) : PyUnicode_DecodeFSDefault(i.source);

	return Py_BuildValue("{s:N,s:N,s:s,s:N,s:s,s:s,s:s,s:I,s:I,s:I,s:I,s:I,s:I,s:n,s:s,s:s}",
		"name", PyUnicode_DecodeFSDefault(i.name), "path",
		PyUnicode_DecodeFSDefault(i.path), "format", i.format, "source", source,
		"pretokenizer", i.pretokenizer, "normalizer", i.normalizer, "algo", i.algo,
		"checksum", i.checksum, "n_ids", i.n_ids, "n_merges", i.n_merges, "n_special",
		i.n_special, "n_added", i.n_added, "max_token_bytes", i.max_token_bytes,
		"table_bytes", (Py_ssize_t)i.table_bytes, "storage", i.storage, "isa", i.isa);
}

static PyObject *
vocab_token(PyObject *self, PyObject *id)
{
	const uint8_t *bytes;
	uint32_t len;
	Py_ssize_t n;

	if (!PyIndex_Check(id))
		return PyErr_Format(
			PyExc_TypeError, "id: expected a number, got %.100s", Py_TYPE(id)->tp_name);
	n = PyNumber_AsSsize_t(id, NULL); /* the nearest one, if it does not fit */
	if (n == -1 && PyErr_Occurred())
		return NULL;
	bytes = n < 0 || n > UINT32_MAX
			? NULL
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

static PyObject *
vocab_merges(PyObject *self, PyObject *unused)
{
	const struct tok_vocab *v = ((struct vocab *)self)->vocab;
	npy_intp dims[] = {0, 3};
	PyObject *array;
	struct tok_merge g;

	while (tok_vocab_merge(v, (uint32_t)dims[0], &g))
		dims[0]++;
	array = PyArray_SimpleNew(2, dims, NPY_UINT32);
	for (npy_intp i = 0; array != NULL && i < dims[0]; i++) {
		uint32_t *row = PyArray_GETPTR2((PyArrayObject *)array, i, 0);

		tok_vocab_merge(v, (uint32_t)i, &g);
		row[0] = g.left;
		row[1] = g.right;
		row[2] = g.result;
	}
	return array;
}

static PyObject *
vocab_regexes(PyObject *self, PyObject *unused)
{
	const struct tok_vocab *v = ((struct vocab *)self)->vocab;
	PyObject *list = PyList_New(0);
	const char *regex;

	for (uint32_t i = 0; list != NULL && (regex = tok_vocab_regex(v, i)) != NULL; i++) {
		PyObject *text = PyUnicode_FromString(regex);

		if (text == NULL || PyList_Append(list, text) < 0)
			Py_CLEAR(list);
		Py_XDECREF(text);
	}
	return list;
}

static PyObject *
vocab_added(PyObject *self, PyObject *unused)
{
	PyObject *list = PyList_New(0), *flags;
	struct tok_added_info a;

	for (uint32_t i = 0; list != NULL; i++) {
		if (!tok_vocab_added(((struct vocab *)self)->vocab, i, &a))
			break;
		flags = Py_BuildValue("{s:I,s:N,s:N,s:N,s:N,s:N}", "id", a.id, "single_word",
			PyBool_FromLong(a.single_word), "lstrip", PyBool_FromLong(a.lstrip),
			"rstrip", PyBool_FromLong(a.rstrip), "normalized",
			PyBool_FromLong(a.normalized), "special", PyBool_FromLong(a.special));
		if (flags == NULL || PyList_Append(list, flags) < 0)
			Py_CLEAR(list);
		Py_XDECREF(flags);
	}
	return list;
}

#define KEYWORDS "*, add_special_tokens=True, tokens_in_text=\"all\", dtype=\"uint32\""

static PyMethodDef vocab_methods[] = {
	{"_describe", vocab_info, METH_NOARGS, "What was loaded, as a dict."},
	{"id_to_token", vocab_token, METH_O,
		"id_to_token($self, id, /)\n--\n\nBytes of one id, or None if there is none."},
	{"_shape", vocab_shape, METH_NOARGS, "Template, truncation and padding, as a dict."},
	{"_regexes", vocab_regexes, METH_NOARGS, "What splits a text, in order."},
	{"_merges", vocab_merges, METH_NOARGS,
		"Merges in order of priority: ids of two tokens and of the one they become."},
	{"_added", vocab_added, METH_NOARGS, "Ids and flags of added tokens, as a list of dicts."},
	{"_specials", vocab_specials, METH_NOARGS, "Special ids, rising, as an array."},
	{"encode", (PyCFunction)(void (*)(void))vocab_encode, METH_FASTCALL | METH_KEYWORDS,
		"encode($self, text, " KEYWORDS ", truncation=None, truncation_side=None, "
		"return_offsets=False)\n--\n\n"
		"Ids of a whole text: an array of shape (n,), the caller's own.\n\n"
		"`text` is a str, or UTF-8 in bytes or any other contiguous buffer of bytes, which\n"
		"must not be changed meanwhile. UnicodeEncodeError (a ValueError): a str holds a\n"
		"surrogate. ValueError: not UTF-8, where the tokenizer is strict or offsets are\n"
		"asked for.\n"
		"add_special_tokens: the ids of `template` around them.\n"
		"tokens_in_text: which added tokens that the text spells become their ids: \"all\",\n"
		"\"not-special\" or \"none\" (`Tokenizer`).\n"
		"dtype: of the ids: uint32, int32 or int64, as numpy names or has them.\n"
		"truncation: at most so many ids (0 to 2**31 - 1), the template's with them; True:\n"
		"as the file says, else `model_max_length`.\n"
		"truncation_side: which of the text's go; None: as the file says, else its\n"
		"tokenizer_config.json, else those on the right. A ValueError without truncation.\n"
		"return_offsets: also which bytes of the text's UTF-8 each id stands for, uint64,\n"
		"shape (n, 2): from the first up to the second, (0, 0) for ids of the template. A\n"
		"token that is part of a character has that part alone; what a normalizer changed\n"
		"has all the characters it comes from.\n"
		"A text of 512 KB or more is encoded by several threads, one per available\n"
		"processor, where the vocabulary's rules allow it to be cut."},
	{"_encode_texts", (PyCFunction)(void (*)(void))vocab_encode_texts,
		METH_FASTCALL | METH_KEYWORDS,
		"Of many texts, by some threads: all ids, and where each text's begin and end."},
	{"_spans", vocab_spans, METH_VARARGS,
		"Of a text, its ids, and whether special tokens in it count: which bytes each id "
		"stands for, and the number of its pretoken."},
	{"_decode", vocab_decode, METH_O, "Bytes of ids."},
	{"_stream", (PyCFunction)(void (*)(void))vocab_stream, METH_FASTCALL | METH_KEYWORDS,
		"A stream of this type of stream."},
	{"_decode_stream", vocab_decode_stream, METH_NOARGS, "Ids on their way through."},
	{0},
};

static PyType_Slot vocab_slots[] = {
	{Py_tp_doc, "A loaded vocabulary. Any thread may use it."},
	{Py_tp_new, vocab_new},
	{Py_tp_dealloc, vocab_dealloc},
	{Py_tp_methods, vocab_methods},
	{0},
};

PyType_Spec vocab_spec = {
	.name = "dpdk_tokd._native.libtok.Vocab",
	.basicsize = sizeof(struct vocab),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_IMMUTABLETYPE,
	.slots = vocab_slots,
};
