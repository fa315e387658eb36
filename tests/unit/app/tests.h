/* SPDX-License-Identifier: BSD-3-Clause */
/* Every test once: X(name, set-up). */
#ifndef TESTS_H
#define TESTS_H

#define TESTS(X)                                                                                   \
	X(ether_drops_what_is_not_for_us, setup)                                                   \
	X(vlan_of_ours_is_served_and_answered_with_its_tag, setup)                                 \
	X(vlan_of_others_is_dropped, setup)                                                        \
	X(vlan_tag_a_driver_took_out_is_put_back, setup)                                           \
	X(segments_of_any_size_are_fed_where_they_lie, setup)                                      \
	X(segments_that_are_held_count_each, setup)                                                \
	X(segments_must_have_the_headers_in_the_first, setup)                                      \
	X(segments_of_a_refused_request_are_let_go, setup)                                         \
	X(fragments_in_any_order_make_the_datagram, setup)                                         \
	X(fragments_of_ipv6_make_the_datagram, setup)                                              \
	X(fragments_never_whole_make_way_for_others, setup)                                        \
	X(fragments_of_ipv6_that_are_all_need_no_others, setup)                                    \
	X(fragments_that_lie_are_dropped, setup)                                                   \
	X(fragments_are_dropped_where_none_are_taken, setup)                                       \
	X(ipv6_texts_are_served, setup)                                                            \
	X(ipv6_drops_malformed_headers_and_other_hosts, setup)                                     \
	X(ipv6_checksum_is_demanded, setup)                                                        \
	X(ipv6_tx_offload_leaves_the_checksum_to_the_driver, setup)                                \
	X(ipv6_neighbours_are_answered, setup)                                                     \
	X(ipv6_neighbours_that_are_malformed_are_dropped, setup)                                   \
	X(ipv6_echo_is_answered, setup)                                                            \
	X(ipv6_neighbours_and_echo_are_left_to_a_kernel_that_has_our_address, setup)               \
	X(ipv4_and_ipv6_are_left_alone_where_not_served, setup)                                    \
	X(arp_answers_for_our_address, setup)                                                      \
	X(arp_drops_what_is_malformed_or_not_ours, setup)                                          \
	X(ipv4_drops_malformed_headers, setup)                                                     \
	X(ipv4_drops_sources_that_are_no_host, setup)                                              \
	X(ipv4_drops_wrong_checksum, setup)                                                        \
	X(ipv4_drops_other_hosts_other_protocols, setup)                                           \
	X(ipv4_options_and_frame_padding_are_skipped, setup)                                       \
	X(icmp_echo_is_answered, setup)                                                            \
	X(arp_and_echo_are_left_to_a_kernel_that_has_our_address, setup)                           \
	X(icmp_drops_all_else, setup)                                                              \
	X(udp_drops_wrong_length_port_checksum, setup)                                             \
	X(udp_without_checksum_and_offloaded_checksums_pass, setup)                                \
	X(tx_offload_leaves_checksums_to_the_driver, setup)                                        \
	X(tx_that_is_full_drops_and_counts, setup)                                                 \
	X(text_port_answers_in_decimal, setup)                                                     \
	X(text_port_answers_long_texts_in_several_datagrams, setup)                                \
	X(text_port_takes_several_segments, setup)                                                 \
	X(text_port_refuses_what_is_too_long_or_no_text, setup_small_ring)                         \
	X(text_port_says_why_a_text_is_refused, setup)                                             \
	X(text_port_waits_for_nobody, setup_small_ring)                                            \
	X(text_port_answers_no_server, setup)                                                      \
	X(order_one_packet_is_one_record, setup)                                                   \
	X(order_empty_text_is_one_record_without_ids, setup)                                       \
	X(order_a_last_packet_without_text_ends_the_stream, setup)                                 \
	X(order_one_byte_per_packet, setup)                                                        \
	X(order_of_every_cut_does_not_change_the_ids, setup)                                       \
	X(order_every_permutation_of_six_packets, setup)                                           \
	X(order_duplicates_are_dropped_and_acknowledged, setup)                                    \
	X(order_a_hole_is_named, setup)                                                            \
	X(order_loss_is_found_by_poll, setup)                                                      \
	X(order_acknowledges_every_sixteen_packets, setup)                                         \
	X(order_streams_do_not_mix, setup)                                                         \
	X(order_jumbo_packets_are_fed_in_pieces, setup_small_ring)                                 \
	X(order_long_texts_do_not_delay_short_ones, setup)                                         \
	X(order_a_long_packet_is_fed_in_pieces, setup)                                             \
	X(order_survives_a_lossy_network, setup)                                                   \
	X(refuse_silently_what_is_not_our_protocol, setup)                                         \
	X(refuse_other_versions_and_vocabularies, setup)                                           \
	X(side_store_keeps_what_the_ring_needs_to_overwrite, setup_small_ring_and_side_store)      \
	X(side_store_of_an_open_stream_is_let_go_when_acknowledged,                                \
		setup_small_ring_and_side_store)                                                   \
	X(side_store_that_is_full_loses_ids_and_says_so, setup_small_ring_and_side_store)          \
	X(side_store_survives_many_slow_clients, setup_small_ring_and_side_store)                  \
	X(vocabularies_are_chosen_by_checksum, setup)                                              \
	X(refuse_lengths_that_disagree, setup)                                                     \
	X(refuse_misplaced_first_and_last, setup)                                                  \
	X(refuse_what_has_no_meaning_yet, setup)                                                   \
	X(refuse_a_gap_in_the_offsets, setup)                                                      \
	X(refuse_texts_that_are_too_long, setup)                                                   \
	X(refuse_a_text_whose_crc_differs, setup)                                                  \
	X(refuse_what_the_tokenizer_refuses, setup)                                                \
	X(refuse_streams_that_are_unknown, setup)                                                  \
	X(refuse_when_all_streams_are_open, setup)                                                 \
	X(refuse_evicts_the_oldest_finished_first, setup)                                          \
	X(a_finished_text_that_is_awaited_outlives_those_that_are_not, setup)                      \
	X(texts_never_acknowledged_take_half_of_the_table, setup)                                  \
	X(texts_never_acknowledged_have_the_table_where_there_are_no_others, setup)                \
	X(refuse_packets_beyond_the_window, setup)                                                 \
	X(refuse_to_hold_more_than_the_bound, setup)                                               \
	X(done_text_sent_again_gets_its_stored_answer, setup)                                      \
	X(done_id_used_for_another_text_is_refused, setup)                                         \
	X(ring_wraps_with_pad_and_the_tail_moves, setup_small_ring)                                \
	X(ring_record_takes_what_was_produced, setup_small_ring)                                   \
	X(ring_held_by_a_reader_is_not_overwritten, setup_small_ring)                              \
	X(ring_is_looked_at_when_nobody_feeds, setup_small_ring)                                   \
	X(ring_reader_that_leaves_is_not_waited_for, setup_small_ring)                             \
	X(ring_cursor_inside_a_record_frees_only_whole_records, setup_small_ring)                  \
	X(ring_full_keeps_held_packets_for_their_turn, setup_small_ring)                           \
	X(ring_full_again_at_a_held_packet_is_resumed_by_poll, setup_small_ring)                   \
	X(ring_full_in_the_middle_of_a_packet_goes_on_there, setup_small_ring)                     \
	X(ring_part_of_a_packet_sent_again_shorter_fails, setup_small_ring)                        \
	X(ring_full_abort_waits_for_room, setup_small_ring)                                        \
	X(reply_carries_the_ids_of_a_small_text, setup)                                            \
	X(reply_waits_until_it_is_full, setup)                                                     \
	X(reply_streams_ids_at_every_burst, setup)                                                 \
	X(reply_again_on_poll, setup)                                                              \
	X(reply_again_is_bounded_per_poll_and_by_what_was_received, setup)                         \
	X(reply_never_exceeds_a_request_to_which_nothing_is_owed, setup)                           \
	X(reply_window_that_is_full_closes_the_credit, setup)                                      \
	X(reply_goes_before_small_records_fill_the_window, setup)                                  \
	X(reply_to_poll_flushes_ids_that_wait, setup)                                              \
	X(reply_of_a_burst_larger_than_the_ring_is_not_overwritten, setup_small_ring)              \
	X(reply_goes_before_the_ring_overwrites_its_ids, setup_small_ring)                         \
	X(reply_of_ids_that_were_overwritten_is_expired, setup_small_ring)                         \
	X(reply_of_ids_of_an_open_stream_overwritten_fails_it, setup_small_ring)                   \
	X(reply_without_an_mbuf_is_counted_and_asked_for_again, setup)                             \
	X(reply_goes_to_where_the_latest_packet_came_from, setup)                                  \
	X(zero_copy_points_into_the_ring, setup_zero_copy)                                         \
	X(zero_copy_is_for_replies_with_ids_enough, setup_zero_copy)                               \
	X(zero_copy_of_too_many_records_is_a_copy, setup_zero_copy)                                \
	X(zero_copy_without_an_mbuf_is_a_copy, setup_small_ring_zero_copy)                         \
	X(zero_copy_holds_the_ring_until_the_driver_is_done, setup_small_ring_zero_copy)           \
	X(time_limit_ends_an_idle_stream_and_frees_what_it_held, setup)                            \
	X(time_limit_counts_from_the_latest_progress, setup)                                       \
	X(time_limit_forgets_finished_streams, setup)                                              \
	X(time_of_turns_is_accounted, setup)                                                       \
	X(histogram_buckets_follow_each_other_without_gap, setup)                                  \
	X(histogram_percentiles_are_those_of_a_sorted_list, setup)                                 \
	X(histogram_ticks_become_ns_without_overflow, setup)                                       \
	X(stages_of_a_text_are_counted_once_each, setup)                                           \
	X(stages_of_a_text_without_ids_or_without_replies, setup)                                  \
	X(stages_count_from_the_packet_that_came_first, setup)                                     \
	X(stages_of_a_text_that_failed_have_no_end, setup)                                         \
	X(stages_count_no_reply_that_the_driver_did_not_take, setup)                               \
	X(drain_refuses_new_streams_and_finishes_open_ones, setup)                                 \
	X(stop_fails_open_streams_and_returns, setup)                                              \
	X(sink_is_waited_for_as_a_reader, setup)                                                   \
	X(sink_that_cannot_embed_fails_the_open_text, setup)                                       \
	X(sink_finds_the_open_text_by_its_serial, setup)                                           \
	X(sink_that_is_broken_does_not_stop_the_worker, setup)                                     \
	X(sink_that_waits_is_counted, setup)                                                       \
	X(counters_every_reason_to_drop_was_met, setup)

#define X(name, setup) void name(void **state);
TESTS(X)
#undef X

#endif
