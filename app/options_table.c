/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>

#include "options_table.h"

#define FIELD(f) offsetof(struct tokd_options, f), sizeof(((struct tokd_options *)0)->f)
const struct tokd_opt_def tokd_opt_defs[] = {
	{"ip", "ADDR", OPT_IPV4, RULE_REQUIRED, FIELD(ip), 0, 0, NULL,
		"IPv4 address to serve on: ARP, ping and UDP are answered for it"},
	{"udp-port", "PORT", OPT_COUNT, RULE_NONE, FIELD(udp_port), 1, 65535, "9000",
		"UDP port to serve on"},
	{"port", "ID", OPT_COUNT, RULE_NONE, FIELD(port), 0, 31, "0", "DPDK port to serve on"},
	{"vocab", "NAME|PATH", OPT_TEXT, RULE_NONE, FIELD(vocab), 0, 0, "gpt2",
		"vocabulary: a name in the search path ($TOK_VOCAB_PATH), or a file"},
	{"pretokenizer", "NAME", OPT_TEXT, RULE_NONE, FIELD(pretokenizer), 0, 0, NULL,
		"pretokenizer of a .tiktoken file that is not known by its checksum"},
	{"strict-utf8", NULL, OPT_FLAG, RULE_NONE, FIELD(strict_utf8), 0, 0, NULL,
		"refuse text that is not UTF-8 instead of replacing what is wrong by U+FFFD"},
	{"streams", "N", OPT_COUNT, RULE_NONE, FIELD(streams), 1, 1 << 20, "4096",
		"texts a worker holds at once, open and finished"},
	{"max-text", "BYTES", OPT_SIZE, RULE_NONE, FIELD(max_text), 1, OPT_G, "16M",
		"longest text accepted"},
	{"stream-timeout", "MS", OPT_MS, RULE_NONE, FIELD(stream_timeout_ms), 10, 3600000, "10000",
		"an open text that is silent for so long has failed"},
	{"done-timeout", "MS", OPT_MS, RULE_NONE, FIELD(done_timeout_ms), 10, 3600000, "10000",
		"the answer to a finished text is kept so long for being asked again"},
	{"cache", "N", OPT_COUNT, RULE_NONE, FIELD(cache_entries), 0, 1 << 24, "0",
		"pretokens a worker remembers; 0: the tokenizer's own choice"},
	{"ring-size", "BYTES", OPT_SIZE, RULE_POWER_OF_2, FIELD(ring_bytes), 64 * OPT_K, 64 * OPT_G,
		"16M", "records held by one worker's token ring, a power of two"},
	{"socket", "PATH", OPT_TEXT, RULE_SOCKET_PATH, FIELD(socket), 0, 0, "/run/dpdk-tokd.sock",
		"control socket; whoever may attach there sees the ids of every client"},
	{"socket-mode", "OCTAL", OPT_OCTAL, RULE_NONE, FIELD(socket_mode), 0, 0777, "0600",
		"permission of the control socket"},
	{"reader-timeout", "MS", OPT_MS, RULE_NONE, FIELD(reader_timeout_ms), 1, 600000, "1000",
		"a reader that holds a full ring for so long is dropped"},
	{"rxd", "N", OPT_COUNT, RULE_NONE, FIELD(rx_desc), 32, 32768, "1024",
		"RX descriptors per queue; adjusted to what the driver can do"},
	{"txd", "N", OPT_COUNT, RULE_NONE, FIELD(tx_desc), 32, 32768, "1024",
		"TX descriptors per queue; adjusted to what the driver can do"},
	{"mbufs", "N", OPT_COUNT, RULE_NONE, FIELD(mbufs), 512, 1 << 22, "8192",
		"mbufs per worker: for both rings, and to hold packets that come early"},
	{"mbuf-room", "BYTES", OPT_SIZE, RULE_NONE, FIELD(mbuf_room), 1600, 60000, "2048",
		"largest frame one mbuf takes; raise it for jumbo frames"},
	{"drain", "MS", OPT_MS, RULE_NONE, FIELD(drain_ms), 0, 600000, "2000",
		"after the first SIGINT or SIGTERM open texts may finish for so long"},
};
static_assert(sizeof(tokd_opt_defs) / sizeof(tokd_opt_defs[0]) == TOKD_N_OPTS, "count them");
