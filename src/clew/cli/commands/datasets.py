"""`clew datasets`."""

from typing import Annotated

import typer

from clew.cli.output import EnvironmentOption, JsonOption, VerboseOption, WorkspaceOption, say, write_json
from clew.cli.session import Session


def datasets(
    context: typer.Context,
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="One dataset, with its columns and versions.", show_default=False),
    ] = None,
    environment: EnvironmentOption = None,
    workspace: WorkspaceOption = None,
    _json: JsonOption = False,
    _verbose: VerboseOption = False,
) -> None:
    """List datasets, declared by files or registered by runs."""
    from clew.cli.views.page import show
    from clew.cli.views.tables import dataset_page, dataset_table

    session = context.ensure_object(Session)
    with session.open(workspace, environment) as opened:
        if name is not None:
            view = opened.datasets.find(name)
            if session.wants_json:
                write_json(view.to_json())
            else:
                show(*dataset_page(view))
            return
        views = opened.datasets.all()
        if session.wants_json:
            write_json({"datasets": [view.to_json() for view in views]})
        elif views:
            show(dataset_table(views))
        else:
            say("no datasets; datasets/*.yaml declare them")
