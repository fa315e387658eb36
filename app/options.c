/* SPDX-License-Identifier: BSD-3-Clause */
/* All options are parsed first and validated once afterwards: their order never matters. */
#include <arpa/inet.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "options_table.h"

#define OPT_MBUFS_SPARE 256 /* beyond the descriptors; worker.c says what for */

/* What was asked for, before anything is made of it. */
struct opt_asked {
	const char *text[TOKD_N_OPTS];
	bool help, version;
	bool eal_help; /* -h before --: EAL's own help, which ends the program */
};

static int __attribute__((format(printf, 2, 3)))
bad(struct tokd_options_error *e, const char *fmt, ...)
{
	va_list ap;

	if (e->text[0] != '\0')
		return -1; /* the first complaint stands */
	va_start(ap, fmt);
	vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	return -1;
}

static const struct tokd_opt_def *
opt_find(const char *name, size_t len)
{
	for (size_t i = 0; i < TOKD_N_OPTS; i++) {
		if (strlen(tokd_opt_defs[i].name) == len &&
			memcmp(tokd_opt_defs[i].name, name, len) == 0)
			return &tokd_opt_defs[i];
	}
	return NULL;
}

static bool
parse_number(const struct tokd_opt_def *d, const char *text, uint64_t *v)
{
	uint64_t factor = 1;
	char *end;

	if (!isdigit((unsigned char)text[0]))
		return false; /* strtoull would take signs and blanks */
	/* What is too large for strtoull becomes the largest number, which no option allows. */
	*v = strtoull(text, &end, d->type == OPT_OCTAL ? 8 : 10);
	if (d->type == OPT_SIZE && *end != '\0') {
		switch (*end++) {
		case 'k':
		case 'K':
			factor = OPT_K;
			break;
		case 'm':
		case 'M':
			factor = OPT_M;
			break;
		case 'g':
		case 'G':
			factor = OPT_G;
			break;
		default:
			return false;
		}
	}
	if (__builtin_mul_overflow(*v, factor, v))
		*v = UINT64_MAX;
	return *end == '\0';
}

static int
set_number(
	const struct tokd_opt_def *d, const char *text, void *field, struct tokd_options_error *e)
{
	static const char *const form[] = {
		[OPT_COUNT] = "a decimal number",
		[OPT_SIZE] = "a decimal number, with k, M or G after it or nothing",
		[OPT_MS] = "a decimal number of milliseconds, without a unit",
		[OPT_OCTAL] = "an octal number, as for chmod",
	};
	char low[32], high[32];
	uint64_t v;

	if (!parse_number(d, text, &v))
		return bad(e, "--%s %.64s: not a number; give %s", d->name, text, form[d->type]);
	if (v < d->min || v > d->max) {
		tokd_opt_print(d, d->min, low, sizeof(low));
		tokd_opt_print(d, d->max, high, sizeof(high));
		return bad(e, "--%s %.64s: out of range; give %s to %s%s", d->name, text, low, high,
			tokd_opt_unit(d));
	}
	if (d->rule == RULE_POWER_OF_2 && (v & (v - 1)) != 0) {
		uint64_t below = 1ull << (63 - __builtin_clzll(v));

		tokd_opt_print(d, below, low, sizeof(low));
		tokd_opt_print(d, below * 2, high, sizeof(high));
		return bad(e, "--%s %.64s: not a power of two; give %s or %s", d->name, text, low,
			high);
	}
	if (d->width == sizeof(uint16_t))
		*(uint16_t *)field = (uint16_t)v;
	else if (d->width == sizeof(uint32_t))
		*(uint32_t *)field = (uint32_t)v;
	else
		*(uint64_t *)field = v;
	return 0;
}

static int
set_ip(const struct tokd_opt_def *d, const char *text, uint32_t *ip, struct tokd_options_error *e)
{
	struct in_addr a;
	uint32_t host;

	if (inet_pton(AF_INET, text, &a) != 1)
		return bad(e,
			"--%s %.64s: not an IPv4 address; give four decimal numbers, as in "
			"10.0.0.1",
			d->name, text);
	host = ntohl(a.s_addr);
	if (host >> 24 == 0 || host >> 24 == 127 || host >> 24 >= 224)
		return bad(e,
			"--%s %.64s: not the address of a host; give a unicast address, as in "
			"10.0.0.1",
			d->name, text);
	*ip = a.s_addr;
	return 0;
}

static int
set_ip6(const struct tokd_opt_def *d, const char *text, struct tokd_addr *ip6,
	struct tokd_options_error *e)
{
	struct tokd_addr a;

	if (inet_pton(AF_INET6, text, a.byte) != 1)
		return bad(e, "--%s %.64s: not an IPv6 address; give one as in 2001:db8::1",
			d->name, text);
	if (!tokd_addr_is_v6_host(&a))
		return bad(e,
			"--%s %.64s: not the address of a host; give a unicast address, as in "
			"2001:db8::1",
			d->name, text);
	*ip6 = a;
	return 0;
}

static int
set_mac(const struct tokd_opt_def *d, const char *text, struct rte_ether_addr *mac,
	struct tokd_options_error *e)
{
	struct rte_ether_addr a;

	if (rte_ether_unformat_addr(text, &a) != 0 || !rte_is_valid_assigned_ether_addr(&a))
		return bad(e,
			"--%s %.64s: not the Ethernet address of a host; give one as in "
			"02:00:00:00:00:01",
			d->name, text);
	*mac = a;
	return 0;
}

static int
set_text(const struct tokd_opt_def *d, const char *text, const char **field,
	struct tokd_options_error *e)
{
	const size_t limit = sizeof(((struct sockaddr_un *)0)->sun_path) - 1;

	if (text[0] == '\0')
		return bad(e, "--%s: the value is empty; give %s", d->name, d->arg);
	if (d->rule == RULE_SOCKET_PATH && strlen(text) > limit)
		return bad(e,
			"--%s: a path of %zu bytes, a socket's is limited to %zu; give a shorter "
			"one",
			d->name, strlen(text), limit);
	*field = text;
	return 0;
}

/* Both rings may be full of mbufs while a burst is on its way and a text is out of order. */
static int
check_mbufs(const struct tokd_options *opt, struct tokd_options_error *e)
{
	const uint32_t least = opt->rx_desc + opt->tx_desc + OPT_MBUFS_SPARE +
			       opt->fragments * RTE_LIBRTE_IP_FRAG_MAX_FRAG;

	if (opt->mbufs >= least)
		return 0;
	return bad(e,
		"--mbufs %u: too few for --rxd %u, --txd %u and --fragments %u; give at least %u, "
		"or lower those",
		opt->mbufs, opt->rx_desc, opt->tx_desc, opt->fragments, least);
}

static int
validate(const struct opt_asked *asked, struct tokd_options *opt, struct tokd_options_error *e)
{
	for (size_t i = 0; i < TOKD_N_OPTS; i++) {
		const struct tokd_opt_def *d = &tokd_opt_defs[i];
		const char *text = asked->text[i] != NULL ? asked->text[i] : d->preset;
		void *field = (char *)opt + d->offset;
		int rc = 0;

		if (text == NULL)
			continue;
		switch (d->type) {
		case OPT_TEXT:
			rc = set_text(d, text, field, e);
			break;
		case OPT_IPV4:
			rc = set_ip(d, text, field, e);
			break;
		case OPT_IPV6:
			rc = set_ip6(d, text, field, e);
			break;
		case OPT_MAC:
			rc = set_mac(d, text, field, e);
			break;
		case OPT_FLAG:
			*(bool *)field = true;
			break;
		default:
			rc = set_number(d, text, field, e);
			break;
		}
		if (rc != 0)
			return rc;
	}
	if (opt->ip == 0 && tokd_addr_is_none(&opt->ip6))
		return bad(e, "--ip ADDR is missing, and --ip6 as well; give one after --, as in "
			      "-- --ip 10.0.0.1");
	if (opt->text_port == opt->udp_port)
		return bad(e, "--text-port %u: taken by --udp-port; give another", opt->text_port);
	return check_mbufs(opt, e);
}

/* How many of args[0 .. n) belong to the option at args[0]; what is wrong goes to *e. */
static int
take_one(char **args, int n, struct opt_asked *asked, struct tokd_options_error *e)
{
	const char *arg = args[0], *value = NULL;
	const struct tokd_opt_def *d;
	size_t len;

	if (strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0) {
		asked->help = true;
		return 1;
	}
	if (strcmp(arg, "--version") == 0) {
		asked->version = true;
		return 1;
	}
	if (strncmp(arg, "--", 2) != 0) {
		bad(e,
			"%.64s: not an application option; EAL options stand before --, and "
			"--help lists the application's",
			arg);
		return 1;
	}
	len = strcspn(arg + 2, "=");
	d = opt_find(arg + 2, len);
	if (d == NULL) {
		bad(e,
			"%.64s: no such application option; --help lists them, and EAL options "
			"stand before --",
			arg);
		return 1;
	}
	if (arg[2 + len] == '=')
		value = arg + 2 + len + 1;
	if (d->type == OPT_FLAG) {
		if (value != NULL)
			bad(e, "%.64s: takes no value; write --%s", arg, d->name);
		asked->text[d - tokd_opt_defs] = "";
		return 1;
	}
	if (value != NULL) {
		asked->text[d - tokd_opt_defs] = value;
		return 1;
	}
	if (n < 2 || strncmp(args[1], "--", 2) == 0) {
		bad(e, "--%s: its value is missing; write --%s %s", d->name, d->name, d->arg);
		return 1;
	}
	asked->text[d - tokd_opt_defs] = args[1];
	return 2;
}

/* EAL would call an application option before -- unknown, and not say why. */
static void
look_at_eal_args(int argc, char **argv, struct opt_asked *asked, struct tokd_options_error *e)
{
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--help") == 0)
			asked->help = true;
		else if (strcmp(argv[i], "--version") == 0)
			asked->version = true;
		else if (strcmp(argv[i], "-h") == 0)
			asked->eal_help = true;
		else if (strncmp(argv[i], "--", 2) == 0 &&
			 opt_find(argv[i] + 2, strcspn(argv[i] + 2, "=")) != NULL)
			bad(e, "%.64s: an application option; put it after --, as in -- %.64s",
				argv[i], argv[i]);
	}
}

enum tokd_options_result
tokd_options_parse(int argc, char **argv, int *eal_argc, struct tokd_options *opt,
	struct tokd_options_error *error)
{
	struct opt_asked asked = {0};
	int i;

	memset(opt, 0, sizeof(*opt));
	error->text[0] = '\0';
	for (i = 0; i < argc && strcmp(argv[i], "--") != 0; i++)
		;
	*eal_argc = i;
	look_at_eal_args(i, argv, &asked, error);
	for (i++; i < argc;)
		i += take_one(&argv[i], argc - i, &asked, error);

	if (asked.help)
		return TOKD_OPTIONS_HELP;
	if (asked.version)
		return TOKD_OPTIONS_VERSION;
	if (asked.eal_help)
		return TOKD_OPTIONS_RUN;
	if (error->text[0] != '\0' || validate(&asked, opt, error) != 0)
		return TOKD_OPTIONS_BAD;
	return TOKD_OPTIONS_RUN;
}
