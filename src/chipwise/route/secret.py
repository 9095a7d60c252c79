"""Secrets by name: which variables a pool may pass to jobs, and which names say that their value is a secret.

Whoever may submit a job chooses the names that it asks for; whoever writes the pools file says which it may have.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from chipwise.errors import Refusal
from chipwise.route.pool import Pool

KEY = "secrets"  # of a pool's address: names of variables by commas
# Never handed over, whoever lists them: what tells a program where it runs, or Slurm, the linker or a shell what to do.
# CHIPWISE_ and SLURM_ begin the router's own tokens too (CHIPWISE_METRICS_TOKEN, SLURM_JWT).
BEGINNINGS = ("SLURM_", "SBATCH_", "CHIPWISE_", "LD_")
RESERVED = frozenset({"PATH", "IFS", "ENV", "BASH_ENV"})
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Words of a variable's name that mean its value is a secret
WORDS = frozenset(
    [
        "PASSWORD",
        "PASSWD",
        "PASSPHRASE",
        "PGPASSWORD",
        "SSHPASS",
        "SECRET",
        "SECRETS",
        "TOKEN",
        "CREDENTIAL",
        "CREDENTIALS",
        "APIKEY",
        "SECRETKEY",
        "ACCESSKEY",
        "PRIVATEKEY",
        "AUTHTOKEN",
        "ACCESSTOKEN",
        "AUTHKEY",
        "JWT",
        "CONNSTR",
    ]
)
# the same after another word
LAST = frozenset({"KEY", "PASS", "PWD", "PAT", "DSN", "AUTHORIZATION", "COOKIE", "BEARER"})
ENDS = (("CONNECTION", "STRING"), ("CONN", "STR"), ("CONN", "STRING"), ("REDISCLI", "AUTH"))
# At the end: it says where a secret lies, or how many there are
WHERE = frozenset(
    [
        "PATH",
        "FILE",
        "DIR",
        "FOLDER",
        "NAME",
        "URL",
        "ID",
        "COUNT",
        "BUDGET",
        "LIMIT",
        "LENGTH",
        "SIZE",
        "TTL",
        "TIMEOUT",
        "EXPIRY",
        "TYPE",
        "DIM",
        "RATE",
        "HOST",
        "PORT",
    ]
)
KEYS = frozenset({"API", "ACCESS", "PRIVATE", "AUTH", "ENCRYPTION", "SIGNING", "SSH", "ACCOUNT", "SERVICE"})
# Before KEY or TOKEN: keys of tables and of data sets, and words of tokenizers' vocabularies
PLAIN_KEYS = frozenset(
    [
        "PUBLIC",
        "PRIMARY",
        "FOREIGN",
        "SORT",
        "PARTITION",
        "CACHE",
        "INDEX",
        "JOIN",
        "GROUP",
        "LABEL",
        "INPUT",
        "OUTPUT",
        "IMAGE",
        "TEXT",
        "DATASET",
        "PROMPT",
        "COLUMN",
        "METRIC",
        "FEATURE",
        "ROW",
        "HASH",
        "SHARD",
        "ROUTING",
        "HOT",
        "ON",
        "BY",
    ]
)
PLAIN_TOKENS = frozenset(
    [
        "PAD",
        "EOS",
        "BOS",
        "UNK",
        "MASK",
        "SEP",
        "CLS",
        "SPECIAL",
        "START",
        "END",
        "STOP",
        "IMAGE",
        "AUDIO",
        "VIDEO",
        "PER",
        "MAX",
        "MIN",
        "NEW",
        "THINK",
        "EOT",
    ]
)


def named_secret(name: str) -> bool:
    """Whether a variable's name says that its value is a secret.

    >>> [named_secret(name) for name in ("HF_TOKEN", "TOKENIZERS_PARALLELISM", "WANDB_KEY", "KEY_FILE", "EOS_TOKEN")]
    [True, False, True, False, False]
    """
    words = re.split(r"[^A-Z0-9]+", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).upper().strip("_"))
    if words[-1] in WHERE or words == ["GOOGLE", "APPLICATION", "CREDENTIALS"]:  # that one holds a path
        return False
    while len(words) > 1 and words[-1].isdigit():  # API_KEY_2
        words.pop()
    after = {word: words[i - 1] if i else "" for i, word in enumerate(words)}
    if after.get("KEY") in PLAIN_KEYS or after.get("TOKEN") in PLAIN_TOKENS:
        return False
    if bool(WORDS & set(words)) or tuple(words[-2:]) in ENDS or after.get("KEY") in KEYS:
        return True
    return len(words) > 1 and words[-1] in LAST


def reserved(name: str) -> bool:
    """Whether no job is ever handed a variable of that name.

    >>> [reserved(name) for name in ("SLURM_JWT", "BASH_ENV", "A B", "HF_TOKEN", "MY_PATH")]
    [True, True, True, False, False]
    """
    return name.startswith(BEGINNINGS) or name in RESERVED or not VARIABLE.fullmatch(name)


def listed(pool: Pool) -> frozenset[str]:
    """The variables that jobs may be handed in a pool.

    >>> sorted(listed(Pool("a", "local", "cpu", "cpu", 2, address=(("secrets", "HF_TOKEN,WANDB_API_KEY"),))))
    ['HF_TOKEN', 'WANDB_API_KEY']
    """
    return frozenset(name for name in pool.setting(KEY).split(",") if name)


def check_secrets(pool: Pool, names: Sequence[str]) -> None:
    """A `Refusal` where a job that asks for these can't have them in a pool; it says what would allow it."""
    if not names:
        return
    if pool.backend == "kubernetes":  # the keys of an object that the pool names
        if not pool.setting("secret"):
            raise Refusal(
                f"the job asks for {', '.join(names)}, and the pool names no Secret", f"secret: NAME {_where(pool)}"
            )
        return
    never = next((name for name in names if reserved(name)), None)
    if never is not None:
        raise Refusal(f"secret {never!r}: no variable of that name is handed to a job")
    missing = ", ".join(name for name in names if name not in listed(pool))
    if missing:
        raise Refusal(f"the pool may not hand {missing} to jobs", f"{KEY}: [{missing}] {_where(pool)}")


def _where(pool: Pool) -> str:
    return f"in its address, or under backends.{pool.backend}, of the pools file"
