/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>

#include <tokd/wire.h>

#include "table.h"

#define FIELD(f) offsetof(struct tokd_options, f), sizeof(((struct tokd_options *)0)->f)
const struct tokd_opt_def tokd_opt_defs[] = {
	{"config", "FILE", OPT_TEXT, RULE_NOT_IN_FILE, FIELD(config), 0, 0, NULL,
		"read options from section [tokd] of this file; command line and environment override it"},
	{"ip", "ADDR", OPT_IPV4, RULE_NONE, FIELD(ip), 0, 0, NULL,
		"IPv4 address to serve on; without --ip and --ip6 those of the kernel's interface, or an "
		"IPv6 link-local one made from the port's Ethernet address"},
	{"ip6", "ADDR", OPT_IPV6, RULE_NONE, FIELD(ip6), 0, 0, NULL,
		"IPv6 address to serve on, beside --ip or alone"},
	{"mac", "ADDR", OPT_MAC, RULE_NONE, FIELD(mac), 0, 0, NULL,
		"Ethernet address to serve on instead of the port's, for example to replay a capture"},
	{"vlan", "ID", OPT_COUNT, RULE_NONE, FIELD(vlan), 0, 4094, "0",
		"802.1Q VLAN to serve; 0: frames without a tag"},
	{"fragments", "N", OPT_COUNT, RULE_NONE, FIELD(fragments), 0, 4096, "64",
		"datagrams reassembled from IP fragments at once, with one worker; 0: none"},
	{"udp-port", "PORT", OPT_COUNT, RULE_NONE, FIELD(udp_port), 1, 65535, "9000",
		"UDP port to serve on"},
	{"text-port", "PORT", OPT_COUNT, RULE_NONE, FIELD(text_port), 0,
		TOKD_CLIENT_PORTS - 1, "0",
		"UDP port where each datagram is a text, answered by ids in decimal; 0: none"},
	{"port", "ID", OPT_COUNT, RULE_NONE, FIELD(port), 0, 31, "0", "DPDK port to serve on"},
	{"vocab", "NAME|PATH[,...]", OPT_TEXT, RULE_NONE, FIELD(vocab), 0, 0, "gpt2",
		"vocabularies: names in the search path ($TOK_VOCAB_PATH), or files; a client selects "
		"one by its checksum, the first is the default"},
	{"pretokenizer", "NAME", OPT_TEXT, RULE_NONE, FIELD(pretokenizer), 0, 0, NULL,
		"pretokenizer of files that do not name one and are not known by their content"},
	{"strict-utf8", NULL, OPT_FLAG, RULE_NONE, FIELD(strict_utf8), 0, 0, "no",
		"refuse text that is not UTF-8 instead of replacing invalid bytes by U+FFFD"},
	{"added-tokens", NULL, OPT_FLAG, RULE_NONE, FIELD(added_tokens), 0, 0, "no",
		"recognise the vocabulary's added tokens in texts, except special ones, which no client "
		"can send"},
	{"streams", "N", OPT_COUNT, RULE_NONE, FIELD(streams), 1, 1 << 20, "4096",
		"texts a worker holds at once, open and finished"},
	{"max-text", "BYTES", OPT_SIZE, RULE_NONE, FIELD(max_text), 1, OPT_G, "16M",
		"longest text accepted"},
	{"stream-timeout", "MS", OPT_MS, RULE_NONE, FIELD(stream_timeout_ms), 10, 3600000, "10000",
		"an open text fails after this time without progress"},
	{"done-timeout", "MS", OPT_MS, RULE_NONE, FIELD(done_timeout_ms), 10, 3600000, "10000",
		"how long a finished answer is kept for retransmission"},
	{"cache", "N", OPT_COUNT, RULE_NONE, FIELD(cache_entries), 0, 1 << 24, "0",
		"pretokens a worker caches; 0: the tokenizer's default"},
	{"ring-size", "BYTES", OPT_SIZE, RULE_POWER_OF_2, FIELD(ring_bytes), 64 * OPT_K, 64 * OPT_G,
		"16M", "size of each worker's token ring, a power of two"},
	{"side-store", "BYTES", OPT_SIZE, RULE_NONE, FIELD(side_bytes), 0, OPT_G, "4M",
		"room in each worker for ids of slow clients when the token ring needs their space"},
	{"zero-copy", "N", OPT_COUNT, RULE_NONE, FIELD(zero_copy_ids), 0,
		TOKD_WIRE_PAYLOAD / sizeof(uint32_t), "64",
		"replies with N ids or more are sent from the token ring, without a copy, if the driver "
		"can; 0: never"},
	{"socket", "PATH", OPT_TEXT, RULE_SOCKET_PATH, FIELD(socket), 0, 0, "/run/dpdk-tokd.sock",
		"control socket; anyone who can open it can read the ids of every client"},
	{"socket-mode", "OCTAL", OPT_OCTAL, RULE_NONE, FIELD(socket_mode), 0, 0777, "0600",
		"permission of the control socket"},
	{"wait-readers", "N", OPT_COUNT, RULE_NONE, FIELD(wait_readers), 0, 16, "0",
		"receive no packet before N readers have attached, for example to replay a capture"},
	{"socket-group", "GROUP", OPT_TEXT, RULE_GROUP, FIELD(socket_group), 0, 0, NULL,
		"group of the control socket, name or number; use it with --socket-mode 0660"},
	{"reader-timeout", "MS", OPT_MS, RULE_NONE, FIELD(reader_timeout_ms), 1, 600000, "1000",
		"a reader that keeps the ring full for this time is dropped"},
	{"sink", "gpu[=TARGET]", OPT_TEXT, RULE_NONE, FIELD(sink), 0, 0, NULL,
		"send ids to tokd-gpu, which embeds them; TARGET: shm[:PATH] (default), cuda[:PATH] or "
		"verbs:HOST[:PORT]"},
	{"sink-batch", "US", OPT_COUNT, RULE_NONE, FIELD(sink_batch_us), 0, 100000, "20",
		"how long a short record waits for others to share its slot; 0: not at all"},
	{"rdma-device", "NAME", OPT_TEXT, RULE_NONE, FIELD(rdma_device), 0, 0, NULL,
		"RDMA device for --sink gpu=verbs; default: by the route to HOST"},
	{"rdma-port", "N", OPT_COUNT, RULE_NONE, FIELD(rdma_port), 0, 255, "0",
		"port of the RDMA device; 0: by the route to HOST"},
	{"rdma-gid", "INDEX", OPT_TEXT, RULE_BYTE, FIELD(rdma_gid), 0, 0, NULL,
		"index of the RDMA port's GID, 0 to 255; default: by the route to HOST"},
	{"rxd", "N", OPT_COUNT, RULE_NONE, FIELD(rx_desc), 32, 32768, "1024",
		"RX descriptors per queue; adjusted to what the driver can do"},
	{"txd", "N", OPT_COUNT, RULE_NONE, FIELD(tx_desc), 32, 32768, "1024",
		"TX descriptors per queue; adjusted to what the driver can do"},
	{"mbufs", "N", OPT_COUNT, RULE_NONE, FIELD(mbufs), 512, 1 << 22, "8192",
		"mbufs per worker: for RX and TX rings, and for packets that come early"},
	{"mbuf-room", "BYTES", OPT_SIZE, RULE_NONE, FIELD(mbuf_room), 1600, 60000, "2048",
		"bytes of a frame that fit one mbuf; longer frames take several if the driver can, with "
		"--mtu, and are lost otherwise"},
	{"mtu", "BYTES", OPT_SIZE, RULE_REPLY_FITS, FIELD(mtu), 0, 16 * OPT_K, "0",
		"longest IP packet the port receives; also sets the MTU of a kernel interface below; 0: "
		"unchanged"},
	{"drain", "MS", OPT_MS, RULE_NONE, FIELD(drain_ms), 0, 600000, "2000",
		"how long open texts may finish after the first SIGINT or SIGTERM"},
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
