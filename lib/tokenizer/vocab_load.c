/* SPDX-License-Identifier: BSD-3-Clause */
/* From a name or path to a vocabulary. Set-up only. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "model.h"

/* A vocabulary's files: the second only for the GPT-2 pair. */
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
exists(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

static bool
is_folder(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* "%s%s%s" into a path; false if it is too long. */
static bool
join(char *out, const char *a, const char *b, const char *c)
{
	return snprintf(out, PATH_MAX, "%s%s%s", a, b, c) < PATH_MAX;
}

static bool
find_in_folder(const char *folder, struct files *f)
{
	if (join(f->main, folder, "/tokenizer.json", "") && exists(f->main)) {
		f->merges[0] = '\0';
		return true;
	}
	return join(f->main, folder, "/vocab.json", "") && exists(f->main) &&
	       join(f->merges, folder, "/merges.txt", "") && exists(f->merges);
}

/* A name in one folder of the search path. */
static bool
find_name(const char *folder, const char *name, struct files *f)
{
	static const char *const endings[] = {".json", ".tiktoken"};
	char base[PATH_MAX], inner[PATH_MAX];

	f->merges[0] = '\0';
	if (!join(base, folder, "/", name))
		return false;
	if (is_folder(base) && find_in_folder(base, f))
		return true;
	f->merges[0] = '\0';
	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
		if (join(f->main, base, endings[i], "") && exists(f->main))
			return true;
	}
	return join(inner, base, "/", name) && join(f->main, inner, ".tiktoken", "") &&
	       exists(f->main);
}

static const char *
default_search_path(char *out, size_t room)
{
	const char *given = getenv("TOK_VOCAB_PATH"), *data = getenv("XDG_DATA_HOME");
	const char *home = getenv("HOME");

	snprintf(out, room,
		"%s%s%s%s/dpdk-tokd/vocab:/usr/local/share/dpdk-tokd/vocab:"
		"/usr/share/dpdk-tokd/vocab",
		given ? given : "", given && given[0] ? ":" : "",
		data && data[0] ? data : home ? home : "",
		data && data[0] ? "" : "/.local/share");
	return out;
}

static bool
look_up(const char *name, const char *search_path, struct files *f, struct tok_error *err)
{
	char standard[PATH_MAX], folders[PATH_MAX], *save = NULL, *folder;

	if (search_path == NULL)
		search_path = default_search_path(standard, sizeof(standard));
	if (strlen(search_path) >= sizeof(folders))
		return tok_fail(err, "vocabulary \"%s\": the search path has %zu bytes, the limit is "
				     "%zu", name, strlen(search_path), sizeof(folders) - 1);
	strcpy(folders, search_path);
	for (folder = strtok_r(folders, ":", &save); folder != NULL;
		folder = strtok_r(NULL, ":", &save)) {
		if (find_name(folder, name, f))
			return true;
	}
	return tok_fail(err, "vocabulary \"%s\" is not in %s: get it with tools/fetch-vocab %s, or give "
			     "a path", name, search_path, name);
}

static bool
is_path(const char *s)
{
	return strchr(s, '/') != NULL || ends_with(s, ".json") || ends_with(s, ".tiktoken") ||
	       ends_with(s, ".txt") || ends_with(s, ".model");
}

static bool
resolve_path(const char *path, struct files *f, struct tok_error *err)
{
	struct stat st;
	const char *slash = strrchr(path, '/');
	size_t folder = slash == NULL ? 0 : (size_t)(slash - path) + 1;

	f->merges[0] = '\0';
	if (strlen(path) >= PATH_MAX - sizeof("/merges.txt"))
		return tok_fail(err, "vocabulary path of %zu bytes, the limit is %zu", strlen(path),
			PATH_MAX - sizeof("/merges.txt") - 1);
	if (stat(path, &st) != 0)
		return tok_fail(err, "%s: no such file", path);
	if (S_ISDIR(st.st_mode))
		return find_in_folder(path, f) ||
		       tok_fail(err, "%s: holds neither tokenizer.json nor vocab.json with merges.txt",
			       path);
	strcpy(f->main, path);
	if (strcmp(path + folder, "vocab.json") == 0) {
		snprintf(f->merges, PATH_MAX, "%.*smerges.txt", (int)folder, path);
		if (!exists(f->merges))
			return tok_fail(err, "%s: needs %s beside it", path, f->merges);
	}
	return true;
}

static bool
load_files(const struct files *f, const char *pretokenizer, struct tok_model *m,
	struct tok_error *err)
{
	if (f->merges[0] != '\0')
		return tok_load_gpt2_pair(f->main, f->merges, m, err);
	if (ends_with(f->main, ".tiktoken"))
		return tok_load_tiktoken(f->main, pretokenizer, m, err);
	if (ends_with(f->main, ".json"))
		return tok_load_tokenizer_json(f->main, m, err);
	return tok_fail(err, "%s: format not implemented (implemented: tokenizer.json, vocab.json with "
			     "merges.txt, .tiktoken)", f->main);
}

struct tok_vocab *
tok_vocab_load(const char *name_or_path, const struct tok_load_opts *opts, struct tok_error *err)
{
	static const struct tok_load_opts none;
	struct tok_error ignored;
	struct tok_vocab *v;
	struct tok_model m;
	struct files f;

	if (opts == NULL)
		opts = &none;
	if (err == NULL)
		err = &ignored;
	err->text[0] = '\0';
	if (!(is_path(name_or_path) ? resolve_path(name_or_path, &f, err)
				    : look_up(name_or_path, opts->search_path, &f, err)))
		return NULL;
	if (!load_files(&f, opts->pretokenizer, &m, err))
		return NULL;
	v = tok_vocab_build(&m, name_or_path, f.main, opts->mem, err);
	if (v == NULL) {
		char why[sizeof(err->text)];

		memcpy(why, err->text, sizeof(why));
		tok_fail(err, "%.200s: %.280s", f.main, why);
	}
	tok_model_free(&m);
	return v;
}
