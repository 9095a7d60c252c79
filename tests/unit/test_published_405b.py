"""Llama 3.1 405B by the split that Meta publishes; ZeRO and the interleaved stages are not published, so ours are taken."""

from chipwise import api, load

# arXiv 2407.21783 table 4 (2024-07-31): 16,384 H100, tp 8, cp 1, pp 16, dp 128, 8,192 tokens, 16M tokens a batch
PUBLISHED_FLOPS_PER_CHIP = 400e12
FLOPS_PER_TOKEN = 2.52e12  # 6 for each weight, and causal attention halved, as the published rows of this model count
TOKENS, CHIPS = 2048 * 8192, 16_384


def test_the_published_step_lies_in_the_interval_of_its_split():
    work = load("llama-3.1-405b", batch=2048, sequence=8192, tokens="1T")
    step = api.predict(work, f"h100:{CHIPS}", layout="dp=128,zero=1,tp=8,pp=16,vpp=7,mbs=1").step
    published = TOKENS * FLOPS_PER_TOKEN / (CHIPS * PUBLISHED_FLOPS_PER_CHIP)
    assert 6.4 < published < 6.5
    assert step.low <= published <= step.high and abs(step.value / published - 1) < 0.15
