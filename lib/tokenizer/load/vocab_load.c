/* SPDX-License-Identifier: BSD-3-Clause */
/* From a name or path to a vocabulary. Set-up only. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "compiled/compiled.h"
#include "build/model_make.h"
#include "build/vocab_table.h"

#define FOLDERS "/usr/local/share/dpdk-tokd/vocab:/usr/share/dpdk-tokd/vocab"

/* The files of a vocabulary. Only the GPT-2 pair has a second one. */
struct files {
	char main[PATH_MAX];
	char merges[PATH_MAX];
};

static bool
ends_with(const char *s, const char *end)
{
	size_t n = strlen(s), k = strlen(end);

	return n >= k && strcmp(s + n - k, end) == 0;
}

static bool
is_file(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* Write the path folder/name.ending to out. Is it a file? */
static bool
find_file(char *out, const char *folder, const char *name, const char *ending)
{
	return snprintf(out, PATH_MAX, "%s/%s%s", folder, name, ending) < PATH_MAX && is_file(out);
}

static bool
find_pair(const char *folder, struct files *f)
{
	return find_file(f->main, folder, "vocab.json", "") &&
	       find_file(f->merges, folder, "merges.txt", "");
}

/* Look up a name in one folder of the search path. */
static bool
find_name(const char *folder, const char *name, struct files *f)
{
	char inner[PATH_MAX];

	if (snprintf(inner, sizeof(inner), "%s/%s", folder, name) >= PATH_MAX)
		return false;
	/* A compiled file goes first. */
	if (find_file(f->main, folder, name, TOK_COMPILED_ENDING) ||
		find_file(f->main, inner, "tokenizer.json", "") ||
		find_file(f->main, folder, name, ".json") || find_pair(inner, f))
		return true;
	f->merges[0] = '\0';
	return find_file(f->main, folder, name, ".tiktoken") ||
	       find_file(f->main, inner, name, ".tiktoken") ||
	       find_file(f->main, folder, name, ".txt") ||
	       find_file(f->main, inner, "vocab.txt", "") ||
	       find_file(f->main, inner, "tekken.json", "") ||
	       find_file(f->main, folder, name, ".model") ||
	       find_file(f->main, inner, "tokenizer.model", "");
}

/* $TOK_VOCAB_PATH, the user's data (XDG base directory specification), the system's data. */
bool
tok_vocab_search_path(char *out, size_t room)
{
	const char *given = getenv("TOK_VOCAB_PATH"), *data = getenv("XDG_DATA_HOME");
	const char *home = getenv("HOME"), *below = "";
	int n;

	if (given == NULL)
		given = "";
	if (data == NULL || data[0] == '\0') {
		data = home == NULL ? "" : home;
		below = "/.local/share";
	}
	n = snprintf(out, room, "%s%s%s%s%s" FOLDERS, given, given[0] == '\0' ? "" : ":", data,
		data[0] == '\0' ? "" : below, data[0] == '\0' ? "" : "/dpdk-tokd/vocab:");
	return n >= 0 && (size_t)n < room;
}

static bool
look_up(const char *name, const char *search_path, struct files *f, struct tok_error *err)
{
	char standard[PATH_MAX], folders[PATH_MAX], *save = NULL, *folder;
	const char *shown = tok_shown_path(name);

	if (name[0] == '\0')
		return tok_fail(err, "vocab \"\": expected a name or a path");
	if (search_path == NULL)
		search_path = tok_vocab_search_path(standard, sizeof(standard)) ? standard : NULL;
	if (search_path == NULL || strlen(search_path) >= sizeof(folders))
		return tok_fail(err,
			"vocab \"%s\": the search path is too long, the limit is %zu bytes: "
			"shorten TOK_VOCAB_PATH",
			shown, sizeof(folders) - 1);
	strcpy(folders, search_path);
	for (folder = strtok_r(folders, ":", &save); folder != NULL;
		folder = strtok_r(NULL, ":", &save)) {
		if (find_name(folder, name, f))
			return true;
	}
	return tok_fail(err,
		"vocab \"%s\" not found: get it with `python3 -m dpdk_tokd.fetch %s` (in a clone: "
		"tools/fetch-vocab), or give a path; searched %s",
		shown, shown, search_path);
}

/* The rule is in tok.h. "." and ".." can only be folders. */
static bool
is_path(const char *s)
{
	static const char *const endings[] = {
		".json", ".tiktoken", ".txt", ".model", TOK_COMPILED_ENDING};

	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
		if (ends_with(s, endings[i]))
			return true;
	}
	return strchr(s, '/') != NULL || strcmp(s, ".") == 0 || strcmp(s, "..") == 0;
}

static bool
resolve_path(const char *path, struct files *f, struct tok_error *err)
{
	const char *slash = strrchr(path, '/'), *shown = tok_shown_path(path);
	size_t folder = slash == NULL ? 0 : (size_t)(slash - path) + 1;
	struct stat st;

	if (strlen(path) >= PATH_MAX - sizeof("/tokenizer.json"))
		return tok_fail(err, "vocab \"%s\": a path of %zu bytes, the limit is %zu", shown,
			strlen(path), PATH_MAX - sizeof("/tokenizer.json") - 1);
	if (stat(path, &st) != 0)
		return tok_fail(err, "vocab \"%s\": %s", shown, strerror(errno));
	if (S_ISDIR(st.st_mode)) {
		if (find_file(f->main, path, "tokenizer.json", "") || find_pair(path, f))
			return true;
		f->merges[0] = '\0';
		return find_file(f->main, path, "vocab.txt", "") ||
		       find_file(f->main, path, "tekken.json", "") ||
		       find_file(f->main, path, "tokenizer.model", "") ||
		       tok_fail(err,
			       "vocab \"%s\": the folder holds none of tokenizer.json, vocab.json "
			       "with merges.txt, vocab.txt, tekken.json, tokenizer.model",
			       shown);
	}
	strcpy(f->main, path);
	if (strcmp(path + folder, "vocab.json") == 0) {
		snprintf(f->merges, PATH_MAX, "%.*smerges.txt", (int)folder, path);
		if (!is_file(f->merges))
			return tok_fail(err, "vocab \"%s\": needs merges.txt beside it", shown);
	}
	return true;
}

static const char *
base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash == NULL ? path : slash + 1;
}

/* Some are named .model, as those of Llama 3 and Kimi-K2. No SentencePiece model begins with a
 * character of base64. */
static bool
is_ranks(const char *path)
{
	FILE *file = fopen(path, "re");
	int first = file == NULL ? EOF : getc(file);

	if (file != NULL)
		fclose(file);
	return (first >= '0' && first <= '9') || (first >= 'A' && first <= 'Z') ||
	       (first >= 'a' && first <= 'z') || first == '+' || first == '/';
}

static bool
load_files(
	const struct files *f, const char *pretokenizer, struct tok_model *m, struct tok_error *err)
{
	if (f->merges[0] != '\0')
		return tok_load_gpt2_pair(f->main, f->merges, pretokenizer, m, err);
	if (ends_with(f->main, ".tiktoken") || (ends_with(f->main, ".model") && is_ranks(f->main)))
		return tok_load_tiktoken(f->main, pretokenizer, m, err);
	if (ends_with(f->main, ".model"))
		return tok_load_sp_model(f->main, m, err);
	if (ends_with(f->main, ".json"))
		return tok_load_tokenizer_json(f->main, NULL, 0, m, err);
	if (ends_with(f->main, ".txt") && strcmp(base_name(f->main), "merges.txt") != 0)
		return tok_load_bert_vocab(f->main, pretokenizer, m, err);
	return tok_fail(err,
		"%s: the format is not implemented (implemented: tokenizer.json, "
		"vocab.json with merges.txt, .tiktoken, vocab.txt, tekken.json, .model, .tokv)",
		tok_shown_path(f->main));
}

/* Put the vocabulary's name before a loader's error, unless it is the path that the error names. */
static void
name_in_error(const char *name, const struct files *f, struct tok_error *err)
{
	const char *shown = tok_shown_path(name);
	const struct tok_error why = *err;
	size_t n = strlen(shown);

	if (strcmp(name, f->main) == 0 && strncmp(why.text, shown, n) == 0)
		tok_fail(err, "vocab \"%s\"%s", shown, why.text + n);
	else
		tok_fail(err, "vocab \"%s\": %s", shown, why.text);
}

/* WordPiece is longest match anyway, so it has both. */
static bool
check_algo(const char *name, const char *algo, struct tok_error *err)
{
	if (algo == NULL || strcmp(algo, "exact") == 0 || strcmp(algo, "greedy") == 0)
		return true;
	return tok_fail(err,
		"vocab \"%s\": algo \"%.60s\" is not implemented (implemented: exact, greedy)",
		tok_shown_path(name), algo);
}

/* A compiled vocabulary has a fixed algorithm. */
static bool
check_compiled_algo(const struct tok_vocab *v, const char *algo, struct tok_error *err)
{
	if (algo == NULL || v->kind != TOK_KIND_BPE || strcmp(algo, v->info.algo) == 0)
		return true;
	return tok_fail(err,
		"%s: compiled for algo %s, not %s: name the file it was compiled "
		"from, or compile that with --algo %s",
		tok_shown_path(v->info.path), v->info.algo, algo, algo);
}

/* The vocabulary of a model, which is freed. */
static struct tok_vocab *
build(struct tok_model *m, const char *name, const char *path, const struct tok_load_opts *opts,
	struct tok_error *err)
{
	struct tok_vocab *v;

	m->greedy =
		m->kind == TOK_KIND_BPE && opts->algo != NULL && strcmp(opts->algo, "greedy") == 0;
	v = tok_vocab_build(m, name, path, opts->mem, err);
	tok_model_free(m);
	return v;
}

/* Load from source files, before the tables are moved to their final memory. */
static struct tok_vocab *
load_found(const char *name, const struct files *f, const struct tok_load_opts *opts,
	struct tok_error *err)
{
	struct tok_vocab *v = NULL;
	struct tok_model m;

	if (ends_with(f->main, TOK_COMPILED_ENDING)) {
		v = tok_compiled_load(f->main, name, opts, err);
		if (v != NULL && !check_compiled_algo(v, opts->algo, err)) {
			tok_vocab_free(v);
			v = NULL;
		}
		return v;
	}
	return load_files(f, opts->pretokenizer, &m, err) ? build(&m, name, f->main, opts, err)
							  : NULL;
}

static bool
find_files(
	const char *name, const struct tok_load_opts *opts, struct files *f, struct tok_error *err)
{
	*f = (struct files){0};
	err->text[0] = '\0';
	return (is_path(name) ? resolve_path(name, f, err)
			      : look_up(name, opts->search_path, f, err)) &&
	       check_algo(name, opts->algo, err);
}

static const struct tok_load_opts no_opts;

/* Move the tables to their final memory. NULL: v was NULL, or it failed. */
static struct tok_vocab *
finish(struct tok_vocab *v, const char *name, const struct files *f,
	const struct tok_load_opts *opts, struct tok_error *err)
{
	if (v != NULL && opts->huge_pages && !tok_huge_move(v, err)) {
		tok_vocab_free(v);
		v = NULL;
	}
	if (v == NULL)
		name_in_error(name, f, err);
	return v;
}

struct tok_vocab *
tok_vocab_load(const char *name_or_path, const struct tok_load_opts *opts, struct tok_error *err)
{
	struct tok_error ignored;
	struct files f;

	opts = opts == NULL ? &no_opts : opts;
	err = err == NULL ? &ignored : err;
	if (!find_files(name_or_path, opts, &f, err))
		return NULL;
	return finish(load_found(name_or_path, &f, opts, err), name_or_path, &f, opts, err);
}

/* The bytes and a NUL in memory of their own, or NULL. */
static char *
copy_text(const char *shown, const void *text, size_t size, struct tok_error *err)
{
	char *copy = NULL;

	if (size > TOK_FILE_MAX)
		tok_fail(err, "%s: %zu bytes, the limit of a vocabulary file is %zu", shown, size,
			TOK_FILE_MAX);
	else if ((copy = malloc(size + 1)) == NULL)
		tok_fail(err, "%s: out of memory for %zu bytes", shown, size);
	else {
		memcpy(copy, text, size);
		copy[size] = '\0';
	}
	return copy;
}

struct tok_vocab *
tok_vocab_load_memory(const char *name, const void *text, size_t size,
	const struct tok_load_opts *opts, struct tok_error *err)
{
	struct tok_vocab *v = NULL;
	struct tok_error ignored;
	struct files f = {0};
	struct tok_model m;
	char *copy;

	opts = opts == NULL ? &no_opts : opts;
	err = err == NULL ? &ignored : err;
	err->text[0] = '\0';
	snprintf(f.main, sizeof(f.main), "%s", name);
	if (!check_algo(name, opts->algo, err))
		return NULL;
	copy = copy_text(tok_shown_path(f.main), text, size, err);
	if (copy != NULL && tok_load_tokenizer_json(f.main, copy, size, &m, err))
		v = build(&m, name, f.main, opts, err);
	return finish(v, name, &f, opts, err);
}

bool
tok_vocab_compile(const char *name_or_path, const struct tok_load_opts *opts, const char *out,
	struct tok_error *err)
{
	struct tok_vocab *v;
	struct tok_error ignored;
	struct files f;
	const char *paths[] = {f.main, f.merges};
	bool ok;

	opts = opts == NULL ? &no_opts : opts;
	err = err == NULL ? &ignored : err;
	if (!find_files(name_or_path, opts, &f, err))
		return false;
	if (ends_with(f.main, TOK_COMPILED_ENDING))
		return tok_fail(err,
			"vocab \"%s\": %s is compiled: name the file it was compiled from",
			tok_shown_path(name_or_path), tok_shown_path(f.main));
	if (!ends_with(out, TOK_COMPILED_ENDING))
		return tok_fail(err, "%s: the name of a compiled vocabulary ends in %s",
			tok_shown_path(out), TOK_COMPILED_ENDING);
	v = load_found(name_or_path, &f, opts, err);
	ok = v != NULL && tok_compiled_write(v, paths, f.merges[0] == '\0' ? 1 : 2, out, err);
	tok_vocab_free(v);
	if (!ok)
		name_in_error(name_or_path, &f, err);
	return ok;
}
