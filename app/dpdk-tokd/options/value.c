/* SPDX-License-Identifier: BSD-3-Clause */
/* A value's text becomes a field, or a complaint that names where it was given. */
#include <arpa/inet.h>
#include <ctype.h>
#include <grp.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include <rte_ip.h>
#include <rte_udp.h>

#include <tokd/wire.h>

#include "table.h"

#define OPT_MTU_LEAST                                                                              \
	(sizeof(struct rte_ipv6_hdr) + sizeof(struct rte_udp_hdr) + sizeof(struct tokd_rep) +      \
		TOKD_WIRE_PAYLOAD)
#define OPT_MBUFS_SPARE 256 /* beyond the descriptors; worker.c says what for */

/* One value, and who gave it. */
struct given {
	const struct tokd_opt_def *d;
	const char *text;
	enum tokd_option_source source;
	const char *file; /* of TOKD_FROM_FILE */
};

/* "--rxd 5", "TOKD_RXD=5" or "/etc/tokd.conf: rxd = 5". */
struct head {
	char text[320];
};

static struct head
head(const struct given *g)
{
	char env[OPT_NAME_ROOM];
	struct head h;

	switch (g->source) {
	case TOKD_FROM_FILE:
		snprintf(
			h.text, sizeof(h.text), "%.200s: %s = %.64s", g->file, g->d->name, g->text);
		break;
	case TOKD_FROM_ENVIRONMENT:
		tokd_opt_env(g->d, env, sizeof(env));
		snprintf(h.text, sizeof(h.text), "%s=%.64s", env, g->text);
		break;
	default:
		snprintf(h.text, sizeof(h.text), "--%s%s%.64s", g->d->name,
			g->text[0] != '\0' ? " " : "", g->text);
		break;
	}
	return h;
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
set_number(const struct given *g, void *field, struct tokd_options_error *e)
{
	static const char *const form[] = {
		[OPT_COUNT] = "a decimal number",
		[OPT_SIZE] = "a decimal number, with k, M or G after it or nothing",
		[OPT_MS] = "a decimal number of milliseconds, without a unit",
		[OPT_OCTAL] = "an octal number, as for chmod",
	};
	const struct tokd_opt_def *d = g->d;
	char low[32], high[32];
	uint64_t v;

	if (!parse_number(d, g->text, &v))
		return tokd_opt_bad(e, "%s: not a number; give %s", head(g).text, form[d->type]);
	if (v < d->min || v > d->max) {
		tokd_opt_print(d, d->min, low, sizeof(low));
		tokd_opt_print(d, d->max, high, sizeof(high));
		return tokd_opt_bad(e, "%s: out of range; give %s to %s%s", head(g).text, low, high,
			tokd_opt_unit(d));
	}
	if (d->rule == RULE_POWER_OF_2 && (v & (v - 1)) != 0) {
		uint64_t below = 1ull << (63 - __builtin_clzll(v));

		tokd_opt_print(d, below, low, sizeof(low));
		tokd_opt_print(d, below * 2, high, sizeof(high));
		return tokd_opt_bad(
			e, "%s: not a power of two; give %s or %s", head(g).text, low, high);
	}
	if (d->rule == RULE_REPLY_FITS && v != 0 && v < OPT_MTU_LEAST)
		return tokd_opt_bad(e, "%s: the longest reply does not fit; give %zu or more, or 0",
			head(g).text, OPT_MTU_LEAST);
	if (d->width == sizeof(uint16_t))
		*(uint16_t *)field = (uint16_t)v;
	else if (d->width == sizeof(uint32_t))
		*(uint32_t *)field = (uint32_t)v;
	else
		*(uint64_t *)field = v;
	return 0;
}

static int
set_ip(const struct given *g, uint32_t *ip, struct tokd_options_error *e)
{
	struct in_addr a;
	uint32_t host;

	if (inet_pton(AF_INET, g->text, &a) != 1)
		return tokd_opt_bad(e,
			"%s: not an IPv4 address; give four decimal numbers, as in 10.0.0.1",
			head(g).text);
	host = ntohl(a.s_addr);
	if (host >> 24 == 0 || host >> 24 == 127 || host >> 24 >= 224)
		return tokd_opt_bad(e,
			"%s: not the address of a host; give a unicast address, as in 10.0.0.1",
			head(g).text);
	*ip = a.s_addr;
	return 0;
}

/* RFC 4291 2.5 and 2.7: not ::, not ::1, no group, and no IPv4 address in disguise. */
static bool
is_ip6_host(const struct in6_addr *a)
{
	return !IN6_IS_ADDR_UNSPECIFIED(a) && !IN6_IS_ADDR_LOOPBACK(a) &&
	       !IN6_IS_ADDR_V4COMPAT(a) && !IN6_IS_ADDR_V4MAPPED(a) && !IN6_IS_ADDR_MULTICAST(a);
}

static int
set_ip6(const struct given *g, struct in6_addr *ip6, struct tokd_options_error *e)
{
	struct in6_addr a;

	if (inet_pton(AF_INET6, g->text, &a) != 1)
		return tokd_opt_bad(
			e, "%s: not an IPv6 address; give one as in 2001:db8::1", head(g).text);
	if (!is_ip6_host(&a))
		return tokd_opt_bad(e,
			"%s: not the address of a host; give a unicast address, as in 2001:db8::1",
			head(g).text);
	*ip6 = a;
	return 0;
}

static int
set_mac(const struct given *g, struct rte_ether_addr *mac, struct tokd_options_error *e)
{
	struct rte_ether_addr a;

	if (rte_ether_unformat_addr(g->text, &a) != 0 || !rte_is_valid_assigned_ether_addr(&a))
		return tokd_opt_bad(e,
			"%s: not the Ethernet address of a host; give one as in 02:00:00:00:00:01",
			head(g).text);
	*mac = a;
	return 0;
}

static int
set_flag(const struct given *g, bool *field, struct tokd_options_error *e)
{
	*field = strcmp(g->text, "yes") == 0;
	if (*field || strcmp(g->text, "no") == 0)
		return 0;
	return tokd_opt_bad(e, "%s: neither yes nor no; give one of them", head(g).text);
}

static bool
is_byte(const char *text)
{
	const size_t len = strlen(text);

	return strspn(text, "0123456789") == len && len <= 3 && atoi(text) <= 255;
}

/* The group of a name or a number. (gid_t)-1: there is none. */
static gid_t
find_group(const char *name)
{
	const struct group *g = getgrnam(name); /* no other thread of ours looks for one */
	unsigned long v;
	char *end;

	if (g != NULL)
		return g->gr_gid;
	v = strtoul(name, &end, 10);
	return isdigit((unsigned char)*name) && *end == '\0' && v < (gid_t)-1 ? (gid_t)v
									    : (gid_t)-1;
}

/* Every text can be written into a file, and read back as it was. */
static int
set_text(const struct given *g, const char **field, struct tokd_options_error *e)
{
	const bool is_socket = g->d->rule == RULE_SOCKET_PATH;
	const size_t limit =
		is_socket ? sizeof(((struct sockaddr_un *)0)->sun_path) - 1 : OPT_TEXT_MAX;
	const size_t len = strlen(g->text);

	if (len == 0)
		return tokd_opt_bad(e, "%s: the value is empty; give %s", head(g).text, g->d->arg);
	if (len > limit)
		return tokd_opt_bad(e, "%s: %zu bytes, %s limited to %zu; give a shorter one",
			head(g).text, len, is_socket ? "a socket's path is" : "it is", limit);
	for (size_t i = 0; i < len; i++) {
		if (iscntrl((unsigned char)g->text[i]))
			return tokd_opt_bad(e,
				"%s: byte %zu is a control character (0x%02x); leave it out",
				head(g).text, i + 1, (unsigned char)g->text[i]);
	}
	if (g->text[0] == ' ' || g->text[len - 1] == ' ')
		return tokd_opt_bad(
			e, "%s: a blank at the start or end; leave it out", head(g).text);
	if (g->d->rule == RULE_GROUP && find_group(g->text) == (gid_t)-1)
		return tokd_opt_bad(e,
			"%s: no such group; give one of /etc/group, by name or number",
			head(g).text);
	if (g->d->rule == RULE_BYTE && !is_byte(g->text))
		return tokd_opt_bad(e, "%s: not an index; give a decimal number, 0 to 255",
			head(g).text);
	*field = g->text;
	return 0;
}

static int
set(const struct given *g, struct tokd_options *opt, struct tokd_options_error *e)
{
	void *field = (char *)opt + g->d->offset;

	switch (g->d->type) {
	case OPT_TEXT:
		return set_text(g, field, e);
	case OPT_IPV4:
		return set_ip(g, field, e);
	case OPT_IPV6:
		return set_ip6(g, field, e);
	case OPT_MAC:
		return set_mac(g, field, e);
	case OPT_FLAG:
		return set_flag(g, field, e);
	default:
		return set_number(g, field, e);
	}
}

static int
check_side_store(const struct tokd_options *opt, struct tokd_options_error *e)
{
	if (opt->side_bytes == 0 || opt->side_bytes >= TOKD_SIDE_BLOCK)
		return 0;
	return tokd_opt_bad(e, "--side-store %u: less than a block of %u bytes; give 0, or more",
		(unsigned int)opt->side_bytes, TOKD_SIDE_BLOCK);
}

/* Both rings may be full of mbufs while a burst is on its way and a text is out of order. */
static int
check_mbufs(const struct tokd_options *opt, struct tokd_options_error *e)
{
	const uint32_t least = opt->rx_desc + opt->tx_desc + OPT_MBUFS_SPARE +
			       opt->fragments * RTE_LIBRTE_IP_FRAG_MAX_FRAG;

	if (opt->mbufs >= least)
		return 0;
	return tokd_opt_bad(e,
		"--mbufs %u: too few for --rxd %u, --txd %u and --fragments %u; give at least %u, "
		"or lower those",
		opt->mbufs, opt->rx_desc, opt->tx_desc, opt->fragments, least);
}

/* "gpu" alone is "gpu=shm": the agent of this machine. */
static int
make_sink_target(struct tokd_options *opt, struct tokd_options_error *e)
{
	struct tokg_error why;
	const char *target = "shm";

	if (opt->sink == NULL)
		return 0;
	if (strncmp(opt->sink, "gpu=", 4) == 0)
		target = opt->sink + 4;
	else if (strcmp(opt->sink, "gpu") != 0)
		return tokd_opt_bad(e, "--sink %.64s: not a sink; give gpu or gpu=TARGET", opt->sink);
	if (!tokg_target_parse(&opt->sink_target, target, &why))
		return tokd_opt_bad(e, "--sink %.64s: %s", opt->sink, why.text);
	opt->sink_target.rdma_device = opt->rdma_device;
	opt->sink_target.rdma_port = opt->rdma_port != 0 ? (int)opt->rdma_port : -1;
	opt->sink_target.rdma_gid = opt->rdma_gid != NULL ? atoi(opt->rdma_gid) : -1;
	return 0;
}

int
tokd_opt_resolve(
	const struct tokd_opt_asked *asked, struct tokd_options *opt, struct tokd_options_error *e)
{
	for (size_t i = 0; i < TOKD_N_OPTS; i++) {
		const struct tokd_opt_def *d = &tokd_opt_defs[i];

		/* From the weakest to the strongest: what is set last stays. */
		for (int from = TOKD_FROM_DEFAULT; from < TOKD_N_SOURCES; from++) {
			/* opt->config is there by now: the file has been read. */
			const struct given g = {d, asked->text[from][i], from, opt->config};

			if (g.text == NULL)
				continue;
			if (set(&g, opt, e) != 0)
				return -1;
			opt->source[i] = (uint8_t)from;
		}
	}
	opt->socket_gid = opt->socket_group != NULL ? find_group(opt->socket_group) : (gid_t)-1;
	if (opt->text_port == opt->udp_port)
		return tokd_opt_bad(
			e, "--text-port %u: taken by --udp-port; give another", opt->text_port);
	if (check_side_store(opt, e) != 0 || make_sink_target(opt, e) != 0)
		return -1;
	return check_mbufs(opt, e);
}
