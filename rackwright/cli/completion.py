"""rackwright completion: Tab in bash, zsh and fish."""

from __future__ import annotations

import typer

from rackwright.cli.lines import say_exactly
from rackwright.completion.scripts import Shell, script

completion_app = typer.Typer(
    help="Print what makes a shell complete commands, options, files, and the names of a cluster file's nodes."
)


@completion_app.command()
def bash() -> None:
    """Print the script for bash: `rackwright completion bash > ~/.local/share/bash-completion/completions/rackwright`."""
    say_exactly(script(Shell.BASH))


@completion_app.command()
def zsh() -> None:
    """Print the script for zsh: save it as `_rackwright` in a folder of $fpath, before compinit runs."""
    say_exactly(script(Shell.ZSH))


@completion_app.command()
def fish() -> None:
    """Print the script for fish: `rackwright completion fish > ~/.config/fish/completions/rackwright.fish`."""
    say_exactly(script(Shell.FISH))
