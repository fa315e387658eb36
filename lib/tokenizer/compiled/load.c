/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Load a compiled vocabulary: map its file, or copy its tables to memory from the caller's
 * allocator. Everything in the file is checked before it is used. Set-up only.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "normalize/added.h"
#include "tables/crc32.h"
#include "build/parts.h"
#include "compiled.h"
#include "build/model_make.h"
#include "isa/kernels.h"
#include "pretokenize/names.h"
#include "unicode/utf8.h"
#include "build/vocab_table.h"

#define AGAIN "compile it again (tok vocab compile)"

#define SOURCE_MAX 640 /* bytes of the text about the source */

struct opened {
	const char *shown; /* its path in errors */
	int fd;
	uint64_t bytes;
	struct tok_compiled_header h;
	uint8_t *map;
};

/* ---- header ---- */

/* Validate the header, its magic and version first. */
static bool
check_header(const struct opened *f, struct tok_error *err)
{
	const struct tok_compiled_header *h = &f->h;

	if (memcmp(h->magic, TOK_COMPILED_MAGIC, sizeof(h->magic)) != 0)
		return tok_fail(err, "%s: not a compiled vocabulary: " AGAIN, f->shown);
	if (h->order != TOK_COMPILED_ORDER)
		return tok_fail(
			err, "%s: compiled on a machine with another byte order: " AGAIN, f->shown);
	if (h->version != TOK_COMPILED_VERSION)
		return tok_fail(err, "%s: version %u of the format, expected %u: " AGAIN, f->shown,
			h->version, TOK_COMPILED_VERSION);
	if (h->header_bytes != sizeof(*h) || h->n_tables != TOK_N_TABLES)
		return tok_fail(err,
			"%s: a header of %u bytes for %u tables, expected %zu for %u: " AGAIN,
			f->shown, h->header_bytes, h->n_tables, sizeof(*h), TOK_N_TABLES);
	if (tok_crc32(0, h, offsetof(struct tok_compiled_header, header_crc)) != h->header_crc)
		return tok_fail(
			err, "%s: damaged, the checksum of its header is wrong: " AGAIN, f->shown);
	if (h->file_bytes != f->bytes)
		return tok_fail(err, "%s: damaged, %llu bytes, expected %llu: " AGAIN, f->shown,
			(unsigned long long)f->bytes, (unsigned long long)h->file_bytes);
	if (h->constants != tok_compiled_constants())
		return tok_fail(err,
			"%s: compiled with other tables of Unicode than this program's: " AGAIN,
			f->shown);
	return true;
}

/* Validate the directory of tables: each offset must follow from the sizes of the tables before it.
 * So tables lie within the file and do not overlap. */
static bool
check_directory(const struct opened *f, struct tok_error *err)
{
	size_t bytes[TOK_N_TABLES];
	uint64_t off[TOK_N_TABLES], end;
	bool ok = true;

	for (enum tok_table t = 0; t < TOK_N_TABLES; t++) {
		const struct tok_compiled_table *from = &f->h.table[t];
		const struct tok_table_place *place = &tok_table_places[t];

		if (strnlen(from->name, sizeof(from->name)) == sizeof(from->name) ||
			strcmp(from->name, place->name) != 0 || from->element != place->element)
			return tok_fail(err,
				"%s: table \"%.40s\" of elements of %u bytes, expected \"%s\" of "
				"%u: " AGAIN,
				f->shown, from->name, from->element, place->name, place->element);
		ok = ok && from->bytes <= f->bytes && from->bytes % place->element == 0;
		bytes[t] = ok ? from->bytes : 0;
	}
	end = tok_vocab_layout(bytes, sizeof(f->h), off);
	for (enum tok_table t = 0; t < TOK_N_TABLES; t++)
		ok = ok && off[t] == f->h.table[t].off;
	if (!ok || end != f->bytes)
		return tok_fail(err, "%s: its tables do not fit the file: " AGAIN, f->shown);
	return true;
}

/* ---- file ---- */

static bool
open_file(struct opened *f, const char *path, struct tok_error *err)
{
	struct stat st;
	ssize_t got;

	/* O_NONBLOCK: opening a FIFO must not wait for a writer. */
	f->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (f->fd < 0 || fstat(f->fd, &st) != 0)
		return tok_fail(err, "%s: %s", f->shown, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return tok_fail(err, "%s: not a file", f->shown);
	f->bytes = (uint64_t)st.st_size;
	if (f->bytes > TOK_COMPILED_MAX)
		return tok_fail(err, "%s: %llu bytes, the limit is %llu", f->shown,
			(unsigned long long)f->bytes, (unsigned long long)TOK_COMPILED_MAX);
	got = pread(f->fd, &f->h, sizeof(f->h), 0);
	if (got < 0)
		return tok_fail(err, "%s: %s", f->shown, strerror(errno));
	if ((size_t)got < sizeof(f->h))
		return tok_fail(err, "%s: damaged, %zd bytes, a header has %zu: " AGAIN, f->shown,
			got, sizeof(f->h));
	return true;
}

/* Map the file read-only and shared: all processes that map it use the same memory. */
static bool
map_file(struct opened *f, struct tok_error *err)
{
	f->map = mmap(NULL, f->bytes, PROT_READ, MAP_SHARED, f->fd, 0);
	if (f->map == MAP_FAILED) {
		f->map = NULL;
		return tok_fail(err, "%s: %s", f->shown, strerror(errno));
	}
	madvise(f->map, f->bytes, MADV_HUGEPAGE); /* on tmpfs, where it is allowed */
	/*
	 * Read the whole file now: a disk error is an error here, and the first texts wait for no
	 * disk. The kernel may still drop pages and read them again, and truncating the file is a
	 * SIGBUS. A program that must not wait copies the tables (`mem`), as dpdk-tokd does.
	 */
	if (madvise(f->map, f->bytes, MADV_POPULATE_READ) != 0 && errno != EINVAL)
		return tok_fail(err, "%s: it cannot be read: %s", f->shown, strerror(errno));
	if (tok_compiled_sum(f->map + sizeof(f->h), f->bytes - sizeof(f->h)) != f->h.data_sum)
		return tok_fail(
			err, "%s: damaged, the checksum of its tables is wrong: " AGAIN, f->shown);
	return true;
}

/* ---- vocabulary ---- */

static void
describe_source(const struct tok_compiled_header *h, char *text)
{
	size_t n = (size_t)snprintf(text, SOURCE_MAX, "%.15s", h->format);

	for (uint32_t i = 0; i < TOK_COMPILED_FILES && h->source[i].name[0] != '\0'; i++)
		n += (size_t)snprintf(text + n, SOURCE_MAX - n,
			"%s %.239s of %llu bytes with CRC-32 %08x", i == 0 ? ":" : ",",
			h->source[i].name, (unsigned long long)h->source[i].bytes,
			h->source[i].crc);
	tok_make_printable(text);
}

/* Make a vocabulary with its strings and numbers. Its tables stay in the mapped file. */
static struct tok_vocab *
make_vocab(const struct opened *f, const char *name, const char *path)
{
	const struct tok_compiled_header *h = &f->h;
	struct tok_vocab *v = calloc(1, sizeof(*v) + strlen(name) + strlen(path) + 2 + SOURCE_MAX);
	char *text;

	if (v == NULL)
		return NULL;
	text = (char *)(v + 1);
	describe_source(h, text);
	v->info.source = text;
	text += SOURCE_MAX;
	v->info.name = strcpy(text, name);
	v->info.path = strcpy(text + strlen(name) + 1, path);
	v->info.format = "tokv";
#define TAKE(number_, field) v->field = h->number[TOK_NUMBER_##number_];
	TOK_NUMBERS(TAKE)
#undef TAKE
	memcpy(v->shape.around.before, h->before, sizeof(h->before));
	memcpy(v->shape.around.after, h->after, sizeof(h->after));
	for (enum tok_table t = 0; t < TOK_N_TABLES; t++) {
		if (h->table[t].bytes > 0)
			tok_vocab_table_set(v, t, f->map + h->table[t].off, h->table[t].bytes);
	}
	tok_vocab_shifts(v);
	v->n_unmerged = tok_vocab_table_n(v, TOK_TABLE_UNMERGED);
	v->ids_per_byte = TOK_UTF8_REPLACEMENT_BYTES;
	v->n_ranks = v->kind == TOK_KIND_BPE ? tok_vocab_table_n(v, TOK_TABLE_EXT) : TOK_BYTES;
	v->n_nodes = tok_vocab_table_n(v, TOK_TABLE_NODE);
	v->n_repeats = tok_vocab_table_n(v, TOK_TABLE_REPEAT);
	v->info.n_merges = v->n_ranks - TOK_BYTES;
	v->storage_kind = TOK_STORAGE_FILE;
	v->storage = f->map;
	v->storage_bytes = f->bytes;
	return v;
}

/* Copy all tables to the caller's memory, and use the copies from now on. */
static bool
copy_tables(struct tok_vocab *v, const struct tok_mem *mem, struct tok_error *err)
{
	struct tok_vocab from = *v;

	v->mem = *mem;
	v->storage_kind = TOK_STORAGE_MEM;
	memset(v->table_bytes, 0, sizeof(v->table_bytes));
	v->info.table_bytes = 0;
	for (enum tok_table t = 0; t < TOK_N_TABLES; t++) {
		if (from.table_bytes[t] == 0)
			continue;
		if (!tok_vocab_table_make(
			    v, t, from.table_bytes[t] / tok_table_places[t].element)) {
			tok_vocab_leave(&from);
			return tok_fail(err, "out of memory for %zu bytes of tables",
				from.info.table_bytes);
		}
		memcpy(tok_vocab_table(v, t), tok_vocab_table(&from, t), from.table_bytes[t]);
	}
	tok_vocab_leave(&from);
	return true;
}

/* Fill in what follows from the tables, once they have been checked. */
static void
fill_in(struct tok_vocab *v)
{
	if (v->kind == TOK_KIND_WORDPIECE)
		tok_bert_norm_plain(&v->wordpiece.norm);
	if (v->kind == TOK_KIND_UNIGRAM || v->unigram.norm.sentencepiece)
		tok_unigram_sum(v);
	tok_norm_sum(v);
	tok_added_sum(v);
	v->info.pretokenizer = tok_words_name(v->kind, v->pretok);
	v->info.algo = v->kind == TOK_KIND_BPE && v->longest.node != NULL ? "greedy" : "exact";
}

struct tok_vocab *
tok_compiled_load(
	const char *path, const char *name, const struct tok_load_opts *opts, struct tok_error *err)
{
	struct opened f = {.shown = tok_shown_path(path), .fd = -1};
	const struct tok_kernels *kernels;
	struct tok_vocab *v = NULL;
	const char *wrong;
	bool ok = open_file(&f, path, err) && check_header(&f, err) && check_directory(&f, err) &&
		  map_file(&f, err);

	if (f.fd >= 0)
		close(f.fd);
	kernels = ok ? tok_kernels_choose(err) : NULL;
	if (kernels != NULL) {
		v = make_vocab(&f, name, path);
		ok = v != NULL || tok_fail(err, "out of memory");
	}
	if (v == NULL) {
		if (f.map != NULL)
			munmap(f.map, f.bytes);
		return NULL;
	}
	v->kernels = kernels;
	ok = opts->mem == NULL || copy_tables(v, opts->mem, err);
	if (ok) {
		wrong = tok_compiled_check(v);
		ok = wrong == NULL ||
		     tok_fail(err, "%s: its tables contradict each other (%s): " AGAIN, f.shown,
			     wrong);
	}
	if (!ok) {
		tok_vocab_free(v);
		return NULL;
	}
	fill_in(v);
	wrong = tok_norm_bound(v);
	if (wrong != NULL) {
		tok_fail(err, "%s: %s: " AGAIN, f.shown, wrong);
		tok_vocab_free(v);
		return NULL;
	}
	tok_stages_set(v);
	if (v->kind == TOK_KIND_BPE && v->longest.node == NULL)
		tok_byte_runs_fill(v);
	return v;
}
