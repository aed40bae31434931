"""The option that every command shares which reads the service's settings."""

import os
import sys
from pathlib import Path

import click

from rm_service.settings import Settings, SettingsError, read_settings

config_option = click.option(
    "--config",
    "config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A file whose keys replace those of config/default.yaml; RM_* variables replace both.",
)


def settings_or_exit(config: Path | None) -> Settings:
    """The effective settings; faults are told, one a line, and end the command like a wrong option."""
    try:
        return read_settings(config, os.environ)
    except SettingsError as error:
        for line in str(error).splitlines():
            click.echo(line, err=True)
        sys.exit(2)
