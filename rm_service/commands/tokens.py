"""`rm-service token create | list | revoke`: who may ask."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import click
from sqlalchemy.exc import SQLAlchemyError

from rm_service.commands.settings_option import config_option, settings_or_exit
from rm_service.domain.tags import value_fault
from rm_service.ledger.database import reader_engine
from rm_service.services.tokens import TokenExistsError, Tokens, UnknownTokenError


@click.group()
def token() -> None:
    """The tokens with which requests say who they are."""


@token.command()
@click.argument("name")
@config_option
def create(name: str, config: Path | None) -> None:
    """Make a token and print it: this is the only time that it can be seen."""
    fault = "must not be empty" if not name else value_fault(name)
    if fault:
        raise click.BadParameter(fault, param_hint="NAME")
    with _tokens(config) as tokens:
        click.echo(tokens.create(name))


@token.command("list")
@config_option
def list_tokens(config: Path | None) -> None:
    """List the names of all tokens, with when they were made and revoked."""
    with _tokens(config) as tokens:
        for each in tokens.all():
            revoked = "" if each.revoked_at is None else f"  revoked {_day(each.revoked_at)}"
            click.echo(f"{each.name}  made {_day(each.created_at)}{revoked}")


@token.command()
@click.argument("name")
@config_option
def revoke(name: str, config: Path | None) -> None:
    """Let a token count no more; running services follow within seconds."""
    with _tokens(config) as tokens:
        tokens.revoke(name)


@contextmanager
def _tokens(config: Path | None) -> Iterator[Tokens]:
    """The tokens of the configured database; what goes wrong is told, and ends the command."""
    engine = reader_engine(settings_or_exit(config).database_url)
    try:
        yield Tokens(engine)
    except (TokenExistsError, UnknownTokenError) as error:
        click.echo(str(error), err=True)
        sys.exit(1)
    except SQLAlchemyError as error:
        reason = str(getattr(error, "orig", error)).strip()
        click.echo(f"the database cannot be used (is it migrated?): {reason}", err=True)
        sys.exit(1)
    finally:
        engine.dispose()


def _day(instant: int) -> str:
    return datetime.fromtimestamp(instant / 1_000_000, UTC).strftime("%Y-%m-%d %H:%M")
