/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The counters of a worker: enum, name in telemetry and summary, help text. Only the worker writes
 * them; any thread may read them.
 */
#pragma once

#include <stdint.h>

/* X(symbol, "name", "help") */
#define TOKD_COUNTERS(X)                                                                           \
	X(RX_PACKETS, "rx_packets", "packets taken from the queue")                                \
	X(RX_BYTES, "rx_bytes", "bytes of those packets")                                          \
	X(TX_PACKETS, "tx_packets", "packets handed to the driver")                                \
	X(TX_BYTES, "tx_bytes", "bytes of those packets")                                          \
	X(TX_FULL, "tx_full", "packets that the driver did not accept; the client asks again")     \
	X(TX_NO_MBUF, "tx_no_mbuf", "replies not sent: no free mbuf")                              \
	X(ARP_REPLIES, "arp_replies", "ARP requests answered")                                     \
	X(ND_REPLIES, "nd_replies", "IPv6 neighbour solicitations answered")                       \
	X(ICMP_REPLIES, "icmp_replies", "ICMP and ICMPv6 echo requests answered")                  \
	X(RX_FRAGMENTS, "rx_fragments", "IP fragments received")                                   \
	X(RX_REASSEMBLED, "rx_reassembled", "packets reassembled from fragments")                  \
	X(STREAMS_OPENED, "streams_opened", "texts begun")                                         \
	X(STREAMS_DONE, "streams_done", "texts completed")                                         \
	X(STREAMS_FAILED, "streams_failed", "texts that failed")                                   \
	X(NAMES_FORGOTTEN, "names_forgotten",                                                      \
		"texts forgotten within twice --stream-timeout of their end: raise --done-names")  \
	X(STREAMS_EVICTED, "streams_evicted",                                                      \
		"open texts that failed because another source needed their place")                \
	X(STREAMS_GENERATED, "streams_generated",                                                  \
		"prompts completed: texts that the GPU continues")                                 \
	X(TOKENS_MADE, "tokens_made", "token ids that the GPU made, published")                    \
	X(GENERATE_CANCELLED, "generate_cancelled",                                                \
		"answers ended early: as the client asked, or because their text failed")          \
	X(TEXT_PORT, "text_port", "texts received at the plain-text port")                         \
	X(TEXT_BYTES, "text_bytes", "bytes of text fed to the tokenizer")                          \
	X(IDS, "ids", "token ids published")                                                       \
	X(DECODED_IDS, "decoded_ids", "token ids decoded to text")                                 \
	X(DECODED_BYTES, "decoded_bytes", "bytes of that text published")                          \
	X(RECORDS, "records", "token ring records published")                                      \
	X(BLOCK_KEYS, "block_keys", "keys of blocks published, with --block-keys")                 \
	X(REPLY_COPIED, "reply_copied_bytes", "bytes of ids copied into reply packets")            \
	X(REPLY_IN_PLACE, "reply_zero_copy_bytes",                                                 \
		"bytes of ids sent from the token ring without a copy")                            \
	X(SIDE_COPIED, "side_copied_bytes", "bytes of ids copied into the side store")             \
	X(SIDE_FULL, "side_full", "records lost to slow clients: the side store was full")         \
	X(REPLY_AGAIN, "reply_again", "reply packets sent again on request")                       \
	X(REPLY_LIMITED, "reply_limited",                                                          \
		"replies withheld: above three times what a client without a cookie sent")         \
	X(COOKIE_RIGHT, "cookie_right", "cookies checked: clients validated")                      \
	X(COOKIE_WRONG, "cookie_wrong", "cookies checked: too old, or another client's")           \
	X(RX_DUPLICATE, "rx_duplicate", "duplicate data packets")                                  \
	X(RX_REORDERED, "rx_reordered", "early data packets held until their turn")                \
	X(FEED_DEFERRED, "feed_deferred",                                                          \
		"texts with a packet that waited for a later turn of the loop")                    \
	X(PROGRESS_SLOW, "progress_slow", "packets of texts too slow to renew their time limit")   \
	X(RING_UNREAD, "ring_unread", "records published while no reader was registered")          \
	X(SINK_SLOTS, "sink_slots", "GPU sink: slots posted, including repeats")                   \
	X(SINK_BATCHES, "sink_batches", "GPU sink: slots with several records")                    \
	X(SINK_RECORDS, "sink_records", "GPU sink: token ring records posted")                     \
	X(SINK_TOKENS, "sink_tokens", "GPU sink: token ids posted")                                \
	X(SINK_BYTES, "sink_bytes", "GPU sink: bytes of payload posted")                           \
	X(SINK_DONE, "sink_done", "GPU sink: slots read as done")                                  \
	X(SINK_AGAIN, "sink_again",                                                                \
		"GPU sink: slots posted again: wrong check word, or connection lost")              \
	X(SINK_BADSUM, "sink_badsum", "GPU sink: slots whose check word was wrong")                \
	X(SINK_FAILED, "sink_failed", "GPU sink: texts that could not be embedded")                \
	X(SINK_NO_SLOT, "sink_no_slot", "GPU sink: turns in which a record waited for a slot")     \
	X(SINK_NO_OUTPUT, "sink_no_output",                                                        \
		"GPU sink: turns in which a record waited for outputs to be released")             \
	X(SINK_READS, "sink_reads", "GPU sink: reads of done words")                               \
	X(SINK_RECONNECTS, "sink_reconnects", "GPU sink: reconnections")                           \
	X(SINK_SHED, "sink_shed",                                                                  \
		"GPU sink: token ring records passed over, with --sink-full=shed")                 \
	X(SINK_TEXTS, "sink_texts", "GPU sink: texts posted as bytes, with --pipeline gpu")        \
	X(SINK_TEXT_BYTES, "sink_text_bytes", "GPU sink: bytes of these texts")                    \
	X(SINK_TEXTS_CPU, "sink_texts_cpu",                                                        \
		"GPU sink: of these, texts that the GPU gave back to be tokenized here")           \
	X(PIPELINE_HERE, "pipeline_here",                                                          \
		"texts tokenized here, with --pipeline gpu: too long, too many, or no agent")      \
	X(CYCLES_BUSY, "cycles_busy", "TSC cycles of turns that did work")                         \
	X(CYCLES_BACKPRESSURED, "cycles_backpressured",                                            \
		"TSC cycles of turns in which the ring was full")                                  \
	X(CYCLES_IDLE, "cycles_idle", "TSC cycles of turns that found nothing to do")              \
	X(DROP_SEGMENTS, "drop_segments", "drop: headers spread over several mbuf segments")       \
	X(DROP_ETHER, "drop_ether",                                                                \
		"drop: frame too short, for another address, or of an unsupported EtherType")      \
	X(DROP_VLAN, "drop_vlan", "drop: frame of another VLAN, or with a malformed tag")          \
	X(LEFT_TO_KERNEL, "left_to_kernel",                                                        \
		"ARP, ND and ICMP left to the kernel, whose addresses are served")                 \
	X(DROP_ARP, "drop_arp", "drop: malformed ARP, or not for our address")                     \
	X(DROP_IP_HEADER, "drop_ip_header", "drop: IP header malformed or truncated")              \
	X(DROP_IP_CKSUM, "drop_ip_cksum", "drop: IPv4 header checksum wrong")                      \
	X(DROP_SOURCE, "drop_source", "drop: its source is not in --allow")                        \
	X(DROP_IP_FRAGMENT, "drop_ip_fragment",                                                    \
		"drop: IP fragment, or part of an incomplete packet")                              \
	X(DROP_IP_DST, "drop_ip_dst", "drop: IP packet for another address")                       \
	X(DROP_IP_PROTO, "drop_ip_proto", "drop: unsupported IP protocol")                         \
	X(DROP_ND, "drop_nd",                                                                      \
		"drop: neighbour solicitation malformed, fragmented, or not for our address")      \
	X(DROP_ICMP, "drop_icmp", "drop: ICMP other than a well-formed echo request")              \
	X(DROP_UDP_LENGTH, "drop_udp_length", "drop: UDP length and packet disagree")              \
	X(DROP_UDP_CKSUM, "drop_udp_cksum", "drop: UDP checksum wrong")                            \
	X(DROP_UDP_PORT, "drop_udp_port", "drop: another UDP port")                                \
	X(DROP_TEXT_SOURCE, "drop_text_source",                                                    \
		"drop: plain text from a source port below 10000, which may be a server's")        \
	X(DROP_MAGIC, "drop_magic", "drop: not our protocol: too short, or wrong magic or type")   \
	X(DROP_VERSION, "drop_version", "refused: protocol version")                               \
	X(DROP_LENGTH, "drop_length", "refused: length fields disagree, or flags misplaced")       \
	X(DROP_VOCAB, "drop_vocab", "refused: vocabulary not loaded")                              \
	X(DROP_OFFSET, "drop_offset", "refused: byte offset does not continue the text")           \
	X(DROP_TOO_LONG, "drop_too_long", "refused: text longer than --max-text, or of 2^32 ids")  \
	X(DROP_TEXT, "drop_text", "refused: plain text the tokenizer rejects")                     \
	X(DROP_SHUTDOWN, "drop_shutdown", "refused: new text while shutting down")                 \
	X(DROP_VALIDATE, "drop_validate",                                                          \
		"refused: no cookie, and streams or time are scarce or an answer is wanted")       \
	X(DROP_SINK, "drop_sink", "refused: prompt, and there is no GPU that makes ids")           \
	X(DROP_TABLE_FULL, "drop_table_full", "refused: stream table full")                        \
	X(DROP_MAC, "drop_mac", "refused: stream of another MAC address")                          \
	X(DROP_OPENS, "drop_opens",                                                                \
		"refused: streams are scarce, and its source let too many texts die")              \
	X(DROP_BACKLOG, "drop_backlog",                                                            \
		"refused: packets of a new text of a source with too much waiting")                \
	X(DROP_WINDOW, "drop_window", "drop: packet number beyond the window")                     \
	X(DROP_HELD, "drop_held", "drop: early packet, but too many are held already")             \
	X(DROP_RING_FULL, "drop_ring_full", "drop: text not fed because the token ring is full")   \
	X(DROP_LANES, "drop_lanes",                                                                \
		"drop: end of a prompt not fed because no lane of the GPU is free")                \
	X(DROP_REPLY_WINDOW, "drop_reply_window",                                                  \
		"drop: text not fed because the client does not acknowledge ids")                  \
	X(DROP_UNKNOWN, "drop_unknown", "refused: no such stream")                                 \
	X(DROP_OVER, "drop_over", "drop: data for a stream that already ended")                    \
	X(DROP_REPEAT, "drop_repeat",                                                              \
		"refused: data of an ended text whose answer is no longer stored")

enum tokd_counter {
#define X(sym, name, help) C_##sym,
	TOKD_COUNTERS(X)
#undef X
		C_COUNT
};

struct tokd_counter_info {
	const char *name;
	const char *help;
};
extern const struct tokd_counter_info tokd_counter_info[C_COUNT]; /* counters.c */
