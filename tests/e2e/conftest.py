"""The package must be found from any folder, installed or not."""

import os
from pathlib import Path

os.environ["PYTHONPATH"] = os.pathsep.join(
    filter(None, [str(Path(__file__).resolve().parents[2] / "src"), os.environ.get("PYTHONPATH")]))
