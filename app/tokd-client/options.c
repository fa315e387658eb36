/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tokd/wire.h>

#include "options.h"

static const char help[] =
	"usage: tokd-client [options] HOST[:PORT] < text\n"
	"Send standard input to a dpdk-tokd and print the ids. HOST is a name or an address, an IPv6\n"
	"address in brackets where a port follows: [2001:db8::1]:9000. PORT is 9000 otherwise.\n\n"
	"  --stream       print ids as they become certain\n"
	"  --lines        each line is a text, and gives a line of ids; many are in flight\n"
	"  --in-flight N  with --lines, how many at once, 1 to 65536 [64]\n"
	"  --vocab SUM    the vocabulary's checksum, 8 hexadecimal digits as dpdk-tokd logs it, as in\n"
	"                 868554d0 or 0x868554d0 [the appliance's own]\n"
	"  --timeout S    give up after S seconds without any progress [5]\n"
	"  --version      print the version\n"
	"  --help         print this text\n\n"
	"exit code: 0 all ids were printed; 1 a text failed; 2 a bad option; 3 no such host\n";

static int
bad(const char *option, const char *value, const char *remedy)
{
	fprintf(stderr, "tokd-client: %s %s: %s\n", option, value, remedy);
	return -1;
}

static int
number(const char *option, const char *text, uint32_t least, uint32_t most, uint32_t *v)
{
	unsigned long long value;
	char *end;

	errno = 0;
	value = strtoull(text, &end, 0);
	if (errno != 0 || text[0] < '0' || text[0] > '9' || *end != '\0' || value < least ||
		value > most) {
		fprintf(stderr, "tokd-client: %s %s: give a number from %u to %u\n", option, text,
			least, most);
		return -1;
	}
	*v = (uint32_t)value;
	return 0;
}

/* As the log, telemetry and tok print it: anything shorter might be meant as a decimal number. */
static int
checksum(const char *text, uint32_t *v)
{
	const char *digits = strncmp(text, "0x", 2) == 0 ? text + 2 : text;

	*v = 0;
	if (strlen(digits) == 8 && strspn(digits, "0123456789abcdefABCDEF") == 8)
		*v = (uint32_t)strtoul(digits, NULL, 16);
	if (*v != 0) /* which is none */
		return 0;
	return bad("--vocab", text,
		"give its checksum, 8 hexadecimal digits: dpdk-tokd logs it at start, tok vocab info "
		"prints it");
}

/* HOST, HOST:PORT, [HOST]:PORT, or an IPv6 address, which has more than one colon. */
static int
parse_host(struct options *o, const char *text)
{
	const char *host = text, *colon = strrchr(text, ':'), *end = text + strlen(text);
	uint32_t port = TOKD_WIRE_PORT;

	if (text[0] == '[') {
		host = text + 1;
		end = strchr(text, ']');
		if (end == NULL || (end[1] != ':' && end[1] != '\0'))
			return bad("host", text, "expected [ADDRESS]:PORT");
		colon = end[1] == ':' ? end + 1 : NULL;
	} else if (colon != NULL && strchr(text, ':') == colon) {
		end = colon;
	} else {
		colon = NULL;
	}
	if (colon != NULL && number("port", colon + 1, 1, 65535, &port) != 0)
		return -1;
	if (end == host || (size_t)(end - host) >= sizeof(o->host))
		return bad("host", text, "expected a name or an address");
	memcpy(o->host, host, (size_t)(end - host));
	o->host[end - host] = '\0';
	o->port = (uint16_t)port;
	return 0;
}

int
options_parse(struct options *o, int argc, char **argv)
{
	static const struct option known[] = {{"stream", no_argument, NULL, 's'},
		{"lines", no_argument, NULL, 'l'}, {"in-flight", required_argument, NULL, 'n'},
		{"vocab", required_argument, NULL, 'v'}, {"timeout", required_argument, NULL, 't'},
		{"version", no_argument, NULL, 'V'}, {"help", no_argument, NULL, 'h'}, {0}};
	int c, failed = 0;

	*o = (struct options){.in_flight = 64, .timeout_s = 5};
	while (failed == 0 && (c = getopt_long(argc, argv, "h", known, NULL)) != -1) {
		switch (c) {
		case 's':
			o->stream = true;
			break;
		case 'l':
			o->lines = true;
			break;
		case 'n':
			failed = number("--in-flight", optarg, 1, 65536, &o->in_flight);
			break;
		case 'v':
			failed = checksum(optarg, &o->vocab);
			break;
		case 't':
			failed = number("--timeout", optarg, 1, 86400, &o->timeout_s);
			break;
		case 'V':
			puts("tokd-client " TOKD_VERSION);
			return 1;
		case 'h':
			fputs(help, stdout);
			return 1;
		default:
			return -1;
		}
	}
	if (failed != 0)
		return -1;
	if (o->stream && o->lines)
		return bad("--stream", "--lines", "give one of them");
	if (optind != argc - 1) {
		fputs("tokd-client: expected one HOST[:PORT]; see --help\n", stderr);
		return -1;
	}
	return parse_host(o, argv[optind]);
}
