"""The configuration service over HTTP: POST with combinations, answered with their limits."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from tenacity import RetryCallState, Retrying, retry_if_exception_type
from tenacity.wait import wait_exponential, wait_random

from external_providers.base import DeniedError, UnreachableError
from rm_service.domain.limits import source_owner
from rm_service.domain.tags import Tags
from rm_service.ledger.ledger import Ledger
from rm_service.services.external.fetching import ATTEMPTS, Clocks
from rm_service.services.limit_sources.answers import question, read_answer
from rm_service.services.limit_sources.http_call import post
from rm_service.services.limit_sources.limit_sources import LimitSources, SourceSettings
from rm_service.services.limit_sources.metrics import SourceMetrics
from rm_service.services.limit_sources.sources import Said

NAME = "http"
"""What `GET /limits` calls it."""
_OF_THE_WAIT = 0.9
"""A question ends a little before who waits for it gives up, and so it can learn how it ended."""
_PAUSES = wait_exponential(0.1, 1.0) + wait_random(0, 0.1)


@dataclass(frozen=True, slots=True)
class HttpSource:
    """A limit source behind an address."""

    url: str
    seconds: float
    """For a whole question, with its repetitions."""
    clocks: Clocks
    token_file: str | None = None
    """Read before each question, so that it may be changed at any time."""

    def limits_of(self, combinations: Sequence[Tags]) -> Said:
        """Raises UnreachableError, DeniedError, MalformedError; asked again is what had no answer."""
        headers = {"Content-Type": "application/json", "Accept": "application/json", **self._token()}
        body = question(combinations)
        deadline = self.clocks.monotonic() + self.seconds

        def too_late(state: RetryCallState) -> bool:
            late = self.clocks.monotonic() + state.upcoming_sleep >= deadline
            return late or state.attempt_number >= ATTEMPTS

        def ask() -> bytes:
            left = deadline - self.clocks.monotonic()
            if left <= 0:
                raise UnreachableError("no whole answer in time")
            return post(self.url, body, headers, left)

        retrying = Retrying(
            retry=retry_if_exception_type(UnreachableError),
            wait=_PAUSES,
            stop=too_late,
            sleep=self.clocks.pause,
            reraise=True,
        )
        return read_answer(retrying(ask), combinations)

    def _token(self) -> dict[str, str]:
        if self.token_file is None:
            return {}
        try:
            token = Path(self.token_file).read_text(encoding="ascii").strip()
        except (OSError, UnicodeError) as error:
            raise DeniedError(f"the token cannot be read: {type(error).__name__}") from None
        if not token or not token.isprintable():
            raise DeniedError("the file of the token holds none")
        return {"Authorization": f"Bearer {token}"}

    def __str__(self) -> str:
        """For logs: the query and what stands before the host may hold a secret, and are left out."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def http_limit_sources(
    ledger: Ledger,
    url: str,
    settings: SourceSettings,
    *,
    token_file: str | None = None,
    metrics: SourceMetrics | None = None,
) -> LimitSources:
    """Limits as the configuration service at this address has them."""
    clocks = Clocks(time.monotonic, lambda: time.time_ns() // 1000, time.sleep)
    seconds = _OF_THE_WAIT * settings.timeout_seconds
    source = HttpSource(url, seconds, clocks, token_file)
    return LimitSources(ledger, source, source_owner(NAME), settings, clocks, metrics)
