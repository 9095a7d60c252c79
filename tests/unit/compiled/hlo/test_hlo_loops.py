"""Trip counts equal the lengths in the programs' source."""

from collections import Counter

import pytest
from hlo_samples import EXPECTED, NAMES, module, of_opcode, text

from chipwise.compiled import hlo

LOOP = """HloModule loop

%wrapped_compare (p0: s32[], p1: s32[]) -> pred[] {{
  %p0 = s32[] parameter(0)
  %p1 = s32[] parameter(1)
  ROOT %lt = pred[] compare(%p0, %p1), direction={direction}
}}

%condition (c: (s32[], s32[], s32[])) -> pred[] {{
  %c = (s32[], s32[], s32[]) parameter(0)
  %count = s32[] get-tuple-element(%c), index=0
  %end = s32[] get-tuple-element(%c), index=1
  ROOT %test = pred[] fusion(%count, %end), kind=kLoop, calls=%wrapped_compare
}}

%plus (q0: s32[], q1: s32[]) -> s32[] {{
  %q0 = s32[] parameter(0)
  %q1 = s32[] parameter(1)
  ROOT %sum = s32[] add(%q0, %q1)
}}

%body (b: (s32[], s32[], s32[])) -> (s32[], s32[], s32[]) {{
  %b = (s32[], s32[], s32[]) parameter(0)
  %before = s32[] get-tuple-element(%b), index=0
  %kept = s32[] get-tuple-element(%b), index=1
  %step = s32[] get-tuple-element(%b), index=2
  %copied = s32[] copy(%before)
  %after = s32[] fusion(%copied, %step), kind=kLoop, calls=%plus
  ROOT %next = (s32[], s32[], s32[]) tuple(%after, {kept}, %step)
}}

ENTRY %main (n: s32[]) -> s32[] {{
  %n = s32[] parameter(0)
  %first = s32[] constant({first})
  %last = s32[] constant({last})
  %by = s32[] constant({by})
  %start = (s32[], s32[], s32[]) tuple(%first, {bound}, %by)
  %loop = (s32[], s32[], s32[]) while(%start), condition=%condition, body=%body{config}
  %unchanged = s32[] get-tuple-element(%loop), index=1
  %again = (s32[], s32[], s32[]) tuple(%first, %unchanged, %by)
  %second = (s32[], s32[], s32[]) while(%again), condition=%condition, body=%body{config}
  ROOT %out = s32[] get-tuple-element(%second), index=0
}}
"""


def count(**changes: object) -> tuple[int | None, int | None]:
    given: dict[str, object] = {
        "direction": "LT", "first": 0, "last": 8, "by": 1, "kept": "%kept", "bound": "%last", "config": "",
    }  # fmt: skip
    whole = hlo.parse(LOOP.format(**(given | changes)))
    return hlo.trip_count(whole, whole.entry["loop"]), hlo.trip_count(whole, whole.entry["second"])


@pytest.mark.parametrize("name", NAMES)
def test_trip_counts_are_the_lengths_in_the_source(name: str) -> None:
    found = [hlo.trip_count(module(name), loop) for loop in of_opcode(name, "while")]
    assert Counter(found) == Counter(EXPECTED[name]["loops"])


def test_reading_the_counter_agrees_with_the_count_xla_wrote_down() -> None:
    whole = hlo.parse(text("fsdp_scan_h100").replace('"known_trip_count"', '"hidden"'))
    loops = [i for c in whole.computations.values() for i in c if i.opcode == "while"]
    assert [hlo.trip_count(whole, loop) for loop in loops] == EXPECTED["fsdp_scan_h100"]["loops"]


@pytest.mark.parametrize(
    ("changes", "rounds"),
    [
        ({}, 8),
        ({"by": 3}, 3),
        ({"first": 2, "by": 3, "last": 11}, 3),
        ({"first": 9, "last": 0, "by": -1, "direction": "GT"}, 9),
        ({"first": 9, "last": 0, "by": -1, "direction": "GE"}, 10),
        ({"direction": "LE"}, 9),
        ({"direction": "NE", "by": 2}, 4),
        ({"direction": "EQ"}, 0),
        ({"first": 8, "direction": "EQ"}, 1),
        ({"last": 0}, 0),
        ({"by": 0}, None),
        ({"direction": "NE", "by": 3}, None),
        ({"by": -1}, None),
        ({"bound": "%n"}, None),
        ({"kept": "%after"}, None),
        ({"config": ', backend_config={"known_trip_count":{"n":"5"}}', "bound": "%n"}, 5),
    ],
)
def test_counts_through_fusions_copies_and_carried_constants(changes: dict[str, object], rounds: int | None) -> None:
    assert count(**changes) == (rounds, rounds)


def test_a_bound_carried_through_an_outer_loop() -> None:
    nested = """HloModule nested

%inner_condition (c: (s32[], s32[])) -> pred[] {
  %c = (s32[], s32[]) parameter(0)
  %i = s32[] get-tuple-element(%c), index=0
  %n = s32[] get-tuple-element(%c), index=1
  ROOT %lt = pred[] compare(%n, %i), direction=GT
}

%inner_body (b: (s32[], s32[])) -> (s32[], s32[]) {
  %b = (s32[], s32[]) parameter(0)
  %j = s32[] get-tuple-element(%b), index=0
  %m = s32[] get-tuple-element(%b), index=1
  %one = s32[] constant(1)
  %next = s32[] add(%one, %j)
  ROOT %t = (s32[], s32[]) tuple(%next, %m)
}

%outer_condition (oc: (s32[], s32[])) -> pred[] {
  %oc = (s32[], s32[]) parameter(0)
  %oi = s32[] get-tuple-element(%oc), index=0
  %four = s32[] constant(4)
  ROOT %olt = pred[] compare(%oi, %four), direction=LT
}

%outer_body (ob: (s32[], s32[])) -> (s32[], s32[]) {
  %ob = (s32[], s32[]) parameter(0)
  %oj = s32[] get-tuple-element(%ob), index=0
  %limit = s32[] get-tuple-element(%ob), index=1
  %zero = s32[] constant(0)
  %start = (s32[], s32[]) tuple(%zero, %limit)
  %inner = (s32[], s32[]) while(%start), condition=%inner_condition, body=%inner_body
  %ran = s32[] get-tuple-element(%inner), index=1
  %two = s32[] constant(2)
  %onext = s32[] add(%oj, %two)
  ROOT %ot = (s32[], s32[]) tuple(%onext, %ran)
}

ENTRY %main (x: s32[]) -> (s32[], s32[]) {
  %x = s32[] parameter(0)
  %zero = s32[] constant(0)
  %limit = s32[] constant(13)
  %start = (s32[], s32[]) tuple(%zero, %limit)
  ROOT %outer = (s32[], s32[]) while(%start), condition=%outer_condition, body=%outer_body
}
"""
    whole = hlo.parse(nested)
    assert hlo.trip_count(whole, whole.entry.root) == 2
    assert hlo.trip_count(whole, whole.computations["outer_body"]["inner"]) == 13
