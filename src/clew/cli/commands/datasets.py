"""`clew datasets`."""

from pathlib import Path

import click

from clew.cli.options import argument, command, environment_option, workspace_option
from clew.cli.output import say, write_json
from clew.cli.session import Session


@command
@argument("name", metavar="NAME", required=False, help="Show one dataset, with its columns and versions.")
@environment_option
@workspace_option
def datasets(context: click.Context, name: str | None, environment: str | None, workspace: Path | None) -> None:
    """List the datasets that files declare or runs registered."""
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
            say("no datasets; declare them in datasets/*.yaml")
