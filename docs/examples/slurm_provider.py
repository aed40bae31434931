"""Slurm's partitions as places: what `sinfo` and `squeue` say of them. CPUs are counted in milli-cores."""

import os
import subprocess
from collections.abc import Callable
from typing import Any

from marshmallow import Schema, fields

from external_providers import base

IDENTITY = base.Identity("slurm", "slurmCluster", "slurmPartition", frozenset({"slurm.vcore"}))


class SlurmSchema(Schema):
    cluster = fields.String()
    token = fields.String(metadata=base.SECRET)


class SlurmProvider(base.ExternalResourceProvider):
    identity = IDENTITY
    parser = base.ExternalResourceProviderParser(IDENTITY, SlurmSchema)

    def applications(self, request: base.ExternalResourceRequest) -> list[base.ExternalApplication]:
        return _ask(request, _application, 5, "squeue", "--states=RUNNING", "--format=%i %P %C %u %k")

    def places(self, request: base.ExternalResourceRequest) -> list[base.Place]:
        return _ask(request, _place, 2, "sinfo", "--format=%R %C")

    def health(self, request: base.ExternalResourceRequest) -> base.Health:
        try:
            return base.Health(ok=True, detail=f"{len(self.places(request))} partitions")
        except base.ProviderError as error:
            return base.Health(ok=False, detail=str(error))


def _place(name: str, cpus: str) -> base.Place:
    allocated, idle, _broken, _all = (1000 * int(count) for count in cpus.split("/"))
    return base.Place(name, total={"slurm.vcore": allocated + idle}, used={"slurm.vcore": allocated})


def _application(job: str, place: str, cpus: str, user: str, comment: str = "") -> base.ExternalApplication:
    held, words = {"slurm.vcore": 1000 * int(cpus)}, frozenset(comment.split())
    return base.ExternalApplication(job, place, held, user=user, tags=words)


def _ask(
    request: base.ExternalResourceRequest, read: Callable[..., Any], words: int, *command: str
) -> list[Any]:
    token, seconds = request.provider.params.get("token"), request.timeout_seconds
    env = {**os.environ, **({"SLURM_JWT": token} if token else {})}
    try:
        said = subprocess.check_output(
            [*command, "--noheader"], env=env, timeout=seconds, text=True, stderr=subprocess.DEVNULL
        )
        return [read(*line.split(maxsplit=words - 1)) for line in said.splitlines()]
    except (OSError, subprocess.SubprocessError) as error:
        raise base.UnreachableError(f"{command[0]} failed: {type(error).__name__}") from None
    except (TypeError, ValueError):
        raise base.MalformedError(f"{command[0]} says what cannot be read") from None
