/* SPDX-License-Identifier: BSD-3-Clause */
#include "options.h"

#include <stdlib.h>
#include <string.h>

#include <opt.h>
#include <tokd/wire.h>

/* 8 hexadecimal digits, as printed. With fewer, a decimal number would be accepted by mistake. */
static bool
checksum(const struct opt_def *d, const char *text, void *field, struct opt_error *err)
{
	const char *digits = strncmp(text, "0x", 2) == 0 ? text + 2 : text;
	uint32_t *v = field;

	*v = 0;
	if (strlen(digits) == 8 && strspn(digits, "0123456789abcdefABCDEF") == 8)
		*v = (uint32_t)strtoul(digits, NULL, 16);
	return *v != 0 /* 0 is not a checksum */ ||
	       opt_wrong(err,
		       "give its checksum, 8 hexadecimal digits: dpdk-tokd logs it at start, "
		       "tok vocab info prints it");
}

#define FIELD(f) OPT_FIELD(struct options, f)
static const struct opt_def defs[] = {
	{"stream", NULL, OPT_FLAG, FIELD(stream), 0, 0, NULL, "print ids as they become certain"},
	{"decode", NULL, OPT_FLAG, FIELD(decode), 0, 0, NULL,
		"read ids in decimal, separated by blanks, and print their text"},
	{"generate", "N", OPT_COUNT, FIELD(generate), 1, TOKD_GENERATE_MOST, NULL,
		"a model on the appliance's GPU continues the text by up to N ids: print their "
		"text as it is made; Ctrl-C ends it"},
	{"lines", NULL, OPT_FLAG, FIELD(lines), 0, 0, NULL,
		"each input line is a text; print a line of ids for each"},
	{"in-flight", "N", OPT_COUNT, FIELD(in_flight), 1, 65536, "64",
		"with --lines: texts in flight"},
	{"vocab", "CHECKSUM", OPT_OTHER, FIELD(vocab), 0, 0, NULL,
		"select a vocabulary by its checksum, 8 hexadecimal digits as dpdk-tokd logs it, "
		"as in 868554d0; default: the appliance's first",
		.check = checksum},
	{"timeout", "SECONDS", OPT_S, FIELD(timeout_ms), 1, 86400000, "5s",
		"give up after this time without progress"},
	{"mtu", "BYTES", OPT_COUNT, FIELD(mtu), 576, 65535, NULL,
		"MTU of the path, if it is smaller than the system knows: limits packets and "
		"replies"},
};

static const struct opt_section sections[] = {
	{"exit code",
		"  0  all ids, or all text, were printed\n"
		"  1  a text failed\n"
		"  2  invalid option\n"
		"  3  no such host",
		true},
	{"examples",
		"  echo \"Hello, world\" | tokd-client 192.0.2.1\n"
		"  tokd-client --lines [2001:db8::1]:9000 < texts > ids\n"
		"  echo 15496 11 995 | tokd-client --decode 192.0.2.1\n"
		"  echo \"Once upon a time\" | tokd-client --generate 200 192.0.2.1\n"
		"  tokd-client --vocab 868554d0 192.0.2.1,192.0.2.2 < text",
		false},
	{"see also", "dpdk-tokd(1), tokd-tail(1), tok(1)", false},
	{0},
};

static const struct opt_program program = {
	.name = "tokd-client",
	.version = TOKD_VERSION,
	.summary = "send text to a dpdk-tokd and print its token ids, or ids and print their text, "
		   "or a prompt and print a model's answer",
	.usage = "[options] HOST[:PORT][,...] < text",
	.about =
		"Sends standard input as one text, or with --lines each line as a text, and prints "
		"the\n"
		"ids. Lost packets are sent again. The number and checksum of the ids are "
		"verified.\n"
		"\n"
		"HOST is a name or an address; write an IPv6 address with a port in brackets, as "
		"in\n"
		"[2001:db8::1]:9000. The default PORT is 9000. Several hosts, separated by commas,\n"
		"need --vocab; each text goes to a healthy one.",
	.defs = defs,
	.n_defs = sizeof(defs) / sizeof(defs[0]),
	.operand = "HOST[:PORT][,...]",
	.operands_min = 1,
	.operands_max = 1,
	.operand_missing = "expected one HOST[:PORT]",
	.sections = sections,
};

int
options_parse(struct options *o, int argc, char **argv)
{
	struct opt_given given;
	int code;

	*o = (struct options){0};
	code = opt_main(&program, argc, argv, o, &given);
	if (code >= 0)
		return code;
	if (o->stream && o->lines)
		return opt_usage(&program, "--stream --lines: give one of them");
	if (o->decode && o->lines)
		return opt_usage(&program, "--decode --lines: give one of them");
	if (o->generate && (o->stream || o->decode || o->lines))
		return opt_usage(
			&program, "--generate --stream, --decode or --lines: give one of them");
	o->hosts = given.operand[0];
	return -1;
}
