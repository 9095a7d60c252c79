"""Programs that put into their own attempt's folder whatever could hold up, fill or end a router."""

import chaos

from chipwise.route.job import Checkpoint, Job, Variant
from chipwise.route.ledger.records import NewJob

# what a program does in its folder; `end` it writes in place of its shim's, which it kills
FORGED = """import json, os, signal
claim = json.load(open("claim"))
open("end.new", "w").write({end})
os.rename("end.new", "end")
os.kill(claim["pid"], signal.SIGKILL)
"""
DOCUMENT = """'{"by": "' + claim["by"] + '", "exit_code": %s, "started": 1, "ended": %s}'"""
REWRITTEN = """import json, os, time
claim = json.load(open("claim"))
claim.update({changes})
open("claim.new", "w").write(json.dumps(claim))
os.rename("claim.new", "claim")
time.sleep(0.5)
raise SystemExit(1)
"""
HOSTILE = {
    "a pipe for progress": "import os; os.mkfifo('progress'); raise SystemExit(1)",
    "a pipe for the claim": "import os; os.unlink('claim'); os.mkfifo('claim')",
    "a device for progress": "import os; os.symlink('/dev/zero', 'progress'); raise SystemExit(1)",
    "a status beyond 64 bits": FORGED.format(end=DOCUMENT % (10**30, 2)),
    "an end that never comes": FORGED.format(end=DOCUMENT % (1, "Infinity")),
    "an infinite status": FORGED.format(end=DOCUMENT % ("Infinity", 2)),
    "an end nested without end": FORGED.format(end="'[' * 100_000"),
    "a reason that terminals obey": FORGED.format(
        end=r"""json.dumps({"by": claim["by"], "exit_code": 1, "started": 1, "ended": 2, "reason": FORGED_LINE})"""
    ).replace("FORGED_LINE", repr("\x1b]0;owned\x07\n04:00:00 job 99: attempt 1 in near: succeeded\x9b31m\u202e")),
    "a huge end": "import os; open('end', 'wb').truncate(2**40); os.kill(os.getppid(), 9)",
    "a folder for an end": "import os; os.mkdir('end'); os.kill(os.getppid(), 9)",
    "a claim that nobody may read": "import os; os.chmod('claim', 0); raise SystemExit(1)",
    "a link to itself": "import os; os.unlink('claim'); os.symlink('claim', 'claim'); raise SystemExit(1)",
    "more restarts than a database counts": REWRITTEN.format(changes="restarts=2**40"),
    "a claim of another machine, with all chips": REWRITTEN.format(changes="host='far', boot='x', chips='0,1,2,3,4,5'"),
    "a claim that was given up": REWRITTEN.format(changes="by='ended by me'"),
    "no claim": "import os, time; os.unlink('claim'); time.sleep(0.5); raise SystemExit(1)",
    "an end that nothing replaces": "import os; os.makedirs('end/x'); raise SystemExit(1)",
    "pipes for drafts": "import os, socket\n"
    "[os.mkfifo(f'{n}.{socket.gethostname()}.{os.getppid()}') for n in ('end', 'claim')]; raise SystemExit(1)",
    "no folder at all": "import os, shutil; shutil.rmtree(os.getcwd())",
}


def job(name, program, retries=0, options=(), variants=()):
    """One of them, for any pool of a CPU or as the variants say."""
    command = ("python3", "-c", f"import os; os.chdir(os.environ['CHIPWISE_FOLDER'])\n{program}")
    kinds = variants or (Variant("cpu", "cpu", 1),)
    own = tuple(Variant(v.name, v.family, v.chips, v.on, command) for v in kinds)
    ways = tuple(options) or (chaos.option("near", 0.1),)
    return NewJob(Job(name, own, retries=retries, checkpoint=Checkpoint()), ways, ())
