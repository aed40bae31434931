"""What clients ask of resource classes: create, get, list, delete, and that nothing is changed."""

import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus

from rm_service.domain.class_book import ResourceClass
from rm_service.domain.outcomes import Code, Refused
from rm_service.facades.kubernetes import documents
from rm_service.facades.kubernetes.answers import answer
from rm_service.facades.kubernetes.body_text import Text, read_json
from rm_service.facades.kubernetes.failures import status_of_refusal
from rm_service.facades.kubernetes.media_types import JSON, Form, media_type_of, read_view
from rm_service.facades.kubernetes.merge_patch import MERGE_PATCH, merged
from rm_service.facades.kubernetes.objects import class_object
from rm_service.facades.kubernetes.parameters import Continue, Parameters
from rm_service.facades.kubernetes.reading import (
    Deletion,
    Sent,
    check_class,
    check_unchanged,
    read_class,
    read_deletion,
)
from rm_service.facades.kubernetes.statuses import (
    StatusError,
    already_exists,
    bad_request,
    conflict,
    expired,
    not_found,
    success,
    unsupported_media_type,
)
from rm_service.hosting.answer import Answer
from rm_service.hosting.streams import StreamRequest
from rm_service.services.resource_classes import ClassStanding, ClassStatus, ResourceClasses

NAME_TRIES = 8
"""How often a name is made by chance until there is none of it yet."""


@dataclass(frozen=True, slots=True)
class ClassRequests:
    """The handlers; each returns an answer or raises StatusError. They run on request threads.

    `head` is the number of the outbox's last event.
    """

    classes: ResourceClasses
    head: Callable[[], int]

    def list_all(self, request: StreamRequest, parameters: Parameters) -> Answer:
        """The classes by name. The version of a list is one from which a watch misses nothing."""
        form = form_of(request, parameters)
        chosen, go_on, limit = parameters.chosen, parameters.go_on, parameters.limit
        head = self._check_version(parameters)
        shown = [each for each in self.classes.standings().items if chosen.shows(each.resource_class)]
        shown.sort(key=lambda each: each.resource_class.name)
        if go_on is not None:
            shown = [each for each in shown if each.resource_class.name > go_on.name]
        version = head if go_on is None else go_on.version
        more: dict[str, object] = {}
        if limit and len(shown) > limit:
            last = shown[limit - 1].resource_class.name
            more = {"continue": Continue(version, last).write(), "remainingItemCount": len(shown) - limit}
            shown = shown[:limit]
        return answer(documents.many(form, shown, version, more))

    def get(self, request: StreamRequest, parameters: Parameters, name: str) -> Answer:
        """One class."""
        form = form_of(request, parameters)
        self._check_version(parameters)
        version, standing = self._standing(name)
        return answer(documents.one(form, standing, version))

    def create(self, request: StreamRequest, parameters: Parameters) -> Answer:
        """201 with the object, which has its status at once; a status in the body counts nothing."""
        form, dry_run = form_of(request, parameters), parameters.dry_run
        sent = read_class(request.headers.get("content-type", ""), request.body, parameters)
        if sent.metadata.version:
            raise bad_request("resourceVersion should not be set on objects to be created")
        version, standing = self._rehearse(sent) if dry_run else self._create(sent)
        return answer(documents.one(form, standing, version), HTTPStatus.CREATED, sent.warnings)

    def delete(self, request: StreamRequest, parameters: Parameters, name: str) -> Answer:
        """200 with a Status. Devices that were given by the class stay with their holders."""
        deletion = read_deletion(request.headers.get("content-type", ""), request.body, parameters)
        removed = self._check_deletion(deletion, name)
        if not deletion.dry_run:
            # What was looked at is what is removed, whatever happens meanwhile.
            known = removed.uid if deletion.version is not None else deletion.uid
            outcome = self.classes.remove(name, known)
            if isinstance(outcome, Refused):
                raise status_of_refusal(outcome, name)
            removed = outcome.resource_class or removed
        return answer(success(name, removed.uid))

    def replace(self, request: StreamRequest, parameters: Parameters, name: str) -> Answer:
        """The class as it is, if it is to be what it is already."""
        form = form_of(request, parameters)
        sent = read_class(request.headers.get("content-type", ""), request.body, parameters)
        return self._unchanged(form, sent, name)

    def patch(self, request: StreamRequest, parameters: Parameters, name: str) -> Answer:
        """As `replace`, for a JSON merge patch (RFC 7386)."""
        form = form_of(request, parameters)
        media_type = media_type_of(request.headers.get("content-type", ""))
        if media_type not in {MERGE_PATCH, JSON}:
            raise unsupported_media_type((MERGE_PATCH,))
        patch = read_json(request.body)
        if not isinstance(patch.document, Mapping):
            raise bad_request("the body of the request must be an object")
        version, standing = self._standing(name)
        try:
            patched = merged(class_object(standing, version), patch.document)
        except RecursionError:
            raise bad_request("the body of the request cannot be read: it is nested too deeply") from None
        sent = check_class(Text(patched, patch.doubles), parameters)
        return self._unchanged(form, sent, name)

    def _unchanged(self, form: Form, sent: Sent, name: str) -> Answer:
        version, standing = self._standing(name)
        stored = standing.resource_class
        if sent.metadata.name != name:
            raise bad_request(
                f"the name of the object ({sent.metadata.name}) does not match the name on the URL ({name})"
            )
        if sent.metadata.uid not in {None, stored.uid}:
            raise conflict(name, f"its UID is {stored.uid}")
        check_unchanged(sent, stored)
        return answer(documents.one(form, standing, version), HTTPStatus.OK, sent.warnings)

    def _create(self, sent: Sent) -> tuple[int, ClassStanding]:
        created = self._store(sent)
        version, standing = self.head(), self.classes.standing(created.name)[1]
        if standing is None or standing.resource_class.uid != created.uid:
            # Somebody else has removed it at once.
            return created.version, ClassStanding(created, ClassStatus())
        return version, standing

    def _store(self, sent: Sent) -> ResourceClass:
        """The class under its name, or under one made by chance that nobody has. Raises StatusError (409)."""
        metadata = sent.metadata
        tries = 1 if metadata.name else NAME_TRIES
        while True:
            name = metadata.new_name()
            outcome = self.classes.create(name, sent.spec, metadata.labels, metadata.annotations)
            tries -= 1
            if isinstance(outcome, Refused):
                if outcome.code is not Code.CLASS_EXISTS or not tries:
                    raise status_of_refusal(outcome, name)
            elif outcome.resource_class is not None:
                return outcome.resource_class

    def _rehearse(self, sent: Sent) -> tuple[int, ClassStanding]:
        """What would be created: nothing is, and what it selects is not looked at."""
        name, metadata = sent.metadata.new_name(), sent.metadata
        version, standing = self.head(), self.classes.standing(name)[1]
        if standing is not None:
            raise already_exists(name)
        now = time.time_ns() // 1000
        made = ResourceClass(
            name, str(uuid.uuid4()), sent.spec, metadata.labels, metadata.annotations, now, version
        )
        return version, ClassStanding(made, ClassStatus())

    def _check_deletion(self, deletion: Deletion, name: str) -> ResourceClass:
        """The class as it is now. Raises StatusError (404, 409)."""
        known = self._standing(name)[1].resource_class
        if deletion.uid not in {None, known.uid}:
            raise conflict(
                name,
                f"Precondition failed: UID in precondition: {deletion.uid}, UID in object meta: {known.uid}",
            )
        if deletion.version is not None and deletion.version < known.version:
            raise conflict(name, "Precondition failed: it was created after that resourceVersion")
        return known

    def _standing(self, name: str) -> tuple[int, ClassStanding]:
        """The class, and a number of the outbox that it is not older than. Raises StatusError (404)."""
        version = self.head()
        standing = self.classes.standing(name)[1]
        if standing is None:
            raise not_found(name)
        return version, standing

    def _check_version(self, parameters: Parameters) -> int:
        """The number of the last event. Raises StatusError (410) if a later state is asked for."""
        head, asked = self.head(), parameters.resource_version
        if asked is not None and asked > head:
            raise from_the_future(asked, head)
        return head


def form_of(request: StreamRequest, parameters: Parameters) -> Form:
    """How the answer is to be written. Raises StatusError (406, 422)."""
    return Form(read_view(request.headers.get("accept", "")), parameters.include)


def from_the_future(asked: int, head: int) -> StatusError:
    """A version that nobody was told: it is another database's."""
    return expired(f"Too large resource version: {asked}, current: {head}")
