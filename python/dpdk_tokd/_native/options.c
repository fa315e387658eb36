/* SPDX-License-Identifier: BSD-3-Clause */
/* The keywords of encode, encode_batch and stream. */
#include "libtok.h"

#define NUMBER_MAX INT32_MAX
#define OF_MODEL (SIZE_MAX - 1) /* ids to truncate to: truncation_of_model() says it */

/* The first HOW_STREAM of them are stream's, and so on. */
enum {
	ADD_SPECIAL_TOKENS,
	TOKENS_IN_TEXT,
	DTYPE,
	TRUNCATION,
	TRUNCATION_SIDE,
	RETURN_OFFSETS,
	TEXT,
	NAMES
};
static const char *const name_text[NAMES] = {"add_special_tokens", "tokens_in_text", "dtype",
	"truncation", "truncation_side", "return_offsets", "text"};

enum { ALL, NOT_SPECIAL, NONE, LEFT, RIGHT, WORDS };
static const char *const word_text[WORDS] = {"all", "not-special", "none", "left", "right"};

/* Interned, as the words of a program are: they are equal if they are the same object. */
static PyObject *name[NAMES], *word[WORDS];

bool
options_init(void)
{
	for (int i = 0; i < NAMES; i++) {
		name[i] = PyUnicode_InternFromString(name_text[i]);
		if (name[i] == NULL)
			return false;
	}
	for (int i = 0; i < WORDS; i++) {
		word[i] = PyUnicode_InternFromString(word_text[i]);
		if (word[i] == NULL)
			return false;
	}
	return true;
}

/* Which of n strings from *all on this is; n if none. */
static int
which(PyObject *o, PyObject *const *all, const char *const *text, int n)
{
	for (int i = 0; i < n; i++) {
		if (o == all[i])
			return i;
	}
	for (int i = 0; i < n && PyUnicode_Check(o); i++) {
		if (PyUnicode_CompareWithASCIIString(o, text[i]) == 0)
			return i;
	}
	return n;
}

static bool
take_tokens_in_text(uint32_t *flags, PyObject *o)
{
	*flags &= ~(uint32_t)(TOK_ADDED_AS_TEXT | TOK_SPECIAL);
	switch (which(o, &word[ALL], &word_text[ALL], 3)) {
	case 0:
		*flags |= TOK_SPECIAL;
		return true;
	case 1:
		return true;
	case 2:
		*flags |= TOK_ADDED_AS_TEXT;
		return true;
	}
	PyErr_Format(PyExc_ValueError,
		"tokens_in_text: %R: expected \"all\", \"not-special\" or \"none\"", o);
	return false;
}

/* No exception, or one that says that a value is wrong, which is cleared: an option's is better. */
static bool
clear_wrong_value(void)
{
	if (PyErr_Occurred() == NULL)
		return true;
	if (!PyErr_ExceptionMatches(PyExc_TypeError) && !PyErr_ExceptionMatches(PyExc_ValueError) &&
		!PyErr_ExceptionMatches(PyExc_OverflowError))
		return false;
	PyErr_Clear();
	return true;
}

/* A type of numpy that ids may have. */
static bool
take_dtype(int *type, PyObject *o)
{
	PyArray_Descr *given = NULL;
	int num = -1;

	if (o != Py_None && PyArray_DescrConverter(o, &given) == 1 &&
		PyArray_ISNBO(given->byteorder))
		num = given->type_num;
	Py_XDECREF(given);
	if (!clear_wrong_value())
		return false;
	*type = num == NPY_LONGLONG ? NPY_INT64 : num;
	if (*type == NPY_UINT32 || *type == NPY_INT32 || *type == NPY_INT64)
		return true;
	PyErr_Format(PyExc_ValueError, "dtype: %R: expected uint32, int32 or int64", o);
	return false;
}

/* None leaves *left as the file has it. */
static bool
take_side(bool *left, PyObject *o)
{
	int side;

	if (o == Py_None)
		return true;
	side = which(o, &word[LEFT], &word_text[LEFT], 2);
	*left = side == 0;
	if (side < 2)
		return true;
	PyErr_Format(PyExc_ValueError, "truncation_side: %R: expected \"left\" or \"right\"", o);
	return false;
}

/* Once: a Tokenizer reads the file at first use, and does not change. */
static bool
know_model(struct vocab *v)
{
	PyObject *found;
	Py_ssize_t most;
	int left;
	bool good;

	if (v->model.known)
		return true;
	found = PyObject_GetAttrString((PyObject *)v, "_model_truncation");
	if (found == NULL)
		return false;
	good = PyArg_ParseTuple(found, "np", &most, &left) != 0;
	Py_DECREF(found);
	if (good)
		v->model = (struct model_truncation){true, left != 0, most};
	return good;
}

/* What the file does not say, of the tokenizer_config.json beside it. */
static bool
truncation_of_model(struct how *h, struct vocab *v)
{
	if (h->side && h->cut.most != OF_MODEL)
		return true;
	if (!know_model(v))
		return false;
	if (!h->side)
		h->cut.left = v->model.left;
	if (h->cut.most != OF_MODEL)
		return true;
	h->cut.most = (size_t)v->model.most;
	if (v->model.most >= 0)
		return true;
	PyErr_Format(PyExc_ValueError,
		"truncation=True: neither %s nor a tokenizer_config.json beside it says to how "
		"many ids: give a number",
		tok_vocab_info(v->vocab).path);
	return false;
}

static bool
truncation_of_file(struct how *h, const struct vocab *v)
{
	const struct tok_truncation *t = &tok_vocab_shape(v->vocab)->truncation;

	h->cut.most = t->on ? t->max_length : OF_MODEL;
	if (!t->on || !t->pairs_only)
		return true;
	PyErr_Format(PyExc_ValueError,
		"truncation=True: %s says to cut the second of two texts (\"OnlySecond\"): give a "
		"number of ids",
		tok_vocab_info(v->vocab).path);
	return false;
}

static bool
take_truncation(struct how *h, const struct vocab *v, PyObject *o)
{
	PyObject *number;
	long n = -1;

	h->cut.most = SIZE_MAX;
	if (o == Py_None || o == Py_False)
		return true;
	if (o == Py_True)
		return truncation_of_file(h, v);
	number = PyNumber_Index(o);
	if (number != NULL) {
		n = PyLong_AsLong(number);
		Py_DECREF(number);
	}
	if (!clear_wrong_value())
		return false;
	h->cut.most = (size_t)n;
	if (n >= 0 && n <= NUMBER_MAX)
		return true;
	PyErr_Format(PyExc_ValueError,
		"truncation: %R: expected True, False or a number from 0 to %d", o, NUMBER_MAX);
	return false;
}

struct how
how_default(const struct vocab *v)
{
	return (struct how){.flags = v->flags | TOK_TEMPLATE | TOK_SPECIAL,
		.type = NPY_UINT32,
		.cut.most = SIZE_MAX};
}

static bool
take_one(struct how *h, const struct vocab *v, int key, PyObject *value)
{
	int yes;

	switch (key) {
	case ADD_SPECIAL_TOKENS:
		yes = PyObject_IsTrue(value);
		if (yes == 0)
			h->flags &= ~(uint32_t)TOK_TEMPLATE;
		return yes >= 0;
	case TOKENS_IN_TEXT:
		return take_tokens_in_text(&h->flags, value);
	case DTYPE:
		return take_dtype(&h->type, value);
	case TRUNCATION:
		return take_truncation(h, v, value);
	case TRUNCATION_SIDE:
		h->side = value != Py_None;
		return take_side(&h->cut.left, value);
	case RETURN_OFFSETS:
		yes = PyObject_IsTrue(value);
		h->offsets = yes > 0;
		return yes >= 0;
	default:
		h->text = value;
		return true;
	}
}

bool
how_take(struct how *h, struct vocab *v, const char *call, int known, PyObject *names,
	PyObject *const *value)
{
	const Py_ssize_t n = names == NULL ? 0 : PyTuple_Size(names);

	h->cut.left = tok_vocab_shape(v->vocab)->truncation.left;
	for (Py_ssize_t i = 0; i < n; i++) {
		PyObject *given = PyTuple_GetItem(names, i);
		int key = which(given, name, name_text, known);

		if (key == known) {
			PyErr_Format(PyExc_TypeError, "%s() got an unexpected keyword argument %R",
				call, given);
			return false;
		}
		if (!take_one(h, v, key, value[i]))
			return false;
	}
	if (h->cut.most == SIZE_MAX) {
		if (!h->side)
			return true;
		PyErr_SetString(PyExc_ValueError,
			"truncation_side: nothing is truncated: give truncation as well");
		return false;
	}
	if (!tok_vocab_shape(v->vocab)->truncation.on && !truncation_of_model(h, v))
		return false;
	h->cut = batch_cut_of(v->vocab, h->flags, h->cut.most, h->cut.left);
	if (h->cut.n_before + h->cut.n_after <= h->cut.most)
		return true;
	PyErr_Format(PyExc_ValueError,
		"truncation to %zu ids: the vocabulary's template alone has %u; give more, or "
		"add_special_tokens=False",
		h->cut.most, h->cut.n_before + h->cut.n_after);
	return false;
}
