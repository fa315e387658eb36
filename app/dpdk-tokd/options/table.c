/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>

#include <tokd/wire.h>

#include "table.h"

#define FIELD(f) offsetof(struct tokd_options, f), sizeof(((struct tokd_options *)0)->f)
const struct tokd_opt_def tokd_opt_defs[] = {
	{"config", "FILE", OPT_TEXT, RULE_NOT_IN_FILE, FIELD(config), 0, 0, NULL,
		"read the options that are not given otherwise from section [tokd] of this file"},
	{"ip", "ADDR", OPT_IPV4, RULE_NONE, FIELD(ip), 0, 0, NULL,
		"IPv4 address to serve on; without --ip and --ip6 those of the kernel's interface, or an "
		"IPv6 link-local one made from the port's Ethernet address"},
	{"ip6", "ADDR", OPT_IPV6, RULE_NONE, FIELD(ip6), 0, 0, NULL,
		"IPv6 address to serve on, beside --ip or alone"},
	{"mac", "ADDR", OPT_MAC, RULE_NONE, FIELD(mac), 0, 0, NULL,
		"Ethernet address to serve on instead of the port's, as to replay a capture"},
	{"vlan", "ID", OPT_COUNT, RULE_NONE, FIELD(vlan), 0, 4094, "0",
		"802.1Q VLAN to serve; 0: frames without a tag"},
	{"fragments", "N", OPT_COUNT, RULE_NONE, FIELD(fragments), 0, 4096, "64",
		"datagrams put together from IP fragments at once, with one worker; 0: none"},
	{"udp-port", "PORT", OPT_COUNT, RULE_NONE, FIELD(udp_port), 1, 65535, "9000",
		"UDP port to serve on"},
	{"text-port", "PORT", OPT_COUNT, RULE_NONE, FIELD(text_port), 0,
		TOKD_CLIENT_PORTS - 1, "0",
		"UDP port where each datagram is a text, answered by ids in decimal; 0: none"},
	{"port", "ID", OPT_COUNT, RULE_NONE, FIELD(port), 0, 31, "0", "DPDK port to serve on"},
	{"vocab", "NAME|PATH[,...]", OPT_TEXT, RULE_NONE, FIELD(vocab), 0, 0, "gpt2",
		"vocabularies: names in the search path ($TOK_VOCAB_PATH), or files; a client asks for "
		"one by its checksum, the first is for those that do not"},
	{"pretokenizer", "NAME", OPT_TEXT, RULE_NONE, FIELD(pretokenizer), 0, 0, NULL,
		"pretokenizer of files that do not say it and are not known by their content"},
	{"strict-utf8", NULL, OPT_FLAG, RULE_NONE, FIELD(strict_utf8), 0, 0, "no",
		"refuse text that is not UTF-8 instead of replacing what is wrong by U+FFFD"},
	{"added-tokens", NULL, OPT_FLAG, RULE_NONE, FIELD(added_tokens), 0, 0, "no",
		"recognise in text the vocabulary's added tokens that are not special; special ones are "
		"always text, so that no client can send them"},
	{"streams", "N", OPT_COUNT, RULE_NONE, FIELD(streams), 1, 1 << 20, "4096",
		"texts a worker holds at once, open and finished"},
	{"max-text", "BYTES", OPT_SIZE, RULE_NONE, FIELD(max_text), 1, OPT_G, "16M",
		"longest text accepted"},
	{"stream-timeout", "MS", OPT_MS, RULE_NONE, FIELD(stream_timeout_ms), 10, 3600000, "10000",
		"an open text that makes no progress for so long has failed"},
	{"done-timeout", "MS", OPT_MS, RULE_NONE, FIELD(done_timeout_ms), 10, 3600000, "10000",
		"the answer to a finished text is kept so long for being asked again"},
	{"cache", "N", OPT_COUNT, RULE_NONE, FIELD(cache_entries), 0, 1 << 24, "0",
		"pretokens a worker remembers; 0: the tokenizer's own choice"},
	{"ring-size", "BYTES", OPT_SIZE, RULE_POWER_OF_2, FIELD(ring_bytes), 64 * OPT_K, 64 * OPT_G,
		"16M", "records held by one worker's token ring, a power of two"},
	{"side-store", "BYTES", OPT_SIZE, RULE_NONE, FIELD(side_bytes), 0, OPT_G, "4M",
		"ids kept by a worker for slow clients when the token ring needs their space"},
	{"zero-copy", "N", OPT_COUNT, RULE_NONE, FIELD(zero_copy_ids), 0,
		TOKD_WIRE_PAYLOAD / sizeof(uint32_t), "64",
		"send the ids of replies with N or more from the token ring itself, without a copy, where "
		"the driver can; 0: never"},
	{"socket", "PATH", OPT_TEXT, RULE_SOCKET_PATH, FIELD(socket), 0, 0, "/run/dpdk-tokd.sock",
		"control socket; whoever may attach there sees the ids of every client"},
	{"socket-mode", "OCTAL", OPT_OCTAL, RULE_NONE, FIELD(socket_mode), 0, 0777, "0600",
		"permission of the control socket"},
	{"wait-readers", "N", OPT_COUNT, RULE_NONE, FIELD(wait_readers), 0, 16, "0",
		"take no packet before N readers have attached, as to replay a capture"},
	{"socket-group", "GROUP", OPT_TEXT, RULE_GROUP, FIELD(socket_group), 0, 0, NULL,
		"group of the control socket, name or number; give it access by --socket-mode 0660"},
	{"reader-timeout", "MS", OPT_MS, RULE_NONE, FIELD(reader_timeout_ms), 1, 600000, "1000",
		"a reader that holds a full ring for so long is dropped"},
	{"sink", "gpu[=TARGET]", OPT_TEXT, RULE_NONE, FIELD(sink), 0, 0, NULL,
		"hand ids to tokd-gpu, which embeds them; TARGET: shm[:PATH], cuda[:PATH] or "
		"verbs:HOST[:PORT]; without it shm"},
	{"sink-batch", "US", OPT_COUNT, RULE_NONE, FIELD(sink_batch_us), 0, 100000, "20",
		"microseconds that a short record waits for others to travel with; 0: none"},
	{"rdma-device", "NAME", OPT_TEXT, RULE_NONE, FIELD(rdma_device), 0, 0, NULL,
		"RDMA device for --sink gpu=verbs: instead of the one that the route to HOST takes"},
	{"rdma-port", "N", OPT_COUNT, RULE_NONE, FIELD(rdma_port), 0, 255, "0",
		"port of the RDMA device; 0: the one that the route to HOST takes"},
	{"rdma-gid", "INDEX", OPT_TEXT, RULE_BYTE, FIELD(rdma_gid), 0, 0, NULL,
		"index of the RDMA port's GID, 0 to 255, instead of the one that fits the route"},
	{"rxd", "N", OPT_COUNT, RULE_NONE, FIELD(rx_desc), 32, 32768, "1024",
		"RX descriptors per queue; adjusted to what the driver can do"},
	{"txd", "N", OPT_COUNT, RULE_NONE, FIELD(tx_desc), 32, 32768, "1024",
		"TX descriptors per queue; adjusted to what the driver can do"},
	{"mbufs", "N", OPT_COUNT, RULE_NONE, FIELD(mbufs), 512, 1 << 22, "8192",
		"mbufs per worker: for both rings, and to hold packets that come early"},
	{"mbuf-room", "BYTES", OPT_SIZE, RULE_NONE, FIELD(mbuf_room), 1600, 60000, "2048",
		"bytes of a frame that fit one mbuf; a longer frame takes several where the driver can, "
		"with --mtu, and is lost otherwise"},
	{"mtu", "BYTES", OPT_SIZE, RULE_REPLY_FITS, FIELD(mtu), 0, 16 * OPT_K, "0",
		"longest IP packet that the port receives: the driver is told, and sets the MTU of a "
		"kernel interface below; 0: as it is"},
	{"drain", "MS", OPT_MS, RULE_NONE, FIELD(drain_ms), 0, 600000, "2000",
		"after the first SIGINT or SIGTERM open texts may finish for so long"},
};
static_assert(sizeof(tokd_opt_defs) / sizeof(tokd_opt_defs[0]) == TOKD_N_OPTS, "count them");

const struct tokd_opt_short tokd_opt_shorts[] = {
	{'d', "rdma-device"},
	{'i', "rdma-port"},
	{'x', "rdma-gid"},
};
static_assert(sizeof(tokd_opt_shorts) / sizeof(tokd_opt_shorts[0]) == TOKD_N_SHORTS, "count");

const struct tokd_opt_action tokd_opt_actions[] = {
	{"check-config", TOKD_OPTIONS_CHECK,
		"check the application options and load the vocabulary, without EAL; print the "
		"options as a configuration file; exit"},
	{"help", TOKD_OPTIONS_HELP, "this text; exit"},
	{"version", TOKD_OPTIONS_VERSION, "the version, and what was built in; exit"},
};
static_assert(sizeof(tokd_opt_actions) / sizeof(tokd_opt_actions[0]) == TOKD_N_ACTIONS, "count");
