"""The provider against a fake API server: what it asks, what it makes of it, and what goes wrong."""

import gzip
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from external_providers.base import DeniedError, MalformedError, ProviderError, UnreachableError
from external_providers.kubernetes import KubernetesProvider, api
from tests.external_providers.kubernetes.asking import Keys, ask
from tests.external_providers.kubernetes.fake_api import FakeApi
from tests.kubernetes.objects import namespace, node, pod, quota

PROVIDER = KubernetesProvider()
SECRET_TOKEN = "very-secret"  # noqa: S105 - an example

CLUSTER = [
    namespace("a", labels={"team": "x"}),
    namespace("b"),
    node("n1", {"cpu": "8", "memory": "32Gi", "pods": "110"}),
    quota("a", "q", {"requests.cpu": "4"}, {"requests.cpu": "1"}),
    pod("a", "p", {"cpu": "1"}, node="n1", labels={"rm-service/application": "7"}),
    pod("b", "p", {"cpu": "2"}, node="n1"),
    pod("b", "done", {"cpu": "2"}, node="n1", phase="Succeeded"),
]

LISTS = ["/api/v1/namespaces", "/api/v1/resourcequotas", "/api/v1/nodes", "/api/v1/pods"]


@pytest.fixture
def cluster() -> Iterator[FakeApi]:
    with FakeApi(*CLUSTER) as served:
        yield served


def test_places_are_namespaces(cluster: FakeApi) -> None:
    found = {place.name: place for place in PROVIDER.places(ask({"server": cluster.url}))}
    assert set(found) == {"a", "b"}
    assert (found["a"].total["k8s.vcore"], found["a"].used["k8s.vcore"]) == (4000, 1000)
    assert (found["b"].total["k8s.vcore"], found["b"].used["k8s.vcore"]) == (8000, 3000)


def test_applications_are_those_that_hold_something(cluster: FakeApi) -> None:
    found = {held.id: held for held in PROVIDER.applications(ask({"server": cluster.url}))}
    assert set(found) == {"a/application/7", "b/pod/p"}
    assert found["a/application/7"].tags == {"rm-7"}


def test_a_hundred_namespaces_cost_no_more_questions_than_one() -> None:
    many = [namespace(f"n{number}") for number in range(100)]
    with FakeApi(*many, *(quota(found["metadata"]["name"], "q", {"pods": "1"}) for found in many)) as served:
        assert len(PROVIDER.places(ask({"server": served.url}))) == 100
        assert [path for path, _ in served.asked] == LISTS
        PROVIDER.applications(ask({"server": served.url}))
        assert [path for path, _ in served.asked[4:]] == ["/api/v1/pods"]


def test_pods_that_have_ended_are_not_asked_for(cluster: FakeApi) -> None:
    PROVIDER.applications(ask({"server": cluster.url}))
    assert cluster.asked[0][1] == {
        "fieldSelector": "status.phase!=Succeeded,status.phase!=Failed",
        "limit": "500",
    }


@pytest.mark.parametrize("wanted", [["a"], ["a", "nowhere"], "team=x"])
def test_only_the_namespaces_that_are_named_are_places(cluster: FakeApi, wanted: object) -> None:
    request = ask({"server": cluster.url, "namespaces": wanted})
    assert [place.name for place in PROVIDER.places(request)] == ["a"]
    assert [held.id for held in PROVIDER.applications(request)] == ["a/application/7"]


def test_lists_are_read_in_pages() -> None:
    with FakeApi(*(namespace(f"n{number}") for number in range(7)), page=3) as served:
        assert len(PROVIDER.places(ask({"server": served.url}))) == 7
        pages = [query.get("continue") for path, query in served.asked if path == "/api/v1/namespaces"]
        assert pages == [None, "3", "6"]


def test_a_list_that_the_server_has_forgotten_is_begun_anew() -> None:
    with FakeApi(*(namespace(f"n{number}") for number in range(7)), page=3) as served:
        gone = [True]

        def forget(handler: BaseHTTPRequestHandler) -> bool:
            if "continue=6" in handler.path and gone:
                gone.pop()
                served.refuse(handler, 410, "The provided continue parameter is too old")
                return True
            return False

        served.trick = forget
        assert sorted(place.name for place in PROVIDER.places(ask({"server": served.url}))) == [
            f"n{number}" for number in range(7)
        ]


def test_a_list_that_is_forgotten_each_time_is_given_up(cluster: FakeApi) -> None:
    def forget(handler: BaseHTTPRequestHandler) -> bool:
        cluster.refuse(handler, 410, "too old")
        return True

    cluster.trick = forget
    with pytest.raises(UnreachableError, match="forgets the list of namespaces"):
        PROVIDER.places(ask({"server": cluster.url}))


def test_packed_answers_are_unpacked(cluster: FakeApi) -> None:
    cluster.packed = True
    assert len(PROVIDER.places(ask({"server": cluster.url}))) == 2


def test_health_says_the_version(cluster: FakeApi) -> None:
    health = PROVIDER.health(ask({"server": cluster.url}))
    assert (health.ok, health.detail) == (True, "Kubernetes v1.34.4")


# ---- Who may look ----


@pytest.mark.parametrize("resource", ["namespaces", "resourcequotas", "nodes", "pods"])
def test_a_right_that_is_missing_is_named(cluster: FakeApi, resource: str) -> None:
    cluster.denied.add(resource)
    with pytest.raises(DeniedError, match=rf"may not list {resource} \(403\)"):
        PROVIDER.places(ask({"server": cluster.url}))


def test_credentials_travel_over_tls_to_a_server_that_is_known(tmp_path: Path, keys: Keys) -> None:
    with FakeApi(*CLUSTER, token=SECRET_TOKEN, tls=keys.server_side(tmp_path)) as served:
        config = {"server": served.url, "ca_data": keys.authority.certificate, "token": SECRET_TOKEN}
        assert len(PROVIDER.places(ask(config))) == 2


def test_a_wrong_token_is_denied_and_not_shown(tmp_path: Path, keys: Keys) -> None:
    with FakeApi(*CLUSTER, token="right", tls=keys.server_side(tmp_path)) as served:  # noqa: S106 - an example
        config = {"server": served.url, "ca_data": keys.authority.certificate, "token": SECRET_TOKEN}
        with pytest.raises(DeniedError, match="401") as caught:
            PROVIDER.places(ask(config))
        assert SECRET_TOKEN not in str(caught.value)
        assert not PROVIDER.health(ask(config)).ok


def test_a_server_that_nobody_vouches_for_is_told_nothing(tmp_path: Path, keys: Keys) -> None:
    with FakeApi(*CLUSTER, tls=keys.server_side(tmp_path)) as served:
        with pytest.raises(UnreachableError, match="not secure"):
            PROVIDER.places(ask({"server": served.url, "token": SECRET_TOKEN}))
        assert not served.asked


def test_a_client_shows_its_certificate(tmp_path: Path, keys: Keys) -> None:
    with FakeApi(*CLUSTER, tls=keys.server_side(tmp_path, clients=True)) as served:
        ca = {"server": served.url, "ca_data": keys.authority.certificate}
        client = {"client_certificate": keys.client.certificate, "client_key": keys.client.key}
        assert len(PROVIDER.places(ask(ca | client))) == 2
        with pytest.raises(UnreachableError):
            PROVIDER.places(ask(ca))


def test_credentials_that_vanish_later_are_said(tmp_path: Path, keys: Keys) -> None:
    ca = tmp_path / "ca"
    ca.write_text(keys.authority.certificate)
    request = ask({"server": "https://127.0.0.1:1", "ca_file": str(ca)})
    ca.unlink()
    with pytest.raises(DeniedError, match="ca_file"):
        PROVIDER.places(request)
    assert "ca_file" in PROVIDER.health(request).detail


def test_the_environment_lends_no_proxy_and_no_credentials(
    cluster: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login u password p\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    PROVIDER.applications(ask({"server": cluster.url}))
    assert "Authorization" not in cluster.headers[0]


# ---- What goes wrong ----


def answers(content: bytes, status: int = 200, **headers: str) -> Callable[[BaseHTTPRequestHandler], bool]:
    def trick(handler: BaseHTTPRequestHandler) -> bool:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)
        return True

    return trick


def cut(handler: BaseHTTPRequestHandler) -> bool:
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"kind": "NamespaceList", "items": []}')
    handler.close_connection = True
    return True


PACKED = gzip.compress(b"0" * 1000)


@pytest.mark.parametrize(
    ("trick", "error"),
    [
        (answers(b"<html>a page</html>"), MalformedError),
        (answers(b"[]"), MalformedError),
        (answers(b'{"kind": "PodList"}'), MalformedError),
        (answers(b'{"kind": "NamespaceList", "items": {}}'), MalformedError),
        (answers(b'{"kind": "NamespaceList", "items": [{}]}'), MalformedError),
        (answers(b'{"kind": "NamespaceList", "items": [5]}'), MalformedError),
        (answers(b"", 302, Location="http://127.0.0.1:1/"), MalformedError),
        (answers(b"no such page", 404), MalformedError),
        (answers(b"bad gateway", 502), UnreachableError),
        (answers(b"{}", 429), UnreachableError),
        (answers(b"[1]", 500), UnreachableError),
        (answers(b"not packed", Content_Encoding="gzip"), MalformedError),
        (answers(PACKED[:-4], Content_Encoding="gzip"), UnreachableError),
        (cut, UnreachableError),
    ],
)
def test_an_answer_that_is_none_is_an_error(
    cluster: FakeApi, trick: Callable[[BaseHTTPRequestHandler], bool], error: type[ProviderError]
) -> None:
    cluster.trick = trick
    with pytest.raises(error, match=r"127\.0\.0\.1|namespace|Namespace") as caught:
        PROVIDER.places(ask({"server": cluster.url}))
    assert "page" not in str(caught.value)


@pytest.mark.parametrize("packed", [False, True])
def test_a_giant_page_is_not_read_to_its_end(
    cluster: FakeApi, packed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "MAX_PAGE", 100_000)
    content = b" " * 10_000_000
    cluster.trick = answers(gzip.compress(content), Content_Encoding="gzip") if packed else answers(content)
    with pytest.raises(MalformedError, match="more than"):
        PROVIDER.places(ask({"server": cluster.url}))


@contextmanager
def black_hole() -> Iterator[str]:
    """Takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


def test_a_server_that_never_answers_is_given_up() -> None:
    with black_hole() as url:
        with pytest.raises(UnreachableError, match="too long"):
            PROVIDER.places(ask({"server": url}, timeout=0.2))
        assert not PROVIDER.health(ask({"server": url}, timeout=0.2)).ok


def test_an_answer_that_drips_in_is_given_up(cluster: FakeApi) -> None:
    ended = threading.Event()

    def drip(handler: BaseHTTPRequestHandler) -> bool:
        handler.send_response(200)
        handler.send_header("Content-Length", "1000000")
        handler.end_headers()
        while not ended.wait(0.02):
            handler.wfile.write(b" ")
        handler.close_connection = True
        return True

    cluster.trick = drip
    try:
        with pytest.raises(UnreachableError, match="too long"):
            PROVIDER.places(ask({"server": cluster.url}, timeout=0.3))
    finally:
        ended.set()


def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(UnreachableError, match="refused"):
        PROVIDER.places(ask({"server": f"http://127.0.0.1:{port}"}))


def test_an_endless_list_ends_with_the_time(cluster: FakeApi) -> None:
    page = b'{"kind": "NamespaceList", "metadata": {"continue": "again"}, "items": []}'
    cluster.trick = answers(page)
    with pytest.raises(UnreachableError, match="too long"):
        PROVIDER.places(ask({"server": cluster.url}, timeout=0.3))
