/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of application options, by way of the parser. tests/cli/dpdk-tokd has exit codes. */
#include <arpa/inet.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>

#include <opt_inside.h>

#include "fixture.h"
#include "options/options.h"

#define ARGS_MAX 24

struct parsed {
	enum tokd_options_result result;
	struct tokd_options opt;
	struct opt_error error;
	int eal_argc;
};

/* A command line as a user types it; the strings of *p point into `line`, and to `environment`. */
static void
parse_in(struct parsed *p, char *line, char *const *environment)
{
	char *argv[ARGS_MAX] = {"dpdk-tokd"};
	int argc = 1;

	for (char *arg = strtok(line, " "); arg != NULL && argc < ARGS_MAX; arg = strtok(NULL, " "))
		argv[argc++] = arg;
	p->result = tokd_options_parse(argc, argv, environment, &p->eal_argc, &p->opt, &p->error);
}

static void
parse(struct parsed *p, char *line)
{
	char *none[] = {NULL};

	parse_in(p, line, none);
}

/* A file of these bytes; its path is good until the program ends. */
static void
make_file(char path[32], const void *text, size_t bytes)
{
	const int fd = memfd_create("config", 0);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, bytes), bytes);
	snprintf(path, 32, "/proc/self/fd/%d", fd);
}

/* `line`, and --config with a file of these bytes. */
static void
parse_file(struct parsed *p, const char *line, const void *text, size_t bytes)
{
	static char whole[256];
	char path[32];

	make_file(path, text, bytes);
	snprintf(whole, sizeof(whole), "%s --config %s", line, path);
	parse(p, whole);
}

static enum opt_source
source_of(const struct parsed *p, const char *name)
{
	return p->opt.given.source[opt_find(&tokd_program, name, strlen(name)) - tokd_program.defs];
}

TEST(have_the_defaults_help_shows)
{
	char line[] = "-l 1-4 --";
	struct parsed p;

	parse(&p, line);
	assert_int_equal(p.result, TOKD_OPTIONS_RUN);
	assert_int_equal(p.eal_argc, 3);
	assert_int_equal(p.opt.ip, 0);
	assert_true(IN6_IS_ADDR_UNSPECIFIED(&p.opt.ip6));
	assert_string_equal(p.opt.vocab, "gpt2");
	assert_null(p.opt.pretokenizer);
	assert_int_equal(p.opt.udp_port, 9000);
	assert_int_equal(p.opt.ring_bytes, 16 << 20);
	assert_int_equal(p.opt.socket_mode, 0600);
	assert_false(p.opt.strict_utf8);
	assert_int_equal(tokd_tok_flags(&p.opt), TOK_ADDED_AS_TEXT);
	/* What stands in the table as default must pass its own limits: else RUN were BAD. */
}

TEST(take_sizes_in_every_unit_and_both_spellings)
{
	char line[] =
		"-- --ring-size=64k --max-text 1G --ip=10.0.0.1 --mbuf-room 9600 --mtu=9000 "
		"--strict-utf8 --added-tokens --socket-mode 0666 --socket-group adm --drain 0";
	struct parsed p;

	parse(&p, line);
	assert_int_equal(p.result, TOKD_OPTIONS_RUN);
	assert_int_equal(p.opt.ring_bytes, 64 << 10);
	assert_int_equal(p.opt.max_text, 1 << 30);
	assert_int_equal(p.opt.mbuf_room, 9600);
	assert_int_equal(p.opt.mtu, 9000);
	assert_int_equal(p.opt.socket_mode, 0666);
	assert_string_equal(p.opt.socket_group, "adm");
	assert_int_equal(p.opt.socket_gid, getgrnam("adm")->gr_gid);
	assert_int_equal(p.opt.drain_ms, 0);
	assert_true(p.opt.strict_utf8);
	assert_int_equal(tokd_tok_flags(&p.opt), TOK_STRICT_UTF8);
}

TEST(take_the_last_of_several)
{
	char line[64] = "-- --ip 10.0.0.1 --rxd 64 --ip 10.0.0.2 --rxd 128";
	struct parsed p;

	parse(&p, line);
	assert_int_equal(p.result, TOKD_OPTIONS_RUN);
	assert_int_equal(p.opt.ip, htonl(0x0a000002));
	assert_int_equal(p.opt.rx_desc, 128);
	assert_int_equal(p.opt.socket_gid, (gid_t)-1);
	strcpy(line, "-- --ip6 2001:db8::1 --socket-group 54321"); /* alone */
	parse(&p, line);
	assert_int_equal(p.result, TOKD_OPTIONS_RUN);
	assert_int_equal(p.opt.ip, 0);
	assert_int_equal(p.opt.ip6.s6_addr[0], 0x20);
	assert_int_equal(p.opt.ip6.s6_addr[15], 1);
	assert_int_equal(p.opt.socket_gid, 54321);
}

TEST(give_help_and_version_from_both_sides_whatever_else_is_wrong)
{
	static const char *const lines[] = {
		"--help", "-l 1 --help", "-- --help", "-- --nonsense --help", "-- --rxd --help"};
	struct parsed p;
	char line[64];

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		strcpy(line, lines[i]);
		parse(&p, line);
		assert_int_equal(p.result, TOKD_OPTIONS_HELP);
	}
	strcpy(line, "--version");
	parse(&p, line);
	assert_int_equal(p.result, TOKD_OPTIONS_VERSION);
	strcpy(line, "-- --version");
	parse(&p, line);
	assert_int_equal(p.result, TOKD_OPTIONS_VERSION);
	strcpy(line, "-l 1 -h -- --nonsense");
	parse(&p, line);
	assert_int_equal(p.result, TOKD_OPTIONS_EAL_HELP);
}

/* Each names the option, the value, the limit and what to do. */
TEST(complain_in_one_line)
{
	static const struct {
		const char *line, *says;
	} cases[] = {
		{"-- --ip 10.0.0", "--ip 10.0.0: not an IPv4 address; give"},
		{"-- --ip 224.0.0.1", "--ip 224.0.0.1: not a unicast address; give"},
		{"-- --ip 127.0.0.1", "--ip 127.0.0.1: not a unicast address; give"},
		{"-- --ip6 10.0.0.1", "--ip6 10.0.0.1: not an IPv6 address; give"},
		{"-- --ip6 2001:db8::1%eth0", "--ip6 2001:db8::1%eth0: not an IPv6 address; give"},
		{"-- --ip6 ::", "--ip6 ::: not a unicast address; give"},
		{"-- --ip6 ::1", "--ip6 ::1: not a unicast address; give"},
		{"-- --ip6 ff02::1", "--ip6 ff02::1: not a unicast address; give"},
		{"-- --ip6 ::ffff:10.0.0.1", "not a unicast address; give"},
		{"-- --ip 10.0.0.1 --text-port 9000", "--text-port 9000: the same as --udp-port;"},
		{"-- --ip 10.0.0.1 --vlan 4095", "--vlan 4095: out of range; give 0 to 4094"},
		{"-- --ip 10.0.0.1 --udp-port 0", "--udp-port 0: out of range; give 1 to 65535"},
		{"-- --ip 10.0.0.1 --udp-port 65536", "--udp-port 65536: out of range"},
		{"-- --ip 10.0.0.1 --udp-port 9000x", "--udp-port 9000x: not a number; give"},
		{"-- --ip 10.0.0.1 --udp-port -1", "--udp-port -1: not a number; give"},
		{"-- --ip 10.0.0.1 --udp-port 1k", "--udp-port 1k: not a number; give"},
		{"-- --ip 10.0.0.1 --udp-port=", "--udp-port: not a number; give"},
		{"-- --ip 10.0.0.1 --ring-size 3M",
			"--ring-size 3M: not a power of two; give 2M or 4M"},
		{"-- --ip 10.0.0.1 --ring-size 1k",
			"--ring-size 1k: out of range; give 64k to 64G"},
		{"-- --ip 10.0.0.1 --ring-size 16Q", "--ring-size 16Q: not a number; give"},
		{"-- --ip 10.0.0.1 --ring-size 16MM", "--ring-size 16MM: not a number; give"},
		{"-- --ip 10.0.0.1 --ring-size 18446744073709551616", "out of range; give 64k"},
		{"-- --ip 10.0.0.1 --ring-size 17179869185G", "out of range; give 64k"},
		{"-- --ip 10.0.0.1 --drain 2h", "--drain 2h: not a number; give"},
		{"-- --ip 10.0.0.1 --socket-mode 0888", "--socket-mode 0888: not a number; give"},
		{"-- --ip 10.0.0.1 --socket-mode 1777", "--socket-mode 1777: out of range; give"},
		{"-- --ip 10.0.0.1 --socket-group no-such",
			"--socket-group no-such: no such group;"},
		{"-- --ip 10.0.0.1 --socket-group -1", "--socket-group -1: no such group; give"},
		{"-- --ip 10.0.0.1 --socket-group 1x", "--socket-group 1x: no such group; give"},
		{"-- --ip 10.0.0.1 --socket-group 4294967295", "4294967295: no such group; give"},
		{"-- --ip 10.0.0.1 --mbufs 1000",
			"--mbufs 1000: too few for 1024 RX and 1024 TX descriptors, --fragments 64 and "
			"packets of 1500 bytes in mbufs of 2048; give 2784 or more, lower"},
		{"-- --ip 10.0.0.1 --strict-utf8=1", "--strict-utf8 1: neither yes nor no; give"},
		{"-- --ip 10.0.0.1 --config=", "--config: the value is empty; give FILE"},
		{"-- --ip 10.0.0.1 --config /", "/: a folder, not a regular file;"},
		{"-- --ip 10.0.0.1 --config /dev/zero", "/dev/zero: a pipe or device, not a"},
		{"-- --ip 10.0.0.1 --config /no/where", "/no/where: cannot open the "
							"configuration file: No such file"},
		{"-- --ip 10.0.0.1 --ringsize 1M", "--ringsize: no such option; "
						   "did you mean --ring-size?"},
		{"-- --versoin", "did you mean --version?"},
		{"-- --vdev=net_null0", "--vdev=net_null0: no such option; --help lists "
					"them; EAL options go before --"},
		{"-- --ip 10.0.0.1 --vocab=", "--vocab: the value is empty; give VOCAB"},
		{"-- --ip", "--ip: value missing; write --ip ADDR"},
		{"-- --ip --rxd 64", "--ip: value missing; write --ip ADDR"},
		{"-- --ip 10.0.0.1 --vocabulary gpt2", "--vocabulary: no such option;"},
		{"-- --ip 10.0.0.1 -l 1",
			"-l: no such option; --help lists them; EAL options go before --"},
		{"-- --ip 10.0.0.1 gpt2", "gpt2: not an option;"},
		{"-l 1 --vocab gpt2", "--vocab: an application option; put it after --"},
	};
	struct parsed p;
	char line[128];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		strcpy(line, cases[i].line);
		parse(&p, line);
		if (p.result != TOKD_OPTIONS_BAD || strstr(p.error.text, cases[i].says) == NULL)
			fail_msg("'%s': result %d, \"%s\", expected \"%s\"", cases[i].line,
				p.result, p.error.text, cases[i].says);
		assert_null(strchr(p.error.text, '\n'));
	}
}

TEST(refuse_a_socket_path_no_socket_can_have)
{
	char line[200] = "-- --ip 10.0.0.1 --socket ";
	size_t used = strlen(line);
	struct parsed p;

	memset(line + used, 'x', 108);
	line[used + 108] = '\0';
	parse(&p, line);
	assert_int_equal(p.result, TOKD_OPTIONS_BAD);
	assert_non_null(strstr(p.error.text, "limited to 107"));
}

/* What is shown, typed again, gives the same. */
TEST(are_shown_as_they_would_be_typed)
{
	char line[] = "-- --ip 10.1.2.3 --ring-size 128k --mbuf-room 1601 --socket-mode 640";
	struct opt_value value;
	struct parsed p;
	char shown[2048] = "";
	size_t i;

	parse(&p, line);
	assert_int_equal(p.result, TOKD_OPTIONS_RUN);
	for (i = 0; opt_value(&tokd_program, &p.opt.given, &p.opt, i, &value); i++)
		snprintf(shown + strlen(shown), sizeof(shown) - strlen(shown), " %s=%s", value.name,
			value.text);
	assert_int_equal(i, tokd_program.n_defs - 1);
	strcat(shown, " ");
	assert_non_null(strstr(shown, " ip=10.1.2.3 "));
	assert_non_null(strstr(shown, " ring-size=128k "));
	assert_non_null(strstr(shown, " mbuf-room=1601 "));
	assert_non_null(strstr(shown, " socket-mode=0640 "));
	assert_non_null(strstr(shown, " strict-utf8=no "));
	assert_non_null(strstr(shown, " max-text=16M "));
}

/* Each source is overridden by the next, and says so. */
TEST(come_from_where_they_are_strongest)
{
	static const char text[] = "# all of it\n[tokd]\nip = 10.0.0.1\n  rxd=64# a comment\r\n"
				   "txd\t= 128\nvocab = a\\#b c\n\nstrict-utf8 = yes\nmbufs = 4096";
	char path[32], config[64], line[] = "-- --txd 256 --strict-utf8=no";
	char *environment[] = {"HOME=/root", "TOKD_TXD=512", "TOKD_MBUFS=2048", config,
		"TOKD_BUILD=build", "TOKD_API_KEYS=k", "TOKD_GPU_SLOTS=8", "TOKDX=1", NULL};
	struct parsed p;

	make_file(path, text, strlen(text));
	snprintf(config, sizeof(config), "TOKD_CONFIG=%s", path);
	parse_in(&p, line, environment);
	if (p.result != TOKD_OPTIONS_RUN)
		fail_msg("%s", p.error.text);
	assert_int_equal(p.opt.rx_desc, 64);
	assert_int_equal(source_of(&p, "rxd"), OPT_FROM_FILE);
	assert_int_equal(p.opt.mbufs, 2048);
	assert_int_equal(source_of(&p, "mbufs"), OPT_FROM_ENVIRONMENT);
	assert_int_equal(p.opt.tx_desc, 256);
	assert_int_equal(source_of(&p, "txd"), OPT_FROM_COMMAND_LINE);
	assert_false(p.opt.strict_utf8);
	assert_int_equal(source_of(&p, "strict-utf8"), OPT_FROM_COMMAND_LINE);
	assert_string_equal(p.opt.vocab, "a#b c");
	assert_int_equal(source_of(&p, "ring-size"), OPT_FROM_DEFAULT);
	assert_string_equal(p.opt.config, path);
	opt_free(&p.opt.given);
}

/* What is overridden is looked at as well: it would be wrong on another day. */
TEST(name_the_variable_that_is_wrong)
{
	static const struct {
		char *variable;
		const char *says;
	} cases[] = {
		{"TOKD_RDX=64", "TOKD_RDX: no such variable; did you mean TOKD_RXD?"},
		{"TOKD_rxd=64", "TOKD_rxd: no such variable; did you mean TOKD_RXD?"},
		{"TOKD_ZZZZZZZZ=64", "TOKD_ZZZZZZZZ: no such variable; unset it"},
		{"TOKD_=64", "TOKD_: no such variable; unset it"},
		{"TOKD_HELP=1", "TOKD_HELP: no such variable; unset it"},
		{"TOKD_RXD=1", "TOKD_RXD=1: out of range; give 32 to 32768"},
		{"TOKD_RXD=", "TOKD_RXD=: not a number"},
		{"TOKD_VOCAB=a\nb", "TOKD_VOCAB=a?b: byte 2 is a control character (0x0a)"},
		{"TOKD_VOCAB= a", "a blank at the start or end"},
		{"TOKD_STRICT_UTF8=1", "TOKD_STRICT_UTF8=1: neither yes nor no"},
		{"TOKD_CONFIG=/no/where", "/no/where: cannot open the configuration file"},
		{"TOKD_CONFIG=", "TOKD_CONFIG=: the value is empty"},
	};
	struct parsed p;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char line[] = "-- --ip 10.0.0.1 --rxd 64";
		char *environment[] = {cases[i].variable, NULL};

		parse_in(&p, line, environment);
		if (p.result != TOKD_OPTIONS_BAD || strstr(p.error.text, cases[i].says) == NULL)
			fail_msg("'%s': result %d, \"%s\", expected \"%s\"", cases[i].variable,
				p.result, p.error.text, cases[i].says);
		assert_null(strchr(p.error.text, '\n'));
		opt_free(&p.opt.given);
	}
}

TEST(name_what_is_wrong_in_a_file)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{"[tokd]\nring_size = 1M\n", "ring_size: no such key; did you mean ring-size?"},
		{"[tokd]\nqqqqqqqqq = 1\n", "qqqqqqqqq: no such key; keys are the names"},
		{"[tokd]\nrxd = 64\ntxd = 64\nrxd = 64\n", "rxd: repeated; keep one"},
		{"[tokd]\nconfig = x\n", "config: only for the command line or env"},
		{"[tokd]\nhelp = yes\n", "help: no such key"},
		{"[tokd]\nip = 10.0.0\n", ": ip = 10.0.0: not an IPv4 address"},
		{"[tokd]\nvocab =\n", ": vocab = : the value is empty; give VOCAB"},
		{"rxd = 64\n", "line 1: no section; write [tokd] before it"},
		{"\n[eal]\n", "line 2: [eal]: no such section; the only one is [tokd]"},
		{"[tokd\n", "line 1: [tokd: no such section"},
		{"[tokd] rxd = 64\n", "line 1: [tokd] rxd = 64: no such section"},
		{"[tokd]\n[tokd]\n", "line 2: section [tokd] is repeated; keep one"},
		{"[tokd]\nrxd 64\n", "line 2: neither [tokd] nor key = value; begin a comment"},
		{"[tokd]\n; rxd 64\n", "line 2: neither [tokd] nor key = value; begin a comment"},
		{"[tokd]\n= 64\n", "line 2: no key before =; write key = value"},
		{"[tokd]\nrxd = 6\a4\n", "line 2: byte 8 is 0x07: not text; give a text file"},
		{"\x7f"
		 "ELF\1",
			"line 1: byte 1 is 0x7f: not text"},
	};
	struct parsed p;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		parse_file(&p, "-- --ip 10.0.0.1", cases[i].text, strlen(cases[i].text));
		if (p.result != TOKD_OPTIONS_BAD || strstr(p.error.text, cases[i].says) == NULL)
			fail_msg("case %zu: result %d, \"%s\", expected \"%s\"", i, p.result,
				p.error.text, cases[i].says);
		assert_null(strchr(p.error.text, '\n'));
		opt_free(&p.opt.given);
	}
}

/* "[tokd]", `begin` and `n` times c: taken if `says` is NULL, else refused with that. */
static void
try_length(const char *begin, char c, size_t n, const char *says)
{
	char *text = malloc(n + 128);
	size_t used = (size_t)sprintf(text, "[tokd]\n%s", begin);
	struct parsed p;

	memset(text + used, c, n);
	parse_file(&p, "-- --ip 10.0.0.1", text, used + n);
	if ((p.result == TOKD_OPTIONS_RUN) != (says == NULL) ||
		(says != NULL && strstr(p.error.text, says) == NULL))
		fail_msg("%s and %zu x '%c': result %d: %s", begin, n, c, p.result, p.error.text);
	if (says == NULL && begin[0] == 'v')
		assert_int_equal(strlen(p.opt.vocab), n);
	opt_free(&p.opt.given);
	free(text);
}

TEST(refuse_what_does_not_fit_a_value)
{
	try_length("vocab = ", 'x', 255, NULL);
	try_length("vocab = ", 'x', 256,
		"line 2: vocab: 256 bytes; a value has at most 255; shorten it");
	try_length("vocab = ", 'x', 60000, "line 2: vocab: 60000 bytes; a value has at most 255");
	try_length("", 'x', 60000, "line 2: neither [tokd] nor key = value");
	try_length("", '=', 60000, "line 2: no key before =");
	try_length("# ", 'x', 60000, NULL);
	try_length("rxd = 64 ", ' ', 60000, NULL);
	try_length("rxd = 64 #", '\\', 60000, NULL);
	try_length("", '\n', 60000, NULL);
	try_length("", '\0', 60000, "line 2: byte 1 is 0x00: not text");
	try_length("", '\xff', 60000, "line 2: neither [tokd] nor key = value");
	try_length("", '\n', 66000, "66007 bytes, a configuration file can have 65536");
	try_length("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx=", 'x', 1,
		"line 2: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx: no such "
		"key");
}

/* As --check-config writes it: the limit is that of the value, not of how it is written. */
TEST(take_a_value_that_is_all_escapes)
{
	char text[600] = "[tokd]\nvocab = ", *end = text + strlen(text);
	struct parsed p;

	for (int i = 0; i < OPT_TEXT_MAX; i++)
		end = stpcpy(end, "\\#");
	parse_file(&p, "-- --ip 10.0.0.1", text, (size_t)(end - text));
	assert_int_equal(p.result, TOKD_OPTIONS_RUN);
	assert_int_equal(strlen(p.opt.vocab), OPT_TEXT_MAX);
	assert_int_equal(strspn(p.opt.vocab, "#"), OPT_TEXT_MAX);
	opt_free(&p.opt.given);
}

TEST(take_an_empty_file_for_one_that_sets_nothing)
{
	static const char *const texts[] = {"", "\n", "[tokd]", "# nothing"};
	struct parsed p;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		parse_file(&p, "-- --ip 10.0.0.1", texts[i], strlen(texts[i]));
		assert_int_equal(p.result, TOKD_OPTIONS_RUN);
		opt_free(&p.opt.given);
	}
}
