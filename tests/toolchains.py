"""Which vendors' compilers can be used here. A test that needs others is marked so, `@pytest.mark.compiler("tpu")`, and
skipped with the reason that `chipwise doctor` gives."""

from chipwise.compiled.worker.versions import installed

STATES = {each.toolchain.id: each for each in installed()}
USABLE = {name for name, state in STATES.items() if state.usable}


def lacking(*toolchains):
    """Why one of these can't be used here, or ""."""
    first = next((STATES[each] for each in toolchains if each not in USABLE), None)
    return f"{first.toolchain.name} can't be used: {first.problem}" if first else ""
