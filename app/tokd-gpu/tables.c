/* SPDX-License-Identifier: BSD-3-Clause */
#include "tables.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tables_inside.h"

#define CHUNK 65536 /* elements converted at a time */
#define RANDOM "random:"
#define EPSILON 1e-12f /* of BERT's LayerNorm: layer_norm_eps of its config.json */

static const char *const kind_names[] = {NULL, "word", "word+position", "bert"};
static const char *const dtype_names[] = {NULL, "f32", "f16", "bf16"};
static const char *const part_names[] = {"the word table", "the position table", "the type table",
	"LayerNorm's weight", "LayerNorm's bias"};

/* The parts of each kind. */
static const uint32_t parts_of[] = {
	[TOKG_KIND_WORD] = 1 << TOKG_WORD,
	[TOKG_KIND_WORD_POSITION] = 1 << TOKG_WORD | 1 << TOKG_POSITION,
	[TOKG_KIND_BERT] = (1 << TOKG_PARTS) - 1,
};

bool
tokg_agent_wrong(struct tokg_error *err, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(err->text, sizeof(err->text), format, ap);
	va_end(ap);
	for (char *p = err->text; *p != '\0'; p++) { /* it may quote a file */
		if (*p < ' ' || *p > '~')
			*p = '?';
	}
	return false;
}

const char *
tokg_kind_name(uint32_t kind)
{
	return kind <= TOKG_KIND_BERT ? kind_names[kind] : NULL;
}

const char *
tokg_dtype_name(uint32_t dtype)
{
	return dtype <= TOKG_BF16 ? dtype_names[dtype] : NULL;
}

uint32_t
tokg_kind_of(const char *name)
{
	for (uint32_t i = TOKG_KIND_WORD; i <= TOKG_KIND_BERT; i++) {
		if (strcmp(name, kind_names[i]) == 0)
			return i;
	}
	return 0;
}

uint32_t
tokg_dtype_of(const char *name)
{
	for (uint32_t i = TOKG_F32; i <= TOKG_BF16; i++) {
		if (strcmp(name, dtype_names[i]) == 0)
			return i;
	}
	return 0;
}

bool
tokg_file_read(const struct tokg_table_file *f, uint64_t offset, void *to, size_t bytes,
	struct tokg_error *err)
{
	uint8_t *at = to;

	while (bytes > 0) {
		ssize_t n = pread(f->fd, at, bytes, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return tokg_agent_wrong(err, "table %s: %s", f->path, strerror(errno));
		if (n == 0)
			return tokg_agent_wrong(err,
				"table %s: ends at byte %" PRIu64 ", %zu more were expected",
				f->path, offset, bytes);
		at += n;
		offset += (uint64_t)n;
		bytes -= (size_t)n;
	}
	return true;
}

static bool
allocate(struct tokg_table_set *set, enum tokg_part p, uint64_t elements, struct tokg_error *err)
{
	set->part[p] = malloc(elements * tokg_element_bytes(set->tables.dtype));
	if (set->part[p] != NULL)
		return true;
	return tokg_agent_wrong(
		err, "cannot allocate %s of %" PRIu64 " elements", part_names[p], elements);
}

static bool
read_part(struct tokg_table_set *set, const struct tokg_table_file *f, enum tokg_part p,
	struct tokg_error *err)
{
	const struct tokg_tensor *t = &f->part[p];
	const uint32_t from = tokg_element_bytes(t->dtype);
	const uint32_t to = tokg_element_bytes(set->tables.dtype);
	/* Token type 0 only. */
	const uint64_t n = (p == TOKG_TYPE ? 1 : t->rows) * t->dim;
	uint8_t *chunk;
	bool good = true;

	if (!allocate(set, p, n, err))
		return false;
	chunk = malloc((size_t)CHUNK * from);
	if (chunk == NULL)
		return tokg_agent_wrong(err, "cannot allocate a chunk of %d elements", CHUNK);
	for (uint64_t i = 0; i < n && good; i += CHUNK) {
		const size_t some = n - i < CHUNK ? n - i : CHUNK;

		good = tokg_file_read(f, t->offset + i * from, chunk, some * from, err);
		if (good)
			tokg_convert((uint8_t *)set->part[p] + i * to, set->tables.dtype, chunk,
				t->dtype, some);
	}
	free(chunk);
	return good;
}

static bool
fits(const struct tokg_table_file *f, uint32_t kind, struct tokg_error *err)
{
	const uint64_t dim = f->part[TOKG_WORD].dim;

	for (uint32_t p = 0; p < TOKG_PARTS; p++) {
		if ((parts_of[kind] & 1u << p) == 0)
			continue;
		if (f->part[p].rows == 0)
			return tokg_agent_wrong(err,
				"table %s: lacks %s, which --kind %s needs: supported are the "
				"names of GPT-2 (wte.weight), BERT "
				"(embeddings.word_embeddings.weight) and Llama "
				"(model.embed_tokens.weight)",
				f->path, part_names[p], kind_names[kind]);
		if (f->part[p].dim != dim)
			return tokg_agent_wrong(err,
				"table %s: %s has rows of %" PRIu64 ", the word table of %" PRIu64
				": --kind word leaves it out",
				f->path, part_names[p], f->part[p].dim, dim);
	}
	return true;
}

static bool
has_all(const struct tokg_table_file *f, uint32_t kind)
{
	for (uint32_t p = 0; p < TOKG_PARTS; p++) {
		if ((parts_of[kind] & 1u << p) != 0 && f->part[p].rows == 0)
			return false;
	}
	return true;
}

/* The kind with the most parts that the file has; whether they fit together is not asked here. */
static uint32_t
kind_in(const struct tokg_table_file *f)
{
	for (uint32_t kind = TOKG_KIND_BERT; kind > TOKG_KIND_WORD; kind--) {
		if (has_all(f, kind))
			return kind;
	}
	return TOKG_KIND_WORD;
}

static bool
load_file(struct tokg_table_set *set, struct tokg_table_file *f, uint32_t kind, uint32_t dtype,
	struct tokg_error *err)
{
	static const uint8_t npy[6] = "\x93NUMPY";
	uint8_t begin[sizeof(npy)];

	if (!tokg_file_read(f, 0, begin, sizeof(begin), err))
		return false;
	if (memcmp(begin, npy, sizeof(npy)) == 0 ? !tokg_npy_find(f, err)
						 : !tokg_safetensors_find(f, err))
		return false;
	if (kind == 0)
		kind = kind_in(f);
	if (!fits(f, kind, err))
		return false;
	set->tables.kind = kind;
	set->tables.dtype = dtype != 0 ? dtype : f->part[TOKG_WORD].dtype;
	set->tables.dim = (uint32_t)f->part[TOKG_WORD].dim;
	set->tables.n_ids = (uint32_t)f->part[TOKG_WORD].rows;
	set->tables.n_positions =
		kind == TOKG_KIND_WORD ? 0 : (uint32_t)f->part[TOKG_POSITION].rows;
	for (uint32_t p = 0; p < TOKG_PARTS; p++) {
		if ((parts_of[kind] & 1u << p) != 0 && !read_part(set, f, p, err))
			return false;
	}
	return true;
}

static bool
open_and_load(struct tokg_table_set *set, const char *path, uint32_t kind, uint32_t dtype,
	struct tokg_error *err)
{
	/* O_NONBLOCK: a named pipe would wait for a writer. */
	struct tokg_table_file f = {
		.path = path, .fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
	struct stat st;
	bool good = false;

	if (f.fd < 0)
		return tokg_agent_wrong(err, "table %s: %s", path, strerror(errno));
	if (fstat(f.fd, &st) != 0 || !S_ISREG(st.st_mode)) {
		tokg_agent_wrong(err,
			"table %s: not a regular file: give the .safetensors or .npy file itself",
			path);
	} else {
		f.bytes = (uint64_t)st.st_size;
		good = load_file(set, &f, kind, dtype, err);
	}
	close(f.fd);
	return good;
}

static bool
compute_part(struct tokg_table_set *set, enum tokg_part p, uint64_t seed, uint64_t n,
	struct tokg_error *err)
{
	const uint32_t bytes = tokg_element_bytes(set->tables.dtype);
	float chunk[1024];

	if (!allocate(set, p, n, err))
		return false;
	for (uint64_t i = 0; i < n; i += 1024) {
		const size_t some = n - i < 1024 ? n - i : 1024;

		tokg_random_fill(chunk, seed, p, i, some);
		tokg_convert((uint8_t *)set->part[p] + i * bytes, set->tables.dtype, chunk,
			TOKG_F32, some);
	}
	return true;
}

/* "ROWSxDIM[:SEED[:POSITIONS]]" */
static bool
compute_tables(struct tokg_table_set *set, const char *spec, uint32_t kind, uint32_t dtype,
	struct tokg_error *err)
{
	struct tokg_tables *t = &set->tables;
	unsigned long long rows, dim, seed = 0, positions = TOKG_RANDOM_POSITIONS;
	int n[3] = {-1, -1, -1};
	const int given = sscanf(spec, "%llux%llu%n:%llu%n:%llu%n", &rows, &dim, &n[0], &seed,
		&n[1], &positions, &n[2]);

	if (given < 2 || given > 4 || spec[strspn(spec, "0123456789x:")] != '\0' ||
		n[given - 2] != (int)strlen(spec))
		return tokg_agent_wrong(err,
			"table random:%.64s: give random:ROWSxDIM[:SEED[:POSITIONS]], as "
			"random:50257x768:1",
			spec);
	if (rows == 0 || rows > TOKG_ROWS_MAX || dim == 0 || dim > TOKG_DIM_MAX || positions == 0 ||
		positions > TOKG_ROWS_MAX || rows * dim > TOKG_RANDOM_ELEMENTS_MAX ||
		positions * dim > TOKG_RANDOM_ELEMENTS_MAX)
		return tokg_agent_wrong(err,
			"table random:%.64s: rows and positions must be 1 to %u, the dimension 1 "
			"to %u, and the elements of a table at most %llu",
			spec, TOKG_ROWS_MAX, TOKG_DIM_MAX, TOKG_RANDOM_ELEMENTS_MAX);
	t->kind = kind != 0 ? kind : TOKG_KIND_WORD;
	t->dtype = dtype != 0 ? dtype : TOKG_F32;
	t->dim = (uint32_t)dim;
	t->n_ids = (uint32_t)rows;
	t->n_positions = t->kind == TOKG_KIND_WORD ? 0 : (uint32_t)positions;
	for (uint32_t p = 0; p < TOKG_PARTS; p++) {
		const uint64_t part_rows = p == TOKG_WORD	? rows
					   : p == TOKG_POSITION ? positions
								: 1;

		if ((parts_of[t->kind] & 1u << p) != 0 &&
			!compute_part(set, p, seed, part_rows * dim, err))
			return false;
	}
	return true;
}

bool
tokg_tables_load(struct tokg_table_set *set, const char *spec, uint32_t kind, uint32_t dtype,
	struct tokg_error *err)
{
	bool good;

	memset(set, 0, sizeof(*set));
	if (strncmp(spec, RANDOM, strlen(RANDOM)) == 0)
		good = compute_tables(set, spec + strlen(RANDOM), kind, dtype, err);
	else
		good = open_and_load(set, spec, kind, dtype, err);
	set->tables.word = set->part[TOKG_WORD];
	set->tables.position = set->part[TOKG_POSITION];
	set->tables.type = set->part[TOKG_TYPE];
	set->tables.gamma = set->part[TOKG_GAMMA];
	set->tables.beta = set->part[TOKG_BETA];
	set->tables.epsilon = EPSILON;
	return good;
}

void
tokg_tables_free(struct tokg_table_set *set)
{
	for (uint32_t p = 0; p < TOKG_PARTS; p++)
		free(set->part[p]);
	memset(set, 0, sizeof(*set));
}
