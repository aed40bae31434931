"""One POST within bounds. Redirects are not followed: the question may carry a token."""

from collections.abc import Mapping

from external_providers.bounded_http import Deadline, Question, ask, check_status

MAX_ANSWER = 8 * 1024 * 1024


def post(url: str, body: bytes, headers: Mapping[str, str], seconds: float) -> bytes:
    """The body of a 200 answer.

    Raises UnreachableError (asking again may help), DeniedError for 401 and 403, MalformedError for what is
    no answer to use; none repeats what came.
    """
    answer = ask(Question(url, headers, "POST", body), Deadline(seconds), MAX_ANSWER)
    check_status(answer.status)
    return answer.body
