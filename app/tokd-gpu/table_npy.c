/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * .npy, versions 1.0 to 3.0 (numpy's format.py): magic, version, length, then a Python dictionary
 * with three keys. Reads what numpy writes; rejects all else that Python would accept.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tables_inside.h"

#define HEADER_MAX 4096
#define AXES_MAX 4

struct npy {
	char descr[8];
	bool fortran;
	uint64_t shape[AXES_MAX];
	uint32_t n_axes;
};

static void
skip_blanks(const char **p)
{
	while (**p == ' ' || **p == '\n')
		(*p)++;
}

static bool
take(const char **p, const char *what)
{
	skip_blanks(p);
	if (strncmp(*p, what, strlen(what)) != 0)
		return false;
	*p += strlen(what);
	return true;
}

static bool
take_quoted(const char **p, char *to, size_t room)
{
	size_t n = 0;

	if (!take(p, "'"))
		return false;
	while (**p != '\'' && **p != '\0' && n + 1 < room)
		to[n++] = *(*p)++;
	to[n] = '\0';
	return *(*p)++ == '\'';
}

static bool
take_shape(const char **p, struct npy *npy)
{
	if (!take(p, "("))
		return false;
	while (!take(p, ")")) {
		char *end;

		skip_blanks(p);
		if (npy->n_axes == AXES_MAX || !isdigit((unsigned char)**p))
			return false;
		npy->shape[npy->n_axes++] = strtoull(*p, &end, 10);
		*p = end;
		if (!take(p, ",")) /* accepts "(5)", which numpy never writes */
			return take(p, ")");
	}
	return true;
}

static bool
take_entry(const char **p, struct npy *npy, uint32_t *seen)
{
	char key[16];

	if (!take_quoted(p, key, sizeof(key)) || !take(p, ":"))
		return false;
	if (strcmp(key, "descr") == 0) {
		*seen |= 1;
		return take_quoted(p, npy->descr, sizeof(npy->descr));
	}
	if (strcmp(key, "fortran_order") == 0) {
		*seen |= 2;
		npy->fortran = take(p, "True");
		return npy->fortran || take(p, "False");
	}
	*seen |= 4;
	return strcmp(key, "shape") == 0 && take_shape(p, npy);
}

/* Rejects repeated keys. */
static bool
parse(const char *text, struct npy *npy)
{
	uint32_t seen = 0;

	if (!take(&text, "{"))
		return false;
	for (int i = 0; i < 3; i++) {
		if (!take_entry(&text, npy, &seen))
			return false;
		if (!take(&text, ",") && i < 2)
			return false;
	}
	return seen == 7 && take(&text, "}") && (skip_blanks(&text), *text == '\0');
}

bool
tokg_npy_find(struct tokg_table_file *f, struct tokg_error *err)
{
	struct tokg_tensor *t = &f->part[TOKG_WORD];
	char header[HEADER_MAX + 1] = "";
	struct npy npy = {0};
	uint8_t begin[12];
	uint64_t length, data;

	if (!tokg_file_read(f, 0, begin, sizeof(begin), err))
		return false;
	if (begin[6] < 1 || begin[6] > 3 || begin[7] != 0)
		return tokg_agent_wrong(err, "table %s: .npy version %u.%u, must be 1.0 to 3.0",
			f->path, begin[6], begin[7]);
	length = begin[8] | (uint32_t)begin[9] << 8;
	data = 10;
	if (begin[6] > 1) {
		length |= (uint32_t)begin[10] << 16 | (uint32_t)begin[11] << 24;
		data = 12;
	}
	if (length > HEADER_MAX)
		return tokg_agent_wrong(err,
			"table %s: .npy header of %" PRIu64 " bytes, must have at most %d", f->path,
			length, HEADER_MAX);
	if (!tokg_file_read(f, data, header, length, err))
		return false;
	if (strlen(header) != length || !parse(header, &npy))
		return tokg_agent_wrong(err,
			"table %s: invalid .npy header: write the file with numpy.save", f->path);
	if (strcmp(npy.descr, "<f4") == 0)
		t->dtype = TOKG_F32;
	else if (strcmp(npy.descr, "<f2") == 0)
		t->dtype = TOKG_F16;
	else
		return tokg_agent_wrong(err,
			"table %s: elements are '%s', must be '<f4' or '<f2': convert with astype",
			f->path, npy.descr);
	if (npy.n_axes != 2 || npy.fortran)
		return tokg_agent_wrong(err,
			"table %s: %u axes%s, must be 2 in C order: one row per id", f->path,
			npy.n_axes, npy.fortran ? " in Fortran order" : "");
	t->rows = npy.shape[0];
	t->dim = npy.shape[1];
	t->offset = data + length;
	if (t->rows == 0 || t->rows > TOKG_ROWS_MAX || t->dim == 0 || t->dim > TOKG_DIM_MAX)
		return tokg_agent_wrong(err,
			"table %s: %" PRIu64 " rows of %" PRIu64 ", must be 1 to %u of 1 to %u",
			f->path, t->rows, t->dim, TOKG_ROWS_MAX, TOKG_DIM_MAX);
	if (f->bytes - t->offset != t->rows * t->dim * tokg_element_bytes(t->dtype))
		return tokg_agent_wrong(err,
			"table %s: %" PRIu64 " bytes of elements, but %" PRIu64 " rows of %" PRIu64
			" need %" PRIu64,
			f->path, f->bytes - t->offset, t->rows, t->dim,
			t->rows * t->dim * tokg_element_bytes(t->dtype));
	return true;
}
