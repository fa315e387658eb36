/* SPDX-License-Identifier: BSD-3-Clause */
/* One table says what there is; --help is made of it. */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum type { T_TEXT, T_WORD, T_SIZE, T_FLAG, T_HELP, T_VERSION };

static const struct known {
	const char *name, *arg;
	enum type type;
	size_t offset;	   /* in struct options */
	const char *words; /* T_WORD: of the enum from 1 on */
	const char *help;
} known[] = {
	{"want", "PATH", T_WORD, offsetof(struct options, want), "verbs cuda shm",
		"for scripts: would this one work, with one of the GPUs at least? verbs,\ncuda or shm"},
	{"role", "ROLE", T_WORD, offsetof(struct options, role), "producer agent",
		"producer: dpdk-tokd alone runs here; agent: tokd-gpu does\n"
		"[agent where there is a GPU, else producer]"},
	{"ring", "BYTES", T_SIZE, offsetof(struct options, ring), NULL,
		"token rings that dpdk-tokd registers: one for each worker [16M]"},
	{"region", "BYTES", T_SIZE, offsetof(struct options, region), NULL,
		"the GPU ring, in the GPU's memory or the agent's [64M]"},
	{"drivers", NULL, T_FLAG, offsetof(struct options, drivers), NULL,
		"list the DPDK drivers in each FILE, a program or a shared library, and\n"
		"the devices of this machine that they claim"},
	{"root", "DIR", T_TEXT, offsetof(struct options, root), NULL,
		"look at the sys and proc in this folder, and ask no device or library [/]"},
	{"json", NULL, T_FLAG, offsetof(struct options, json), NULL, "print one JSON object"},
	{"version", NULL, T_VERSION, 0, NULL, "print the version"},
	{"help", NULL, T_HELP, 0, NULL, "print this text"},
};
#define N_KNOWN ((int)(sizeof(known) / sizeof(known[0])))

static void
help(void)
{
	fputs("usage: tokd-diag [options]\n"
	      "       tokd-diag --drivers [--json] FILE...\n"
	      "Say by which path token ids would come into a GPU's memory from this machine, and why "
	      "not\nby a better one: RDMA devices, GPUs, drivers, limits.\n\n",
		stdout);
	for (int i = 0; i < N_KNOWN; i++) {
		char left[32];
		const char *text = known[i].help, *line = strchr(text, '\n');

		snprintf(left, sizeof(left), "--%s%s%s", known[i].name,
			known[i].arg != NULL ? " " : "", known[i].arg != NULL ? known[i].arg : "");
		printf("  %-15s ", left);
		for (; line != NULL; line = strchr(text, '\n')) {
			printf("%.*s\n%18s", (int)(line - text), text, "");
			text = line + 1;
		}
		puts(text);
	}
	fputs("\nexit code: 0 the path asked for would work, nothing of weight was found; 1 it would "
	      "not,\nor something was; 2 a bad option\n",
		stdout);
}

static int
bad(const char *name, const char *value, const char *remedy)
{
	fprintf(stderr, "tokd-diag: --%s %s: %s\n", name, value, remedy);
	return -1;
}

/* The number of a word in a list, from 1 on. */
static int
word(const struct known *k, const char *text, uint64_t *v)
{
	const size_t n = strlen(text);
	const char *at = k->words;

	for (uint64_t i = 1; n > 0 && *at != '\0'; i++) {
		const size_t len = strcspn(at, " ");

		if (len == n && memcmp(at, text, n) == 0) {
			*v = i;
			return 0;
		}
		at += len;
		at += strspn(at, " ");
	}
	fprintf(stderr, "tokd-diag: --%s %s: give one of: %s\n", k->name, text, k->words);
	return -1;
}

static int
size(const struct known *k, const char *text, uint64_t *v)
{
	static const char units[] = "kMG";
	unsigned long long n;
	const char *unit;
	int shift = 0;
	char *end;

	errno = 0;
	n = strtoull(text, &end, 10);
	unit = *end != '\0' ? strchr(units, *end) : NULL;
	if (unit != NULL) {
		shift = 10 * (int)(unit - units + 1);
		end++;
	}
	if (errno != 0 || text[0] < '0' || text[0] > '9' || *end != '\0' || n == 0 ||
		n > (1ull << 40) >> shift)
		return bad(k->name, text, "give bytes, 1 to 1024G, as in 16M");
	*v = n << shift;
	return 0;
}

/* As options_parse. */
static int
take(struct options *o, const struct known *k, const char *value)
{
	void *field = (char *)o + k->offset;

	switch (k->type) {
	case T_TEXT:
		*(const char **)field = value;
		return 0;
	case T_WORD:
		return word(k, value, field);
	case T_SIZE:
		return size(k, value, field);
	case T_FLAG:
		*(bool *)field = true;
		return 0;
	case T_HELP:
		help();
		return 1;
	case T_VERSION:
		puts("tokd-diag " TOKD_VERSION);
		return 1;
	}
	return -1;
}

static int
agree(const struct options *o)
{
	if (o->drivers && o->n_files == 0)
		return bad("drivers", "", "name the programs or libraries behind it");
	if (o->drivers && o->want != WANT_NONE)
		return bad("drivers", "--want", "give one of them");
	if (!o->drivers && o->n_files > 0) {
		fprintf(stderr, "tokd-diag: %s: not an option; see --help\n", o->files[0]);
		return -1;
	}
	return 0;
}

int
options_parse(struct options *o, int argc, char **argv)
{
	struct option list[N_KNOWN + 1] = {0};
	int c, done;

	*o = (struct options){.root = "/", .ring = 16u << 20, .region = 64u << 20};
	for (int i = 0; i < N_KNOWN; i++)
		list[i] = (struct option){known[i].name,
			known[i].arg != NULL ? required_argument : no_argument, NULL, i + 1};
	while ((c = getopt_long(argc, argv, "", list, NULL)) != -1) {
		done = c > 0 && c <= N_KNOWN ? take(o, &known[c - 1], optarg) : -1;
		if (done != 0)
			return done;
	}
	o->files = argv + optind;
	o->n_files = argc - optind;
	return agree(o);
}
