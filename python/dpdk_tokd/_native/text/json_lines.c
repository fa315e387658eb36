/* SPDX-License-Identifier: BSD-3-Clause */
/* A string of each line of JSON lines, without the GIL: for dpdk_tokd/bulk. */
#include "libtok.h"

#include <stdlib.h>
#include <string.h>

#include "load/json_tree.h"

struct string {
	const char *p; /* NULL: not found */
	size_t n;
};

/* One of each line that is not blank. */
struct strings {
	struct string *at;
	size_t n, room;
};

/* False: out of memory. */
static bool
strings_add(struct strings *s, struct string one)
{
	if (s->n == s->room) {
		const size_t room = s->room == 0 ? 1024 : 2 * s->room;
		struct string *at = realloc(s->at, room * sizeof(*at));

		if (at == NULL)
			return false;
		s->at = at;
		s->room = room;
	}
	s->at[s->n++] = one;
	return true;
}

/* Of the lines of text[0 .. n), which has room for one byte more. False: out of memory. */
static bool
find_strings(struct strings *found, char *text, size_t n, const char *field)
{
	struct tok_json_tree tree = {0};
	struct tok_json_text at = {0};
	bool ok = true;

	for (char *line = text, *end; ok && line < text + n; line = end + 1) {
		end = memchr(line, '\n', (size_t)(text + n - line));
		end = end == NULL ? text + n : end;
		*end = '\0';
		if (line + strspn(line, " \t\r\v\f") == end)
			continue;
		const struct tok_json *value =
			tok_json_tree_read(&tree, line, (size_t)(end - line), &at)
				? tok_json_get(tree.root, field)
				: NULL;
		const struct string one = {
			tok_json_string_value(value), tok_json_string_length(value)};

		ok = strings_add(found, one);
	}
	tok_json_tree_free(&tree);
	return ok;
}

static PyObject *
list_of(const struct strings *s)
{
	PyObject *list = PyList_New((Py_ssize_t)s->n), *one;

	for (size_t i = 0; list != NULL && i < s->n; i++) {
		one = s->at[i].p == NULL
			      ? Py_NewRef(Py_None)
			      : PyBytes_FromStringAndSize(s->at[i].p, (Py_ssize_t)s->at[i].n);
		if (one == NULL)
			Py_CLEAR(list);
		else
			PyList_SET_ITEM(list, (Py_ssize_t)i, one);
	}
	return list;
}

PyObject *
json_lines(PyObject *module, PyObject *args)
{
	struct strings found = {0};
	PyObject *list = NULL;
	const char *lines, *field;
	Py_ssize_t n;
	char *text;
	bool ok;

	if (!PyArg_ParseTuple(args, "y#s", &lines, &n, &field))
		return NULL;
	Py_BEGIN_ALLOW_THREADS
	text = malloc((size_t)n + 1); /* strings are decoded where they lie */
	ok = text != NULL && find_strings(&found, memcpy(text, lines, (size_t)n), (size_t)n, field);
	Py_END_ALLOW_THREADS
	list = ok ? list_of(&found) : PyErr_NoMemory();
	free(found.at);
	free(text);
	return list;
}
