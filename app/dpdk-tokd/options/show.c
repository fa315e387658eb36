/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <inttypes.h>
#include <string.h>

#include "table.h"

/* A size as one would write it: 16M, 64k, 1500. */
static void
print_size(uint64_t v, char *text, size_t room)
{
	if (v >= OPT_G && v % OPT_G == 0)
		snprintf(text, room, "%" PRIu64 "G", v / OPT_G);
	else if (v >= OPT_M && v % OPT_M == 0)
		snprintf(text, room, "%" PRIu64 "M", v / OPT_M);
	else if (v >= OPT_K && v % OPT_K == 0)
		snprintf(text, room, "%" PRIu64 "k", v / OPT_K);
	else
		snprintf(text, room, "%" PRIu64, v);
}

void
tokd_opt_print(const struct tokd_opt_def *d, uint64_t v, char *text, size_t room)
{
	if (d->type == OPT_SIZE)
		print_size(v, text, room);
	else if (d->type == OPT_OCTAL)
		snprintf(text, room, "%04" PRIo64, v);
	else
		snprintf(text, room, "%" PRIu64, v);
}

const char *
tokd_opt_unit(const struct tokd_opt_def *d)
{
	return d->type == OPT_MS ? " ms" : d->type == OPT_SIZE ? " bytes" : "";
}

void
tokd_opt_limits(const struct tokd_opt_def *d, char *text, size_t room)
{
	char low[32], high[32];

	text[0] = '\0';
	if (d->max != 0) {
		tokd_opt_print(d, d->min, low, sizeof(low));
		tokd_opt_print(d, d->max, high, sizeof(high));
		snprintf(text, room, "%s to %s%s; default %s", low, high, tokd_opt_unit(d),
			d->preset);
	} else if (d->type == OPT_FLAG) {
		snprintf(text, room, "yes or no; default %s", d->preset);
	} else if (d->preset != NULL) {
		snprintf(text, room, "default %s", d->preset);
	}
}

void
tokd_options_help(FILE *to, const char *program)
{
	fprintf(to,
		"usage: %s [EAL options] -- [application options]\n"
		"for example: %s -l 1-4 -a 0000:03:00.0 -- --vocab gpt2\n\n"
		"Every lcore of -l is a worker with a queue and a token ring of its own.\n"
		"EAL options are listed by %s -h.\n\napplication options:\n",
		program, program, program);
	for (size_t i = 0; i < TOKD_N_OPTS; i++) {
		const struct tokd_opt_def *d = &tokd_opt_defs[i];
		char head[48], limits[96], letter[3];

		tokd_opt_short(d, letter);
		snprintf(head, sizeof(head), "%s%s--%s %s", letter, letter[0] != '\0' ? ", " : "",
			d->name, d->arg != NULL ? d->arg : "");
		fprintf(to, "  %-24s %s\n", head, d->help);
		tokd_opt_limits(d, limits, sizeof(limits));
		if (limits[0] != '\0')
			fprintf(to, "  %-24s (%s)\n", "", limits);
	}
	for (size_t i = 0; i < TOKD_N_ACTIONS; i++)
		fprintf(to, "  --%-22s %s\n", tokd_opt_actions[i].name, tokd_opt_actions[i].help);
	fprintf(to,
		"\nEach option is also a variable (TOKD_RING_SIZE for --ring-size) and a key of the "
		"file\n(ring-size = 16M). The command line overrides the environment, that the file, "
		"that the\ndefault. An option given twice counts as given last.\n\n"
		"exit code: 0 after SIGINT, SIGTERM, --help, --version or a good --check-config; 1 "
		"failed at\nrun time (EAL's failures too); 2 a bad option or configuration. A first "
		"SIGINT or SIGTERM\ndrains, a second stops at once.\n");
}

bool
tokd_options_value(const struct tokd_options *opt, size_t i, struct tokd_option_value *value)
{
	const struct tokd_opt_def *d = &tokd_opt_defs[i];
	const void *field;
	uint64_t v = 0;

	if (i >= TOKD_N_OPTS)
		return false;
	field = (const char *)opt + d->offset;
	value->name = d->name;
	value->source = opt->source[i];
	value->text[0] = '\0';
	/* No address at all: :: and the like cannot be asked for. */
	if (d->preset == NULL && value->source == TOKD_FROM_DEFAULT)
		return true;
	switch (d->type) {
	case OPT_TEXT: {
		const char *text = *(const char *const *)field;

		snprintf(value->text, sizeof(value->text), "%s", text != NULL ? text : "");
		break;
	}
	case OPT_IPV4:
		inet_ntop(AF_INET, field, value->text, sizeof(value->text));
		break;
	case OPT_IPV6:
		inet_ntop(AF_INET6, field, value->text, sizeof(value->text));
		break;
	case OPT_MAC:
		rte_ether_format_addr(value->text, sizeof(value->text), field);
		break;
	case OPT_FLAG:
		snprintf(value->text, sizeof(value->text), "%s",
			*(const bool *)field ? "yes" : "no");
		break;
	default:
		memcpy(&v, field, d->width); /* little-endian, as wire.h demands anyway */
		tokd_opt_print(d, v, value->text, sizeof(value->text));
		break;
	}
	return true;
}

const char *
tokd_options_source(enum tokd_option_source source)
{
	static const char *const names[] = {
		[TOKD_FROM_DEFAULT] = "default",
		[TOKD_FROM_FILE] = "file",
		[TOKD_FROM_ENVIRONMENT] = "environment",
		[TOKD_FROM_COMMAND_LINE] = "command line",
	};

	return names[source];
}

void
tokd_options_print(FILE *to, const struct tokd_options *opt)
{
	struct tokd_option_value value;

	fprintf(to, "# Configuration of dpdk-tokd, for --config FILE.\n[" OPT_SECTION "]\n");
	for (size_t i = 0; tokd_options_value(opt, i, &value); i++) {
		const struct tokd_opt_def *d = &tokd_opt_defs[i];
		char limits[96];

		if (d->rule == RULE_NOT_IN_FILE)
			continue;
		tokd_opt_limits(d, limits, sizeof(limits));
		fprintf(to, "\n# %s", d->help);
		if (limits[0] != '\0')
			fprintf(to, " (%s)", limits);
		if (value.source == TOKD_FROM_DEFAULT)
			fprintf(to, "\n");
		else
			fprintf(to, "\n# from the %s\n", tokd_options_source(value.source));
		if (value.text[0] == '\0') {
			fprintf(to, "# %s =\n", d->name); /* no value at all: not an empty one */
			continue;
		}
		fprintf(to, "%s = ", d->name);
		for (const char *p = value.text; *p != '\0'; p++)
			fprintf(to, "%s%c", *p == '#' ? "\\" : "", *p);
		fprintf(to, "\n");
	}
}
