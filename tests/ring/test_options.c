/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of application options, by way of the parser. tests/app_cli has the exit codes. */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "fixture.h"
#include "options_table.h"

#define ARGS_MAX 16

struct parsed {
	enum tokd_options_result result;
	struct tokd_options opt;
	struct tokd_options_error error;
	int eal_argc;
};

/* A command line as a user types it; the strings of *p point into `line`. */
static void
parse(struct parsed *p, char *line)
{
	char *argv[ARGS_MAX] = {"dpdk-tokd"};
	int argc = 1;

	for (char *arg = strtok(line, " "); arg != NULL && argc < ARGS_MAX; arg = strtok(NULL, " "))
		argv[argc++] = arg;
	p->result = tokd_options_parse(argc, argv, &p->eal_argc, &p->opt, &p->error);
}

static void
have_the_defaults_help_shows(void **state)
{
	char line[] = "-l 1-4 -- --ip 10.0.0.1";
	struct parsed p;

	parse(&p, line);
	assert_int_equal(p.result, TOKD_OPTIONS_RUN);
	assert_int_equal(p.eal_argc, 3);
	assert_int_equal(p.opt.ip, htonl(0x0a000001));
	assert_string_equal(p.opt.vocab, "gpt2");
	assert_null(p.opt.pretokenizer);
	assert_int_equal(p.opt.udp_port, 9000);
	assert_int_equal(p.opt.ring_bytes, 16 << 20);
	assert_int_equal(p.opt.socket_mode, 0600);
	assert_false(p.opt.strict_utf8);
	/* What stands in the table as default must pass its own limits: else RUN were BAD. */
}

static void
take_sizes_in_every_unit_and_both_spellings(void **state)
{
	char line[] = "-- --ring-size=64k --max-text 1G --ip=10.0.0.1 --mbuf-room 9600 "
		      "--strict-utf8 --socket-mode 0666 --drain 0";
	struct parsed p;

	parse(&p, line);
	assert_int_equal(p.result, TOKD_OPTIONS_RUN);
	assert_int_equal(p.opt.ring_bytes, 64 << 10);
	assert_int_equal(p.opt.max_text, 1 << 30);
	assert_int_equal(p.opt.mbuf_room, 9600);
	assert_int_equal(p.opt.socket_mode, 0666);
	assert_int_equal(p.opt.drain_ms, 0);
	assert_true(p.opt.strict_utf8);
}

static void
take_the_last_of_several(void **state)
{
	char line[64] = "-- --ip 10.0.0.1 --rxd 64 --ip 10.0.0.2 --rxd 128";
	struct parsed p;

	parse(&p, line);
	assert_int_equal(p.result, TOKD_OPTIONS_RUN);
	assert_int_equal(p.opt.ip, htonl(0x0a000002));
	assert_int_equal(p.opt.rx_desc, 128);
	strcpy(line, "-- --ip6 2001:db8::1"); /* alone */
	parse(&p, line);
	assert_int_equal(p.result, TOKD_OPTIONS_RUN);
	assert_int_equal(p.opt.ip, 0);
	assert_int_equal(p.opt.ip6.byte[0], 0x20);
	assert_int_equal(p.opt.ip6.byte[15], 1);
}

static void
give_help_and_version_from_both_sides_whatever_else_is_wrong(void **state)
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
}

/* Each names the option, the value, the limit and what to do. */
static void
complain_in_one_line(void **state)
{
	static const struct {
		const char *line, *says;
	} cases[] = {
		{"", "--ip ADDR is missing, and --ip6 as well; give one after --"},
		{"-- --ip 10.0.0", "--ip 10.0.0: not an IPv4 address; give"},
		{"-- --ip 224.0.0.1", "--ip 224.0.0.1: not the address of a host; give"},
		{"-- --ip 127.0.0.1", "--ip 127.0.0.1: not the address of a host; give"},
		{"-- --ip6 10.0.0.1", "--ip6 10.0.0.1: not an IPv6 address; give"},
		{"-- --ip6 2001:db8::1%eth0", "--ip6 2001:db8::1%eth0: not an IPv6 address; give"},
		{"-- --ip6 ::", "--ip6 ::: not the address of a host; give"},
		{"-- --ip6 ::1", "--ip6 ::1: not the address of a host; give"},
		{"-- --ip6 ff02::1", "--ip6 ff02::1: not the address of a host; give"},
		{"-- --ip6 ::ffff:10.0.0.1", "not the address of a host; give"},
		{"-- --ip 10.0.0.1 --text-port 9000", "--text-port 9000: taken by --udp-port;"},
		{"-- --ip 10.0.0.1 --vlan 4095", "--vlan 4095: out of range; give 0 to 4094"},
		{"-- --ip 10.0.0.1 --udp-port 0", "--udp-port 0: out of range; give 1 to 65535"},
		{"-- --ip 10.0.0.1 --udp-port 65536", "--udp-port 65536: out of range"},
		{"-- --ip 10.0.0.1 --udp-port 9000x", "--udp-port 9000x: not a number; give"},
		{"-- --ip 10.0.0.1 --udp-port -1", "--udp-port -1: not a number; give"},
		{"-- --ip 10.0.0.1 --udp-port 1k", "--udp-port 1k: not a number; give"},
		{"-- --ip 10.0.0.1 --udp-port=", "--udp-port : not a number; give"},
		{"-- --ip 10.0.0.1 --ring-size 3M",
			"--ring-size 3M: not a power of two; give 2M or 4M"},
		{"-- --ip 10.0.0.1 --ring-size 1k",
			"--ring-size 1k: out of range; give 64k to 64G"},
		{"-- --ip 10.0.0.1 --ring-size 16Q", "--ring-size 16Q: not a number; give"},
		{"-- --ip 10.0.0.1 --ring-size 16MM", "--ring-size 16MM: not a number; give"},
		{"-- --ip 10.0.0.1 --ring-size 18446744073709551616", "out of range; give 64k"},
		{"-- --ip 10.0.0.1 --ring-size 17179869185G", "out of range; give 64k"},
		{"-- --ip 10.0.0.1 --drain 2s", "--drain 2s: not a number; give"},
		{"-- --ip 10.0.0.1 --socket-mode 0888", "--socket-mode 0888: not a number; give"},
		{"-- --ip 10.0.0.1 --socket-mode 1777", "--socket-mode 1777: out of range; give"},
		{"-- --ip 10.0.0.1 --mbufs 1000", "--mbufs 1000: too few for --rxd 1024"},
		{"-- --ip 10.0.0.1 --strict-utf8=1", "--strict-utf8=1: takes no value; write"},
		{"-- --ip 10.0.0.1 --vocab=", "--vocab: the value is empty; give NAME|PATH"},
		{"-- --ip", "--ip: its value is missing; write --ip ADDR"},
		{"-- --ip --rxd 64", "--ip: its value is missing; write --ip ADDR"},
		{"-- --ip 10.0.0.1 --vocabulary gpt2", "--vocabulary: no such application option;"},
		{"-- --ip 10.0.0.1 -l 1",
			"-l: not an application option; EAL options stand before --"},
		{"-- --ip 10.0.0.1 gpt2", "gpt2: not an application option;"},
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

static void
refuse_a_socket_path_no_socket_can_have(void **state)
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
static void
are_shown_as_they_would_be_typed(void **state)
{
	char line[] = "-- --ip 10.1.2.3 --ring-size 128k --mbuf-room 1601 --socket-mode 640";
	struct tokd_option_value value;
	struct parsed p;
	char shown[2048] = "";
	size_t i;

	parse(&p, line);
	assert_int_equal(p.result, TOKD_OPTIONS_RUN);
	for (i = 0; tokd_options_value(&p.opt, i, &value); i++)
		snprintf(shown + strlen(shown), sizeof(shown) - strlen(shown), " %s=%s", value.name,
			value.text);
	assert_int_equal(i, TOKD_N_OPTS);
	strcat(shown, " ");
	assert_non_null(strstr(shown, " ip=10.1.2.3 "));
	assert_non_null(strstr(shown, " ring-size=128k "));
	assert_non_null(strstr(shown, " mbuf-room=1601 "));
	assert_non_null(strstr(shown, " socket-mode=0640 "));
	assert_non_null(strstr(shown, " strict-utf8=no "));
	assert_non_null(strstr(shown, " max-text=16M "));
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(have_the_defaults_help_shows),
		cmocka_unit_test(take_sizes_in_every_unit_and_both_spellings),
		cmocka_unit_test(take_the_last_of_several),
		cmocka_unit_test(give_help_and_version_from_both_sides_whatever_else_is_wrong),
		cmocka_unit_test(complain_in_one_line),
		cmocka_unit_test(refuse_a_socket_path_no_socket_can_have),
		cmocka_unit_test(are_shown_as_they_would_be_typed),
	};

	return fixture_run(argc, argv, "options", tests);
}
