"""One line for whatever pydantic found: the field, the value, what is accepted."""

from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

from chipwise.errors import InputError, UnknownName
from chipwise.io.schema_errors import Wording, validate


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Disk(Strict):
    gib: int = Field(ge=1, le=4096, description="Size of the disk.")


class Tape(Strict):
    reels: int


class Host(Strict):
    name: Annotated[str, Field(pattern="^[a-z]+$")]
    share: float = Field(0.5, gt=0, le=1)
    kind: Literal["spot", "ondemand"] = "spot"
    disks: list[Disk] = []
    labels: dict[str, Disk] = {}
    store: (
        Annotated[
            Annotated[Disk, Tag("disk")] | Annotated[Tape, Tag("tape")],
            Discriminator(lambda value: "tape" if "reels" in value else "disk"),
        ]
        | None
    ) = None


WORDING = Wording(schema="chipwise schema", patterns={"^[a-z]+$": "lower-case letters"})


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"name": "A"}, "name: 'A' is not accepted; expected lower-case letters"),
        ({"share": 0.0}, "share: 0.0 is not accepted; expected a number of more than 0"),
        ({"disks": [{}]}, "disks[0].gib: missing; expected a value: size of the disk"),
        ({"disks": [{"gib": 0}]}, "disks[0].gib: 0 is not accepted; expected a whole number of at least 1"),
        ({"disks": [{"gib": 9999}]}, "disks[0].gib: 9999 is not accepted; expected a whole number of at most 4,096"),
        ({"disks": [{"gb": 1}]}, "disks[0].gb: unknown key 'gb' (did you mean gib?)"),
        ({"labels": {"disks": {"gb": 1}}}, "labels.disks.gb: unknown key 'gb'"),
        (
            {"store": {"reels": 1, "reel": 2}},
            "store.reel: unknown key 'reel' (did you mean r",
        ),
        ({"kind": "on-demand"}, "kind: 'on-demand' is not accepted; expected one of spot, ondemand (did you mean ond"),
        ({"kind": "x"}, "kind: 'x' is not accepted; expected one of spot, ondemand"),
        ({"disks": {"gib": 1}}, "disks: {'gib': 1} is not accepted; expected a list"),
        ({"na\nme": 1}, "na\\nme: unknown key 'na\\\\nme' (did you mean name?)"),
    ],
)
def test_an_error_names_the_field_the_value_and_what_is_accepted(change, line):
    with pytest.raises(InputError) as raised:
        validate(Host, {"name": "a", **change}, WORDING)
    assert str(raised.value).startswith(line)


def test_an_unknown_key_comes_before_what_is_missing():
    with pytest.raises(UnknownName, match="nmae"):
        validate(Host, {"nmae": "a"}, WORDING)


def test_values_of_secret_sections_are_never_shown():
    with pytest.raises(InputError) as raised:
        validate(Host, {"name": "a", "labels": {"token": "hunter2"}}, Wording(secret=frozenset({"labels"})))
    assert "hunter2" not in str(raised.value) and str(raised.value).startswith("labels.token: 'its value'")
    with pytest.raises(InputError) as raised:
        validate(Host, {"name": "a", "disks": {"token": "hunter2"}}, Wording(secret=frozenset({"labels"})))
    assert "hunter2" not in str(raised.value)
