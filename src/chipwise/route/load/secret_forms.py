"""How secrets look: what well-known issuers begin theirs with, and values too random for words, paths or hashes.

The forms are those that issuers document, as of 2026-11-16; https://docs.github.com/en/code-security/reference/
secret-security/supported-secret-scanning-patterns and https://github.com/gitleaks/gitleaks (config/gitleaks.toml) list
them with their issuers. A form here asks for less than a scanner's: a value cut short or made longer is a secret too.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from math import log2

_WORD = r"[A-Za-z0-9_-]"
# issuer -> what its secrets begin with and how many characters follow at the least
PREFIXES: dict[str, str] = {
    "1Password": r"ops_eyJ[A-Za-z0-9+/]{40,}|A3-[A-Z0-9]{6}-[A-Z0-9]{6,11}-[A-Z0-9]{5}",
    "age": r"AGE-SECRET-KEY-1[A-Z0-9]{20,}",
    "Airtable": r"pat[A-Za-z0-9]{14}\.[a-f0-9]{40,}",
    "Alibaba Cloud": r"LTAI[A-Za-z0-9]{16,}",
    "Anthropic, OpenAI, OpenRouter, DeepSeek": rf"sk-{_WORD}{{20,}}",
    "Atlassian": rf"ATATT3{_WORD}{{20,}}|ATCTT3{_WORD}{{20,}}",
    "AWS": r"(?:AKIA|ASIA|ABIA|ACCA|AROA|AIDA)[0-9A-Z]{16}\b|ABSK[A-Za-z0-9+/]{40,}",
    "Azure DevOps and Entra": r"[A-Za-z0-9_~.-]{3}[78]Q~[A-Za-z0-9_~.-]{30,}",
    "Cerebras": r"csk-[A-Za-z0-9]{30,}",
    "Cloudflare": r"v1\.0-[a-f0-9]{24}-[a-f0-9]{40,}",
    "Databricks": r"dapi[a-f0-9]{32}",
    "DigitalOcean": r"do[opr]_v1_[a-f0-9]{40,}",
    "Docker": rf"dckr_(?:pat|oat)_{_WORD}{{20,}}",
    "Doppler": r"dp\.(?:pt|st|ct|sa)\.[A-Za-z0-9._-]{30,}",
    "Fireworks": r"fw_[A-Za-z0-9]{20,}",
    "GitHub": r"gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}",
    "GitLab": rf"gl(?:pat|ptt|dt|rt|cbt|ft|imt|agent|soat|ffct|oas)-{_WORD}{{16,}}|GR1348941{_WORD}{{16,}}",
    "Google": r"AIza[0-9A-Za-z_-]{30,}|ya29\.[0-9A-Za-z_-]{20,}|GOCSPX-[0-9A-Za-z_-]{20,}|1//0[0-9A-Za-z_-]{30,}"
    r"|GOOG[0-9A-Z]{20,}",
    "Grafana": r"glsa_[A-Za-z0-9]{20,}|glc_[A-Za-z0-9+/]{32,}",
    "Groq": r"gsk_[A-Za-z0-9]{20,}",
    "HashiCorp": rf"hv[sbr]\.{_WORD}{{20,}}|[A-Za-z0-9]{{14}}\.atlasv1\.{_WORD}{{40,}}",
    "Heroku": r"HRKU-[A-Za-z0-9_-]{30,}",
    "Hugging Face": r"(?:hf|api_org)_[A-Za-z0-9]{20,}",
    "JSON Web Tokens": rf"eyJ{_WORD}{{10,}}\.eyJ{_WORD}{{10,}}\.{_WORD}*",
    "LangSmith": r"lsv2_(?:pt|sk)_[a-f0-9]{30,}",
    "Linear, Neon, New Relic": r"lin_api_[A-Za-z0-9]{30,}|napi_[a-z0-9]{40,}|NRAK-[A-Z0-9]{20,}",
    "NGC and NVIDIA API": rf"nvapi-{_WORD}{{30,}}",
    "Notion": r"(?:secret|ntn)_[A-Za-z0-9]{40,}",
    "npm": r"npm_[A-Za-z0-9]{20,}",
    "Perplexity": r"pplx-[A-Za-z0-9]{30,}",
    "Postman, Pulumi": r"PMAK-[a-f0-9]{24}-[a-f0-9]{30,}|pul-[a-f0-9]{40}",
    "PyPI": rf"pypi-AgE{_WORD}{{30,}}",
    "Replicate": r"r8_[A-Za-z0-9]{30,}",
    "RunPod": r"rpa_[A-Z0-9]{30,}",
    "SendGrid, Mailgun": rf"SG\.{_WORD}{{16,}}\.{_WORD}{{30,}}|key-[a-f0-9]{{32}}",
    "Sentry": r"sntry[su]_[A-Za-z0-9+/=_-]{30,}",
    "Shopify": r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{30,}",
    "Slack": r"xox[abeoprs]-[A-Za-z0-9-]{10,}|xoxe\.xox[bp]-[A-Za-z0-9-]{10,}|xapp-\d-[A-Za-z0-9-]{20,}",
    "Stripe": r"(?:sk|rk)_(?:live|test|prod)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9+/]{24,}",
    "Tailscale, Telegram": rf"tskey-[a-z]+-{_WORD}{{16,}}|\d{{8,10}}:AA{_WORD}{{32,}}",
    "Twilio": r"SK[a-f0-9]{32}",
    "Weights & Biases": r"wandb_v1_[A-Za-z0-9_]{30,}",
    "xAI": r"xai-[A-Za-z0-9]{40,}",
    "Yandex": rf"AQVN{_WORD}{{30,}}",
}
# secrets inside other text
INSIDE: dict[str, str] = {
    "private keys": r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY|PuTTY-User-Key-File-",
    "passwords in addresses": r"[A-Za-z][A-Za-z0-9+.-]*://[^/\s:@]*:[^/\s@]+@",
    "headers": r"\b(?:[Bb]earer|BEARER|[Bb]asic)\s+[A-Za-z0-9._~+/-]{16,}=*",
    "connection strings": r"(?i:\b(?:AccountKey|SharedAccessKey|SharedAccessSignature)=[^;\s]{6,}"
    r"|;\s*(?:Password|Pwd)=[^;\s]+)",
    "signed addresses": r"[?&](?:sig|X-Amz-Signature|X-Goog-Signature)=[A-Za-z0-9%+/]{20,}",
    "Slack, Discord and Teams hooks": r"hooks\.slack\.com/(?:services|workflows)/\w+"
    r"|discord(?:app)?\.com/api/webhooks/\d+|webhook\.office\.com/webhookb2/\w+",
}
SECRET_FORMS = re.compile(rf"(?<![A-Za-z0-9])(?:{'|'.join(PREFIXES.values())})|{'|'.join(INSIDE.values())}")

PIECE = re.compile(r"[A-Za-z0-9+/]{24,}")  # base64 of 18 bytes; shorter ones are names as often as keys
# of neighbors of another kind (upper, lower, digit): 0.62 in random base64, at most 0.3 in CamelCase names
CHANGES = 0.38
BITS = 3.8  # of a character: 24 random ones of base64 have 4.2 and more


def looks_secret(text: str) -> bool:
    """Whether a value has the form of an issuer's secret, or holds a long piece that only chance would write.

    Hashes in hexadecimal, UUIDs, paths and names of models are none of both.

    >>> looks_secret("sha256:" + "0123456789abcdef" * 4), looks_secret("Meta-Llama-3.1-405B-Instruct-FP8")
    (False, False)
    """
    return bool(SECRET_FORMS.search(text)) or any(_random(piece) for piece in PIECE.findall(text))


def _random(piece: str) -> bool:
    kinds = ["".join(map(_kind, pair)) for pair in pairwise(piece)]
    changes = sum(pair[0] != pair[1] and "/" not in pair for pair in kinds)
    if piece.startswith("/") or changes < CHANGES * len(kinds) or len({_kind(c) for c in piece} - {"/"}) < 3:
        return False
    counts = Counter(piece)
    return -sum(n / len(piece) * log2(n / len(piece)) for n in counts.values()) >= BITS


def _kind(character: str) -> str:
    return "0" if character.isdigit() else "A" if character.isupper() else "a" if character.islower() else "/"
