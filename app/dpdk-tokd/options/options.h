/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Application options: from the command line, environment, configuration file or default, in this
 * order of precedence, parsed by one table (table.c).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <netinet/in.h>

#include <rte_ether.h>

#include <opt.h>
#include <tok.h>
#include <tokd/block_keys.h>
#include <handshake/peer.h>

/* Limits that other files rely on. */
#define TOKD_VOCABS_MAX 8    /* vocabularies of --vocab */
#define TOKD_SIDE_BLOCK 512u /* bytes; the smallest --side-store except 0 */
#define TOKD_MTU_LEAST 576u  /* of the port: every host takes as much (RFC 791 3.2) */
#define TOKD_BURST 32	     /* frames received at once */
#define TOKD_TX_MAX 128	     /* packets in a TX batch */

/*
 * Clients of the plain-text port use ports from this one on, the port itself is below: an answer is
 * not taken for a text, so two appliances, or an appliance and an echo service, cannot loop.
 */
#define TOKD_CLIENT_PORTS 10000

/* --pipeline, --sink-full, --rx-checksum and --log-format, in the order of their words. */
enum tokd_pipeline { TOKD_PIPELINE_DPU, TOKD_PIPELINE_CPU, TOKD_PIPELINE_GPU };
enum tokd_sink_full { TOKD_SINK_WAIT, TOKD_SINK_SHED };
enum tokd_rx_checksum { TOKD_RX_VERIFY, TOKD_RX_TRUST };
enum tokd_log_format { TOKD_LOG_TEXT, TOKD_LOG_JSON };

struct tokd_options {
	const char *config;	    /* --config: the configuration file, or NULL */
	const char *vocab;	    /* --vocab: names or paths, separated by commas */
	const char *pretokenizer;   /* --pretokenizer: for .tiktoken files not known by content */
	uint32_t ip;		    /* --ip: network byte order; 0: none */
	struct in6_addr ip6;	    /* --ip6: ::, none */
	struct rte_ether_addr mac;  /* --mac: zero: the port's */
	uint16_t vlan;		    /* --vlan: 802.1Q VLAN; 0: untagged */
	const char *allow;	    /* --allow: prefixes and files of them; NULL: everybody */
	uint32_t fragments;	    /* --fragments: datagrams in reassembly; 0: none */
	uint16_t udp_port;	    /* --udp-port */
	uint16_t text_port;	    /* --text-port: plain text; 0: none */
	uint16_t port;		    /* --port: DPDK port id */
	uint32_t streams;	    /* --streams: streams per worker, open and finished */
	uint32_t max_text;	    /* --max-text: bytes of one text */
	uint32_t stream_timeout_ms; /* --stream-timeout: of an open stream without progress */
	uint32_t done_timeout_ms;   /* --done-timeout: of a finished stream's answer */
	uint64_t names_bytes;	    /* --done-names: of one worker */
	uint64_t ring_bytes;	    /* --ring-size: of one token ring, a power of two */
	uint64_t side_bytes;	    /* --side-store: of one worker, 0: none */
	uint32_t zero_copy_ids;	    /* --zero-copy: least ids of a zero-copy reply; 0: never */
	uint32_t wait_readers;	    /* --wait-readers: before the first packet is received */
	uint32_t reader_timeout_ms; /* --reader-timeout: of a reader that keeps a ring full */
	const char *socket;	    /* --socket: path of the control socket readers attach to */
	uint32_t socket_mode;	    /* --socket-mode: octal permission of that socket */
	const char *socket_group;   /* --socket-group: its group, name or number; NULL: ours */
	gid_t socket_gid;	    /* from it; (gid_t)-1: ours */
	uint32_t block_keys;	    /* --block-keys: 0: off; else 1 + enum tokb_scheme */
	uint32_t block_size;	    /* --block-size: ids of a block */
	const char *block_seed;	    /* --block-seed: NULL: the scheme's */
	const char *block_model;    /* --block-model: names, separated by commas; NULL: no name */
	uint32_t pipeline;	    /* --pipeline: enum tokd_pipeline */
	const char *sink;	    /* --sink: gpu[=TARGET]; NULL: none */
	uint32_t sink_batch_us;	    /* --sink-batch */
	uint32_t sink_full;	    /* --sink-full: enum tokd_sink_full */
	const char *rdma_device;    /* --rdma-device: NULL: chosen by the route */
	uint32_t rdma_port;	    /* --rdma-port: of that device; 0: chosen */
	const char *rdma_gid;	    /* --rdma-gid: index, in decimal; NULL: chosen */
	uint32_t rdma_tclass;	    /* --rdma-tclass */
	uint32_t rdma_sl;	    /* --rdma-sl */
	struct tokg_target sink_target; /* from these */
	uint32_t rx_desc, tx_desc;	/* --rxd, --txd */
	uint32_t mbufs;			/* --mbufs: per worker */
	uint32_t mbuf_room;		/* --mbuf-room: bytes of a frame that fit one mbuf */
	uint32_t rx_checksum;		/* --rx-checksum: enum tokd_rx_checksum */
	uint32_t mtu;			/* --mtu: bytes of an IP packet; 0: the driver's */
	uint32_t cache_entries;		/* --cache: pretokens per worker; 0: the default */
	bool strict_utf8;		/* --strict-utf8 */
	bool added_tokens;   /* --added-tokens: recognise added tokens that are not special */
	uint32_t drain_ms;   /* --drain: time for open streams after SIGTERM */
	uint32_t log_format; /* --log-format: enum tokd_log_format */

	bool sandbox; /* --sandbox: drop what only set-up needed */
	bool wipe;    /* --wipe: zero texts and ids when they are no longer needed */

	bool check_config;	/* --check-config */
	struct opt_given given; /* the source of each value */
};

/* enum tok_flags for text from the network: special tokens are never recognised in it. */
static inline uint32_t
tokd_tok_flags(const struct tokd_options *opt)
{
	return (opt->strict_utf8 ? TOK_STRICT_UTF8 : 0u) |
	       (opt->added_tokens ? 0u : TOK_ADDED_AS_TEXT);
}

/* Of the keys of texts with vocabulary `vocab`, by its place in --vocab. */
struct tokb_options tokd_block_options(const struct tokd_options *opt, uint32_t vocab);

enum tokd_options_result {
	TOKD_OPTIONS_RUN,
	TOKD_OPTIONS_HELP,     /* print it and exit 0 */
	TOKD_OPTIONS_VERSION,  /* the same */
	TOKD_OPTIONS_EAL_HELP, /* -h before --: EAL's list */
	TOKD_OPTIONS_CHECK,    /* --check-config: valid so far; print it, do not run */
	TOKD_OPTIONS_BAD,      /* error has the text; exit 2 */
};

/*
 * The mbufs of a worker that early packets may not take: for queues of `rx` and `tx` descriptors, a
 * burst, a TX batch and fragments, of packets of up to `mtu` bytes.
 */
uint32_t tokd_mbufs_taken(const struct tokd_options *opt, uint32_t rx, uint32_t tx, uint32_t mtu);
/* Does --mbufs leave enough for early packets? */
bool tokd_mbufs_check(const struct tokd_options *opt, uint32_t rx, uint32_t tx, uint32_t mtu,
	struct opt_error *error);

/* What depends on several options, and is made of them. tokd_options_parse() does it, too. */
bool tokd_options_check(struct tokd_options *opt, struct opt_error *error);

/* The table, for opt_help and opt_value. */
extern const struct opt_program tokd_program;

/*
 * Parse `dpdk-tokd [EAL options] -- [application options]`, the TOKD_ variables of `environment`
 * (NULL-terminated, as environ), and the file of --config or TOKD_CONFIG. *eal_argc: the arguments
 * from argv[0] on that are EAL's. Strings in *opt point into argv, environment or the file, which
 * opt_free(&opt->given) frees; call it in any case. Needs neither EAL nor privileges.
 */
enum tokd_options_result tokd_options_parse(int argc, char **argv, char *const *environment,
	int *eal_argc, struct tokd_options *opt, struct opt_error *error);
