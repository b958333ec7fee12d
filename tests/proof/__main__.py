"""The command line behind `make proof`, `make proof-status` and `make proof-pages`."""

from __future__ import annotations

import signal
import sys
from datetime import UTC, datetime
from typing import Annotated

import typer

from rackwright.errors import RackwrightError
from tests.proof import ledger as ledgers
from tests.proof import pages
from tests.proof.runner import ROOT, Runner
from tests.proof.suites import SUITES, Suite, Tier, named
from tests.proof.tree import Tree, touched

_INTERRUPTED = 130

app = typer.Typer(
    help="Suites of long tests, and the ledger of their runs.",
    rich_markup_mode=None,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


@app.command()
def run(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[SUITE]...", help="Default: every suite.")
    ] = None,
    smoke: Annotated[bool, typer.Option("--smoke", help="The small tier, minutes at most.")] = False,
    since: Annotated[
        str | None, typer.Option(metavar="REF", help="Only suites that depend on what changed since REF.")
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Run also what has passed on the same files.")
    ] = False,
) -> None:
    """Run suites; each result goes to docs/proof.json and to the pages made from it."""
    tree, tier = Tree(ROOT), Tier.SMOKE if smoke else Tier.FULL
    chosen = named(names or ())
    if since is not None:
        chosen = touched(chosen, tree.changed_since(since))
        typer.echo(f"proof: depend on what changed since {since}: {_list(chosen) or 'no suite'}")
    runner = Runner(tree, ROOT / pages.LEDGER, ROOT / ".cache" / "proof", typer.echo)
    _interruptible()
    failed = []
    try:
        with runner.alone() as lock:
            for suite in chosen:
                if not runner.run(suite, tier, lock, again=again):
                    failed.append(suite)
                pages.update(ROOT)
    except KeyboardInterrupt:
        typer.echo("proof: interrupted; the same command continues where it stopped", err=True)
        raise typer.Exit(_INTERRUPTED) from None
    typer.echo(f"proof: {len(chosen) - len(failed)} of {len(chosen)} suites passed ({tier})")
    for suite in failed:
        typer.echo(f"  {suite.name}: see {runner.log(suite, tier).relative_to(ROOT)}")
    raise typer.Exit(1 if failed else 0)


@app.command()
def status() -> None:
    """Print each suite's last results and their age in days."""
    ledger, tree, now = ledgers.load(ROOT / pages.LEDGER), Tree(ROOT), datetime.now(UTC)
    typer.echo(f"{'suite':<16}{'tier':<8}{'result':<12}{'age':<10}files")
    for suite in SUITES:
        for tier in Tier:
            record = ledger.record(suite.name, tier)
            if record is None:
                typer.echo(f"{suite.name:<16}{tier:<8}not run")
                continue
            days = (now - record.date).days
            age = f"{days} {'day' if days == 1 else 'days'}"
            files = "changed since" if pages.changed(record, suite, tier, tree) else "unchanged since"
            typer.echo(f"{suite.name:<16}{tier:<8}{record.result:<12}{age:<10}{files}")


@app.command("pages")
def write_pages() -> None:
    """Write docs/proof.md and the table in README from docs/proof.json."""
    pages.update(ROOT)


def _interruptible() -> None:
    """SIGTERM ends a run as Ctrl-C does; in a background job, where a shell ignores SIGINT, that works too."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)


def _list(suites: tuple[Suite, ...]) -> str:
    return ", ".join(suite.name for suite in suites)


def main() -> None:
    """Entry point."""
    try:
        app(prog_name="python -m tests.proof")
    except RackwrightError as error:
        print(f"error: {error.message}", file=sys.stderr)
        if error.hint is not None:
            print(f"hint: {error.hint}", file=sys.stderr)
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
