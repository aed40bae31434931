"""What docs/external-providers.md prints is what works."""

import json
from pathlib import Path

import pytest
import yaml

from external_providers.base import ExternalApplication, ExternalResourceRequest, Place, ProviderRecord
from external_providers.http_json import HttpJsonProvider
from external_providers.static import StaticProvider
from rm_service.domain.label_rules import LabelRules
from tests.external_providers.json_server import JsonServer
from tests.external_providers.page import EXAMPLES, listing


@pytest.mark.parametrize("name", ["slurm_provider.py", "test_slurm_provider.py"])
def test_the_listings_are_the_very_files(name: str) -> None:
    assert listing(name) == (EXAMPLES / name).read_text(encoding="utf-8")


def test_a_provider_has_fifty_lines() -> None:
    assert sum(1 for line in listing("slurm_provider.py").splitlines() if line) <= 50


def test_the_label_rule_leads_to_the_place() -> None:
    rules = LabelRules.from_document(yaml.safe_load(listing("rule.yaml"))["label_rules"])
    tags = {"externalCluster": "lab", "externalPlace": "gpu.train", "user": "alice"}
    (label,) = rules.labels_for(tags)
    assert label.rule.external == StaticProvider.identity.type
    assert label.tags.keys() == {StaticProvider.identity.cluster_key, StaticProvider.identity.place_key}


def test_the_file_of_the_static_provider_is_read(tmp_path: Path) -> None:
    (tmp_path / "lab.yaml").write_text(listing("lab.yaml"), encoding="utf-8")
    provider = StaticProvider()
    record = ProviderRecord("static", "lab", {"path": str(tmp_path / "lab.yaml")})
    request = ExternalResourceRequest(provider.parser.parse(record), 10)
    assert [place.name for place in provider.places(request)] == ["gpu.train", "gpu.test"]
    assert [each.place for each in provider.applications(request)] == ["gpu.train"]


def test_the_expressions_find_what_the_answer_holds() -> None:
    provider = HttpJsonProvider()
    with JsonServer() as server:
        server.answers["/v1/state"] = json.loads(listing("answer.json"))
        config = yaml.safe_load(listing("cad.yaml")) | {"url": f"{server.url}/v1/state"}
        request = ExternalResourceRequest(
            provider.parser.parse(ProviderRecord("http-json", "cad", config)), 10
        )
        assert provider.places(request) == [
            Place(
                "lab.cad",
                total={"cad.memory": 2 << 30, "cad.vcore": 4000},
                used={"cad.memory": 512 << 20, "cad.vcore": 250},
            )
        ]
        assert provider.applications(request) == [
            ExternalApplication(
                "17", "lab.cad", {"cad.memory": 512 << 20}, user="alice", tags=frozenset({"nightly", "rm-7"})
            )
        ]
