/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "parts.h"

static const struct tok_json_rule rules[] = {
	{"type", "\"Metaspace\"", NULL, true}, {"replacement", TOK_JSON_METASPACE_MARK, NULL, true},
	{"add_prefix_space", "true, false", NULL, false},
	{"prepend_scheme", "\"always\", \"first\", \"never\"", NULL, false},
	{"split", "true, false", NULL, false},
	{"str_rep", NULL, NULL, false}, /* ignored by the reference */
};

bool
tok_json_metaspace(const char *file, const char *what, const struct tok_json *component,
	enum tok_prefix *prefix, bool *split, struct tok_error *err)
{
	const char *scheme = tok_json_string_value(tok_json_get(component, "prepend_scheme"));

	if (!tok_json_check_component(file, what, component, "Metaspace", rules,
		    sizeof(rules) / sizeof(rules[0]), err))
		return false;
	*split = !tok_json_is_false(tok_json_get(component, "split"));
	*prefix = scheme == NULL || strcmp(scheme, "always") == 0 ? TOK_PREFIX_EACH
		  : strcmp(scheme, "first") == 0		  ? TOK_PREFIX_FIRST
								  : TOK_PREFIX_NONE;
	if (tok_json_is_false(tok_json_get(component, "add_prefix_space")) &&
		*prefix != TOK_PREFIX_NONE)
		return tok_fail(err,
			"%s: %s.add_prefix_space is false, and prepend_scheme is not \"never\": "
			"tokenizers rejects it too",
			file, what);
	return true;
}
