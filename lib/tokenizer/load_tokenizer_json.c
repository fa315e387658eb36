/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hugging Face's tokenizer.json. Each component is compared with what is implemented; anything else
 * is refused by name, never ignored. The keys are those of the `tokenizers` crate's serialisation.
 */
#include <stdio.h>
#include <string.h>

#include "json_vocab.h"

/* One key of an object that we know, and the values of it that mean what we do. */
struct rule {
	const char *key;
	const char *allowed; /* JSON values, separated by '|'; "*": any; NULL: looked at elsewhere */
	const char *remedy;
};

static const struct rule top_rules[] = {
	{"version", "\"1.0\"", "save it with a current version of tokenizers"},
	{"truncation", "null", "switch truncation off and save the file again"},
	{"padding", "null", "switch padding off and save the file again"},
	{"added_tokens", NULL, NULL},
	{"normalizer", "null", NULL},
	{"pre_tokenizer", NULL, NULL},
	{"post_processor", NULL, NULL},
	{"decoder", NULL, NULL},
	{"model", NULL, NULL},
};

static const struct rule byte_level_rules[] = {
	{"type", "\"ByteLevel\"", "only ByteLevel is implemented here"},
	{"add_prefix_space", "false", "a prefix space is not implemented"},
	{"trim_offsets", "*", NULL}, /* concerns offsets alone */
	{"use_regex", "true", "ByteLevel without its expression is not implemented"},
};

/* As post-processor and decoder ByteLevel changes no ids, whatever its fields. */
static const struct rule byte_level_no_ids_rules[] = {
	{"type", "\"ByteLevel\"", "only ByteLevel is implemented here"},
	{"add_prefix_space", "*", NULL},
	{"trim_offsets", "*", NULL},
	{"use_regex", "*", NULL},
};

static const struct rule model_rules[] = {
	{"type", "\"BPE\"", "only BPE is implemented"},
	{"dropout", "null|0.0", "dropout makes ids random"},
	{"unk_token", "null", "a byte-level vocabulary needs none"},
	{"continuing_subword_prefix", "null|\"\"", NULL},
	{"end_of_word_suffix", "null|\"\"", NULL},
	{"fuse_unk", "*", NULL}, /* without unk_token nothing is fused */
	{"byte_fallback", "false", NULL},
	{"ignore_merges", "false", NULL},
	{"vocab", NULL, NULL},
	{"merges", NULL, NULL},
};

#define N(rules) (sizeof(rules) / sizeof(rules[0]))

static bool
is_allowed(const char *allowed, const char *value)
{
	size_t len = strlen(value);

	for (const char *p = allowed; p != NULL; p = strchr(p, '|')) {
		p += *p == '|';
		if (strncmp(p, value, len) == 0 && (p[len] == '\0' || p[len] == '|'))
			return true;
	}
	return false;
}

/* What a value is called in an error: its type where it has one, else itself. */
static void
name_value(const json_t *value, char *out, size_t room)
{
	const char *type = json_string_value(json_object_get(value, "type"));
	char *text;

	if (type != NULL) {
		snprintf(out, room, "\"%.60s\"", type);
		return;
	}
	text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(3));
	snprintf(out, room, "%.60s", text == NULL ? "?" : text);
	free(text);
}

/* Check an object against its rules; `what` names it ("" for the file itself). */
static bool
check(const char *path, const char *what, json_t *object, const struct rule *rules, size_t n,
	struct tok_error *err)
{
	const char *key, *dot = what[0] == '\0' ? "" : ".";
	json_t *value;

	if (!json_is_object(object))
		return tok_fail(err, "%s: %s is not an object", path, what);
	json_object_foreach(object, key, value) {
		const struct rule *r = NULL;
		char name[80];

		for (size_t i = 0; i < n && r == NULL; i++)
			r = strcmp(rules[i].key, key) == 0 ? &rules[i] : NULL;
		if (r == NULL)
			return tok_fail(err, "%s: %s%s%.60s is not known: not implemented", path, what,
				dot, key);
		if (r->allowed == NULL || strcmp(r->allowed, "*") == 0)
			continue;
		name_value(value, name, sizeof(name));
		if (!is_allowed(r->allowed, name))
			return tok_fail(err, "%s: %s%s%s %s is not implemented (implemented: %s)%s%s",
				path, what, dot, key, name, r->allowed, r->remedy ? "; " : "",
				r->remedy ? r->remedy : "");
	}
	return true;
}

/* A component that may be null or ByteLevel. */
static bool
check_byte_level(const char *path, const char *what, json_t *value, const struct rule *rules,
	size_t n, struct tok_error *err)
{
	const char *type = json_string_value(json_object_get(value, "type"));
	char name[80];

	if (type != NULL && strcmp(type, "ByteLevel") == 0)
		return check(path, what, value, rules, n, err);
	name_value(value, name, sizeof(name));
	return tok_fail(err, "%s: %s %s is not implemented (implemented: \"ByteLevel\")", path, what,
		name);
}

static bool
is_absent(const json_t *value)
{
	return value == NULL || json_is_null(value);
}

/* Special tokens are taken as text by encoding; others would have to be found in it. */
static bool
read_added(const char *path, json_t *added, struct tok_json_special *special, size_t *n,
	struct tok_error *err)
{
	json_t *value;
	size_t i;

	json_array_foreach(added, i, value) {
		const json_t *id = json_object_get(value, "id");
		const char *content = json_string_value(json_object_get(value, "content"));

		if (content == NULL || !json_is_integer(id) || json_integer_value(id) < 0 ||
			json_integer_value(id) >= TOK_MAX_IDS)
			return tok_fail(err, "%s: added_tokens[%zu]: expected a content and an id from "
					     "0 to %u", path, i, TOK_MAX_IDS - 1);
		if (!json_is_true(json_object_get(value, "special")))
			return tok_fail(err, "%s: added token %lld \"%.60s\" is not special: added "
					     "tokens that are found in text are not implemented",
				path, (long long)json_integer_value(id), content);
		special[(*n)++] = (struct tok_json_special){(uint32_t)json_integer_value(id), content};
	}
	return true;
}

/* A merge is "left right" or ["left", "right"]. */
static bool
read_merges(const char *path, json_t *merges, struct tok_model *m, const struct tok_index *x,
	struct tok_error *err)
{
	json_t *value;
	size_t i;

	json_array_foreach(merges, i, value) {
		const char *left = json_string_value(value), *right;
		size_t left_len, right_len;
		char where[512];

		snprintf(where, sizeof(where), "%.400s: merge %zu", path, i);
		if (left != NULL) {
			const char *blank = strchr(left, ' ');

			if (blank == NULL || strchr(blank + 1, ' ') != NULL)
				return tok_fail(err, "%s: expected two fields: \"%.60s\"", where, left);
			left_len = (size_t)(blank - left);
			right = blank + 1;
		} else {
			left = json_string_value(json_array_get(value, 0));
			right = json_string_value(json_array_get(value, 1));
			if (left == NULL || right == NULL || json_array_size(value) != 2)
				return tok_fail(err, "%s: expected two strings", where);
			left_len = strlen(left);
		}
		right_len = strlen(right);
		if (!tok_json_merge(m, x, where, left, left_len, right, right_len, err))
			return false;
	}
	return true;
}

static bool
check_components(const char *path, json_t *root, struct tok_error *err)
{
	json_t *pre = json_object_get(root, "pre_tokenizer");
	json_t *post = json_object_get(root, "post_processor");
	json_t *decoder = json_object_get(root, "decoder");

	return check(path, "", root, top_rules, N(top_rules), err) &&
	       check_byte_level(path, "pre_tokenizer", pre, byte_level_rules, N(byte_level_rules),
		       err) &&
	       (is_absent(post) ||
		       check_byte_level(path, "post_processor", post, byte_level_no_ids_rules,
			       N(byte_level_no_ids_rules), err)) &&
	       (is_absent(decoder) ||
		       check_byte_level(path, "decoder", decoder, byte_level_no_ids_rules,
			       N(byte_level_no_ids_rules), err)) &&
	       check(path, "model", json_object_get(root, "model"), model_rules, N(model_rules), err);
}

bool
tok_load_tokenizer_json(const char *path, struct tok_model *m, struct tok_error *err)
{
	json_t *root = tok_json_read(path, err), *model, *added, *merges;
	struct tok_json_special *special = NULL;
	struct tok_index x = {0};
	size_t n_special = 0;
	bool ok = false;

	*m = (struct tok_model){.format = "tokenizer.json", .pretok = TOK_PRETOK_GPT2};
	if (root == NULL)
		return false;
	if (!check_components(path, root, err))
		goto out;
	model = json_object_get(root, "model");
	added = json_object_get(root, "added_tokens");
	merges = json_object_get(model, "merges");
	if (!json_is_array(merges) || json_array_size(merges) > TOK_MAX_IDS) {
		tok_fail(err, "%s: model.merges is not a list of at most %u merges", path, TOK_MAX_IDS);
		goto out;
	}
	if (!is_absent(added) && !json_is_array(added)) {
		tok_fail(err, "%s: added_tokens is not a list", path);
		goto out;
	}
	special = calloc(json_array_size(added) + 1, sizeof(*special));
	if (special == NULL) {
		tok_fail(err, "out of memory");
		goto out;
	}
	if (!read_added(path, added, special, &n_special, err) ||
		!tok_json_tokens(path, json_object_get(model, "vocab"), special, n_special,
			(uint32_t)json_array_size(merges), m, err) ||
		!tok_index_init(&x, m, err))
		goto out;
	for (uint32_t id = 0; id < m->n_tokens; id++)
		tok_index_add(&x, id); /* keys of an object differ, and so do their bytes */
	ok = read_merges(path, merges, m, &x, err);
out:
	tok_index_free(&x);
	free(special);
	json_decref(root);
	if (!ok)
		tok_model_free(m);
	return ok;
}
