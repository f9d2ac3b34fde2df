"""Base classes of commands: help, settings files, log lines, and what to do after an interruption."""

import copy
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, NoReturn

import click

from minwise.cli.config import as_toml, set_defaults
from minwise.cli.help import HelpFormat
from minwise.cli.session import Session

__all__ = ["Command", "Group"]

SHOW = "--show-config"


def _read_config(context: click.Context, option: click.Parameter, file: str | None) -> None:
    if not context.resilient_parsing:
        set_defaults(context, file)


CONFIG_OPTIONS = (
    click.Option(
        ["--config"],
        metavar="FILE",
        type=click.Path(),
        default=None,
        is_eager=True,
        expose_value=False,
        callback=_read_config,
        help="Settings file; otherwise ./minwise.toml, or [tool.minwise] of ./pyproject.toml. Options override it.",
    ),
    click.Option(
        [SHOW], is_flag=True, expose_value=False, help="Print the effective settings as a settings file, and exit."
    ),
)


class Command(HelpFormat):
    """Command with a settings file, help under headings, and a hint after an interruption.

    Attributes:
        continues: Whether the same command continues after an interruption.
    """

    def __init__(self, *arguments: Any, continues: bool = False, **rest: Any) -> None:  # noqa: ANN401 - click's own
        super().__init__(*arguments, **rest)
        self.continues = continues
        self.params += [copy.copy(option) for option in CONFIG_OPTIONS]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; with ``--show-config``, print the settings instead of running the command."""
        ctx.meta[SHOW] = SHOW in args
        rest = super().parse_args(ctx, args)
        if ctx.resilient_parsing:
            return rest
        session = ctx.ensure_object(Session)
        session.as_json, session.quiet = bool(ctx.params.get("as_json")), bool(ctx.params.get("quiet"))
        session.continuation = self._continuation(ctx.params)
        if session.quiet and session.verbose:
            raise click.UsageError("--quiet and --verbose exclude each other, got both", ctx)
        if ctx.meta[SHOW]:
            click.echo(as_toml(ctx))
            ctx.exit()
        if session.settings_file is not None and not session.quiet:
            session.log(f"settings from {session.settings_file}", event="settings", file=session.settings_file)
        return rest

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the parameters; none is required for ``--show-config``."""
        params = super().get_params(ctx)
        return [_optional(one) for one in params] if ctx.meta.get(SHOW) else params

    def _continuation(self, given: Mapping[str, Any]) -> str:
        if self.continues:
            return "run the same command again to continue"
        if given.get("work"):
            return f"run the same command again to continue from {given['work']}"
        if "work" in given and given.get("output") != "-":
            return "nothing was kept; give --work DIR to make a run resumable"
        return ""


def _optional(parameter: click.Parameter) -> click.Parameter:
    changed = copy.copy(parameter)
    changed.required = False
    return changed


class Group(HelpFormat, click.Group):
    """Group whose help lists its commands by task."""

    tasks: Mapping[str, tuple[click.Command, ...]]

    def add_tasks(self, tasks: Mapping[str, tuple[click.Command, ...]]) -> None:
        """Add commands; the help lists them below the task, in this order."""
        self.tasks = tasks
        for commands in tasks.values():
            for command in commands:
                self.add_command(command)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands in the order of the help."""
        return list(self.commands)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; without any, print the help."""
        if not args and not ctx.resilient_parsing:
            click.echo(ctx.get_help())
            ctx.exit()
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the first argument names; propose one for a misspelt name."""
        if args[0] not in self.commands and not ctx.resilient_parsing:
            self._refuse(ctx, args[0])
        return super().resolve_command(ctx, args)

    def _refuse(self, ctx: click.Context, name: str) -> NoReturn:
        close = get_close_matches(name, self.commands, n=1)
        proposed = f" Did you mean {close[0]!r}?" if close else f" Commands are: {', '.join(self.commands)}."
        raise click.UsageError(f"No such command {name!r}.{proposed}", ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands by task, then the options."""
        width = max(map(len, self.commands))
        for task, commands in self.tasks.items():
            with formatter.section(task):
                formatter.write_dl([(f"{one.name:<{width}}", one.get_short_help_str(limit=200)) for one in commands])
        super().format_options(ctx, formatter)
