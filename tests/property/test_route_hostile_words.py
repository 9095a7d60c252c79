"""Whatever words a job has, its program gets them byte for byte and no shell sees them."""

import json
import os
import sys
import tempfile
import time
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from patience import PATIENCE_S

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "unit"))
from route_cases import launch, pool

from chipwise.route.backend import RUNNING, SUCCEEDED
from chipwise.route.backends.local.backend import LocalBackend

HOSTILE = [
    "$(touch pwned)",
    "`touch pwned`",
    "; touch pwned",
    "| touch pwned",
    "&& touch pwned",
    "> pwned",
    "\n touch pwned",
    "'",
    '"',
    "\\",
    "$HOME",
    "${IFS}",
    "*",
    "~",
    "-rf",
    "--",
    "",
    " ",
    "\t",
    "%s%n",
    "{}",
    "#SBATCH --wrap=x",
    "\r\n",
    "a=b",
    "ünïcødé",
    "\udcff\udc80",
    "\x1b[31m",
    "😀",
    "$((1+1))",
    "!!",
    "^a^b",
    "//",
    "../../etc/passwd",
]
# any text a program can be given: no NUL, surrogates only as bytes that were not UTF-8
TEXT = st.one_of(
    st.sampled_from(HOSTILE),
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20),
    st.binary(max_size=12).map(lambda b: b.replace(b"\0", b"").decode("utf-8", "surrogateescape")),
)
NAME = TEXT.filter(
    lambda n: (
        n
        and "=" not in n
        and not n.startswith(
            ("CHIPWISE_", "CUDA_VISIBLE", "TPU_VISIBLE", "PYTHON", "LD_", "MALLOC", "PATH", "LC_", "LANG")
        )
    )
)
CODE = (
    "import json, os, sys\n"
    "told = [[os.fsencode(w).hex() for w in sys.argv[2:]], {k.hex(): v.hex() for k, v in os.environb.items()}]\n"
    "open(sys.argv[1], 'w').write(json.dumps(told))\n"
)


def octets(text):
    return text.encode("utf-8", "surrogateescape")


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(words=st.lists(TEXT, max_size=6), variables=st.dictionaries(NAME, TEXT, max_size=4), name=TEXT)
def test_words_and_variables_reach_the_program_byte_for_byte(words, variables, name):
    with tempfile.TemporaryDirectory() as made:
        folder, backend = Path(made), LocalBackend(Path(made))
        told = folder / "told"
        at = pool(name or "near")
        there = launch(
            folder,
            sys.executable,
            "-I",
            "-X",
            "utf8",
            "-c",
            CODE,
            str(told),
            *words,
            at=at,
            variables=list(variables.items()),
        )
        by = backend.submit(there)
        until = time.monotonic() + PATIENCE_S
        while backend.status([(there.attempt, by)])[0].state == RUNNING and time.monotonic() < until:
            time.sleep(0.005)
        assert backend.status([(there.attempt, by)])[0].state == SUCCEEDED, (there.folder / "output").read_text(
            "utf-8", "replace"
        )
        said, found = json.loads(told.read_text())
        assert said == [octets(w).hex() for w in words]
        for key, value in variables.items():
            assert found[octets(key).hex()] == octets(value).hex()
        assert not any("pwned" in file for _, _, files in os.walk(made) for file in files)
