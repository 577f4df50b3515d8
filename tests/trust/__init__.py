"""The thirty acceptance tests of reliability and security, and where each lives.

All carry the marker `trust`, so that `make test-trust` runs them, wherever they are kept: what a test is
about decides its file. `test_list.py` holds this list against them. docs/security.md says what they show.

1. Hostile corpus on every page
   tests/browser/test_dashboard.py::test_a_hostile_corpus_is_searched_and_read_on_every_page
   tests/pages/test_corpus_page.py::test_a_hostile_document_is_only_text
   tests/pages/test_damaged_corpora.py::test_every_page_about_a_sound_corpus_works_beside_damaged_ones
   tests/pages/test_damaged_corpora.py::test_every_page_works_in_a_second_copy_of_the_program
2. Hostile names, questions, errors, model text
   tests/trust/test_hostile_pages.py::test_a_run_of_hostile_text_is_text_on_every_page_about_it
   tests/trust/test_hostile_pages.py::test_hostile_sessions_are_listed_compared_and_run_again
   tests/trust/test_hostile_pages.py::test_hostile_names_and_notes_of_people_are_text
   tests/trust/test_hostile_pages.py::test_a_hostile_address_is_told_as_text
   tests/browser/test_app.py::test_hostile_text_is_read_and_never_run
   tests/unit/cli/test_cli.py::test_hostile_text_steers_no_terminal
   tests/browser/test_links.py::test_no_page_links_elsewhere
   tests/browser/test_links.py::test_an_error_that_repeats_an_address_is_text
3. Headers
   tests/browser/test_app.py::test_every_answer_carries_the_security_headers
   tests/browser/test_app.py::test_a_page_connects_to_its_own_server_alone
4. Exports
   tests/browser/test_dashboard.py::test_an_export_of_a_hostile_run_is_the_run
   tests/unit/evaluation/test_labels_exchange.py::test_no_cell_is_a_formula_and_every_cell_comes_back
   tests/unit/evaluation/test_release_report.py::test_texts_of_others_are_never_markup
   tests/unit/evaluation/test_release_build.py::test_texts_of_others_stay_text_in_comments_and_xml
   tests/unit/store/test_store_exchange.py::test_a_bundle_comes_back_the_same_and_goes_out_again_byte_equal
   tests/unit/ui/test_frames.py::test_no_cell_of_the_file_begins_a_formula_however_it_is_parted
   tests/browser/test_app.py::test_a_table_that_is_saved_as_csv_holds_no_formula
5. Loopback by default
   tests/browser/test_app.py::test_it_listens_on_loopback_only
   tests/trust/test_start.py::test_what_is_set_by_default_stays_on_this_machine
6. Host
   tests/browser/test_app.py::test_another_host_name_is_refused
7. Origin and port
   tests/browser/test_app.py::test_a_websocket_opens_for_the_own_origin_alone
   tests/browser/test_app.py::test_a_request_of_another_origin_is_refused
   tests/unit/ui/test_visitors.py::test_only_the_own_origin_passes
8. Endpoint addresses
   tests/unit/domain/test_settings_file.py::test_a_key_never_follows_its_address_to_another_place
   tests/unit/domain/test_reach.py::test_where_clouds_keep_keys_is_refused_however_it_is_written
   tests/unit/domain/test_reach.py::test_addresses_of_ones_own_are_for_who_runs_it
   tests/unit/domain/test_reach.py::test_a_name_that_leads_there_is_not_called
   tests/unit/domain/test_reach.py::test_what_was_checked_is_what_is_called
9. Nothing goes out at the start
   tests/trust/test_start.py::test_the_server_and_every_page_start_without_reaching_out
   tests/trust/test_start.py::test_commands_that_need_no_remote_model_reach_out_to_nobody
10. Hostile SQL
   tests/unit/backends/test_sql.py::test_what_the_guard_rejects_is_named_and_changes_nothing
   tests/unit/backends/test_sql.py::test_the_connection_itself_cannot_write
   tests/unit/backends/test_sql.py::test_no_function_of_the_list_reaches_files_or_memory
   tests/unit/backends/test_sql_hostile.py::test_a_hostile_statement_is_refused_and_changes_nothing
   tests/unit/backends/test_sql_hostile.py::test_no_secret_is_in_the_environment_of_the_process
11. Runaway SQL
   tests/unit/backends/test_sql.py::test_a_query_that_does_not_end_is_ended
   tests/unit/backends/test_sql_hostile.py::test_a_statement_that_would_run_on_is_ended_with_one_message
   tests/unit/backends/test_sql_hostile.py::test_a_query_has_one_and_a_half_seconds
   tests/unit/backends/test_sql_hostile.py::test_stop_ends_a_query_inside_a_function_and_its_process
12. Uploads: too large, packed to burst
   tests/trust/test_uploads.py::test_a_bundle_that_bursts_is_refused_before_it_is_unpacked
   tests/trust/test_uploads.py::test_an_upload_that_is_too_much_is_one_line_and_nothing_is_kept
   tests/unit/store/test_store_exchange.py::test_a_hostile_bundle_is_refused_whole
   tests/unit/corpus/test_linear.py::test_texts_are_looked_through_in_linear_time
   tests/unit/corpus/test_linear.py::test_pages_are_read_in_linear_time_and_keep_their_text
   tests/unit/corpus/test_reading.py::test_a_file_that_takes_too_long_is_left_out
   tests/unit/corpus/test_reading.py::test_a_file_that_takes_too_much_memory_is_left_out
   tests/unit/corpus/test_reading.py::test_stop_ends_the_process_in_the_midst_of_a_document
13. Uploads: names that lead elsewhere
   tests/unit/corpus/test_uploads.py::test_no_name_leaves_the_folder
   tests/unit/corpus/test_uploads.py::test_hostile_names_are_kept_inside_or_refused
   tests/trust/test_uploads.py::test_no_name_of_a_corpus_a_file_or_an_evaluation_leads_out_of_home
14. Uploads: pickles
   tests/trust/test_uploads.py::test_no_file_of_a_visitor_is_read_as_a_pickle
   tests/trust/test_uploads.py::test_weights_and_index_arrays_are_never_pickles
   tests/unit/backends/test_search_backends.py::test_no_file_of_an_index_can_hold_a_pickle
   tests/unit/whole/test_rules.py::test_core_never_imports_streamlit_and_nothing_is_pickled
15. Keys
   tests/unit/domain/test_settings_file.py::test_a_secret_goes_in_and_is_shown_nowhere
   tests/pages/test_settings_page.py::test_a_secret_is_never_on_the_page
   tests/unit/backends/test_llm_client.py::test_the_key_and_control_characters_of_an_error_page_are_not_repeated
   tests/unit/backends/test_llm_client.py::test_only_the_configured_key_and_no_ambient_header_is_sent
   tests/unit/whole/test_canary.py::test_a_canary_key_is_nowhere
   tests/unit/domain/test_redact.py::test_a_key_in_any_form_is_a_mark
16. Two browsers
   tests/pages/test_opened.py::test_a_fresh_browser_is_shown_nobodys_run
   tests/pages/test_opened.py::test_two_browsers_keep_their_own_runs
   tests/unit/engine/test_session_memory.py::test_two_sessions_at_once_stay_apart
17. Injected documents
   tests/unit/steps/test_obeying.py::test_an_obeying_model_takes_the_same_steps_but_where_it_may_have_a_say
   tests/unit/steps/test_obeying.py::test_the_agent_chooses_without_any_text_that_was_found
   tests/unit/steps/test_obeying.py::test_a_model_that_writes_harm_is_refused_by_the_guard
   tests/unit/backends/test_injection.py::test_no_text_title_or_excerpt_opens_or_closes_a_passage
18. One hanging, one raising, one NaN route
   tests/trust/test_routes_apart.py::test_one_hanging_one_raising_one_nan_route_cost_the_others_nothing
   tests/unit/engine/test_engine.py::test_a_failing_route_keeps_its_spans_and_the_others_finish
19. Twenty writers, a hundred each
   tests/trust/test_store_holds.py::test_twenty_writers_of_four_processes_lose_nothing
20. Fifteen kills
   tests/trust/test_store_holds.py::test_fifteen_kills_lose_nothing_that_was_told_to_be_stored
   tests/browser/test_labelling.py::test_what_is_said_to_be_saved_is_in_the_file_though_the_server_is_killed
21. No room on the disk: store and index
   tests/trust/test_store_holds.py::test_a_place_without_room_is_told_and_what_waits_is_stored_once_there_is_room
   tests/unit/store/test_store_file.py::test_a_file_that_cannot_grow_is_a_warning_and_loses_nothing
   tests/unit/evaluation/test_store_rescue.py::test_a_disk_that_fills_up_leaves_the_damaged_file_as_it_is
   tests/unit/backends/test_array_files.py::test_a_disk_that_is_full_before_the_first_text_is_told_at_once
   tests/unit/backends/test_array_files.py::test_what_was_embedded_before_the_disk_was_full_is_kept
   tests/unit/backends/test_array_files.py::test_room_that_cannot_be_reserved_ends_a_build_in_one_clear_line
   tests/unit/backends/test_array_files.py::test_no_file_is_mapped_for_writing
22. Every earlier schema, and a damaged file
   tests/unit/evaluation/test_store_rescue.py::test_whatever_page_is_flipped_the_rest_is_saved
   tests/pages/test_opened.py::test_a_store_that_is_no_database_is_one_message_with_the_way_out
23. Leave and Stop
   tests/trust/test_routes_apart.py::test_who_leaves_the_page_does_not_end_the_run
   tests/trust/test_routes_apart.py::test_stop_ends_the_run_for_whoever_looks_at_it
   tests/browser/test_deciding.py::test_an_evaluation_goes_on_without_its_tab
24. Sixteen broken endpoints, nine routes
   tests/trust/test_routes_apart.py::test_a_broken_endpoint_ends_what_asks_it_in_words_and_nothing_else
   tests/unit/backends/test_llm_client.py::test_a_broken_endpoint_is_one_clear_line
   tests/unit/backends/test_llm_client.py::test_who_asks_to_be_asked_again_is
   tests/unit/engine/test_answers_cost_no_retrieval.py::test_each_route_keeps_its_ranking
25. A replay is byte for byte the run
   tests/trust/test_screen.py::test_two_replays_are_byte_for_byte_the_run_they_repeat
   tests/browser/test_dashboard.py::test_a_run_is_replayed_without_models_and_compared_with_the_original
26. The screen is the log
   tests/trust/test_screen.py::test_the_screen_shows_what_is_stored
   tests/trust/test_screen.py::test_the_log_of_steps_ends_in_what_the_screen_shows
27. Exported runs are the page
   tests/trust/test_screen.py::test_exported_runs_are_what_the_page_shows
   tests/trust/test_screen.py::test_the_command_line_tells_the_same_run
28. Pages are clean
   tests/browser/test_dashboard.py::test_every_page_opens_by_its_address_alone
   tests/browser/test_dashboard.py::test_a_page_says_what_is_wrong_and_breaks_on_nothing
29. Deep links
   tests/browser/test_dashboard.py::test_the_link_to_a_view_reopens_it
   tests/browser/test_deciding.py::test_the_link_to_a_view_reopens_it
   tests/pages/test_opened.py::test_a_reload_shows_the_same_run_by_its_address
   tests/pages/test_compare.py::test_a_link_reopens_a_stored_run_without_a_model
30. Ten people at once
   `make soak`; the figures are in bench/notebook/2026-11.md, "Many people at once"
   tests/unit/engine/test_resources.py::test_a_corpus_that_is_being_opened_holds_up_no_other_session
   tests/unit/engine/test_resources.py::test_ten_sessions_take_no_longer_while_a_corpus_is_opened
   tests/unit/backends/test_admission.py::test_a_routes_time_with_three_others_is_that_of_the_route_alone
   tests/unit/backends/test_admission.py::test_turns_go_round_between_runs_and_in_order_inside_one
   tests/pages/test_redraw.py::test_a_button_pressed_while_something_ends_is_seen

What is deleted is gone:
   tests/unit/evaluation/test_store_deletion.py::test_nothing_is_left_of_a_deleted_run_and_all_of_the_others
   tests/unit/evaluation/test_store_deletion.py::test_a_run_is_deleted_for_good_when_its_time_has_passed
   tests/unit/engine/test_session_memory.py::test_what_is_forgotten_is_in_no_row_and_no_byte_of_the_file

Second round: what came after these thirty.

Responses are limited after decoding
   tests/trust/test_bombs.py::test_a_bomb_is_a_failed_call_of_every_client
   tests/trust/test_bombs.py::test_a_bomb_of_a_model_is_a_failed_answer_below_600_megabytes
   tests/unit/domain/test_redact.py::test_16_million_characters_take_a_second_and_100_megabytes
Without a role there are no uploads, downloads and figures
   tests/trust/test_framework.py::test_every_route_of_the_framework_is_listed
   tests/trust/test_framework.py::test_without_a_role_there_are_no_uploads_downloads_and_figures
   tests/trust/test_framework.py::test_another_persons_download_is_not_given
   tests/trust/test_framework.py::test_uploads_go_where_the_page_said_and_have_an_end
   tests/trust/test_framework.py::test_sockets_of_strangers_have_an_end_and_keep_no_one_out
Nobody speaks for another, or destroys what another made
   tests/unit/domain/test_people.py::test_imported_rows_are_their_importers_and_whoever_they_name_is_a_note
   tests/unit/domain/test_people.py::test_the_command_line_speaks_for_nobody_where_people_have_accounts
   tests/unit/domain/test_people.py::test_who_changes_what_another_made_does_not_become_its_maker
No orphans
   tests/unit/cli/test_serve.py::test_a_killed_serve_frees_its_port_within_five_seconds
Jumps of the clock, locks, kills, and damaged input
   tests/trust/test_clock_and_locks.py::test_a_jump_of_the_clock_changes_no_undo_time_and_ends_no_run
   tests/trust/test_clock_and_locks.py::test_a_lock_held_by_another_process_loses_nothing
   tests/kills/test_kills.py::test_killed_work_goes_on_to_the_same_result
   tests/fuzz/test_doors.py::test_bundles
One document does not decide for all, and leaks past a filter are found
   tests/unit/corpus/test_one_document.py::test_one_odd_value_does_not_make_a_field_text
   tests/unit/evaluation/test_access.py::test_what_enrichments_and_memory_keep_gets_in_after_the_filter
"""
