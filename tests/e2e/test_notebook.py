"""The notebook is the one that its script writes, was executed, and every cell of it still runs."""

import sys

import nbformat
import pytest
from command import ROOT

sys.path.insert(0, str(ROOT / "scripts"))
from notebook import NOTEBOOK, execute, written


def test_the_notebook_is_what_the_script_writes():
    kept = nbformat.read(NOTEBOOK, as_version=4)
    assert [(cell.cell_type, cell.source) for cell in kept.cells] == [
        (cell.cell_type, cell.source) for cell in written().cells
    ]
    nbformat.validate(kept)
    code = [cell for cell in kept.cells if cell.cell_type == "code"]
    assert all(cell.execution_count for cell in code) and all(cell.outputs for cell in code)


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::RuntimeWarning")  # of zmq and asyncio, not ours
def test_every_cell_runs(tmp_path, monkeypatch):
    for name in ("JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "IPYTHONDIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setenv("PYTHONPATH", "")
    notebook = execute(written())  # raises where a cell fails
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    assert not [output for output in outputs if output.output_type in ("error",) or output.get("name") == "stderr"]
    assert any("text/html" in output.get("data", {}) for output in outputs)
    assert any("image/png" in output.get("data", {}) for output in outputs)
