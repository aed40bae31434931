"""`rm-service providers`: who is asked about external resources, how that goes, and what they last said."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

import click
from rich.console import RenderableType
from rich.text import Text

from rm_service.api_client import Document, ProblemError
from rm_service.commands.connection import Service, asks_service
from rm_service.commands.paging import next_page, page_options
from rm_service.commands.parameters import read_amounts
from rm_service.commands.provider_config import hinted, read_config
from rm_service.commands.show_by_default import ShowByDefault
from rm_service.commands.tables import BLANK, amount_text, amounts_text, facts, moment_text, plain, table

PLACE_AMOUNTS = ("total", "used", "guaranteed", "pending")


def _path(_context: click.Context, _argument: click.Parameter, name: str | None) -> str | None:
    """The path of a provider that is written TYPE/NAME."""
    if name is None:
        return None
    type_, slash, own = name.partition("/")
    if not (type_ and slash and own):
        raise click.BadParameter(f"{name!r}: write it as TYPE/NAME, like yarn/c1")
    return path_of(type_, own)


def path_of(type_: str, name: str) -> str:
    """Where a provider is below /api/v1."""
    return f"/providers/{quote(type_, safe='')}/{quote(name, safe='')}"


provider_argument = click.argument("path", metavar="TYPE/NAME", callback=_path)


@click.group(cls=ShowByDefault)
def providers() -> None:
    """List, set, look at and remove providers of external resources.

    `providers` lists them, `providers TYPE/NAME` shows all about one.
    """


@providers.command()
@click.argument("path", metavar="[TYPE/NAME]", required=False, callback=_path)
@asks_service
def show(service: Service, path: str | None) -> None:
    """List all providers, or show one."""
    if path is None:
        service.show(service.client.get("/providers"), providers_view)
    else:
        service.show(service.client.get(path), provider_view)


@providers.command("set")
@click.argument("type_", metavar="TYPE")
@click.argument("name", metavar="NAME")
@click.option(
    "--config",
    "configs",
    metavar="FILE|KEY=VALUE",
    multiple=True,
    required=True,
    help="A YAML or JSON file, or one key with its value: a number, a list, a text in quotes as YAML writes"
    " it, else a text as it stands; may be repeated. headers.NAME is a key of the object headers. KEY=@FILE"
    " takes a text from a file, so that a secret is not seen in the list of processes.",
)
@click.option(
    "--labels", metavar="SELECTOR", help="The labels that it speaks for; the plugin knows a default."
)
@click.option("--policy", type=click.Choice(["deny", "last_known", "ignore"]), help="When it is stale.")
@click.option("--refresh", "refresh_seconds", type=int, help="Seconds between two looks.")
@click.option("--stale", "stale_seconds", type=int, help="Seconds after which a look is stale.")
@click.option(
    "--protected",
    metavar="DIMENSION=QUANTITY,...",
    callback=read_amounts,
    help="What must stay free in each place.",
)
@asks_service
def set_provider(
    service: Service, type_: str, name: str, configs: Iterable[str], policy: str | None, **options: object
) -> None:
    """Store a provider; what is not said here takes its default. *** keeps a secret that is stored."""
    body: Document = {key: value for key, value in options.items() if value is not None}
    if policy is not None:
        body["stale_policy"] = policy
    body["config"] = config = read_config(configs)
    try:
        stored = service.client.put(path_of(type_, name), body)
    except ProblemError as error:
        raise hinted(error, config) from None
    service.show(stored, provider_view)


@providers.command()
@provider_argument
@asks_service
def remove(service: Service, path: str) -> None:
    """Take a provider away."""
    service.client.delete(path)
    service.show({"path": path}, lambda _: [Text("the provider is removed")])


@providers.command()
@provider_argument
@click.option("--place", help="Only the place of this name.")
@page_options
@asks_service
def snapshot(service: Service, path: str, place: str | None, page: Document) -> None:
    """Show the places of a provider as they were at the last look, by name."""
    service.show(service.client.get(f"{path}/snapshot", {"place": place, **page}), snapshot_view)


@providers.command()
@provider_argument
@click.option("--place", help="Only those in the place of this name.")
@page_options
@asks_service
def applications(service: Service, path: str, place: str | None, page: Document) -> None:
    """Show what ran there at the last look, whoever asked for it, by their ids."""
    service.show(service.client.get(f"{path}/applications", {"place": place, **page}), applications_view)


def providers_view(document: Document) -> Iterator[RenderableType]:
    """A line for each provider, and what is wrong below it."""
    rows = []
    for one in document["items"]:
        standing = one["standing"] or {}
        rows.append(
            [
                f"{one['type']}/{one['name']}",
                standing.get("state"),
                _age_text(standing),
                standing.get("breaker"),
                one["stale_policy"],
                one["labels"],
                _problem(standing),
            ]
        )
    heads = ["provider", "state", "age", "breaker", "when stale", "labels", "problem"]
    yield table(heads, rows, right=["age"], whole=["provider"]) if rows else Text("there are no providers")
    for fault in document["plugin_faults"]:
        by = ", ".join(fault["distributions"])
        yield Text(plain(f"the plugin {fault['type']} of {by} is not used: {fault['reason']}"))


def provider_view(one: Document) -> Iterator[RenderableType]:
    """All about one provider."""
    standing = one["standing"] or {}
    yield facts(
        [
            ("provider", f"{one['type']}/{one['name']}"),
            ("labels", one["labels"]),
            *((f"config {key}", value) for key, value in one["config"].items()),
            ("when stale", f"{one['stale_policy']}, after {one['stale_seconds']} s"),
            ("refreshed", f"every {one['refresh_seconds']} s"),
            ("protected", amounts_text(one["protected"])),
            ("changed", moment_text(one["updated_at"])),
            *standing_facts(standing),
        ]
    )


def standing_facts(standing: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    """How a provider stands."""
    yield "state", standing.get("state")
    yield "breaker", standing.get("breaker")
    yield "age", _age_text(standing)
    health, error = standing.get("health"), standing.get("last_error")
    if standing.get("problem"):
        yield "problem", standing["problem"]
    if standing.get("stuck"):
        yield "calls that hang", standing["stuck"]
    if health is not None:
        yield "health", f"{'ok' if health['ok'] else 'not ok'} {health['detail']}".strip()
    if error is not None:
        yield "last error", f"{moment_text(error['time'])} {error['kind']}: {error['reason']}"


def snapshot_view(document: Document) -> Iterator[RenderableType]:
    """A line for each place and dimension, after how the provider stands."""
    yield facts([("provider", f"{document['type']}/{document['name']}"), *standing_facts(document)])
    yield BLANK
    rows: list[list[object]] = []
    for place in document["items"]:
        lead: list[object] = [place["name"], "yes" if place["open"] else "no"]
        dimensions = dict.fromkeys(name for amounts in PLACE_AMOUNTS for name in place[amounts])
        for dimension in dimensions or [""]:
            amounts = [amount_text(dimension, place[name].get(dimension)) for name in PLACE_AMOUNTS]
            rows.append([*lead, dimension, *amounts])
            lead = [BLANK, BLANK]
    if rows:
        yield table(["place", "open", "dimension", *PLACE_AMOUNTS], rows, right=PLACE_AMOUNTS)
    else:
        yield Text("no place was seen")
    yield from next_page(document)


def applications_view(document: Document) -> Iterator[RenderableType]:
    """A line for each application."""
    rows = [
        [one["id"], one["place"], one["state"], one["user"], amounts_text(one["allocated"]), one["name"]]
        for one in document["items"]
    ]
    heads = ["application", "place", "state", "user", "allocated", "name"]
    yield table(heads, rows, whole=["application"]) if rows else Text("no application was seen")
    yield from next_page(document)


def _age_text(standing: Mapping[str, Any]) -> str:
    age = standing.get("age_seconds")
    return plain(None if age is None else f"{age:.0f} s{', stale' if standing['stale'] else ''}")


def _problem(standing: Mapping[str, Any]) -> str | None:
    error = standing.get("last_error")
    failing = standing.get("state") in {"failing", "quarantined"}
    return standing.get("problem") or (error["reason"] if failing and error is not None else None)
