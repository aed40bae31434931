"""The algebra of the Linkis resource types, and their amounts in the ledger.

"Vector n" are the behaviours of the reference, executed there; docs/resource-types.md lists where we differ.
"""

import copy
import dataclasses
import operator
from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rm_service.domain.amounts import INT64_MAX, INT64_MIN, AmountOverflowError
from rm_service.domain.resource_algebra import (
    Factor,
    Resource,
    ResourceDivisionError,
    ResourceNumberError,
    UnsupportedOperandsError,
)
from rm_service.domain.resource_amounts import from_amounts, resource_tags
from rm_service.domain.resource_types import (
    CPUResource,
    DriverAndKubernetesResource,
    DriverAndYarnResource,
    InstanceResource,
    KubernetesResource,
    LoadInstanceResource,
    LoadResource,
    MemoryResource,
    ResourceType,
    SpecialResource,
    YarnResource,
)
from tests.domain.resource_strategies import TYPES, pairs, resources, resources_of

G = 2**30
LI, DY, DK, K8s = (
    LoadInstanceResource,
    DriverAndYarnResource,
    DriverAndKubernetesResource,
    KubernetesResource,
)
large, small, zero = LI(8 * G, 8, 4), LI(4 * G, 8, 1), LI(0, 0, 0)
queue_1, queue_2 = YarnResource(10 * G, 10, 5, "q1"), YarnResource(4 * G, 4, 9, "q2")

few = st.integers(-2, 2)  # so that equal and ordered numbers are drawn often
numbers = st.integers(-(2**31), 2**31)
places = st.sampled_from(["", "a", "b"])
Operation = Callable[[Resource, Resource], Resource]


def toward_zero(value: Fraction) -> int:
    return -(-value // 1) if value < 0 else value // 1


class TestVectorsOfTheReference:
    def test_1_comparisons(self) -> None:
        assert not large.moreThan(small)
        assert large.caseMore(small)
        assert large.notLessThan(small)
        assert not large.lessThan(small)
        assert not small.lessThan(large)  # the reference: true, because its `less` means "not notLess"

    def test_2_arithmetic(self) -> None:
        assert large - small == LI(4 * G, 0, 3)
        assert small - large == LI(-4 * G, 0, -3)
        assert large / small == LI(2, 1, 4)
        assert large * 0.3 == LI(2576980377, 2, 1)  # the reference: 2576980480 bytes, a 32-bit float's 0.3
        with pytest.raises(ResourceDivisionError, match="memory"):
            large / zero
        with pytest.raises(ResourceDivisionError):
            large / 0

    def test_3_strictly_more_in_all(self) -> None:
        assert not LI(4 * G, 0, 1).moreThan(zero)
        assert not zero.moreThan(LI(-1, 0, 0))

    def test_4_operands_of_two_types(self) -> None:
        assert large + DY(LI(G, 1, 1), queue_1) == LI(9 * G, 9, 5)
        assert large - LoadResource(G, 1) == LI(7 * G, 7, 4)

    def test_5_yarn(self) -> None:
        assert queue_1 + queue_2 == YarnResource(14 * G, 14, 14, "q2")
        assert queue_1 - queue_2 == YarnResource(6 * G, 6, -4, "q2")
        assert queue_1.moreThan(queue_2)
        assert queue_1.notLessThan(queue_2)
        assert not queue_1.equals(dataclasses.replace(queue_1, queue_name="q2"))

    def test_6_driver_without_executors(self) -> None:
        driver_alone = DY(LI(2 * G, 2, 1), YarnResource(0, 0, 0))
        assert not driver_alone.moreThan(DY(zero, YarnResource(0, 0, 0)))
        assert (driver_alone * 0.5).driver == LI(G, 1, 0)

    def test_7_kubernetes(self) -> None:
        ours, theirs = K8s(4 * G, 4000, "a"), K8s(G, 1000, "b")
        assert not ours.notLessThan(theirs)
        assert ours - theirs == K8s(3 * G, 3000, "a")
        # The reference: less and moreThan both true, and equal numbers equal across namespaces.
        assert not ours.lessThan(theirs)
        assert not ours.moreThan(theirs)
        assert not ours.equals(K8s(4 * G, 4000, "b"))

    def test_8_special(self) -> None:
        gpu, both, nothing = (SpecialResource(held) for held in ({"gpu": 2}, {"gpu": 1, "x": 5}, {}))
        assert gpu + both == SpecialResource({"gpu": 3, "x": 5})  # the reference: {gpu: 3}
        assert both + gpu == SpecialResource({"gpu": 3, "x": 5})  # NullPointerException
        assert not nothing.notLessThan(gpu)  # true
        assert gpu.moreThan(nothing)  # error 11003


class TestOrder:
    """Comparisons look at the ordered numbers, of one place; they are sound for any two resources."""

    @given(pairs(few, places))
    def test_comparison_is_dimension_by_dimension(self, pair: tuple[Resource, Resource]) -> None:
        left, right = pair
        assume(left.shares_place_with(right))
        mine, theirs = left.ordered_numbers(), right.ordered_numbers()
        both = [(mine.get(name, 0), theirs.get(name, 0)) for name in mine.keys() | theirs.keys()]
        assert left.notLessThan(right) == all(one >= other for one, other in both)
        assert left.notMoreThan(right) == all(one <= other for one, other in both)
        assert left.moreThan(right) == (bool(both) and all(one > other for one, other in both))
        assert left.lessThan(right) == (bool(both) and all(one < other for one, other in both))
        assert left.caseMore(right) == any(one > other for one, other in both)

    @given(resources(few, places), resources(few, places))
    def test_mirrored_comparisons_agree(self, left: Resource, right: Resource) -> None:
        try:
            facts = (left > right, left < right, left >= right, left <= right)
        except UnsupportedOperandsError:
            with pytest.raises(UnsupportedOperandsError):
                right.notLessThan(left)
            return
        assert facts == (right < left, right > left, right <= left, right >= left)
        assert not (left > right and left < right)
        assert left >= right or not left > right
        assert left <= right or not left < right

    @given(resources(few, places))
    def test_nothing_is_more_than_itself(self, resource: Resource) -> None:
        twin = copy.copy(resource)
        assert resource >= twin
        assert resource <= twin
        assert not resource > twin
        assert not resource < twin

    @given(
        st.sampled_from(TYPES).flatmap(
            lambda kind: st.tuples(*[resources_of(kind, few, st.just("a")) for _ in range(3)])
        )
    )
    def test_order_is_transitive(self, three: tuple[Resource, Resource, Resource]) -> None:
        low, middle, high = three
        assert low <= high or not (low <= middle <= high)
        assert low < high or not (low < middle < high)

    @given(pairs(few, places))
    def test_equal_resources_are_neither_more_nor_less(self, pair: tuple[Resource, Resource]) -> None:
        left, right = pair
        if left == right:
            assert left.equals(right)
            assert hash(left) == hash(right)
            assert left >= right
            assert left <= right
        elif left.shares_place_with(right) and left.numbers() == right.numbers():
            # Only a name makes them different: the queue, which order does not look at.
            assert left >= right
            assert left <= right

    def test_yarn_order_ignores_queue_and_containers_but_equality_does_not(self) -> None:
        one, other = YarnResource(1, 1, 0, "q1"), YarnResource(1, 1, 9, "q2")
        assert one >= other
        assert other >= one
        assert one != other
        assert one != dataclasses.replace(one, cluster_name="east")
        assert one == dataclasses.replace(one, application_id="application_1")

    @pytest.mark.parametrize("compare", [operator.gt, operator.lt, operator.ge, operator.le])
    def test_two_namespaces_are_not_comparable(self, compare: Callable[[Resource, Resource], bool]) -> None:
        one, other = K8s(1, 1, "a"), K8s(9, 9, "b")
        assert not compare(one, other)
        assert not compare(DK(zero, one), DK(zero, other))
        assert not compare(one, DK(zero, other))
        assert not one.caseMore(other)

    def test_smaller_type_is_compared_as_the_wider(self) -> None:
        assert MemoryResource(2) < LoadResource(3, 1)
        assert LoadResource(3, 1) > MemoryResource(2)
        assert not LI(9, 9, 9) >= DY(zero, YarnResource(1, 1, 1, "q"))
        assert LI(1, 1, 1) <= DY(LI(1, 1, 1), YarnResource(1, 1, 1, "q"))
        assert K8s(1, 1, "a") <= DK(zero, K8s(1, 1, "a"))
        assert not MemoryResource(2).equals(LoadResource(2, 0))


class TestArithmetic:
    @given(pairs(numbers, places))
    def test_it_is_dimension_by_dimension(self, pair: tuple[Resource, Resource]) -> None:
        left, right = pair
        mine, theirs = left.numbers(), right.numbers()
        names = mine | theirs
        for operation, plain in (
            (operator.add, operator.add),
            (operator.sub, operator.sub),
            (operator.mul, operator.mul),
        ):
            result = operation(left, right).numbers()
            assert result == {name: plain(mine.get(name, 0), theirs.get(name, 0)) for name in names}

    @given(pairs(numbers, places))
    def test_quotients_are_cut_toward_zero(self, pair: tuple[Resource, Resource]) -> None:
        left, right = pair
        mine, theirs = left.numbers(), right.numbers()
        names = mine | theirs
        if all(theirs.get(name) for name in names):
            expected = {name: toward_zero(Fraction(mine.get(name, 0), theirs[name])) for name in names}
            assert (left / right).numbers() == expected
        else:
            with pytest.raises(ResourceDivisionError) as refusal:
                left.divide(right)
            assert not theirs.get(refusal.value.dimension)

    @given(resources(numbers, places), st.fractions(-100, 100, max_denominator=1000))
    def test_factor_is_exact_and_cut_toward_zero(self, resource: Resource, factor: Fraction) -> None:
        products = {name: toward_zero(number * factor) for name, number in resource.numbers().items()}
        assert (resource * factor).numbers() == products
        if factor:
            quotients = {name: toward_zero(number / factor) for name, number in resource.numbers().items()}
            assert (resource / factor).numbers() == quotients

    @given(resources(numbers, places))
    def test_type_and_names_are_kept(self, resource: Resource) -> None:
        for result in (
            resource + resource,
            resource - resource,
            resource * 2,
            resource / 2,
            resource * resource,
        ):
            assert type(result) is type(resource)
            assert resource_tags(result) == resource_tags(resource)
        assert resource + resource - resource == resource
        assert resource * 3 / 3 == resource

    def test_float_is_the_decimal_number_that_it_prints_as(self) -> None:
        assert MemoryResource(10**18) * 0.1 == MemoryResource(10**17)
        assert MemoryResource(3) / 0.3 == MemoryResource(10)

    def test_sum_of_yarn_takes_the_queue_named_last_and_drops_the_application(self) -> None:
        unnamed = YarnResource(1, 1, 1, application_id="application_1")
        total = queue_1 + unnamed
        assert (total.queue_name, total.application_id) == ("q1", "")
        assert (unnamed + queue_1).queue_name == "q1"
        assert (YarnResource(1, 1, 1, "q", cluster_name="w") + queue_1).cluster_name == "w"
        assert (DY(zero, queue_1) + DY(zero, queue_2)).yarn == queue_1 + queue_2

    def test_smaller_right_operand_is_widened_with_zeros(self) -> None:
        wide = DY(LI(5, 5, 5), queue_1)
        assert LoadResource(1, 1) + MemoryResource(2) == LoadResource(3, 1)
        assert LI(1, 1, 1) + CPUResource(2) == LI(1, 3, 1)
        assert LI(1, 1, 1) + InstanceResource(2) == LI(1, 1, 3)
        assert wide + LI(1, 1, 1) == DY(LI(6, 6, 6), queue_1)
        assert wide - LoadResource(1, 1) == DY(LI(4, 4, 5), queue_1)
        assert wide + queue_2 == DY(LI(5, 5, 5), queue_1 + queue_2)
        assert DK(large, K8s(1, 1, "a")) + K8s(1, 1, "b") == DK(large, K8s(2, 2, "a"))
        assert DK(zero, K8s(1, 1, "a")) + LI(1, 1, 1) == DK(LI(1, 1, 1), K8s(1, 1, "a"))
        assert LI(1, 1, 1) + DK(LI(1, 1, 1), K8s(9, 9)) == LI(2, 2, 2)

    @pytest.mark.parametrize(
        ("left", "right"),
        [
            (MemoryResource(1), CPUResource(1)),
            (MemoryResource(1), LoadResource(1, 1)),
            (CPUResource(1), InstanceResource(1)),
            (large, K8s(1, 1)),
            (large, queue_1),
            (queue_1, K8s(1, 1)),
            (queue_1, DY(large, queue_1)),
            (DY(large, queue_1), DK(large, K8s(1, 1))),
            (LoadResource(1, 1), DY(large, queue_1)),
            (large, SpecialResource({"memory": 1})),
            (SpecialResource({"memory": 1}), MemoryResource(1)),
            (large, SpecialResource({})),
        ],
        ids=lambda resource: type(resource).__name__,
    )
    @pytest.mark.parametrize("operation", [operator.add, operator.sub, operator.mul, operator.truediv])
    def test_types_without_a_common_meaning_are_refused(
        self, left: Resource, right: Resource, operation: Operation
    ) -> None:
        with pytest.raises(UnsupportedOperandsError) as refusal:
            operation(left, right)
        assert (refusal.value.left, refusal.value.right) == (type(left).__name__, type(right).__name__)

    def test_number_is_no_resource(self) -> None:
        with pytest.raises(UnsupportedOperandsError, match="int"):
            large.add(1)  # type: ignore[arg-type]
        with pytest.raises(UnsupportedOperandsError, match="int"):
            large.moreThan(1)  # type: ignore[arg-type]

    @pytest.mark.parametrize(
        "overflowing",
        [
            lambda: MemoryResource(INT64_MAX) + MemoryResource(1),
            lambda: MemoryResource(INT64_MIN) - MemoryResource(1),
            lambda: MemoryResource(2**62) * 2,
            lambda: MemoryResource(2**32) * MemoryResource(2**32),
            lambda: MemoryResource(1) / 1e-300,
            lambda: MemoryResource(INT64_MIN) / -1,
            lambda: MemoryResource(INT64_MAX + 1),
            lambda: SpecialResource({"memory": INT64_MIN - 1}),
        ],
    )
    def test_result_beyond_64_bits_is_refused(self, overflowing: Callable[[], Resource]) -> None:
        with pytest.raises(AmountOverflowError) as refusal:
            overflowing()
        assert refusal.value.dimension == "memory"

    @pytest.mark.parametrize("factor", [float("nan"), float("inf"), True, "2", None, 2**64, 1e300, -(2**100)])
    def test_factor_must_be_a_usable_number(self, factor: Factor) -> None:
        with pytest.raises(ResourceNumberError):
            large.multiply(factor)
        with pytest.raises(ResourceNumberError):
            large.divide(factor)

    @pytest.mark.parametrize("number", [True, 1.0, "1", None])
    def test_numbers_are_integers(self, number: int) -> None:
        with pytest.raises(ResourceNumberError, match="memory"):
            MemoryResource(number)
        with pytest.raises(ResourceNumberError, match="memory"):
            SpecialResource({"memory": number})

    def test_resources_never_change(self) -> None:
        held = {"gpu": 1}
        special = SpecialResource(held)
        held["gpu"] = 2
        assert special.resources == {"gpu": 1}
        with pytest.raises(TypeError):
            special.resources["gpu"] = 2  # type: ignore[index]
        with pytest.raises(dataclasses.FrozenInstanceError):
            large.memory = 1  # type: ignore[misc]


class TestResourceType:
    def test_names_are_those_of_the_reference(self) -> None:
        names = (
            "Default Memory CPU Load Instance LoadInstance Yarn DriverAndYarn Kubernetes DriverAndKubernetes"
        )
        assert {kind.name for kind in ResourceType} == {*names.split(), "Special"}

    @pytest.mark.parametrize("kind", ResourceType)
    def test_class_name_is_understood(self, kind: ResourceType) -> None:
        assert ResourceType(kind.name) is kind
        assert ResourceType(f"{kind.name}Resource") is kind

    @pytest.mark.parametrize("name", ["", "load", "Resource", "LoadResourceResource", None, 1])
    def test_other_names_are_refused(self, name: object) -> None:
        with pytest.raises(ValueError, match="is not a valid ResourceType"):
            ResourceType(name)

    def test_default_means_load(self) -> None:
        assert from_amounts(ResourceType.Default, {"memory": 1, "vcore": 1000}) == LoadResource(1, 1)
