"""HTTP answers with two bounds, for whoever asks somebody else's server: a length, and a time for all of it.

A timeout of the socket is none: it begins anew with every byte that drips in. So the line is cut when the
time is over, whatever it is doing. Redirects are never followed here: a question may carry credentials.

`ask` puts one question on a line of its own; a `BoundedSession` keeps its connections for the next question.
"""

from external_providers.bounded_http.answers import Answer, LateError, NoHttpError, TooLongError, check_status
from external_providers.bounded_http.deadlines import Deadline
from external_providers.bounded_http.questions import Question, ask, origin
from external_providers.bounded_http.sessions import BoundedSession

__all__ = [
    "Answer",
    "BoundedSession",
    "Deadline",
    "LateError",
    "NoHttpError",
    "Question",
    "TooLongError",
    "ask",
    "check_status",
    "origin",
]
