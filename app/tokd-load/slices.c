/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "slices.h"

static uint8_t *
read_file(const char *path, size_t *size)
{
	FILE *f = fopen(path, "rb");
	uint8_t *data = NULL;
	long end;

	if (f == NULL)
		return NULL;
	if (fseek(f, 0, SEEK_END) == 0 && (end = ftell(f)) >= 0 && fseek(f, 0, SEEK_SET) == 0) {
		*size = (size_t)end;
		data = malloc(*size + 1);
		if (data != NULL && fread(data, 1, *size, f) != *size) {
			free(data);
			data = NULL;
		}
	}
	fclose(f);
	return data;
}

static uint32_t
take_u32(const uint8_t **p)
{
	uint32_t v;

	memcpy(&v, *p, sizeof(v));
	*p += sizeof(v);
	return v;
}

static int
find_slices(struct slices *s, const uint8_t *p, const uint8_t *end)
{
	for (uint32_t i = 0; i < s->count; i++) {
		struct slice *slice = &s->slice[i];

		if (end - p < 8)
			return -1;
		slice->text_len = take_u32(&p);
		slice->n_ids = take_u32(&p);
		if ((uint64_t)(end - p) < slice->text_len + UINT64_C(4) * slice->n_ids)
			return -1;
		slice->text = p;
		p += slice->text_len;
		slice->ids = p;
		p += (size_t)4 * slice->n_ids;
		if (slice->text_len > s->max_text)
			s->max_text = slice->text_len;
		if (slice->n_ids > s->max_ids)
			s->max_ids = slice->n_ids;
	}
	return p == end ? 0 : -1;
}

int
slices_load(struct slices *s, const char *path)
{
	const uint8_t *p;
	size_t size = 0;

	memset(s, 0, sizeof(*s));
	s->file = read_file(path, &size);
	if (s->file == NULL) {
		perror(path);
		return -1;
	}
	p = s->file;
	if (size >= 4)
		s->count = take_u32(&p);
	/* Check the count against the file's size before allocating. */
	if (s->count > 0 && s->count <= size / 8)
		s->slice = calloc(s->count, sizeof(*s->slice));
	if (s->slice == NULL || find_slices(s, p, s->file + size) != 0) {
		fprintf(stderr, "%s: not a file of slices, or cut short\n", path);
		slices_free(s);
		return -1;
	}
	return 0;
}

void
slices_free(struct slices *s)
{
	free(s->slice);
	free(s->file);
	memset(s, 0, sizeof(*s));
}
