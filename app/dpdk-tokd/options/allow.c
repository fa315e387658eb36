/* SPDX-License-Identifier: BSD-3-Clause */
#include "allow.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "checks.h"

struct list {
	struct tokd_prefix *prefix;
	uint32_t n;
};

static bool
has_bits_beyond(const struct tokd_prefix *p)
{
	for (uint32_t i = 0; i < 4; i++) {
		const uint32_t before = p->bits > 32 * i ? p->bits - 32 * i : 0;

		if (before < 32 && (p->word[i] & UINT32_MAX >> before) != 0)
			return true;
	}
	return false;
}

static bool
parse(const char *text, struct tokd_prefix *p, struct opt_error *err)
{
	const size_t len = strcspn(text, "/");
	char addr[INET6_ADDRSTRLEN] = "";
	uint64_t bits;

	*p = (struct tokd_prefix){.v6 = strchr(text, ':') != NULL};
	bits = p->v6 ? 128 : 32;
	if (len < sizeof(addr))
		memcpy(addr, text, len);
	if (inet_pton(p->v6 ? AF_INET6 : AF_INET, addr, p->word) != 1 ||
		(text[len] == '/' && !opt_number(text + len + 1, 0, bits, &bits)))
		return opt_wrong(err,
			"%.64s: neither an address nor a prefix, as in 10.1.0.0/16, nor the path "
			"of a file, which begins with / or .",
			text);
	p->bits = (uint8_t)bits;
	for (int i = 0; i < 4; i++)
		p->word[i] = ntohl(p->word[i]);
	return !has_bits_beyond(p) ||
	       opt_wrong(err, "%.64s: the address has bits beyond the prefix; set them to zero",
		       text);
}

static bool
add(struct list *l, const char *text, struct opt_error *err)
{
	if (l->n == TOKD_ALLOW_MAX)
		return opt_wrong(err, "more than %u prefixes; join some", TOKD_ALLOW_MAX);
	if (!parse(text, &l->prefix[l->n], err))
		return false;
	l->n++;
	return true;
}

/* A prefix a line, blanks around it; a comment begins with #. */
static bool
add_file(struct list *l, const char *path, struct opt_error *err)
{
	FILE *f = fopen(path, "re");
	char line[256];
	bool ok = true;

	if (f == NULL)
		return opt_wrong(err, "%.128s: %s", path, strerror(errno));
	for (unsigned int number = 1; ok && fgets(line, sizeof(line), f) != NULL; number++) {
		char *word = line + strspn(line, " \t");
		struct opt_error why = {""};

		word[strcspn(word, "# \t\r\n")] = '\0';
		ok = word[0] == '\0' || add(l, word, &why);
		if (!ok)
			opt_wrong(err, "%.128s line %u: %.256s", path, number, why.text);
	}
	fclose(f);
	return ok;
}

bool
tokd_allow_read(const char *text, struct tokd_prefix **all, uint32_t *n, struct opt_error *err)
{
	struct list l = {.prefix = malloc(TOKD_ALLOW_MAX * sizeof(*l.prefix))};
	char item[PATH_MAX];
	bool ok = l.prefix != NULL || opt_wrong(err, "no memory");

	for (size_t len; ok && *text != '\0'; text += len + (text[len] == ',')) {
		len = strcspn(text, ",");
		snprintf(item, sizeof(item), "%.*s", (int)len, text);
		ok = item[0] == '/' || item[0] == '.' ? add_file(&l, item, err)
						      : add(&l, item, err);
	}
	if (ok && l.n == 0)
		ok = opt_wrong(err, "no prefix in it: nobody could send");
	if (!ok) {
		free(l.prefix);
		l.prefix = NULL;
	}
	*all = l.prefix;
	*n = l.n;
	return ok;
}

bool
tokd_check_allow(const struct opt_def *d, const char *text, void *field, struct opt_error *err)
{
	struct tokd_prefix *all;
	uint32_t n;

	if (!tokd_allow_read(text, &all, &n, err))
		return false;
	free(all);
	return true;
}
