"""What every command that asks a service shares: where the service is, who asks, and how it may end.

Exit codes: 0 done, 1 the service refused, 2 the command line is wrong, 3 the service cannot be reached.
"""

import functools
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import click
import orjson
from rich.console import Console, RenderableType

from rm_service.api_client import (
    DEFAULT_URL,
    ApiClient,
    Document,
    ProblemError,
    UnexpectedAnswerError,
    UnreachableError,
    host_of,
)
from rm_service.commands.problems import describe_problem
from rm_service.commands.tables import make_console

REFUSED = 1
NOT_REACHABLE = 3

View = Callable[[Document], Iterable[RenderableType]]
"""How a document of the API is shown to people."""


@dataclass(frozen=True, slots=True)
class Service:
    """The service that a command asks, and the form in which its answers are shown."""

    client: ApiClient
    console: Console
    as_json: bool

    def show(self, document: Document, view: View) -> None:
        """Print an answer: with --json as it is, else as `view` draws it."""
        if self.as_json:
            print_json(document)
            return
        for part in view(document):
            self.console.print(part)


def print_json(document: Document) -> None:
    """One JSON document on a line of its own."""
    click.echo(orjson.dumps(document).decode())


def read_token(token: str | None, file: Path | None) -> str | None:
    """The token to send: the given one, else the file's first line, else none."""
    if token or file is None:
        return token
    lines = file.read_text(encoding="utf-8").split()
    if not lines:
        raise click.UsageError(f"the token file {file} is empty")
    return lines[0]


def _check_url(_context: click.Context, _option: click.Parameter, url: str) -> str:
    try:
        host_of(url)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error
    return url


url_option = click.option(
    "--url",
    envvar="RM_URL",
    default=DEFAULT_URL,
    show_default=True,
    callback=_check_url,
    help="Where the service is [RM_URL].",
)
token_option = click.option(
    "--token-file",
    envvar="RM_TOKEN_FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A file with the access token [RM_TOKEN_FILE]; or give the token itself as RM_TOKEN.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts.")


def client_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command --url and --token-file; it is called with `url` and `token`."""

    @url_option
    @token_option
    @click.option("--token", envvar="RM_TOKEN", hidden=True, help="Seen by others in the list of processes.")
    @functools.wraps(command)
    def with_token(*args: Any, token: str | None, token_file: Path | None, **options: Any) -> Any:  # noqa: ANN401
        return command(*args, token=read_token(token, token_file), **options)

    return with_token


def asks_service(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command --url, --token-file and --json; its first argument becomes the `Service`."""

    @client_options
    @json_option
    @functools.wraps(command)
    def with_service(*args: Any, url: str, token: str | None, as_json: bool, **options: Any) -> None:  # noqa: ANN401
        client = ApiClient(url, token)
        try:
            command(Service(client, make_console(), as_json), *args, **options)
        except (ProblemError, UnreachableError, UnexpectedAnswerError) as error:
            end_with(error, as_json=as_json)
        finally:
            client.close()

    return with_service


def end_with(error: Exception, *, as_json: bool) -> NoReturn:
    """Say why there is no result, and exit with its code. `as_json`: a problem is printed as it is."""
    if isinstance(error, ProblemError):
        if as_json:
            print_json(error.document)
        else:
            console = make_console(stderr=True)
            for part in describe_problem(error.document):
                console.print(part)
        sys.exit(REFUSED)
    click.echo(f"Error: {error}", err=True)
    sys.exit(NOT_REACHABLE if isinstance(error, (UnreachableError, UnexpectedAnswerError)) else REFUSED)
