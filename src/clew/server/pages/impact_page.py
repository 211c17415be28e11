"""What a project as edited would have changed in a run: shown before its file is activated."""

from collections.abc import Callable

from clew.change.impact import OutputImpact, PlanImpact, StepImpact
from clew.deferred import dataclass
from clew.diagnostics import UserError, render
from clew.privacy.seen_trace import SeenTrace
from clew.server.pages import addresses, words
from clew.server.pages.compare_page import number_text

_STYLES = {"same": "", "changed": "updated", "added": "created", "removed": "deleted"}


@dataclass(frozen=True, slots=True)
class ShownStep:
    """A step of the run or of the edited project."""

    seq: int
    name: str
    fate: str
    style: str
    told: str


@dataclass(frozen=True, slots=True)
class MovedOutput:
    """An output, and the totals of it that would move."""

    name: str
    sentence: str
    totals: tuple[tuple[str, str, str, str], ...]


@dataclass(frozen=True, slots=True)
class ImpactPage:
    """What would be different."""

    run_id: str
    run_address: str
    title: str
    period: str
    project: str
    project_address: str
    is_answered: bool
    summary: str
    steps: tuple[ShownStep, ...]
    outputs: tuple[MovedOutput, ...]
    remarks: tuple[str, ...]
    problem: str | None


def impact_page(trace: SeenTrace, project: str, ask: Callable[[], PlanImpact]) -> ImpactPage:
    """The answer, or why there is none. `ask` raises UserError if the project cannot be tried on the run."""
    answer, problem = None, None
    try:
        answer = ask()
    except UserError as error:
        problem = "\n".join(render(each, lambda _file: None) for each in error.diagnostics)
    return ImpactPage(
        run_id=trace.run_id,
        run_address=addresses.run(trace.run_id),
        title=words.isolated(trace.plan.title),
        period=trace.period,
        project=project,
        project_address=addresses.project(project),
        is_answered=answer is not None,
        summary=_summary(answer) if answer else "",
        steps=tuple(map(_step, answer.steps)) if answer else (),
        outputs=tuple(map(_output, answer.outputs)) if answer else (),
        remarks=(*answer.controls, *(each.sentence for each in answer.broken)) if answer else (),
        problem=problem,
    )


def _summary(found: PlanImpact) -> str:
    if found.is_same:
        return "The run would have given what it gave"
    return f"{found.reused} of {words.counted(len(found.steps), 'step')} come before the first difference"


def _step(step: StepImpact) -> ShownStep:
    return ShownStep(step.seq, step.name, step.fate, _STYLES[step.fate], step.told)


def _output(output: OutputImpact) -> MovedOutput:
    return MovedOutput(
        name=f"{output.seq} · {output.name}",
        sentence=output.sentence,
        totals=tuple(
            (each.name, number_text(each.total_a), number_text(each.total_b), number_text(each.difference, sign="+"))
            for each in output.moved
        ),
    )
