"""Write examples/decide.ipynb and execute it. Run by `make notebook`; tests/e2e/test_notebook.py executes it again."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOK = ROOT / "examples" / "decide.ipynb"
PATIENCE_S = 600  # for one cell, on a machine that is busy

CELLS = (
    """\
# Which chips for this model?
Llama 3.1 8B is to be trained on a trillion tokens within 30 days. Which accelerator, how many, split how, at what
price? Nothing here needs an accelerator. Every number has a 90 % interval and says what it rests on.""",
    """\
import chipwise as cw

job = cw.load("llama-3.1-8b", tokens="1T", batch=1024, sequence=8192)
comparison = cw.compare(job, on="h100,h200,b200,v5p,v6e", deadline="30d")
comparison""",
    """\
The result is data, too. The bars are 90 % intervals: where they overlap, measure before you commit.""",
    """\
frame = comparison.to_pandas()
shown = ["accelerators", "layout", "step_seconds", "mfu", "ondemand_usd", "ondemand_usd_low", "ondemand_usd_high"]
frame[shown].round(2)""",
    """\
import matplotlib.pyplot as plt

low, high = frame.ondemand_usd - frame.ondemand_usd_low, frame.ondemand_usd_high - frame.ondemand_usd
figure, axes = plt.subplots(figsize=(6, 2.4), dpi=72)
axes.errorbar(frame.ondemand_usd / 1e3, frame.accelerators, xerr=[low / 1e3, high / 1e3], fmt="o", capsize=3)
axes.set_xlabel("thousand US dollars on demand")
axes.invert_yaxis()
plt.show()""",
    """\
## Why that long?
The bound is physics: no schedule is faster. The rest of the step is what the layout costs.""",
    """\
run = cw.predict(job, on=str(comparison.pick.accelerators))
print(f"step {run.step.value:.2f} s ({run.step.low:.2f} to {run.step.high:.2f}), {run.step.evidence}")
print(f"no schedule is faster than {run.prediction.bound_s:.2f} s; MFU {run.mfu:.0%}")
for part, seconds in sorted(run.prediction.parts.items(), key=lambda item: -item[1])[:4]:
    print(f"  {part:10} {seconds:6.2f} s")""",
    """\
## Another split?
Every legal one is timed; these are the fastest.""",
    """\
cw.layouts(job, on=str(comparison.pick.accelerators), top=5).to_pandas().head(5)""",
    """\
## What would change this?
The smallest changes that would make another chip the pick.""",
    """\
for flip in comparison.flips:
    print(flip.words)""",
)


def written() -> Any:
    """The notebook before it is executed; its cells alternate as in CELLS, code where a cell isn't headed by words."""
    cells = []
    for i, text in enumerate(CELLS):
        words = text[0] == "#" or text[:4] == "The "
        cell = new_markdown_cell(text) if words else new_code_cell(text)
        cell["id"] = f"cell-{i}"
        cells.append(cell)
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return new_notebook(cells=cells, metadata=kernel)


def execute(notebook: Any) -> Any:
    """The notebook with the outputs of its cells; a cell that fails raises."""
    os.environ["PYTHONPATH"] = str(ROOT / "src")  # of the kernel
    NotebookClient(notebook, timeout=PATIENCE_S, resources={"metadata": {"path": str(ROOT)}}).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # when it ran
    notebook.metadata.pop("language_info", None)
    return notebook


def main() -> None:
    """Write the notebook with its outputs."""
    sys.stdout.write(f"executing {NOTEBOOK.name}\n")
    nbformat.write(execute(written()), NOTEBOOK)


if __name__ == "__main__":
    main()
