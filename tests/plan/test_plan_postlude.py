"""`after_request`: jobs, their anchors, the tasks they may have, sinks and budgets."""

from collections.abc import Callable

import pytest

from clew.plan.postlude import ALLOWED_TASKS, Budget, EmitCaptureStoreTask, EmitTrainingLogTask
from tests.plan.plan_workspaces import Checked

Check = Callable[..., Checked]


def with_tasks(*tasks: str) -> str:
    listed = "".join(f"\n            - {task}" for task in tasks)
    return f"""
        - seq: 1
          name: drop
          type: delete
          assign: point
          after_request:{listed}
    """


ALL_TASKS = (
    "filter: amount > 1 AND orders.region IS NOT NULL",
    "take: 100",
    "sample: {rows: 50}",
    "project: [order_id, amount, _period]",
    "describe: {columns: [amount]}",
    "histogram: {column: amount, bins: 20}",
    "topk: {column: order_id, k: 3}",
    "serialize_rowset: {format: arrow, mode: raw}",
    "emit_training_log: {sink: training, ttl_days: 7}",
    "emit_capture_store: {store: review}",
)


def test_a_job_has_anchor_digest_when_budget_tasks_and_sinks(check: Check) -> None:
    plan = check("""
        - seq: 4
          name: drop
          type: delete
          assign: point
          after_request:
            - name: log
              when: run.mode = "prod" AND run.rows > 0 AND run.period <> "2026-01"
              budget: {timeout_seconds: 5, max_rows: 10}
              tasks: [{describe: {}}, {serialize_rowset: {}}, {emit_training_log: {sink: training}}]
            - tasks: [{take: 1}]
    """).plan
    job, other = plan.extensions.postlude_jobs
    assert (job.anchor, job.anchor_seq, job.name) == ("p::main::point", 4, "log")
    assert job.when is not None
    assert job.budget == Budget(timeout_seconds=5, max_rows=10, max_bytes=None)
    assert job.sinks == ("training",)
    assert len(job.digest) == 64
    assert job.digest != other.digest
    assert job.id != other.id
    assert (other.anchor, other.when, other.sinks) == (job.anchor, None, ())


def test_all_allowed_tasks_compile_and_a_list_of_tasks_is_one_job(check: Check) -> None:
    [job] = check(with_tasks(*ALL_TASKS)).plan.extensions.postlude_jobs
    assert [task.task for task in job.tasks] == [task.partition(":")[0] for task in ALL_TASKS]
    assert {task.task for task in job.tasks} == set(ALLOWED_TASKS)
    assert job.sinks == ("training", "review")


def test_how_long_things_are_kept_is_for_the_environment_to_say_where_the_job_does_not(check: Check) -> None:
    [job] = check(with_tasks(*ALL_TASKS)).plan.extensions.postlude_jobs
    assert [task.ttl_days for task in job.tasks if isinstance(task, EmitTrainingLogTask | EmitCaptureStoreTask)] == [
        7,
        None,
    ]


def test_the_same_tasks_have_the_same_digest_wherever_they_stand(check: Check) -> None:
    operation = "- {seq: %d, name: x%d, type: delete, after_request: [{take: 5}]}"
    first, second = check("\n".join(operation % (seq, seq) for seq in (1, 2))).plan.extensions.postlude_jobs
    assert first.digest == second.digest
    assert first.id != second.id
    assert first.anchor != second.anchor


@pytest.mark.parametrize("task", ["join", "call_models", "fetch_features", "write", "filtr"])
def test_all_other_tasks_are_refused(check: Check, task: str) -> None:
    found = check(with_tasks("take: 1", f"«{task}»: {{a: 1}}"))
    found.reports("TaskNotAllowed")
    assert found.plans == {}
    expected = 'did you mean "filter"?' if task == "filtr" else f"allowed: {', '.join(ALLOWED_TASKS)}"
    assert found.hints == [expected]


def test_a_job_is_anchored_to_the_latest_label_of_its_own_instance(check: Check) -> None:
    jobs = check(
        """
        - {seq: 1, name: a, type: delete, assign: first}
        - {seq: 2, use: {fragment: f, as: x}}
        - {seq: 5, name: b, type: delete, after_request: [{take: 1}]}
        - {seq: 6, name: c, type: delete, assign: second, after_request: [{take: 2}]}
        """,
        files={
            "fragments/f.yaml": """
                id: f
                operations:
                  - {seq: 1, name: inside, type: delete, after_request: [{take: 3}]}
                  - {seq: 2, name: labelled, type: delete, assign: inner}
            """
        },
    ).plan.extensions.postlude_jobs
    assert [(job.anchor, job.anchor_seq) for job in jobs] == [
        ("p::x::__step_2", 2),
        ("p::main::first", 1),
        ("p::main::second", 6),
    ]


def test_a_job_sees_the_columns_at_its_anchor_and_not_those_that_came_later(check: Check) -> None:
    found = check("""
        - {seq: 1, name: a, type: delete, assign: early}
        - seq: 2
          name: b
          type: update
          arguments: {assignments: [{column: late, expression: amount}]}
          after_request: [{filter: «late» > 1}, {describe: {columns: [amount, «late»]}}]
    """)
    found.reports("UnknownColumn", "UnknownColumn")
    assert all("p::main::early" in str(hint) for hint in found.hints)


def test_tasks_after_a_project_see_the_kept_columns_only(check: Check) -> None:
    check(with_tasks("project: [amount]", "filter: «region» IS NULL", "topk: {column: «region»}")).reports(
        "UnknownColumn", "UnknownColumn"
    )


@pytest.mark.parametrize(
    ("task", "code"),
    [
        ("filter: «amout» > 1", "UnknownColumn"),
        ("filter: «amount»", "TypeMismatch"),
        ("filter: «SUM»(amount) > 1", "AggregateNotAllowed"),
        ('filter: "«{{other}}»"', "UnknownSelector"),
        ("project: [amount, «amout»]", "UnknownColumn"),
        ("project: [amount, «amount»]", "DuplicateColumn"),
        ("describe: {columns: [«amout»]}", "UnknownColumn"),
        ("histogram: {column: «amout»}", "UnknownColumn"),
        ("topk: {column: «amout»}", "UnknownColumn"),
        ("take: «0»", "InvalidValue"),
        ("sample: {rows: «-1»}", "InvalidValue"),
        ("serialize_rowset: {format: «csv»}", "InvalidValue"),
    ],
)
def test_what_a_task_names_is_checked_at_its_place(check: Check, task: str, code: str) -> None:
    check(with_tasks(task), selectors="named: amount > 1").reports(code)


@pytest.mark.parametrize(
    ("task", "code"),
    [
        ("emit_training_log: {sink: «trainin»}", "SinkNotAllowed"),
        ("emit_training_log: {sink: «review»}", "SinkNotAllowed"),
        ("emit_capture_store: {store: «nowhere»}", "SinkNotAllowed"),
        ("emit_capture_store: {store: review, ttl_days: «8»}", "InvalidValue"),
    ],
)
def test_sinks_must_be_allowed_somewhere(check: Check, task: str, code: str) -> None:
    check(with_tasks("serialize_rowset: {}", task)).reports(code)


def test_nothing_can_be_sent_before_it_is_serialised(check: Check) -> None:
    check(with_tasks("emit_training_log: «{sink: training}»", "serialize_rowset: {}")).reports("InvalidValue")


@pytest.mark.parametrize(
    ("when", "code"),
    [
        ("«amount» > 1", "UnknownColumn"),
        ("«run.rows»", "TypeMismatch"),
        ("«orders».amount > 1", "UnknownTable"),
        ("run.«row» > 1", "UnknownColumn"),
    ],
)
def test_the_when_of_a_job_asks_about_the_run_only(check: Check, when: str, code: str) -> None:
    check(with_tasks(f"{{when: {when}, tasks: [{{take: 1}}]}}")).reports(code)


def test_nothing_is_said_about_sinks_where_the_settings_cannot_be_read(check: Check) -> None:
    check(
        with_tasks("serialize_rowset: {}", "emit_training_log: {sink: training}"),
        files={"clew.yaml": "name: shop\n«enviroments»: {}\n"},
    ).reports("UnknownKey")
