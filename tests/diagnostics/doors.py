"""Where each error code is seen by whoever uses Clew: which test raises it, and through which door.

The doors are commands, HTTP, the Python interface, and the integrations. Tests in `WATCHED` are watched while they run:
one that ends without its code having been made behind a door fails.
"""

# ruff: noqa: E501 -- a test stands on one line, so that it can be searched for

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FrameType

import pytest

from clew.diagnostics import Diagnostic, Span
from clew.diagnostics.diagnostic import Code

DOORS = ("clew.cli.", "clew.server.", "clew.api.", "clew.integrations.", "clew.tracelink.")
"""The modules behind which users stand; programs that mint trace ids use `clew.tracelink` itself."""

TOLD_BY_CHECK = "diagnostics/test_codes_of_files.py::test_a_mistake_in_a_file_is_told_with_its_code_and_place"
"""The test that has a case for each of many codes, and the code in brackets behind its name. It is watched, too."""

WATCHED: Mapping[str, str] = {
    "CutNeedsGroup": "scenarios/test_scenario_cuts.py::test_a_summary_needs_its_rows",
    "CutTooLarge": "scenarios/test_scenario_cuts.py::test_a_cut_of_more_rows_than_a_scenario_may_have_is_refused",
    "NotRerunnable": "change/test_change_rerun.py::test_a_run_stays_while_a_rerun_may_take_over_more",
    "NotKnownThen": "change/test_change_as_of.py::test_what_was_not_known_is_refused_with_the_reason",
    "RunRepeated": "change/test_change_rerun.py::test_a_run_stays_while_a_rerun_may_take_over_more",
    "SyntaxError": "cli/test_cli_check.py::test_anchors_that_multiply_are_refused_quickly",
    "UnknownColumn": "cli/test_cli_check.py::test_an_error_shows_place_code_caret_and_hint",
    "UnknownParameter": "cli/test_cli_parameters.py::test_a_value_that_cannot_be_is_refused_before_there_is_a_run[words2-1-UnknownParameter]",
    "UnknownFunction": "cli/test_cli_check.py::test_json_has_counts_and_diagnostics_and_nothing_else_is_printed",
    "TypeMismatch": "change/test_change_doors.py::test_wrong_questions_about_causes_and_suppositions[arguments5-TypeMismatch-1]",
    "ValueOutOfRange": "server/test_server_questions.py::test_a_text_bomb_is_refused_with_its_reason",
    "WorkspaceNotFound": "api/test_open_workspace.py::test_no_workspace_is_an_error_that_names_the_folder",
    "UnreadableFile": "cli/test_cli_check.py::test_a_file_that_is_not_utf8_is_named",
    "FileTooLarge": "diagnostics/test_codes_of_files.py::test_a_file_that_is_too_large_is_not_read",
    "UnknownKey": "cli/test_cli_plan.py::test_a_scenario_that_is_wrong_stands_in_no_ones_way",
    "MissingKey": "cli/test_cli_doctor.py::test_errors_in_files_are_counted",
    "InvalidValue": "cli/test_cli_captures.py::test_a_mistake_in_a_file_of_captures_is_shown_where_it_stands",
    "SecretInClear": "definitions/test_secret_options.py::test_a_secret_in_clear_is_refused_by_check[option0-path]",
    "UnknownProject": "cli/test_cli_check.py::test_an_unknown_project_is_not_found_and_near_names_are_offered",
    "NoSuchDataset": "server/test_pages.py::test_errors_are_pages_in_the_same_voice[/datasets/nothing-404-NoSuchDataset]",
    "UnknownDatasource": "api/test_open_workspace.py::test_a_plan_that_cannot_be_made_raises_everything_that_is_wrong",
    "UnknownPeriod": "server/test_pages.py::test_a_run_is_asked_for_on_the_page_of_its_project_once_however_often_it_is_sent",
    "UnknownEnvironment": "api/test_open_workspace.py::test_an_unknown_environment_is_refused_with_a_near_name",
    "WorkspaceExists": "cli/test_cli_init.py::test_a_folder_that_holds_something_is_left_alone",
    "UnwritableFolder": "cli/test_cli_run.py::test_a_storage_root_that_takes_nothing_is_told_before_there_is_a_run",
    "UnknownKind": "cli/test_cli_schema.py::test_an_unknown_kind_is_not_found",
    "MissingParameter": "diagnostics/test_codes_of_commands.py::test_a_parameter_without_a_value",
    "InvalidParameter": "cli/test_cli_parameters.py::test_a_value_that_cannot_be_is_refused_before_there_is_a_run[words0-1-InvalidParameter]",
    "SinkNotAllowed": "cli/test_cli_captures.py::test_a_sink_that_the_environment_does_not_have_is_refused_before_there_is_a_run",
    "UnreadablePlan": "cli/test_cli_object_stores.py::test_a_run_whose_storage_was_emptied_is_named_in_one_message",
    "DatasetConflict": "api/test_version_conflicts.py::test_a_pinned_version_is_the_one_that_counts",
    "RunNotFound": "cli/test_python_runs.py::test_runs_are_found_by_project_period_state_and_id",
    "RunNotDeletable": "cli/test_cli_runs.py::test_a_run_that_goes_on_is_not_deleted",
    "Overloaded": "cli/test_cli_queue.py::test_the_length_of_the_queue_is_a_setting",
    "RequestIdTaken": "server/test_server_runs.py::test_a_request_id_stands_for_one_request",
    "PeriodBusy": "cli/test_cli_run.py::test_a_second_terminal_leaves_no_run_behind",
    "StoreUnavailable": "cli/test_cli_doctor.py::test_a_database_that_does_not_answer_is_told",
    "StoreUnreadable": "diagnostics/test_codes_of_commands.py::test_a_store_that_is_no_database",
    "StoreFull": "diagnostics/test_codes_of_commands.py::test_a_store_without_room",
    "StoreTooNew": "diagnostics/test_codes_of_commands.py::test_a_store_of_a_newer_version",
    "StoreBrokenPromise": "cli/test_cli_verify.py::test_a_forged_file_is_refused_when_it_is_read_and_raises_an_alert",
    "EventTooNew": "diagnostics/test_codes_of_commands.py::test_an_event_of_a_newer_version",
    "SecretNotFound": "cli/test_cli_object_stores.py::test_a_secret_that_holds_no_credentials_is_named_and_not_shown",
    "InvalidCredentials": "cli/test_cli_object_stores.py::test_a_secret_that_holds_no_credentials_is_named_and_not_shown",
    "TableTagStays": "diagnostics/test_codes_of_commands.py::test_a_tag_of_a_table_that_cannot_be_removed",
    "OtherSealKey": "cli/test_cli_verify.py::test_without_the_key_nothing_is_answered_since_reads_are_on_record",
    "InvalidSealKey": "diagnostics/test_codes_of_commands.py::test_a_key_that_is_too_short",
    "ProjectNotActive": "cli/test_cli_runs.py::test_a_project_is_activated_modified_activated_again_and_deactivated",
    "NoSuchVersion": "server/test_server_runs.py::test_a_plan_is_found_by_its_digest_and_a_version_by_its_number",
    "RunHeld": "cli/test_cli_run.py::test_a_run_that_another_worker_has_is_left_alone",
    "RunNeeded": "cli/test_cli_runs.py::test_a_run_that_a_dataset_needs_is_kept_unless_forced",
    "CapturesWaiting": "cli/test_cli_captures.py::test_a_run_whose_captures_are_still_to_be_made_is_kept_unless_forced",
    "UnknownCheck": "diagnostics/test_codes_of_commands.py::test_a_check_that_a_run_does_not_have",
    "SchemaMismatch": "privacy/test_event_receivers.py::test_receivers_of_events_get_no_values_unless_their_bus_has_a_role_that_sees_them",
    "StorageUnavailable": "cli/test_cli_object_stores.py::test_a_run_says_that_its_bucket_does_not_exist",
    "EngineFailure": "cli/test_cli_captures.py::test_a_capture_that_failed_tells_why",
    "JavaMissing": "cli/test_cli_doctor.py::test_a_java_that_is_too_old_is_told_with_its_code",
    "RunNotFinished": "server/test_server_runs.py::test_the_trace_of_a_run_that_goes_on_is_refused",
    "RowNotFound": "trace/test_trace_commands.py::test_a_condition_that_names_many_rows_where_one_is_needed_shows_some",
    "StepOutOfRange": "change/test_change_doors.py::test_wrong_questions_have_a_code_and_no_traceback[arguments1-StepOutOfRange-3]",
    "AmbiguousRow": "trace/test_trace_commands.py::test_a_condition_that_names_many_rows_where_one_is_needed_shows_some",
    "ColumnNotVisible": "privacy/test_classes.py::test_a_mark_that_is_added_later_counts_for_older_runs",
    "NotAnOutput": "change/test_change_doors.py::test_wrong_questions_have_a_code_and_no_traceback[arguments3-NotAnOutput-2]",
    "DamagedTrace": "cli/test_cli_verify.py::test_a_forged_file_is_refused_when_it_is_read_and_raises_an_alert",
    "ForgedHistory": "cli/test_cli_verify.py::test_rows_that_were_changed_with_their_description_and_event_are_noticed",
    "ForgedRecord": "cli/test_cli_verify.py::test_an_edited_version_of_a_dataset_is_not_shown_and_verify_goes_on_behind_it",
    "NewerTraceLayout": "trace/test_trace_commands.py::test_a_trace_of_a_newer_version_is_refused_by_name",
    "InvalidPage": "trace/test_trace_commands.py::test_pages_behind_a_row_of_another_run_are_refused",
    "EvidenceTooLarge": "diagnostics/test_codes_of_commands.py::test_evidence_of_more_than_a_pack_holds",
    "QuestionTooLong": "server/test_server_questions.py::test_programs_have_the_same_limits",
    "QuestionTooLarge": "server/test_server_questions.py::test_a_question_that_needs_too_much_memory_is_refused",
    "ConditionTooLong": "trace/test_trace_audit.py::test_a_condition_is_recorded_whole_and_one_that_is_too_long_is_refused",
    "TooManyQuestions": "server/test_server_questions.py::test_a_caller_has_a_few_places_and_leaves_room_for_others",
    "QuestionsBusy": "server/test_server_questions.py::test_all_callers_together_are_limited_too",
    "ServerStopping": "server/test_server_questions.py::test_a_server_that_stops_stops_its_questions",
    "CallerGone": "server/test_server_questions.py::test_a_question_ends_when_its_caller_leaves",
    "DifferentProjects": "change/test_change_doors.py::test_wrong_questions_about_edited_projects[arguments0-DifferentProjects-2]",
    "DifferentKeys": "change/test_change_doors.py::test_wrong_questions_have_a_code_and_no_traceback[arguments7-DifferentKeys-2]",
    "InvalidComparison": "change/test_change_doors.py::test_wrong_questions_have_a_code_and_no_traceback[arguments6-InvalidComparison-2]",
    "RecomputationDiffers": "diagnostics/test_codes_of_commands.py::test_a_value_that_is_another_when_it_is_calculated_again",
    "InvalidSupposition": "change/test_change_doors.py::test_wrong_questions_about_causes_and_suppositions[arguments3-InvalidSupposition-2]",
    "UnknownBreakpoint": "server/test_server_captures.py::test_a_run_can_be_asked_for_with_captures",
    "CaptureNotAllowed": "cli/test_cli_captures.py::test_what_is_not_allowed_is_refused_before_there_is_a_run[arguments2-1-CaptureNotAllowed]",
    "CaptureNotFound": "server/test_server_captures.py::test_nobody_of_another_tenant_reads_a_capture_whatever_their_role",
    "CaptureExpired": "cli/test_cli_capture_lifetimes.py::test_an_expired_capture_cannot_be_read_and_is_collected",
    "CaptureNotReady": "cli/test_cli_captures.py::test_a_capture_that_failed_tells_why",
    "CaptureDamaged": "diagnostics/test_codes_of_commands.py::test_a_capture_that_was_changed",
    "CaptureAccessDenied": "cli/test_cli_capture_lifetimes.py::test_reading_takes_a_role_that_may",
    "InvalidTraceMessage": "diagnostics/test_codes_of_commands.py::test_bounds_and_messages_that_cannot_be",
    "InvalidNodeId": "tracelink/test_trace_ids.py::test_a_node_id_that_does_not_fit_is_refused[-1]",
    "InvalidBlock": "tracelink/test_trace_id_blocks.py::test_what_cannot_be_a_block_is_refused",
    "TraceIdsExhausted": "tracelink/test_trace_ids.py::test_the_end_of_the_timestamps_is_an_error_and_not_an_overflow",
    "NodeIdTaken": "api/test_process_trace_ids.py::test_a_second_process_with_the_same_configured_node_id_mints_nothing_and_says_who_has_it",
    "NodeLeaseLost": "tracelink/test_node_leases.py::test_a_lease_without_keepalive_expires_and_cannot_be_revived",
    "NoSuchNode": "server/test_server_nodes.py::test_bad_requests_are_refused[POST-/nodes/7/revoke-None-404]",
    "ForkedGenerator": "tracelink/test_trace_ids.py::test_a_forked_process_cannot_mint_its_parents_ids_again",
    "InvalidBounds": "diagnostics/test_codes_of_commands.py::test_bounds_and_messages_that_cannot_be",
    "AddressUnusable": "diagnostics/test_codes_of_commands.py::test_an_address_and_a_stage_that_cannot_be",
    "RemoteNotAllowed": "cli/test_cli_collect.py::test_a_collector_listens_for_other_machines_only_when_asked_to",
    "InvalidStage": "diagnostics/test_codes_of_commands.py::test_an_address_and_a_stage_that_cannot_be",
    "TraceNotFound": "cli/test_cli_collect.py::test_lineage_from_python",
    "NotSignedIn": "server/test_single_sign_on.py::test_a_refusal_of_the_provider_is_told",
    "Forbidden": "cli/test_cli_sessions.py::test_only_admins_see_sessions",
    "ForgedRequest": "server/test_server_signing_in.py::test_another_site_cannot_sign_somebody_in",
    "TooManyAttempts": "server/test_server_signing_in.py::test_attempts_to_sign_in_are_limited",
    "ProviderUnusable": "server/test_single_sign_on.py::test_a_provider_that_is_down_is_one_clear_page",
    "IdTokenRefused": "server/test_single_sign_on.py::test_a_code_cannot_be_redeemed_by_who_has_not_asked_for_it",
    "NoGroupWithRole": "server/test_single_sign_on.py::test_a_role_changes_at_the_next_sign_in",
    "UnsafeSignIn": "server/test_single_sign_on.py::test_a_server_that_others_reach_needs_tls_for_it",
    "TooManyStreams": "server/test_server_events.py::test_a_caller_holds_a_few_streams_and_can_open_another_when_one_ends",
    "InvalidRequest": "server/test_pages.py::test_buttons_give_signed_packs_of_the_run_and_of_the_value",
    "NoSuchAddress": "server/test_server_runs.py::test_a_plan_is_found_by_its_digest_and_a_version_by_its_number",
    "MethodNotAllowed": "diagnostics/test_codes_of_commands.py::test_a_method_that_an_address_does_not_have",
    "TooLarge": "server/test_server_protection.py::test_a_body_that_is_too_large_is_refused_unread",
    "UnknownHost": "server/test_server_protection.py::test_a_request_for_another_host_is_refused[]",
    "ProjectChanged": "server/test_pages_activation.py::test_what_was_decided_on_another_file_or_version_is_not_done",
    "TokensNeeded": "server/test_server_process.py::test_beyond_this_machine_it_needs_tokens_and_says_so",
    "AddressTaken": "server/test_server_process.py::test_a_port_that_is_taken_is_named",
    "CertificateUnusable": "server/test_server_tls.py::test_a_certificate_that_is_of_no_use_is_named_before_anything_is_served",
    "NoSuchSession": "cli/test_cli_sessions.py::test_what_is_not_open_cannot_end",
    "NoSuchToken": "runs/test_runs_approval.py::test_deleting_and_tokens_are_for_admins[token revoke no-such-token-admin-None]",
    "ServerUnreachable": "server/test_server_tls.py::test_with_a_certificate_everything_goes_over_tls",
    "WrongUsage": "cli/test_cli_plan.py::test_the_project_must_be_named",
    "UnwritableOutput": "trace/test_trace_commands.py::test_a_page_that_cannot_be_written_is_told_with_its_name",
    "FileSystemFailed": "cli/test_cli_entry.py::test_a_disk_that_fails_is_no_bug",
    "InternalError": "cli/test_cli_entry.py::test_a_mistake_of_clew_itself_says_so_and_shows_no_traceback",
    "TooSlow": "server/test_server_process.py::test_a_client_that_never_finishes_its_body_is_answered_and_cut_off",
    "IncompleteTrace": "trace/test_trace_commands.py::test_a_run_that_failed_before_it_had_loaded_anything_says_so",
    "NotRecomputable": "change/test_change_doors.py::test_wrong_questions_about_causes_and_suppositions[arguments7-NotRecomputable-1]",
    "NoCommonKey": "diagnostics/test_codes_of_commands.py::test_captures_of_two_runs_without_a_key_in_common",
    "NoMatchingColumn": "cli/test_cli_captures.py::test_what_is_not_allowed_is_refused_before_there_is_a_run[arguments5-1-NoMatchingColumn]",
    "StoreRefusedValue": "diagnostics/test_codes_of_commands.py::test_a_number_that_is_longer_than_trace_ids",
    "StepInterrupted": "cli/test_cli_queue.py::test_a_step_that_is_under_way_is_cancelled_with_its_run",
    "DeliveryFailed": "cli/test_cli_queue.py::test_the_attempts_of_a_delivery_are_a_setting",
    "CommandLost": "integrations/test_clew_command.py::test_a_program_that_is_killed_may_be_tried_again",
}
"""Tests that are watched while they run."""

NAMED: Mapping[str, str] = {
    "CutNotReproduced": "scenarios/test_scenario_cuts.py::test_stand_ins_that_take_another_way_are_refused_to_those_who_see_and_not_told_to_others",
    "NotQuick": "scenarios/test_quick.py::test_what_only_a_run_on_spark_makes_up_is_refused_and_not_called_passed",
    "StoreReadOnly": "cli/test_read_only_workspaces.py::test_commands_read_what_nobody_may_write_and_rows_only_where_no_record_is_asked_for",
    "UnrecordedRead": "cli/test_read_only_workspaces.py::test_commands_read_what_nobody_may_write_and_rows_only_where_no_record_is_asked_for",
    "WeakSecret": "engine/test_secret_options.py::test_a_short_value_or_an_ordinary_word_is_refused_as_a_secret",
    "AmbiguousRun": "cli/test_cli_runs.py::test_the_beginning_of_an_id_has_to_tell_runs_apart",
    "TotalsDiffer": "engine/test_engine_reconciliation.py::test_a_run_that_loses_a_row_is_not_completed",
    "CheckFailed": "engine/test_engine_checks.py::test_a_check_that_fails_stops_the_run_before_its_output_and_says_so_everywhere",
    "SourceUnavailable": "engine/test_engine_periods.py::test_an_input_without_rows_of_the_period_is_an_error_and_a_retry_finds_them",
    "JoinNotUnique": "engine/test_run_commands.py::test_a_rate_published_twice_fails_the_step_and_a_retry_after_the_fix_completes",
    "TraceWriteFailure": "engine/test_engine_runs.py::test_a_trace_that_cannot_be_written_fails_the_step_and_a_retry_completes",
    "RowsMissing": "engine/test_engine_counts.py::test_a_file_that_is_lost_before_it_is_committed_fails_the_step",
    "StorageNotShared": "engine/test_engine_disks.py::test_a_run_whose_storage_is_not_shared_is_refused_before_its_first_step",
    "OutputConflict": "engine/test_engine_outputs.py::test_what_is_in_the_way_is_said_before_anything_is_written",
    "DestinationUnavailable": "engine/test_engine_tables.py::test_a_refused_password_fails_the_run_and_a_retry_after_the_fix_completes",
    "SparkMissing": "engine/test_spark_versions.py::test_what_needs_spark_says_how_to_install_it_and_leaves_nothing",
    "SparkUnsupported": "engine/test_spark_versions.py::test_a_pyspark_that_is_too_old_is_refused_before_anything_of_it_is_used",
    "SparkNotStarted": "engine/test_spark_session.py::test_a_jvm_that_does_not_start_is_one_error_with_its_complaint",
    "ConnectMissing": "engine/test_spark_session.py::test_spark_connect_without_its_libraries_is_reported",
    "TableVersionGone": "engine/test_table_inputs.py::test_a_vacuumed_version_is_told_and_nothing_wrong_is_shown",
    "BudgetExceeded": "engine/test_captures.py::test_a_job_beyond_its_budget_is_stopped_and_sends_nothing",
    "CaptureAbandoned": "engine/test_captures.py::test_a_capture_that_always_loses_its_worker_is_given_up",
}
"""Tests on Spark, in a process of their own, or slow: they name the code that they expect, and are not watched."""

WITHIN: Mapping[str, tuple[str, str]] = {
    "UnknownCapability": (
        "plan/test_plan_capabilities.py::test_an_engine_without_a_capability_refuses_the_plan_and_names_all_that_is_missing",
        "this engine has every capability that a plan can ask for",
    ),
    "RunDeleted": (
        "store/test_store_events.py::test_a_whole_run_can_be_deleted_once_it_has_ended",
        "run ids are drawn at random: no request names one that was deleted",
    ),
    "LateWrite": (
        "runs/test_runs_records.py::test_a_worker_that_has_lost_its_run_writes_no_records",
        "a worker that has lost its run leaves it to the other, and tells its log",
    ),
    "UnfencedWrite": (
        "runs/test_runs_records.py::test_a_run_that_no_worker_has_started_takes_no_records",
        "only workers write what changes a run, and they have a token",
    ),
    "EventAfterTheEnd": (
        "runs/test_runs_records.py::test_a_run_that_has_ended_takes_no_records",
        "workers and signals look at the state of the run first",
    ),
    "OutOfDate": (
        "store/test_store_events.py::test_a_decision_on_an_outdated_state_is_refused",
        "whoever meets it looks again and decides anew",
    ),
    "WriteBudgetExceeded": (
        "runs/test_runs_budget.py::test_a_step_whose_completion_stays_over_the_budget_fails_the_run",
        "it is the error of a step, which `clew show` shows",
    ),
    "TooLargeForHistory": (
        "store/test_store_events.py::test_a_batch_is_stored_as_a_whole_or_not_at_all",
        "events hold references and counts, whose sizes are limited before",
    ),
    "InvalidSecretReference": (
        "runs/test_runs_secrets.py::test_anything_else_is_not_a_reference",
        "files with such a reference are refused when they are read",
    ),
    "SparkUnavailable": (
        "engine/test_spark_work.py::test_a_spark_that_went_away_is_a_failure_for_now",
        "it takes a Spark that goes away; the step is tried again",
    ),
    "TraceIntegrityError": (
        "trace/test_trace_bad_input.py::test_two_parts_that_created_the_same_rows_are_a_contradiction",
        "it takes two parts that contradict each other, which no run writes",
    ),
}
"""Codes that no test meets at a door: a test of the package that raises it, and why."""


@contextmanager
def watched(node_id: str) -> Iterator[None]:
    """Fails a test of `WATCHED` that ends without having raised its codes behind a door."""
    name = node_id.removeprefix("tests/")
    expected = {code for code, test in WATCHED.items() if test == name}
    if name.startswith(f"{TOLD_BY_CHECK}["):
        expected.add(name.removeprefix(f"{TOLD_BY_CHECK}[").removesuffix("]"))
    if not expected:
        yield
        return
    made = set[str]()
    real = Code.at

    def noted(self: Code, span: Span | None, *, hint: str | None = None, **params: object) -> Diagnostic:
        if self.name in expected and _is_behind_a_door():
            made.add(self.name)
        return real(self, span, hint=hint, **params)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Code, "at", noted)
        yield
    if missing := sorted(expected - made):
        pytest.fail(f"tests/diagnostics/doors.py says that this test raises {', '.join(missing)} behind a door")


def _is_behind_a_door() -> bool:
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        if str(frame.f_globals.get("__name__")).startswith(DOORS):
            return True
        frame = frame.f_back
    return False
