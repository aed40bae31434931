"""What every provider has to keep to, as tests. Any provider can be run through them, with pytest or without.

With pytest:

    class TestMine(ProviderContract):
        @pytest.fixture
        def subject(self) -> Subject:
            return Subject(MyProvider(), config, troubles=..., hangs=...)

Without: `check_provider(subject)`. What is not kept raises Violation, whose text says what.
"""

from external_providers.testkit import checks
from external_providers.testkit.servers import http_hangs, http_troubles
from external_providers.testkit.subject import Config, Subject, Trouble, Violation

__all__ = [
    "CHECKS",
    "Config",
    "ProviderContract",
    "Subject",
    "Trouble",
    "Violation",
    "check_provider",
    "http_hangs",
    "http_troubles",
]

CHECKS = (
    checks.check_identity,
    checks.check_good_config,
    checks.check_unknown_keys,
    checks.check_missing_fields,
    checks.check_wrong_types,
    checks.check_secrets_are_marked,
    checks.check_places,
    checks.check_applications,
    checks.check_health,
    checks.check_troubles,
    checks.check_hangs,
    checks.check_threads,
)


def check_provider(subject: Subject) -> None:
    """Run all checks. Raises the first Violation."""
    for check in CHECKS:
        check(subject)


class ProviderContract:
    """The checks as tests of a class. Its subclass brings a fixture `subject`."""

    def test_its_identity_is_one_and_the_same(self, subject: Subject) -> None:
        checks.check_identity(subject)

    def test_a_good_configuration_is_taken_as_it_is(self, subject: Subject) -> None:
        checks.check_good_config(subject)

    def test_an_unknown_key_is_refused_by_name(self, subject: Subject) -> None:
        checks.check_unknown_keys(subject)

    def test_a_missing_field_is_refused_by_name(self, subject: Subject) -> None:
        checks.check_missing_fields(subject)

    def test_a_value_of_another_type_is_refused_by_name(self, subject: Subject) -> None:
        checks.check_wrong_types(subject)

    def test_secrets_are_marked_and_not_shown(self, subject: Subject) -> None:
        checks.check_secrets_are_marked(subject)

    def test_places_are_well_formed(self, subject: Subject) -> None:
        checks.check_places(subject)

    def test_applications_are_well_formed_and_at_home(self, subject: Subject) -> None:
        checks.check_applications(subject)

    def test_health_is_told(self, subject: Subject) -> None:
        checks.check_health(subject)

    def test_a_manager_in_trouble_is_told_as_such(self, subject: Subject) -> None:
        checks.check_troubles(subject)

    def test_a_manager_that_hangs_is_given_up_in_time(self, subject: Subject) -> None:
        checks.check_hangs(subject)

    def test_several_threads_may_ask_at_a_time(self, subject: Subject) -> None:
        checks.check_threads(subject)
