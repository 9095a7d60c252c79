"""What an offline job costs: the whole bill, over all its tokens, and over those of its answers."""

import json

import pytest
from command import ROOT, good

JOB = ROOT / "examples" / "llama-3.1-8b-offline.yaml"


def test_one_bill_is_shown_over_three_counts():
    rows = json.loads(good("compare", JOB, "--on", "h200,l40s", "-o", "json"))["rows"]
    for row in rows:
        hour, seconds = row["ondemand"]["usd"]["value"], row["duration_seconds"]["value"]
        bill, out = row["job_usd"]["value"], row["ondemand_usd_per_million_units"]["value"]
        every = row["ondemand_usd_per_million_tokens_processed"]["value"]
        assert bill == pytest.approx(hour * seconds / 3600)
        assert every * 1700 == pytest.approx(out * 200, rel=0.05)  # 1,500 tokens in on average, 200 out
        assert bill == pytest.approx(every * 1700, rel=0.1)  # a million requests
    table = good("compare", JOB, "--on", "h200")
    assert all(header in table for header in ("$/job", "$/M tokens in+out", "$/M tokens out"))
    assert "a million tokens out" in table
