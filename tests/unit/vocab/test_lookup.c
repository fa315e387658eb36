/* SPDX-License-Identifier: BSD-3-Clause */
/* From a name or a path to a file. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fixture.h"

/* The file that loading gives, below the folder. */
static void
assert_found(void **state, const char *name, const char *search_path, const char *want)
{
	const struct tok_load_opts opts = {.pretokenizer = "gpt2", .search_path = search_path};
	const char *folder = *state;
	struct tok_error err;
	struct tok_vocab *v = tok_vocab_load(name, &opts, &err);
	struct tok_vocab_info info;

	if (v == NULL)
		fail_msg("%s", err.text);
	info = tok_vocab_info(v);
	assert_string_equal(info.name, name);
	assert_int_equal(strncmp(info.path, folder, strlen(folder)), 0);
	assert_string_equal(info.path + strlen(folder) + 1, want);
	tok_vocab_free(v);
}

static const char *
put_small_tiktoken(void **state, const char *name)
{
	char *text = small_tiktoken();
	const char *path = put_text(state, name, text);

	free(text);
	return path;
}

FOLDER_TEST(a_name_is_looked_for_in_each_folder_in_a_fixed_order)
{
	static const char *const order[] = {"b/small/tokenizer.json", "b/small.json",
		"b/small/vocab.json", "b/small.tiktoken", "b/small/small.tiktoken",
		"c/small.tiktoken"};
	char search_path[PATH_MAX], file[PATH_MAX];

	put_json(state, order[0], small_tokenizer_json());
	put_json(state, order[1], small_tokenizer_json());
	put_json(state, order[2], small_vocab_json());
	put_text(state, "b/small/merges.txt", small_merges);
	for (int i = 3; i < 6; i++)
		put_small_tiktoken(state, order[i]);
	/* Folder a is not there, and an empty name between colons is passed over. */
	snprintf(search_path, sizeof(search_path), "%1$s/a::%1$s/b:%1$s/c", (char *)*state);
	for (int i = 0; i < 6; i++) {
		assert_found(state, "small", search_path, order[i]);
		snprintf(file, sizeof(file), "%s/%s", (char *)*state, order[i]);
		assert_int_equal(unlink(file), 0);
	}
}

FOLDER_TEST(the_environment_names_folders)
{
	char folder[PATH_MAX];

	snprintf(folder, sizeof(folder), "%s/data", (char *)*state);
	put_small_tiktoken(state, "data/dpdk-tokd/vocab/small.tiktoken");
	setenv("XDG_DATA_HOME", folder, 1);
	assert_found(state, "small", NULL, "data/dpdk-tokd/vocab/small.tiktoken");

	put_small_tiktoken(state, "home/.local/share/dpdk-tokd/vocab/other.tiktoken");
	snprintf(folder, sizeof(folder), "%s/home", (char *)*state);
	unsetenv("XDG_DATA_HOME");
	setenv("HOME", folder, 1);
	assert_found(state, "other", NULL, "home/.local/share/dpdk-tokd/vocab/other.tiktoken");

	put_small_tiktoken(state, "first/other.tiktoken");
	snprintf(folder, sizeof(folder), "%s/first", (char *)*state);
	setenv("TOK_VOCAB_PATH", folder, 1);
	assert_found(state, "other", NULL, "first/other.tiktoken");
	unsetenv("TOK_VOCAB_PATH");
}

FOLDER_TEST(what_is_missing_is_said_with_the_folders_and_the_remedy)
{
	const struct tok_load_opts opts = {.search_path = "/nowhere:/here"};
	char *many = malloc(PATH_MAX + 2);
	struct tok_error err;

	assert_null(tok_vocab_load("small", &opts, &err));
	assert_string_equal(err.text,
		"vocab \"small\" not found: get it with `python3 -m dpdk_tokd.fetch small` (in a "
		"clone: tools/fetch-vocab), or give a path; searched /nowhere:/here");
	assert_null(tok_vocab_load("", &opts, &err));
	assert_null(tok_vocab_load("small", &opts, NULL));
	assert_non_null(many);
	memset(many, 'x', PATH_MAX + 1);
	many[PATH_MAX + 1] = '\0';
	setenv("TOK_VOCAB_PATH", many, 1);
	assert_refused("small", "shorten TOK_VOCAB_PATH");
	unsetenv("TOK_VOCAB_PATH");
	assert_refused(many, "not found");
	many[0] = '/';
	assert_refused(many, "the limit is");
	free(many);
}

FOLDER_TEST(a_path_is_a_file_or_a_folder)
{
	char folder[PATH_MAX];

	put_json(state, "pair/vocab.json", small_vocab_json());
	put_text(state, "pair/merges.txt", small_merges);
	snprintf(folder, sizeof(folder), "%s/pair", (char *)*state);
	assert_found(state, folder, NULL, "pair/vocab.json");
	snprintf(folder, sizeof(folder), "%s/pair/vocab.json", (char *)*state);
	assert_found(state, folder, NULL, "pair/vocab.json");
	put_json(state, "pair/tokenizer.json", small_tokenizer_json());
	snprintf(folder, sizeof(folder), "%s/pair", (char *)*state);
	assert_found(state, folder, NULL, "pair/tokenizer.json");
	assert_int_equal(chdir(folder), 0);
	assert_int_equal(assert_loads("tokenizer.json"), assert_loads("."));
	assert_int_equal(chdir("/"), 0);
}

FOLDER_TEST(paths_that_hold_no_vocabulary_are_refused)
{
	char path[PATH_MAX];

	assert_refused(*state, "the folder holds none of tokenizer.json, vocab.json "
			       "with merges.txt, vocab.txt, tekken.json");
	assert_refused("/nowhere/tokenizer.json", "No such file or directory");
	assert_refused(
		put_json(state, "vocab.json", small_vocab_json()), "needs merges.txt beside it");
	assert_refused(put_text(state, "vocab.txt", "[PAD]\n"), "no line is [UNK]");
	assert_refused(
		put_text(state, "merges.txt", small_merges), "the format is not implemented");
	assert_refused(put_text(state, "spm.bin", "\n"), "the format is not implemented");
	snprintf(path, sizeof(path), "%s/fifo.json", (char *)*state);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_refused(path, "not a regular file");
	snprintf(path, sizeof(path), "%s/large.json", (char *)*state);
	put_text(state, "large.json", "{}");
	assert_int_equal(truncate(path, (256 << 20) + 1), 0);
	assert_refused(path, "268435457 bytes, the limit of a vocabulary file is 268435456");
}

FOLDER_TEST(a_long_path_leaves_room_for_the_reason)
{
	char name[240];

	memset(name, 'x', sizeof(name));
	strcpy(name + 200, "/a/b.json");
	assert_refused(put_text(state, name, "{}"), "xxx/a/b.json\": model is missing");
}

int
main(void)
{
	unsetenv("TOK_VOCAB_PATH");
	return tests_run();
}
