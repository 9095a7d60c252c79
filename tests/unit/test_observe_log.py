"""Logs as programs print them, line by line: what is read of each, and what is not."""

import gzip
import json

import pytest

import chipwise as cw
from chipwise.observe.formats import DOCUMENTS, FORMATS, GENERAL, KERNEL
from chipwise.observe.log import MAX_WORDS, read_lines
from chipwise.observe.text import MAX_LINE_BYTES, clean, lines_of

BAR = "Epoch 0: :   3%|▎         | 9000/301500 [1:42:42<55:37:46, "
# name of the format, lines, what the last step has
STEPS = [
    (
        "maxtext",
        "completed step: 9, seconds: 1.341, TFLOP/s/device: 257.929, Tokens/s/device: 36653.244, loss: 0.125",
        {"step": 9, "step_seconds": 1.341, "tflops_per_device": 257.929, "tokens_per_s_per_device": 36653.244, "loss": 0.125},
    ),
    ("maxtext", "completed step: 15107, seconds: 2.167, TFLOP/s: 36.722, loss: 2.191", {"step": 15107, "tflops_per_device": 36.722}),
    (
        "maxtext",
        "I0811 21:55:06.119312 1383 metric_logger.py:226] [Rampup Batch Size Phase] completed step: 2, seconds: 10.228, live slice "
        "count: 2, TFLOP/s/device: 350.869, Tokens/s/device: 19222.175, total_weights: 1572864, loss: 12.980, lm_loss: 12.5, perplexity: 4.1",
        {"step": 2, "step_seconds": 10.228, "loss": 12.98, "tokens_per_s_per_device": 19222.175},
    ),
    (
        "torchtitan",
        "[rank0]:[titan] 2026-02-24 19:46:17,508 - root - INFO - step: 14  loss:  3.24405  grad_norm:  0.8319  memory:  9.46GiB(64.99%)  "
        "tps: 7,282  tflops: 0.52  mfu: 0.17%",
        {"step": 14, "loss": 3.24405, "tokens_per_s_per_device": 7282, "tflops_per_device": 0.52, "mfu": 0.0017},
    ),
    (
        "torchtitan",
        "[31mstep: 10  [32mloss:  8.12345  [36mmemory: 45.12GiB(57.03%)  [34mwps: 6,512  [35mmfu: N/A[39m",
        {"step": 10, "loss": 8.12345, "tokens_per_s_per_device": 6512, "mfu": None},
    ),
    (
        "megatron",
        " [2024-04-06 02:59:36] iteration       43/     100 | consumed samples:         5504 | elapsed time per iteration (ms): 5444.9 | "
        "throughput per GPU (TFLOP/s/GPU): 239.8 | learning rate: 8.6E-06 | global batch size:   128 | lm loss: 1.825991E+00 | "
        "load_balancing_loss: 1.019746E+00 | loss scale: 1.0 | grad norm: 1.426 | number of nan iterations:   0 |",
        {"step": 43, "step_seconds": 5.4449, "tflops_per_device": 239.8, "loss": 1.825991, "tokens_per_s": None},
    ),
    (
        "megatron",
        " samples/sec: 7.799 | iteration       34/   10000 | elapsed time per iteration (ms): 4103.1 | approx flops per GPU: 112.9TFLOPS | "
        "lm_loss: 1.118665E+01 | number of skipped iterations:   0 |",
        {"step": 34, "step_seconds": 4.1031, "tflops_per_device": 112.9, "loss": 11.18665},
    ),
    (
        "megatron",
        " iteration  7/ 50 | elapsed time per iteration (s): 12.34/12.50 | lm-loss: 5.25 | loss scale: 1.0 |",
        {"step": 7, "step_seconds": 12.34, "loss": 5.25},
    ),
    (
        "megatron",
        "iteration: 10 / 100 | consumed_tokens: 1.68M | elapsed_time_per_iteration_ms: 1.23K | tokens_per_sec: 1.68K | "
        "tokens_per_sec_per_gpu: 210 | lm_loss: 11.2 | lr: 0.0003 | model_tflops_per_gpu: 12.3 | hardware_tflops_per_gpu: 14.1",
        {"step": 10, "step_seconds": 1.23, "tokens_per_s": 1680, "tokens_per_s_per_device": 210, "loss": 11.2, "tflops_per_device": 12.3},
    ),
    (
        "megatron",
        "Step Time : 14.26s GPU utilization: 58.2MODEL_TFLOP/s/GPU\n [2025-10-02 22:54:30] iteration       20/      50 | elapsed time "
        "per iteration (ms): 14260.3 | lm loss: 8.797448E-02 |",
        {"step": 20, "step_seconds": 14.2603, "tflops_per_device": 58.2},
    ),
    (
        "nemo",
        BAR + "v_num=0-56, reduced_train_loss=nan.0, global_step=9e+3, consumed_samples=6.3e+5, train_step_timing in s=0.615, val_loss=7.040]",
        {"step": 9000, "step_seconds": 0.615, "loss": None},
    ),
    (
        "nemo",
        "Training epoch 0, iteration 10/99 | lr: 0.0003 | global_batch_size: 512 | global_step: 10 | reduced_train_loss: 11.03 | "
        "train_step_timing in s: 7.254 | consumed_samples: 5632 | TFLOPS_per_GPU: 412.5",
        {"step": 10, "step_seconds": 7.254, "loss": 11.03, "tflops_per_device": 412.5},
    ),
    (
        "deepspeed",
        "[2023-07-25 21:03:17,269] [INFO] [timer.py:215:stop] epoch=0/micro_step=34/global_step=34, RunningAvgSamplesPerSec=7.86, "
        "CurrSamplesPerSec=8.01, MemAllocated=59.65GB, MaxMemAllocated=63.31GB",
        {"step": 34, "step_seconds": None},
    ),
    ("deepspeed", "[2022-03-11 02:06:58,985] [INFO] [timer.py:189:stop] 0/40, SamplesPerSec=83.48, MemAllocated=0.26GB", {"step": 40}),
    ("deepspeed", "steps: 10 loss: 2.3125 iter time (s): 1.235 samples/sec: 25.911", {"step": 10, "loss": 2.3125, "step_seconds": 1.235}),
    ("hf-trainer", "{'loss': 0.6347, 'grad_norm': nan, 'learning_rate': 4.89e-05, 'epoch': 0.09, 'step': 10}", {"step": 10, "loss": 0.6347}),
    (
        "hf-trainer",
        " 98%|█████████▊| 2086/2120 [26:01<00:22,  1.25it/s]\r 98%|##8| 2087/2120 [26:02<00:22,  1.25it/s]\n{'loss': '2.5', 'epoch': '0.98'}",
        {"step": 2087, "loss": 2.5, "step_seconds": 0.8},
    ),
    (
        "lightning",
        "Epoch 0:  22%|██▏       | 4/18 [00:17<01:02,  4.47s/it, loss=10.072, v_num=193315]",
        {"step": 4, "step_seconds": 4.47, "loss": 10.072},
    ),
    (
        "chipwise",
        "2026-11-19T17:51:46.574Z [rank0]: chipwise step=9 step_seconds=0.250799 tokens_per_s=130654 loss=6.63172 mfu=0.41",
        {"step": 9, "step_seconds": 0.250799, "tokens_per_s": 130654, "loss": 6.63172, "mfu": 0.41},
    ),
    (
        "levanter",
        "2026-03-01T10:00:00 INFO Progress on:train 1.20kit/10.0kit rate:2.0it/s remaining:1:13:20 elapsed:08:11 postfix:loss=3.21",
        {"step": 1200, "step_seconds": 0.5, "loss": 3.21},
    ),
    (
        "mlperf",
        ':::MLLOG {"namespace": "", "time_ms": 1, "event_type": "POINT_IN_TIME", "key": "tracked_stats", "value": {"throughput": 80.5, '
        '"train_step_time": 1.59, "train_loss": 6.2}, "metadata": {"step": 128}}',
        {"step": 128, "step_seconds": 1.59, "loss": 6.2},
    ),
    ("steps", "iter 10: loss 3.2990, time 338.33ms, mfu 32.10%", {"step": 10, "loss": 3.299, "step_seconds": 0.33833, "mfu": 0.321}),
    (
        "steps",
        "step    10 | loss: 6.021 | lr 6.0e-04 | norm: 1.21 | dt: 338.33ms | tok/sec: 1549553.25",
        {"step": 10, "loss": 6.021, "step_seconds": 0.33833, "tokens_per_s": 1549553.25},
    ),
    (
        "steps",
        "step   10/18865 | loss 7.02 (-1.2z)| norm 3.1 (+0.1z)| lr 1.0e-5 | 3000.12 ms | 45.5% bf16 MFU | 174000 tok/s",
        {"step": 10, "loss": 7.02, "step_seconds": 3.00012, "mfu": 0.455, "tokens_per_s": 174000},
    ),
]  # fmt: skip
WINDOWS = [
    (
        "vllm",
        "(APIServer pid=3646) INFO 05-19 10:13:31 [loggers.py:271] Engine 000: Avg prompt throughput: 12068.8 tokens/s, Avg generation "
        "throughput: 734.9 tokens/s, Running: 18 reqs, Waiting: 33 reqs, GPU KV cache usage: 87.7%, Prefix cache hit rate: 0.0%",
        {"prompt_tokens_per_s": 12068.8, "generation_tokens_per_s": 734.9, "running": 18, "waiting": 33, "kv_cache_usage": 0.877},
    ),
    (
        "vllm",
        "INFO 01-22 18:27:20 metrics.py:449] Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 41.7 tokens/s, Running: 1 "
        "reqs, Swapped: 0 reqs, Pending: 2 reqs, GPU KV cache usage: 2.0%, CPU KV cache usage: 0.0%.",
        {"running": 1, "waiting": 2, "kv_cache_usage": 0.02},
    ),
    (
        "sglang",
        "[2026-04-05 20:02:51] Decode batch, #running-req: 32, #token: 11179, token usage: 0.08, cuda graph: True, gen throughput "
        "(token/s): 1635.11, #queue-req: 3",
        {"running": 32, "waiting": 3, "kv_cache_usage": 0.08, "generation_tokens_per_s": 1635.11, "prompt_tokens_per_s": None},
    ),
    (
        "sglang",
        "[2026-08-23 09:09:51 TP0 EP0] Prefill batch, #new-seq: 1, #new-token: 8192, #cached-token: 0, swa token usage: 0.01, full token "
        "usage: 0.02, #running-req: 0, #queue-req: 1, #pending-token: 38209, cuda graph: False, input throughput (token/s): 7741.98",
        {"running": 0, "waiting": 1, "kv_cache_usage": 0.02, "prompt_tokens_per_s": 7741.98},
    ),
    ("tensorrt-llm", "iter = 12, num_scheduled_requests = 7, kv_cache_util = 35.5%, states = {'num_ctx_tokens': 12}", {"running": 7, "kv_cache_usage": 0.355}),
]  # fmt: skip


def read(text, format=None):
    return read_lines(clean(line.encode() for line in text.splitlines(keepends=True)), format)


@pytest.mark.parametrize(("name", "text", "expected"), STEPS)
def test_a_step_is_read_as_its_program_prints_it(name, text, expected):
    log = read(text)
    assert log.format == name and not log.faults
    (step,) = log.steps
    assert {key: getattr(step, key) for key in expected} == pytest.approx(expected)


@pytest.mark.parametrize(("name", "text", "expected"), WINDOWS)
def test_a_window_is_read_as_its_server_prints_it(name, text, expected):
    log = read(text)
    assert log.format == name and not log.faults
    assert {key: getattr(log.serving[-1], key) for key in expected} == pytest.approx(expected)


@pytest.mark.parametrize(("name", "text", "expected"), [*STEPS, *WINDOWS])
def test_a_format_that_is_named_reads_the_same(name, text, expected):
    named, found = read(text, name), read(text)
    assert (named.steps, named.serving) == (found.steps, found.serving)


def test_every_format_of_lines_is_tried():
    assert {name for name, *_ in [*STEPS, *WINDOWS]} == set(FORMATS) - {"prometheus"} and GENERAL in FORMATS


def test_the_command_names_every_format():
    from chipwise.cli.observe import FORMATS as NAMES

    assert sorted(NAMES) == sorted([*FORMATS, KERNEL, *DOCUMENTS])


def test_a_writer_in_the_middle_of_a_line_and_a_cut_line_cost_no_other_step():
    line = "completed step: {}, seconds: {}, TFLOP/s/device: 1.5, loss: 2.5"
    log = read(f"{line.format(1, 3.5)}{line.format(2, 3.25)}\n{line.format(3, 3.0)}\ncompleted step: 4, seconds: 3.")
    assert [(step.step, step.step_seconds) for step in log.steps] == [(1, 3.5), (2, 3.25), (3, 3.0)] and log.unread == 1


def test_ranks_that_say_the_same_count_once_and_restarts_again():
    line = "[rank{rank}]:[titan] - step: {step}  loss:  {loss}  tps: 7,282  mfu: 1.0%"
    ranks = [line.format(rank=r, step=s, loss=9 - s) for s in (1, 2, 3) for r in range(4)]
    late = [line.format(rank=r, step=s, loss=9 - s) for r in (0, 1) for s in (4, 5)]  # one rank two steps behind
    again = [line.format(rank=r, step=s, loss=9 - s) for s in (3, 4, 5, 6) for r in range(2)]
    log = read("\n".join([*ranks, *late, *again]))
    assert [step.step for step in log.steps] == [1, 2, 3, 4, 5, 3, 4, 5, 6] and len(log.starts) == 2
    alone = read(
        "\n".join(line.format(rank=0, step=s, loss=9 - s).removeprefix("[rank0]:") for s in (1, 1, 1, 2, 2, 2))
    )
    assert [step.step for step in alone.steps] == [1, 2] and alone.duplicates == 4


def test_the_first_steps_do_not_set_what_is_typical():
    seconds = [0.002, 61.0, 5.9, *[5.0] * 20, 8.0]
    log = read("\n".join(f"completed step: {n}, seconds: {s}, loss: 1.5" for n, s in enumerate(seconds)))
    assert log.typical("step_seconds") == 5.0 and log.steps[0].step_seconds == 0.002


def test_lines_of_no_format_are_left_alone():
    log = read("Loading checkpoint shards: 100%|####| 4/4 [00:01<00:00,  2.1it/s]\nhello\n\n")
    assert (log.format, log.steps, log.faults) == (None, [], [])


def test_a_page_of_metrics_has_no_zero_for_what_is_absent():
    log = read(
        "# TYPE DCGM_FI_DEV_GPU_TEMP gauge\n"
        'DCGM_FI_DEV_GPU_TEMP{gpu="0",Hostname="n1"} 61\nDCGM_FI_DEV_GPU_TEMP{gpu="1",Hostname="n1"} 63\n'
        'DCGM_FI_DEV_POWER_USAGE{gpu="0"} 9223372036854775794\n# TYPE vllm:num_requests_running gauge\n'
        'vllm:num_requests_running{engine="0"} 3.0\nvllm:kv_cache_usage_perc{engine="0"} 0.25\n'
    )
    assert log.format == "prometheus" and "DCGM_FI_DEV_POWER_USAGE" not in log.metrics
    assert (
        log.metrics['DCGM_FI_DEV_GPU_TEMP{gpu="1",Hostname="n1"}'] == 63
        and log.metrics["vllm:num_requests_running"] == 3
    )
    assert (log.serving[0].running, log.serving[0].kv_cache_usage, log.serving[0].waiting) == (3, 0.25, None)


def test_results_of_a_benchmark_are_metrics():
    text = json.dumps(
        {
            "date": "20260301",
            "request_throughput": 8.5,
            "output_throughput": 1700.0,
            "mean_ttft_ms": 35.5,
            "nested": {"p99": 2},
        },
        indent=2,
    )
    log = read(text)
    assert log.format == "vllm-bench" and log.metrics["mean_ttft_ms"] == 35.5 and log.metrics["nested.p99"] == 2
    summary = read(
        "{'loss': 1.5, 'epoch': 0.1}\n{'train_runtime': 62.5, 'train_samples_per_second': 16.0, 'train_loss': 1.25, 'epoch': 1.0}"
    )
    assert summary.metrics["train_runtime"] == 62.5 and len(summary.steps) == 1


def test_a_run_of_mlperf_says_how_long_it_took():
    event = ':::MLLOG {{"time_ms": {}, "key": "{}", "value": {}, "metadata": {{"samples_count": 512}}}}'
    log = read(
        "\n".join(
            [
                event.format(1000, "run_start", "null"),
                event.format(5000, "train_loss", "3.5"),
                event.format(61000, "run_stop", '"ok"'),
            ]
        )
    )
    assert log.metrics["run_seconds"] == 60.0 and (log.steps[0].loss, log.steps[0].step) == (3.5, None)


def test_compressed_logs_and_standard_input_are_read(tmp_path):
    path = tmp_path / "run.log.gz"
    path.write_bytes(gzip.compress(STEPS[0][1].encode() + b"\n"))
    assert cw.read_log(path).steps[0].step == 9
    with pytest.raises(cw.NoSuchFile):
        list(lines_of(str(tmp_path / "none")))
    for wrong in (tmp_path, tmp_path / "broken.gz"):
        if not wrong.exists():
            wrong.write_bytes(b"not gzip")
        with pytest.raises(cw.BrokenFile):
            cw.read_log(wrong)
    with pytest.raises(cw.UnknownName, match="maxtext"):
        cw.read_log(path, format="maxtex")


def test_a_document_in_one_line_is_read_whole_however_long_the_line(tmp_path):
    path = tmp_path / "result.json"
    path.write_text(json.dumps({"output_throughput": 9.5, "mean_ttft_ms": 12.5, "itls": [0.0123] * 30_000, "p99": 1.0}))
    assert path.stat().st_size > 3 * MAX_LINE_BYTES
    assert cw.read_log(path).log.metrics == {"output_throughput": 9.5, "mean_ttft_ms": 12.5, "p99": 1.0}


def test_words_are_looked_for_at_the_beginning_of_a_line_alone():
    said = "completed step: 9, seconds: 1.341, loss: 0.125"
    assert read(said + " " * MAX_WORDS).steps and not read(" " * MAX_WORDS + said).steps


def test_long_runs_of_digits_are_no_number():
    """Every place of a run was once tried as the beginning of one: minutes for a line."""
    log = read("completed step: 1, seconds: " + "1" * MAX_LINE_BYTES + "\ncompleted step: 2, seconds: 1.5, loss: 3")
    assert [step.step_seconds for step in log.steps][-1] == 1.5


def test_what_happened_is_held_against_the_prediction():
    job = cw.load("llama-3.1-8b", batch=64, sequence="8k", steps=100)
    prediction = cw.predict(job, on="h100:8")
    log = cw.read_log("examples/logs/titan.log", against=prediction)
    (ratio,) = log.against
    assert ratio.ratio == pytest.approx(ratio.actual / (prediction.prediction.tokens_per_s.value / 8))
    assert ratio.verdict == "as predicted"
    document = log.to_dict()
    assert document["against"][0]["verdict"] == "as predicted" and document["format"] == "torchtitan"
    assert set(document["steps"][0]) == {
        "step", "step_seconds", "tokens_per_s", "tokens_per_s_per_device", "tflops_per_device", "mfu", "loss"
    }  # fmt: skip
