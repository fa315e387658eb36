/* SPDX-License-Identifier: BSD-3-Clause */
/* Write a tokenizer.json: keys, order and white space are as the `tokenizers` crate writes them. */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "build/files.h"
#include "pretokenize/names.h"
#include "write.h"

#define HELD_BYTES 65536u
#define PIECE_MAX 1024u /* of what put formats: keys and numbers */

struct writer {
	struct tok_whole_file file;
	bool failed; /* errno says why */
	uint32_t n;
	char held[HELD_BYTES];
};

static void
put_bytes(struct writer *w, const void *data, size_t n)
{
	if (w->n + n > HELD_BYTES) {
		w->failed = w->failed || !tok_whole_file_put(&w->file, w->held, w->n);
		w->n = 0;
	}
	memcpy(w->held + w->n, data, n);
	w->n += (uint32_t)n;
}

static void __attribute__((format(printf, 2, 3))) put(struct writer *w, const char *fmt, ...)
{
	char text[PIECE_MAX];
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	put_bytes(w, text, (size_t)n);
}

/* Write a string. Only what RFC 8259 (section 7) requires is escaped. */
static void
put_string(struct writer *w, const uint8_t *text, size_t n)
{
	static const char named[] = "\b\t\n\f\r\"\\", by[] = "btnfr\"\\";

	put_bytes(w, "\"", 1);
	for (size_t i = 0; i < n; i++) {
		const char *found = text[i] == '\0' ? NULL : strchr(named, text[i]);

		if (found != NULL)
			put(w, "\\%c", by[found - named]);
		else if (text[i] < ' ')
			put(w, "\\u%04x", text[i]);
		else
			put_bytes(w, &text[i], 1);
	}
	put_bytes(w, "\"", 1);
}

static void
put_text(struct writer *w, const char *text)
{
	put_string(w, (const uint8_t *)text, strlen(text));
}

static void
put_token(struct writer *w, const struct train_tokens *t, uint32_t id)
{
	put_string(w, t->text + t->token[id].off, t->token[id].len);
}

static const char *
yes_no(bool on)
{
	return on ? "true" : "false";
}

/* ---- components ---- */

static void
put_specials(struct writer *w, const struct tok_train_options *o, const struct train_tokens *t)
{
	uint32_t next = 0;

	put(w, "  \"added_tokens\": [");
	for (uint32_t i = 0; i < o->n_special; i++) {
		const char *text = o->special[i];
		const uint32_t id =
			train_tokens_find(t, (const uint8_t *)text, (uint32_t)strlen(text));

		if (id != next) /* it was there before */
			continue;
		put(w, "%s\n    {\n      \"id\": %u,\n      \"content\": ", next > 0 ? "," : "",
			id);
		put_text(w, text);
		put(w, ",\n      \"single_word\": false,\n      \"lstrip\": false,\n"
		       "      \"rstrip\": false,\n      \"normalized\": false,\n"
		       "      \"special\": true\n    }");
		next++;
	}
	put(w, "%s],\n", next > 0 ? "\n  " : "");
}

static void
put_byte_level(
	struct writer *w, const char *indent, bool prefix_space, bool trim_offsets, bool use_regex)
{
	put(w, "{\n%s  \"type\": \"ByteLevel\",\n%s  \"add_prefix_space\": %s,\n", indent, indent,
		yes_no(prefix_space));
	put(w, "%s  \"trim_offsets\": %s,\n%s  \"use_regex\": %s\n%s}", indent,
		yes_no(trim_offsets), indent, yes_no(use_regex), indent);
}

static void
put_byte_components(struct writer *w, const struct tok_train_options *o)
{
	const char *regex;

	put(w, "  \"normalizer\": null,\n  \"pre_tokenizer\": ");
	if (o->pretok == TOK_PRETOK_GPT2) {
		put_byte_level(w, "  ", false, true, true);
	} else {
		put(w, "{\n    \"type\": \"Sequence\",\n    \"pretokenizers\": [\n      ");
		for (size_t i = 0; (regex = tok_pretok_regex(o->pretok, i)) != NULL; i++) {
			put(w, "{\n        \"type\": \"Split\",\n        \"pattern\": {\n"
			       "          \"Regex\": ");
			put_text(w, regex);
			put(w, "\n        },\n        \"behavior\": \"Isolated\",\n"
			       "        \"invert\": false\n      },\n      ");
		}
		put_byte_level(w, "      ", false, true, false);
		put(w, "\n    ]\n  }");
	}
	put(w, ",\n  \"post_processor\": ");
	put_byte_level(w, "  ", true, false, true);
	put(w, ",\n  \"decoder\": ");
	put_byte_level(w, "  ", true, true, true);
	put(w, ",\n");
}

/* Write the template of [CLS] and [SEP], if both exist. */
static void
put_bert_processing(struct writer *w, const struct train_tokens *t)
{
	const uint32_t cls = train_tokens_find(t, (const uint8_t *)"[CLS]", 5);
	const uint32_t sep = train_tokens_find(t, (const uint8_t *)"[SEP]", 5);

	put(w, "  \"post_processor\": ");
	if (cls == TOK_NO_TOKEN || sep == TOK_NO_TOKEN) {
		put(w, "null,\n");
		return;
	}
	put(w,
		"{\n    \"type\": \"BertProcessing\",\n    \"sep\": [\n      \"[SEP]\",\n"
		"      %u\n    ],\n    \"cls\": [\n      \"[CLS]\",\n      %u\n    ]\n  },\n",
		sep, cls);
}

static void
put_bert_components(
	struct writer *w, const struct tok_train_options *o, const struct train_tokens *t)
{
	put(w,
		"  \"normalizer\": {\n    \"type\": \"BertNormalizer\",\n    \"clean_text\": %s,\n"
		"    \"handle_chinese_chars\": %s,\n    \"strip_accents\": %s,\n"
		"    \"lowercase\": %s\n  },\n",
		yes_no(o->clean_text), yes_no(o->handle_chinese_chars),
		o->strip_accents < 0 ? "null" : yes_no(o->strip_accents != 0),
		yes_no(o->lowercase));
	put(w, "  \"pre_tokenizer\": {\n    \"type\": \"BertPreTokenizer\"\n  },\n");
	put_bert_processing(w, t);
	put(w, "  \"decoder\": {\n    \"type\": \"WordPiece\",\n    \"prefix\": \"" TRAIN_PREFIX
	       "\",\n    \"cleanup\": true\n  },\n");
}

static void
put_vocab(struct writer *w, const struct train_tokens *t)
{
	put(w, "    \"vocab\": {");
	for (uint32_t id = 0; id < t->n; id++) {
		put(w, "%s\n      ", id > 0 ? "," : "");
		put_token(w, t, id);
		put(w, ": %u", id);
	}
	put(w, "\n    }");
}

static void
put_model(struct writer *w, const struct tok_train_options *o, const struct train_tokens *t,
	const struct train_merges *merges)
{
	if (o->kind == TOK_KIND_WORDPIECE) {
		put(w, "  \"model\": {\n    \"type\": \"WordPiece\",\n    \"unk_token\": \"[UNK]\",\n"
		       "    \"continuing_subword_prefix\": \"" TRAIN_PREFIX "\",\n"
		       "    \"max_input_chars_per_word\": 100,\n");
		put_vocab(w, t);
		put(w, "\n  }\n}");
		return;
	}
	put(w, "  \"model\": {\n    \"type\": \"BPE\",\n    \"dropout\": null,\n"
	       "    \"unk_token\": null,\n    \"continuing_subword_prefix\": null,\n"
	       "    \"end_of_word_suffix\": null,\n    \"fuse_unk\": false,\n"
	       "    \"byte_fallback\": false,\n    \"ignore_merges\": false,\n");
	put_vocab(w, t);
	put(w, ",\n    \"merges\": [");
	for (uint32_t i = 0; i < merges->n; i++) {
		put(w, "%s\n      [\n        ", i > 0 ? "," : "");
		put_token(w, t, (uint32_t)(merges->merge[i] >> 32));
		put(w, ",\n        ");
		put_token(w, t, (uint32_t)merges->merge[i]);
		put(w, "\n      ]");
	}
	put(w, "%s]\n  }\n}", merges->n > 0 ? "\n    " : "");
}

/* Block signals that end the process until the file is complete or removed. */
static void
hold_signals(sigset_t *before)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &set, before);
}

bool
train_write(const struct tok_train_options *o, const struct train_tokens *t,
	const struct train_merges *merges, const char *out, struct tok_error *err)
{
	struct writer w;
	sigset_t signals;
	bool ok;

	w.failed = false;
	w.n = 0;
	hold_signals(&signals);
	if (!tok_whole_file_begin(&w.file, out, err)) {
		pthread_sigmask(SIG_SETMASK, &signals, NULL);
		return false;
	}
	put(&w, "{\n  \"version\": \"1.0\",\n  \"truncation\": null,\n  \"padding\": null,\n");
	put_specials(&w, o, t);
	if (o->kind == TOK_KIND_WORDPIECE)
		put_bert_components(&w, o, t);
	else
		put_byte_components(&w, o);
	put_model(&w, o, t, merges);
	w.failed = w.failed || !tok_whole_file_put(&w.file, w.held, w.n);
	ok = tok_whole_file_end(&w.file, !w.failed, err);
	pthread_sigmask(SIG_SETMASK, &signals, NULL);
	return ok;
}
