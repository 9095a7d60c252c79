"""A service in the words of its stack: the flags that set it up as it was simulated."""

from __future__ import annotations

from chipwise.serving.formats import half
from chipwise.serving.service import Service


def flags(of: Service) -> str:
    """The command line of one replica (their documentation, 2026-11); "" for stacks without one of their own."""
    r, s, k = of.replica, of.replica.split, of.replica.knobs
    low = r.kv_precision == "fp8"
    quantised = f"--quantization {r.precision}" if r.precision == "fp8" else ""
    narrow = "--dtype half" if half(r.chip) == "fp16" else ""
    if r.stack.id == "vllm":
        said = [
            "vllm serve MODEL",
            f"--tensor-parallel-size {s.tp}",
            _some("--pipeline-parallel-size", s.pp),
            _some("--data-parallel-size", s.dp),
            "--enable-expert-parallel" if s.ep > 1 else "",
            f"--max-num-seqs {k.most_sequences}",
            f"--max-num-batched-tokens {k.most_tokens}",
            quantised,
            narrow,
            "--kv-cache-dtype fp8" if low else "",
            f"--block-size {k.block}",
        ]
    elif r.stack.id == "sglang":
        said = [
            "python -m sglang.launch_server --model-path MODEL",
            f"--tp-size {s.tp * s.dp}",
            _some("--pp-size", s.pp),
            f"--dp-size {s.dp} --enable-dp-attention" if s.dp > 1 else "",
            _some("--ep-size", s.ep),
            f"--max-running-requests {k.most_sequences}",
            f"--chunked-prefill-size {k.most_tokens}",
            quantised,
            narrow,
            "--kv-cache-dtype fp8_e4m3" if low else "",
        ]
    elif r.stack.id == "tensorrt-llm":
        said = [
            "trtllm-serve MODEL",
            f"--tp_size {s.tp * s.dp}",
            _some("--pp_size", s.pp),
            _some("--ep_size", s.ep),
            f"--max_batch_size {k.most_sequences}",
            f"--max_num_tokens {k.most_tokens}",
            "--kv_cache_dtype fp8" if low else "",
            "(enable_attention_dp: true in --extra_llm_api_options)" if s.dp > 1 else "",
        ]
    elif r.stack.id == "jetstream":
        slots = max(1, k.most_sequences // s.chips)
        longest = round(of.target.workload.serve.input.most + of.target.workload.serve.output.most)
        said = [
            "python -m MaxText.maxengine_server",
            f"ici_tensor_parallelism={s.tp}",
            f"per_device_batch_size={slots}",
            f"max_target_length={longest}",
            f"max_prefill_predict_length={round(of.target.workload.serve.input.most)}",
            "quantize_kvcache=true" if low else "",
        ]
    else:
        return ""
    return " ".join(part for part in said if part)


def _some(flag: str, value: int) -> str:
    return f"{flag} {value}" if value > 1 else ""
