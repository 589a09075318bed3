//! The operations of [`store::Store`], tested in the same way on every database.
//!
//! Stores can be opened repeatedly in a [`TestDatabase`]. `story!` runs every test on one kind of database.
//! `PostgreSQL` needs a server: `scripts/with-postgres cargo test -p tollgate-store`.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on says so")]

mod access;
mod accounts;
mod alerts;
mod audit;
mod backups;
mod calls;
mod catalogs;
mod chain;
mod costs;
mod debt;
mod entries;
mod faults;
mod faulty_proxy;
mod imports;
mod journal;
mod keys;
mod money;
mod moves;
mod nodes;
mod outage;
mod random_operations;
mod recovery;
mod schema;
mod searches;
mod sessions;
mod statement;
mod tasks;
mod test_database;
mod usage;
mod verify;
mod windows;

use test_database::TestDatabase;

macro_rules! run_on {
    ($backend:ident, [$($chapter:ident :: $test:ident),* $(,)?]) => {
        mod $backend {
            use super::TestDatabase;
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $test() {
                    if let Some(database) = TestDatabase::$backend() {
                        super::$chapter::$test(&database).await;
                    }
                }
            )*

            #[test]
            fn the_ledger_balances_after_any_interleaving() {
                if TestDatabase::$backend().is_some() {
                    super::random_operations::the_ledger_balances_after_any_interleaving(|| TestDatabase::$backend().unwrap());
                }
            }
        }
    };
}

/// Defines every test for one database, and the tests that only this database can run.
macro_rules! story {
    ($backend:ident, [$($own:ident :: $test:ident),* $(,)?]) => {
        run_on!(
            $backend,
    [
                accounts::a_new_wallet_begins_with_entries,
                accounts::a_wallet_is_found_by_name_and_id,
                accounts::a_top_up_repays_credit_first_and_a_gift_never_does,
                accounts::what_people_set_of_a_wallet_stays_beside_what_calls_change,
                accounts::senseless_changes_are_refused_and_change_nothing,
                accounts::a_key_is_found_by_its_digest_alone,
                accounts::key_changes_act_at_the_next_admission,
                accounts::price_versions_are_interned,
                accounts::accounts_are_found_by_a_part_of_their_names,
                accounts::wallets_beyond_their_credit_line_are_found_by_their_debt,
                access::a_token_is_found_by_its_digest_until_it_is_revoked,
                access::a_session_ends_with_its_token_or_its_time,
                access::a_code_signs_in_once,
                alerts::a_rule_is_kept_and_audited_without_its_secret,
                alerts::an_alert_begins_once_and_ends_once,
                alerts::a_delivery_is_tried_until_it_is_delivered_or_given_up,
                alerts::an_end_waits_until_its_beginning_is_delivered_or_given_up,
                alerts::a_rule_with_many_deliveries_leaves_room_for_others,
                alerts::a_delivery_outlives_the_node_that_claimed_it,
                alerts::what_a_node_sees_is_seen_by_all_until_it_expires,
                alerts::wallets_and_keys_that_run_low_are_found,
                audit::each_change_has_a_row_of_its_own,
                audit::a_change_without_effect_writes_nothing,
                audit::a_refused_change_leaves_no_row,
                audit::rows_are_found_by_every_condition_a_page_at_a_time,
                audit::rows_cannot_be_changed_or_deleted,
                costs::the_cost_of_a_call_stands_in_its_entry,
                costs::the_cost_of_a_session_is_booked_by_its_steps_and_rounded_once,
                costs::a_forged_cost_is_found,
                keys::a_key_says_which_models_it_may_call,
                keys::an_old_secret_works_until_its_time,
                keys::a_key_remembers_when_it_was_used,
                keys::keys_are_found_by_name_tag_and_wallet_a_page_at_a_time,
                keys::a_key_of_an_earlier_version_is_as_limited_as_it_was,
                imports::a_batch_of_accounts_is_created_as_a_whole,
                imports::a_batch_with_one_fault_creates_nothing,
                imports::what_was_imported_is_known_again,
                windows::a_window_is_exact_at_midnight_of_its_zone,
                windows::a_hold_over_midnight_counts_where_it_is_booked,
                windows::a_window_can_be_set_changed_and_lifted,
                windows::a_forged_window_is_found,
                catalogs::each_catalog_follows_the_last_and_is_audited,
                catalogs::of_two_that_follow_the_same_one_is_stored,
                sessions::a_session_is_charged_in_steps_and_rounded_once,
                sessions::a_step_reaches_as_far_as_the_money,
                sessions::a_dead_key_takes_no_further_step,
                sessions::an_abandoned_session_keeps_what_its_steps_booked,
                calls::an_admitted_call_freezes_and_its_settlement_charges,
                calls::every_refusal_consumes_nothing,
                calls::two_hundred_calls_for_seven_credits,
                calls::a_hold_grows_until_the_wallet_is_empty,
                calls::a_settlement_above_the_hold_is_booked_in_full,
                calls::a_counted_charge_is_capped_at_the_hold,
                calls::a_close_comes_behind_the_growth_that_was_asked_for,
                calls::a_release_gives_everything_back,
                calls::the_first_close_wins_and_others_are_counted,
                calls::concurrency_counts_open_holds,
                calls::a_drained_call_no_longer_counts,
                calls::a_call_finds_what_the_last_one_freed,
                calls::a_caller_that_leaves_before_the_answer_holds_nothing,
                calls::a_decision_becomes_durable,
                calls::a_full_queue_is_busy,
                calls::one_hot_wallet_beside_many_quiet_ones,
                debt::exposure_is_kept_with_its_hold,
                debt::two_hundred_dear_calls_stay_within_the_debt_limit,
                debt::a_charge_that_does_not_fit_is_noted_and_counted,
                entries::entries_tell_what_was_posted,
                entries::entries_are_found_by_every_condition,
                entries::everything_a_wallet_begins_with_is_an_entry,
                recovery::holds_of_an_earlier_start_are_abandoned,
                recovery::a_charge_seen_in_the_balance_survives,
                recovery::what_was_queued_is_written_when_the_store_goes,
                        recovery::a_command_beside_a_running_server_is_seen_by_it,
                recovery::a_command_gets_its_turn_beside_a_busy_server,
                recovery::a_command_does_not_admit,
                money::each_kind_says_who_made_it_and_why,
                money::a_reference_books_once,
                money::two_hundred_retries_book_one_entry,
                money::refunds_never_exceed_their_top_up,
                money::what_a_call_holds_is_not_taken,
                money::what_people_set_of_a_wallet_is_set_as_a_whole,
                statement::a_statement_tells_the_balance_after_each_entry,
                statement::a_long_statement_is_read_from_its_middle,
                statement::wallets_are_listed_with_what_they_spent,
                statement::the_history_has_every_day_with_entries,
                statement::any_range_of_an_empty_wallet_is_empty,
                statement::an_upgrade_computes_the_balances_of_old_entries,
                verify::a_clean_ledger_verifies,
                verify::each_planted_difference_is_found,
                verify::entries_cannot_be_changed_or_deleted,
                chain::what_was_forged_is_found,
                chain::a_change_of_any_value_of_any_entry_is_found,
                chain::noted_heads_find_a_chain_that_was_rewritten,
                chain::a_migration_that_was_stopped_before_the_heads_is_completed,
                chain::server_and_commands_write_one_chain,
                usage::names_that_a_database_stores_alike_do_not_stop_the_journal,
                usage::a_report_with_too_many_rows_is_refused,
                usage::reports_equal_a_recount_of_the_rows,
                usage::reports_outlive_the_rows,
                usage::rows_of_earlier_versions_are_counted,
                usage::reports_over_an_upgrade_lack_nothing,
                usage::a_search_finds_what_a_look_at_every_row_finds,
                searches::a_slow_search_is_ended_and_delays_no_lookup,
                searches::a_slow_list_of_a_wallets_tasks_delays_no_lookup,
                journal::rows_come_back_as_they_were_given,
                journal::pages_follow_each_other_without_gap_or_repeat,
                journal::conditions_are_all_obeyed,
                journal::old_rows_go_and_young_ones_stay,
                journal::a_full_queue_drops_and_counts,
                journal::bodies_without_room_are_left_out_and_counted,
                journal::bodies_are_cut,
                backups::a_backup_restores_everything_to_either_database,
                backups::a_backup_of_a_busy_store_is_of_one_moment,
                backups::nothing_is_overwritten,
                backups::a_damaged_backup_is_refused,
                backups::a_backup_of_a_wrong_ledger_says_so,
                backups::media_files_keep_their_times,
                moves::everything_arrives_and_comes_back,
                moves::a_moved_store_goes_on_where_it_was,
                moves::a_source_in_use_is_refused,
                moves::calls_that_were_open_are_abandoned_at_the_destination,
                moves::only_an_empty_destination_is_filled,
                moves::a_destination_of_an_earlier_version_is_upgraded_only_if_it_is_empty,
                moves::an_unfinished_move_is_opened_by_nobody_and_goes_on,
                moves::a_ledger_that_is_not_right_is_not_moved,
                tasks::a_task_goes_from_its_hold_to_its_callback,
                tasks::a_claim_is_worth_nothing_once_another_has_it,
                tasks::a_refused_task_leaves_nothing,
                tasks::a_task_outlives_its_process,
                tasks::a_callback_is_tried_until_it_is_told_or_given_up,
                tasks::tasks_are_listed_hidden_and_forgotten,
                tasks::a_task_that_lacks_something_is_found,
                tasks::a_task_whose_end_is_unknown_is_abandoned,
                $($own::$test,)*
            ]
        );
    };
}

story!(
    sqlite,
    [
        recovery::a_second_server_is_refused,
        moves::a_text_that_a_server_cannot_store_is_replaced_in_the_journal_alone,
        backups::a_backup_of_an_earlier_version_is_upgraded_in_a_copy,
        calls::a_clock_that_jumps_moves_only_the_end_of_a_key,
        windows::a_clock_that_was_far_ahead_does_not_keep_its_period,
    ]
);
story!(
    postgres,
    [
        nodes::a_node_of_the_same_name_is_refused,
        nodes::two_nodes_share_wallets_and_limits,
        nodes::a_newer_schema_is_refused,
        nodes::older_nodes_stop_before_entries_are_chained,
        nodes::three_nodes_race_for_seven_credits,
        nodes::limits_are_exact_on_three_nodes,
        windows::a_window_is_exact_on_three_nodes,
        money::two_hundred_retries_on_three_nodes_book_one_entry,
        money::a_payment_is_booked_once_whatever_becomes_of_its_answer,
        debt::three_nodes_stay_within_the_debt_limit,
        nodes::a_node_that_lost_its_lease_begins_anew,
        tasks::two_nodes_never_have_one_task,
        alerts::one_node_looks_for_alerts_and_one_delivers_each,
        faults::a_commit_whose_answer_is_lost_happens_once,
        faults::while_the_database_is_away_calls_are_refused_and_closes_wait,
        faults::a_commit_in_doubt_is_asked_about_until_it_is_known,
        faults::while_commits_fail_nobody_is_admitted_and_answered_calls_are_charged,
        faults::a_slow_database_is_slow_and_right,
        faults::a_lock_holder_keeps_only_its_own_wallet_waiting,
        faults::a_close_that_cannot_be_booked_does_not_stop_the_others,
        tasks::no_lookup_waits_for_lists,
        outage::a_key_that_was_not_met_before_is_not_refused_while_the_database_is_away,
        outage::a_node_without_connections_says_so_and_refuses_no_key,
        outage::a_role_that_may_not_write_is_told_in_words,
        outage::a_full_disk_is_told_in_words_and_the_node_is_not_ready,
        outage::wrong_credentials_are_no_outage,
        outage::journal_rows_of_billed_calls_outlive_an_outage,
        outage::journal_rows_that_waited_stand_behind_those_that_did_not,
        outage::journal_rows_are_not_doubled_by_a_lost_answer,
        outage::a_journal_row_that_cannot_be_written_is_dropped_alone,
    ]
);
