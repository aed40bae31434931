"""The command `rm-service`: a group of commands, each loaded when it is asked for."""

from collections.abc import Mapping
from importlib import import_module

import click

import rm_service

COMMANDS: Mapping[str, str] = {
    "serve": "service:serve",
    "migrate": "service:migrate",
    "token": "tokens:token",
    "secret-key": "secret_key:secret_key",
    "replay": "replay:replay",
    "usage": "usage:usage",
    "nodes": "nodes:nodes",
    "classes": "classes:classes",
    "applications": "applications:applications",
    "engines": "engines:engines",
    "explain": "explain:explain",
    "limits": "limits:limits",
    "labels": "labels:labels",
    "events": "events:events",
    "providers": "providers:providers",
    "resource-managers": "resource_managers:resource_managers",
    "audit": "audit:audit",
    "top": "top:top",
}
"""Where each command is: module below rm_service.commands, and its name there."""


class LazyGroup(click.Group):
    """Imports a command's module when the command is used: `rm-service nodes` needs no server."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's own interface
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        place = COMMANDS.get(cmd_name)
        if place is None:
            return None
        module, _, name = place.partition(":")
        command: click.Command = getattr(import_module(f"rm_service.commands.{module}"), name)
        return command


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(rm_service.__version__, prog_name="rm-service")
def main() -> None:
    """A resource manager that books, locks and gives back amounts by tag."""
