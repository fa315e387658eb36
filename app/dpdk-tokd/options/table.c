/* SPDX-License-Identifier: BSD-3-Clause */
#include <sys/un.h>

#include <tokd/wire.h>

#include "checks.h"
#include "options.h"
#include "../../vocab_words.h"

#define SOCKET_PATH_MAX (sizeof(((struct sockaddr_un *)0)->sun_path) - 1)

#ifdef RTE_ARCH_ARM64
#define TOKD_PIPELINE_HERE "dpu"
#else
#define TOKD_PIPELINE_HERE "cpu"
#endif

#define FIELD(f) OPT_FIELD(struct tokd_options, f)
static const struct opt_def defs[] = {
	{"config", "FILE", OPT_TEXT, FIELD(config), 0, 0, NULL,
		"read options from section [tokd] of this file; command line and environment "
		"override it",
		.flags = OPT_NOT_IN_FILE},
	{"ip", "ADDR", OPT_OTHER, FIELD(ip), 0, 0, NULL,
		"IPv4 address to serve on; default without --ip6: the addresses of the kernel "
		"interface, or an IPv6 link-local address made from the port's Ethernet address",
		.check = tokd_check_ip, .section = "Network"},
	{"ip6", "ADDR", OPT_OTHER, FIELD(ip6), 0, 0, NULL,
		"IPv6 address to serve on, with or without --ip", .check = tokd_check_ip6},
	{"mac", "ADDR", OPT_OTHER, FIELD(mac), 0, 0, NULL,
		"Ethernet address to serve on instead of the port's, for example to replay a "
		"capture",
		.check = tokd_check_mac},
	{"vlan", "ID", OPT_COUNT, FIELD(vlan), 0, 4094, "0",
		"802.1Q VLAN to serve; 0: untagged frames"},
	{"allow", "PREFIX[,...]", OPT_TEXT, FIELD(allow), 0, 0, NULL,
		"serve only these addresses, as in 10.1.0.0/16,2001:db8::/32; or a file with one "
		"address per line, given by a path that begins with / or .",
		.check = tokd_check_allow},
	{"fragments", "N", OPT_COUNT, FIELD(fragments), 0, 4096, "64",
		"datagrams reassembled from IP fragments at a time, with one worker only; 0: none"},
	{"udp-port", "PORT", OPT_COUNT, FIELD(udp_port), 1, 65535, "9000", "UDP port to serve on"},
	{"text-port", "PORT", OPT_COUNT, FIELD(text_port), 0, TOKD_CLIENT_PORTS - 1, "0",
		"UDP port for plain text: each datagram is answered by its ids in decimal; 0: none"},
	{"vocab", "VOCAB[,...]", OPT_TEXT, FIELD(vocab), 0, 0, "gpt2",
		"vocabularies: names in the search path ($TOK_VOCAB_PATH), or files; a client "
		"selects one by its checksum, the first is the default",
		.flags = OPT_RELOADS, .section = "Vocabulary"},
	{"pretokenizer", "NAME", OPT_TEXT, FIELD(pretokenizer), 0, 0, NULL,
		"pretokenizer of files that do not name one and are not recognised by content",
		.flags = OPT_RELOADS},
	{"strict-utf8", NULL, OPT_FLAG, FIELD(strict_utf8), 0, 0, "no",
		"refuse text that is not UTF-8 instead of replacing invalid bytes by U+FFFD",
		.flags = OPT_RELOADS},
	{"added-tokens", NULL, OPT_FLAG, FIELD(added_tokens), 0, 0, "no",
		"recognise the vocabulary's added tokens in texts, except special tokens",
		.flags = OPT_RELOADS},
	{"cache", "N", OPT_COUNT, FIELD(cache_entries), 0, 1 << 24, "0",
		"pretokens a worker caches; 0: the tokenizer's default", .flags = OPT_RELOADS},
	{"streams", "N", OPT_COUNT, FIELD(streams), 1, 1 << 20, "4096",
		"texts per worker, open and finished", .section = "Texts"},
	{"max-text", "BYTES", OPT_SIZE, FIELD(max_text), 1, OPT_G, "16M", "longest text accepted",
		.flags = OPT_RELOADS},
	{"stream-timeout", "MS", OPT_MS, FIELD(stream_timeout_ms), 10, 3600000, "10000",
		"an open text fails after this time without progress", .flags = OPT_RELOADS},
	{"done-timeout", "MS", OPT_MS, FIELD(done_timeout_ms), 10, 3600000, "10000",
		"how long a finished answer is kept for retransmission", .flags = OPT_RELOADS},
	{"done-names", "BYTES", OPT_SIZE, FIELD(names_bytes), OPT_K, OPT_G, "32M",
		"memory per worker for the names of finished texts, so that a late packet of such "
		"a text is refused and does not start it again"},
	{"ring-size", "BYTES", OPT_SIZE, FIELD(ring_bytes), 64 * OPT_K, 64 * OPT_G, "16M",
		"size of each worker's token ring, a power of two", .check = opt_check_power_of_2,
		.section = "Token ring and readers"},
	{"side-store", "BYTES", OPT_SIZE, FIELD(side_bytes), 0, OPT_G, "4M",
		"memory per worker for ids of slow clients when the token ring needs their space"},
	{"zero-copy", "N", OPT_COUNT, FIELD(zero_copy_ids), 0, TOKD_WIRE_PAYLOAD / sizeof(uint32_t),
		"64",
		"send replies with N ids or more from the token ring, without a copy, if the "
		"driver "
		"supports it; 0: never"},
	{"socket", "PATH", OPT_TEXT, FIELD(socket), 0, SOCKET_PATH_MAX, "/run/dpdk-tokd.sock",
		"control socket; anyone who can open it can read the ids of every client"},
	{"socket-mode", "OCTAL", OPT_OCTAL, FIELD(socket_mode), 0, 0777, "0600",
		"permission of the control socket"},
	{"socket-group", "GROUP", OPT_TEXT, FIELD(socket_group), 0, 0, NULL,
		"group of the control socket, name or number; use it with --socket-mode 0660",
		.check = tokd_check_group},
	{"reader-timeout", "MS", OPT_MS, FIELD(reader_timeout_ms), 1, 600000, "1000",
		"drop a reader that keeps the ring full for this time in total within 100 s; from "
		"100000 on, only a reader that does not move for this time"},
	{"wait-readers", "N", OPT_COUNT, FIELD(wait_readers), 0, 16, "0",
		"receive no packet before N readers have attached, for example to replay a capture"},
	{"block-keys", "off|llm-d|vllm-sha256-cbor|vllm-xxhash-cbor", OPT_CHOICE, FIELD(block_keys),
		0, 0, "off",
		"publish keys of blocks of ids beside the ids: hashes that routers of llm-d or vLLM "
		"use to find cached prefixes",
		.section = "Block keys"},
	{"block-size", "N", OPT_COUNT, FIELD(block_size), 1, TOKB_BLOCK_SIZE_MAX, "16",
		"ids of a block, as the engine has it"},
	{"block-seed", "TEXT", OPT_TEXT, FIELD(block_seed), 0, 0, NULL,
		"vLLM's PYTHONHASHSEED, or llm-d's hashSeed; vllm-xxhash-cbor needs one"},
	{"block-model", "NAME[,...]", OPT_TEXT, FIELD(block_model), 0, 0, NULL,
		"the model of each --vocab as llm-d's router knows it; not part of vLLM's keys",
		.flags = OPT_RELOADS},
	{"pipeline", "dpu|cpu|gpu", OPT_CHOICE, FIELD(pipeline), 0, 0, TOKD_PIPELINE_HERE,
		"where texts become ids; dpu, cpu: here, on the ARM cores of a DPU or on a host; "
		"gpu: in the GPU of --sink, if their clients want no ids",
		.section = "GPU"},
	{"sink", "gpu[=TARGET]", OPT_TEXT, FIELD(sink), 0, 0, NULL,
		"send ids to tokd-gpu, which embeds them; TARGET: shm[:PATH] (default), "
		"cuda[:PATH] or verbs:HOST[:PORT]"},
	{"sink-batch", "US", OPT_COUNT, FIELD(sink_batch_us), 0, 100000, "20",
		"microseconds that a short record waits to be sent together with others; 0: none"},
	{"sink-full", "wait|shed", OPT_CHOICE, FIELD(sink_full), 0, 0, "wait",
		"when the token ring is full because of --sink: wait: all texts wait for tokd-gpu; "
		"shed: texts get their ids, but tokd-gpu skips the embeddings of some"},
	{"rdma-device", "NAME", OPT_TEXT, FIELD(rdma_device), 0, 0, NULL,
		"RDMA device for --sink gpu=verbs; default: by the route to HOST", .letter = 'd'},
	{"rdma-port", "N", OPT_COUNT, FIELD(rdma_port), 0, 255, "0",
		"port of the RDMA device; 0: by the route to HOST", .letter = 'i'},
	{"rdma-gid", "INDEX", OPT_TEXT, FIELD(rdma_gid), 0, 0, NULL,
		"index of the RDMA port's GID, 0 to 255; default: by the route to HOST",
		.check = tokd_check_byte, .letter = 'x'},
	{"rdma-tclass", "N", OPT_COUNT, FIELD(rdma_tclass), 0, 255, "0",
		"traffic class of RDMA packets (RoCE v2: the IP header's, DSCP times 4), for "
		"networks with PFC or ECN. Give tokd-gpu the same"},
	{"rdma-sl", "N", OPT_COUNT, FIELD(rdma_sl), 0, 15, "0",
		"service level of RDMA packets (RoCE: the priority). Give tokd-gpu the same"},
	{"port", "ID", OPT_COUNT, FIELD(port), 0, 31, "0", "DPDK port to serve on",
		.section = "DPDK port"},
	{"rxd", "N", OPT_COUNT, FIELD(rx_desc), 32, 32768, "1024",
		"RX descriptors per queue; adjusted to the driver's limits"},
	{"txd", "N", OPT_COUNT, FIELD(tx_desc), 32, 32768, "1024",
		"TX descriptors per queue; adjusted to the driver's limits"},
	{"mbufs", "N", OPT_COUNT, FIELD(mbufs), 512, 1 << 22, "8192",
		"mbufs per worker: for RX and TX rings and early packets"},
	{"mbuf-room", "BYTES", OPT_SIZE, FIELD(mbuf_room), 1600, 60000, "2048",
		"bytes of a frame that fit one mbuf; longer frames need --mtu and a driver that "
		"supports "
		"several mbufs per frame, else they are lost"},
	{"mtu", "BYTES", OPT_SIZE, FIELD(mtu), 0, 16 * OPT_K, "0",
		"longest IP packet to receive, and to send; also sets the MTU of a kernel "
		"interface; 0: unchanged",
		.check = tokd_check_mtu},
	{"rx-checksum", "verify|trust", OPT_CHOICE, FIELD(rx_checksum), 0, 0, "verify",
		"UDP checksums of received packets; trust: do not verify, for a veth, tap or bridge "
		"on one machine, where senders leave checksums to a NIC"},
	{"drain", "MS", OPT_MS, FIELD(drain_ms), 0, 600000, "2000",
		"after the first SIGINT or SIGTERM: time for open texts to finish",
		.flags = OPT_RELOADS, .section = "Running"},
	{"sandbox", NULL, OPT_FLAG, FIELD(sandbox), 0, 0, "yes",
		"once started, keep only the capabilities and system calls that the driver needs"},
	{"wipe", NULL, OPT_FLAG, FIELD(wipe), 0, 0, "no",
		"zero texts and ids in memory within two seconds of their last use, and cache no "
		"pretokens: tokenizing is slower"},
	{"log-format", "text|json", OPT_CHOICE, FIELD(log_format), 0, 0, "text",
		"lines of the log: time, level and message, or a JSON object of these"},
	{"check-config", NULL, OPT_FLAG, FIELD(check_config), 0, 0, NULL,
		"check the options and load the vocabularies, without EAL; print the options as a "
		"configuration file; exit",
		.flags = OPT_ACTION},
};

/* The test suite's, tokd-gateway's, tokd-gpu's. */
static const char *const env_others[] = {"TOKD_BUILD=", "TOKD_API_KEYS=", "TOKD_GPU_", NULL};

static const struct opt_section sections[] = {
	{"EAL options",
		"Options of DPDK's EAL come before --, those of the application after it.\n"
		"dpdk-tokd -h lists the former. The most important:\n"
		"  -l CPUS               CPUs of the workers, as in 1-4\n"
		"  -a DEVICE             a PCI device\n"
		"  --vdev DRIVER,ARGS    a device that is not on PCI, as in "
		"net_af_xdp0,iface=eth1\n"
		"  --file-prefix NAME    needed to run several DPDK programs\n"
		"  --no-huge -m MB       run without huge pages\n"
		"  --log-level=tokd.*:debug\n"
		"                        log more",
		false},
	{"configuration",
		"Each option is also an environment variable (TOKD_RING_SIZE for --ring-size) and "
		"a\n"
		"key of the configuration file. The command line overrides the environment, the\n"
		"environment the file, the file the default. If an option is repeated, the last\n"
		"value counts.",
		true},
	{"configuration file",
		"The file of --config or TOKD_CONFIG has one section, and one line per key:\n"
		"  [tokd]\n"
		"  # a comment, up to the end of the line\n"
		"  ip = 192.0.2.1\n"
		"  ring-size = 64M\n"
		"  strict-utf8 = yes\n"
		"Write \\# for a # in a value. Unknown keys, repeated keys, unknown variables "
		"that\n"
		"begin with TOKD_ and invalid values are errors, also if they are overridden.\n"
		"--check-config prints the whole configuration as such a file.",
		false},
	{"environment",
		"  TOKD_OPTION     the option of that name\n"
		"  TOK_VOCAB_PATH  folders with vocabularies, separated by colons",
		false},
	{"signals",
		"The first SIGINT or SIGTERM drains: open texts may finish within --drain. The "
		"second\n"
		"stops at once.\n"
		"\n"
		"SIGHUP reloads the configuration file and the vocabularies. Texts in progress "
		"keep what\n"
		"they began with. Options that are not marked reloadable keep their values; the "
		"log names\n"
		"those that differ. After an error nothing has changed.",
		false},
	{"exit code",
		"  0  stopped by SIGINT or SIGTERM; --help, --version, --check-config without "
		"errors\n"
		"  1  failed at run time\n"
		"  2  invalid option (also of EAL), variable, configuration file or vocabulary",
		true},
	{"examples",
		"Four workers on a NIC:\n"
		"  dpdk-tokd -l 1-4 -a 0000:3b:00.0 -- --vocab gpt2\n"
		"Write a configuration file and run with it:\n"
		"  dpdk-tokd --check-config -- --vocab gpt2 > /etc/dpdk-tokd.conf\n"
		"  dpdk-tokd -l 1-4 -a 0000:3b:00.0 -- --config /etc/dpdk-tokd.conf",
		false},
	{"see also", "tok(1), tokd-client(1), tokd-tail(1), tokd-gpu(1), dpdk-telemetry.py(1)",
		false},
	{0},
};

const struct opt_program tokd_program = {
	.name = "dpdk-tokd",
	.version = TOKD_VERSION,
	.summary = "tokenizer appliance: text in by UDP, exact token ids out",
	.usage = "[EAL options] -- [options]",
	.about = "Receives texts as UDP packets on a DPDK port, and publishes their token ids in "
		 "UDP\n"
		 "replies and in a token ring in shared memory. Each lcore of the EAL option -l is "
		 "a\n"
		 "worker with its own queue and token ring.\n"
		 "\n"
		 "For example (dpdk-tokd -h lists the EAL options):\n"
		 "  dpdk-tokd -l 1-4 -a 0000:03:00.0 -- --vocab gpt2",
	.defs = defs,
	.n_defs = sizeof(defs) / sizeof(defs[0]),
	.env_prefix = "TOKD_",
	.env_others = env_others,
	.file_section = "tokd",
	.file_option = "config",
	.before_dashes =
		"-a -b -d -h -l -m -n --allow --block --file-prefix --huge-dir --huge-unlink "
		"--in-memory --iova-mode --lcores --log-level --main-lcore --no-huge --no-pci "
		"--no-telemetry --proc-type --single-file-segments --socket-limit --socket-mem "
		"--syslog --vdev",
	.words_arg = VOCAB_WORDS_ARG,
	.words_script = VOCAB_WORDS_SCRIPT,
	.sections = sections,
};
_Static_assert(sizeof(defs) / sizeof(defs[0]) <= OPT_MAX, "raise OPT_MAX");
