"""Launches hold against the tools' own option lists and schemas, recorded by scripts/launch_options.py, and say what they leave out."""

import json
import re
import shlex
from dataclasses import replace
from functools import cache
from pathlib import Path

import jsonschema
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from chipwise.catalog import exact_chip, load, parse
from chipwise.catalog.offers import ANY
from chipwise.errors import ChipwiseError, InputError, MissingInput, Refusal, UnknownName
from chipwise.launch.described import Replicas, TrainingRun
from chipwise.launch.launch import check_launch_file, launch, launch_names, section_of
from chipwise.launch.script import script_of
from chipwise.launch.tools import accelerator_names, cloud_tools, own_tool, tools
from chipwise.predict.estimate import Estimate
from chipwise.predict.model.layouts import RECOMPUTE, Layout
from chipwise.route.load.jobs import load_jobs
from chipwise.workload import load_workload
from chipwise.workload.load import load_serving

RECORDED = Path(__file__).parent / "launch_options"
DAY = Estimate(86_400.0, 80_000.0, 90_000.0, "modelled")
LLAMA = "model: llama-3.1-8b\ntrain: {steps: 1000, global_batch: 1024, sequence: 8192}"
DEEPSEEK = "model: deepseek-v3\ntrain: {steps: 1000, global_batch: 1024, sequence: 4096, precision: fp8}"
CHAT = "model: llama-3.1-70b\nserve: {input: 1000, output: 200, arrival: {rate: 5}}"
WORKLOADS = (
    LLAMA,
    DEEPSEEK,
    "model: gpt2\ntrain: {steps: 10, global_batch: 256, sequence: 1024, precision: fp16, optimizer: lion}",
    "model: mixtral-8x7b\ntrain: {steps: 1000, global_batch: 1024, sequence: 4096, optimizer: muon}",
    "model: llama-2-70b\ntrain: {steps: 10, global_batch: 256, sequence: 4096, lora: {rank: 16}}",
)


@cache
def recorded(tool):
    return json.loads((RECORDED / f"{tool}.json").read_text(encoding="utf-8"))


def training(text=LLAMA, on="h100:64", stack="", **layout):
    acc = parse(on)
    work = load_workload(text)
    stack = stack or ("maxtext" if acc.chip.family == "tpu" else "megatron")
    axes = {"dp": acc.count, **layout}
    return TrainingRun(work, acc, load().stacks[stack], Layout(**axes), DAY)


def serving(text=CHAT, on="h100:8", stack="vllm", replicas=2, tp=4, pp=1, dp=1, ep=1, **more):
    acc = parse(on)
    axes = (tp, pp, dp, ep)
    return Replicas(load_serving(text), acc, load().stacks[stack], replicas, *axes, 256, 8192, 16, True, "bf16", **more)


def offer(chip="h100", cloud="aws", chips=8):
    return next(o for o in load().offers if o.chip_id == chip and o.cloud == cloud and o.chips == chips)


def options_of(words):
    """Options of a command line with their values, as written."""
    pairs, last = [], None
    for word in words:
        if word.startswith("--"):
            name, equals, value = word.partition("=")
            pairs.append([name, value if equals else None])
            last = pairs[-1]
        elif last is not None and last[1] is None:
            last[1] = word
    return pairs


def words_of(run, tool):
    line = re.sub(r"\$\(.*\|\| echo (\S+)\)", r"\1", " ".join(script_of(run, tools()[tool]).command))  # as a later host
    return shlex.split(line, posix=True)


def hold(run, tool, skip=0):
    """Every option of the command is one that the tool has, with a value that it takes."""
    known = recorded(tool)["options"]
    written = options_of(words_of(run, tool)[skip:])
    assert written
    for name, value in written:
        assert name in known, f"{tool} has no {name}"
        assert not known[name] or value in known[name], f"{tool} {name} takes no {value}"


# ------------------------------------------------------------------ data


@pytest.mark.parametrize("name", [*tools(), *cloud_tools()])
def test_versions_in_the_data_are_those_of_the_recorded_options(name):
    tool = {**tools(), **cloud_tools()}[name]
    record = recorded("maxtext" if name == "jetstream" else name)
    assert tool.version == record["version"] and tool.source and record["source"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", tool.date) and re.fullmatch(r"\d{4}-\d\d-\d\d", record["date"])


def test_stacks_and_models_of_tools_are_known():
    from chipwise.workload.presets import preset_names

    for tool in tools().values():
        assert set(tool.stacks) <= set(load().stacks), tool.id
        assert set(tool.models) <= set(preset_names()), tool.id


def test_names_of_models_are_the_tools_own():
    assert set(tools()["maxtext"].models.values()) <= set(recorded("maxtext")["models"])
    assert set(tools()["jetstream"].models.values()) <= set(recorded("maxtext")["models"])
    for name in tools()["torchtitan"].models.values():
        module, config = name.split(" --config ")
        assert config in recorded("torchtitan")["configs"][module]


def test_accelerators_are_named_for_chips_that_exist():
    assert set(accelerator_names()) <= set(load().chips)
    for chip, names in accelerator_names().items():
        if names["skypilot"] and load().chips[chip].family == "gpu":
            assert exact_chip(names["skypilot"]).design == load().chips[chip].design or names["skypilot"] == "A100"


def test_clouds_are_those_of_the_schemas():
    pattern = re.compile(
        recorded("skypilot")["schemas"]["resources"]["properties"]["infra"]["pattern"].replace("(?i:", "(?:")
    )
    assert all(pattern.match(name) for name in cloud_tools()["skypilot"].clouds.values())
    backends = json.dumps(recorded("dstack")["schemas"]["task"])
    assert all(f'"{name}"' in backends for name in cloud_tools()["dstack"].clouds.values())
    listed = {o.cloud for o in load().offers}
    assert set(cloud_tools()["skypilot"].clouds) <= listed and set(cloud_tools()["dstack"].clouds) <= listed


# ------------------------------------------------------------------ serving


@pytest.mark.parametrize("tool", ["vllm", "sglang", "tensorrt-llm"])
@pytest.mark.parametrize(
    "axes",
    [
        {},
        {"tp": 8, "pp": 2, "on": "h100:16", "replicas": 1},
        {"tp": 2, "dp": 4, "ep": 8, "replicas": 1},
        {"text": CHAT.replace("rate: 5}", "rate: 5}, precision: fp8, kv_precision: fp8")},
        {"text": CHAT.replace("rate: 5}", "rate: 5}, precision: int4, kv_precision: int8")},
        {"text": CHAT.replace("rate: 5}", "rate: 5}, precision: fp32")},
    ],
)
def test_servers_are_told_options_that_they_have(tool, axes):
    run = serving(stack=tool, **axes)
    hold(run, tool)


def test_a_server_on_tpus_is_told_keys_of_maxtext():
    words = words_of(serving(on="v6e:8", stack="jetstream", tp=8, replicas=1), "jetstream")
    keys = {word.partition("=")[0] for word in words if "=" in word}
    assert {"ici_tensor_parallelism", "max_target_length"} <= keys <= set(recorded("maxtext")["options"])
    assert f"{words[2].replace('.', '/')}.py" in recorded("maxtext")["modules"]


def test_settings_reach_the_command():
    run = replace(serving(tp=8, pp=2, on="h100:32"), most_sequences=77, most_tokens=4321, block=32)
    written = dict(options_of(words_of(run, "vllm")))
    assert written["--tensor-parallel-size"] == "8" and written["--pipeline-parallel-size"] == "2"
    assert written["--max-num-seqs"] == "77" and written["--max-num-batched-tokens"] == "4321"
    assert written["--block-size"] == "32" and written["--max-model-len"] == "8192"  # lengths are means
    assert written["--nnodes"] == "2"  # sixteen chips of a replica lie on two hosts
    assert dict(options_of(words_of(replace(run, half="fp16"), "vllm")))["--dtype"] == "half"


def test_what_a_server_cannot_be_told_is_said():
    low = CHAT.replace("rate: 5}", "rate: 5}, precision: int4, kv_precision: int8")
    notes = " ".join(launch(serving(low)).notes)
    assert "checkpoint quantized to int4" in notes and "int8 KV cache" in notes and "one of 2 replicas" in notes
    assert "prefill alone" in " ".join(launch(serving(prefill_replicas=2)).notes)
    assert "the answer is that of vLLM" in " ".join(launch(serving(), "sglang").notes)
    assert "ways of expert parallelism" in " ".join(launch(serving(tp=4, dp=2, ep=2)).notes)


def test_trtllm_reads_what_has_no_option_from_a_file():
    text = launch(serving(CHAT.replace("rate: 5}", "rate: 5}, kv_precision: fp8"), stack="tensorrt-llm", dp=2)).text
    config = yaml.safe_load(re.search(r"<<'END'\n(.*?)\nEND", text, re.S).group(1))
    assert config == {"kv_cache_config": {"dtype": "fp8", "free_gpu_memory_fraction": 0.9}, "enable_attention_dp": True}
    assert "--extra_llm_api_options trtllm.yml" in text
    assert "extra_llm_api_options" not in launch(serving(stack="tensorrt-llm")).text


# ------------------------------------------------------------------ training

LAYOUTS = st.builds(
    lambda tp, pp, cp, vpp, zero, part, mbs, recompute, inner: Layout(
        dp=64 // (tp * pp * cp),
        tp=tp,
        pp=pp,
        cp=cp,
        vpp=vpp if pp > 1 else 1,
        micro_batch=float(mbs),
        zero=zero,
        shard=max(1, 64 // (tp * pp * cp) // part) if zero else 1,
        recompute=recompute,
        pipe_inner=inner,
    ),
    st.sampled_from([1, 2, 4]),
    st.sampled_from([1, 2, 4]),
    st.sampled_from([1, 2]),
    st.sampled_from([1, 2]),
    st.integers(0, 3),
    st.sampled_from([1, 2]),
    st.sampled_from([1, 2]),
    st.sampled_from(RECOMPUTE),
    st.booleans(),
)


@settings(max_examples=60, deadline=None)
@given(LAYOUTS, st.sampled_from(WORKLOADS), st.sampled_from(["megatron", "torchtitan"]))
def test_trainers_are_told_options_that_they_have(layout, text, tool):
    run = replace(training(text, stack=tool), layout=layout)
    words = words_of(run, tool)
    first = next(i for i, word in enumerate(words) if word.endswith("pretrain_gpt.py") or word == "torchtitan.train")
    known = recorded(tool)["options"]
    for name, value in options_of(words[first + 1 :]):
        assert name in known and (not known[name] or value in known[name]), (name, value)
    sub = [word for word in words if word.startswith("activation-checkpoint:")]
    assert set(sub) <= set(recorded("torchtitan")["subcommands"])
    written = dict(options_of(words[first + 1 :]))
    if tool == "megatron":
        assert (
            int(written["--tensor-model-parallel-size"])
            * int(written["--pipeline-model-parallel-size"])
            * int(written.get("--context-parallel-size", 1))
            * layout.dp
            == 64
        )
    else:
        degrees = [f"--parallelism.{axis}_degree" for axis in ("data_parallel_replicate", "data_parallel_shard")]
        assert int(written[degrees[0]]) * int(written[degrees[1]]) == layout.dp


@settings(max_examples=60, deadline=None)
@given(LAYOUTS, st.sampled_from(WORKLOADS), st.sampled_from(["v5p:64", "v7x:64", "v5e:64"]))
def test_maxtext_is_told_keys_that_it_has_and_a_mesh_of_all_devices(layout, text, on):
    run = replace(training(text, on=on), layout=layout)
    script = script_of(run, tools()["maxtext"])
    config = yaml.safe_load(script.config)
    known = recorded("maxtext")["options"]
    assert set(config) - {"base_config"} <= set(known)
    assert config["remat_policy"] in known["remat_policy"]
    mesh = [size for key, size in config.items() if re.match(r"(ici|dcn)_\w+_parallelism", key)]
    devices = run.accelerators.count * run.accelerators.chip.devices
    product = 1
    for size in mesh:
        product *= size
    assert product == devices
    steps = config.get("gradient_accumulation_steps", 1)
    assert config["per_device_batch_size"] * devices * steps == pytest.approx(run.workload.train.global_batch)
    flags = re.findall(r"--(xla_\w+)=", " ".join(script.env))
    assert flags and set(flags) <= set(recorded("maxtext")["xla_flags"])


def test_maxtext_on_gpus_is_told_flags_of_its_own_scripts():
    script = script_of(training(on="h100:64", stack="maxtext", zero=3, shard=64), tools()["maxtext"])
    config = yaml.safe_load(script.config)
    assert config["hardware"] == "gpu" and config["dcn_fsdp_parallelism"] == 8 and config["ici_fsdp_parallelism"] == 8
    flags = re.findall(r"--(xla_\w+)=", " ".join(script.env))
    assert flags and set(flags) <= set(recorded("maxtext")["xla_flags"])


def test_slices_are_split_over_the_data_center_network():
    config = yaml.safe_load(script_of(training(on="2*v5e:16x16"), tools()["maxtext"]).config)
    assert config["dcn_data_parallelism"] == 2 and config["ici_data_parallelism"] == 256


def test_a_price_for_every_size_leaves_the_chips_on_their_usual_hosts():
    own = replace(offer(), chips=1.0, instance=ANY)
    for chips, nodes, per_node in ((64, 8, 8), (4, 1, 4)):
        hosts = replace(training(on=f"h100:{chips}"), offer=own).hosts
        assert (hosts.count, hosts.chips, hosts.sold) == (nodes, per_node, per_node)


@pytest.mark.parametrize(
    ("pp", "vpp", "stages"),
    [(4, 1, "Et*15|t*16|t*16|t*14L"), (4, 4, "Et*4|t*4|t*4|t*4|t*4|t*4|t*4|t*4|t*4|t*4|t*4|t*3|t*3|t*4|t*4|t*3L")],
)
def test_megatron_is_told_the_stages_that_were_timed(pp, vpp, stages):
    """61 layers; the last rank has the output layer, and the layer that predicts ahead with another, and so fewer."""
    run = training(DEEPSEEK, dp=64 // pp, pp=pp, vpp=vpp)
    words = shlex.split(" ".join(script_of(run, tools()["megatron"]).command))
    assert words[words.index("--pipeline-model-parallel-layout") + 1] == stages
    assert sum(map(int, re.findall(r"t\*([0-9]+)", stages))) == 61
    assert "--num-virtual-stages-per-pipeline-rank" not in words


def test_torchrun_takes_what_it_is_given():
    from torch.distributed.run import get_args_parser

    for on, nodes in (("h100:64", "8"), ("h100:4", "1:1")):
        words = [word.replace("$NODE_RANK", "0") for word in words_of(training(on=on), "megatron")]
        parsed = get_args_parser().parse_args(words[1 : words.index("pretrain_gpt.py") + 1])
        assert parsed.nnodes == nodes and parsed.nproc_per_node == ("8" if on == "h100:64" else "4")


def test_expert_layers_and_latent_attention_reach_megatron():
    written = dict(options_of(words_of(training(DEEPSEEK, dp=64, ep=8, zero=1, shard=64), "megatron")))
    assert written["--num-experts"] == "256" and written["--expert-model-parallel-size"] == "8"
    assert written["--kv-lora-rank"] == "512" and written["--moe-layer-freq"] == "([0]*3+[1]*58)"
    assert "--multi-latent-attention" in written and written["--fp8-format"] == "hybrid"


@pytest.mark.parametrize(
    ("tool", "layout", "text", "words"),
    [
        ("megatron", {"recompute": "offload"}, LLAMA, "not expressed: activations offloaded"),
        ("maxtext", {}, WORKLOADS[2], "not expressed: the optimizer lion"),
        ("megatron", {"zero": 2, "shard": 64}, WORKLOADS[2], "Megatron-FSDP refuses the optimizer lion"),
        ("megatron", {"dp": 4, "pp": 16, "vpp": 3}, LLAMA, "not expressed: 32 layers on pp x vpp = 48 stages"),
        ("torchtitan", {"zero": 1, "shard": 64}, LLAMA, "not expressed: ZeRO-1"),
        ("torchtitan", {}, WORKLOADS[2], "has no config of this model"),
        ("torchtitan", {"ep": 8}, WORKLOADS[3], "not expressed: experts over replicas"),
        ("maxtext", {"zero": 2, "shard": 64}, LLAMA, "not expressed: ZeRO-2"),
        ("maxtext", {"zero": 1, "shard": 8}, LLAMA, "not expressed: optimizer state over 8 of 64"),
        ("maxtext", {}, WORKLOADS[2], "no model of this name"),
    ],
)
def test_what_a_trainer_cannot_be_told_is_said_in_the_file(tool, layout, text, words):
    written = launch(training(text, stack=tool, **layout), tool)
    assert any(words in note for note in written.notes), written.notes
    assert all(f"# note: {note}" in written.text for note in written.notes)


def test_adapters_are_trained_by_what_trains_adapters():
    """Never a command that trains every weight, nor of a tool that was not timed: a reason stands for it."""
    lora = WORKLOADS[4]
    written = launch(training(lora, on="h100:8", stack="fsdp", zero=3, shard=8))
    assert written.tool == "trl" and not any("that of" in note for note in written.notes)
    other = launch(training(lora, on="h100:8", zero=3, shard=8), "trl")
    assert any("that of Megatron" in note for note in other.notes)
    with pytest.raises(Refusal, match="trl"):
        launch(training(lora, on="h100:8", zero=3, shard=8))
    known = recorded("trl")["options"]
    options = dict(options_of(words_of(training(lora, on="h100:8", zero=3, shard=8), "trl")))
    assert set(options) <= set(known)
    assert options["--lora_r"] == "16" and options["--per_device_train_batch_size"] == "1"
    assert options["--gradient_accumulation_steps"] == "32" and options["--fsdp_reshard_after_forward"] == "true"
    for tool in ("megatron", "torchtitan", "maxtext"):
        with pytest.raises(Refusal, match=r"trains? every weight, not adapters"):
            launch(training(lora), tool)
    split = training(lora, on="h100:8", dp=2, tp=4)
    with pytest.raises(Refusal, match="trains every weight"):
        launch(split)
    assert "YOUR_COMMAND" in launch(split, "job").text and "torchrun" not in launch(split, "skypilot").text
    assert "none is written for Megatron-LM" in " ".join(block.words for block in section_of(split))
    with pytest.raises(Refusal, match="adapters"):
        launch(training(), "trl")


def test_checkpoints_of_a_precision_need_no_flag():
    def written(model, **more):
        words = ", ".join(f"{key}: {value}" for key, value in more.items())
        text = (
            f"model: {model}\nserve: {{input: 1000, output: 200, arrival: {{rate: 5}}{', ' + words if words else ''}}}"
        )
        return launch(serving(text, on="h200:8", tp=8, replicas=1))

    for model in ("gpt-oss-120b", "deepseek-v3", "Qwen/Qwen3-32B-FP8"):
        own = written(model)
        assert "--quantization" not in own.text and not any("weights" in note for note in own.notes), own.text
    assert "--quantization fp8" in written("qwen3-32b", precision="fp8").text
    other = written("deepseek-v3", precision="bf16")
    assert any("published in fp8" in note for note in other.notes) and "--quantization" not in other.text
    assert "--block-size" not in other.text  # latent attention asks for pages of another size


def test_speech_is_served_without_chunks_of_prompts():
    text = "model: whisper-large-v3\nserve: {output: 200, arrival: {rate: 5}}"
    written = launch(serving(text, on="l4:1", tp=1, replicas=1))
    assert "vllm serve openai/whisper-large-v3" in written.text and "--enable-chunked-prefill" not in written.text
    assert dict(options_of(words_of(serving(text, on="l4:1", tp=1), "vllm")))["--max-model-len"] == "200"


def test_stages_that_maxtext_refuses_are_refused():
    with pytest.raises(Refusal, match="61 layers don't divide"):
        launch(training(DEEPSEEK, on="v5p:64", dp=16, pp=4))


# ------------------------------------------------------------------ clouds and jobs


@cache
def validator(tool, part):
    schema = recorded(tool)["schemas"][part]
    return jsonschema.validators.validator_for(schema)(schema)


def task_of(run, tool):
    written = launch(run, tool)
    task = yaml.safe_load(written.text)
    validator(tool, task.get("type", "task")).validate(task)
    if tool == "skypilot":
        for part in {"resources", "service"} & set(task):
            validator(tool, part).validate(task[part])
    return task, written


@pytest.mark.parametrize("tool", ["skypilot", "dstack"])
def test_tasks_hold_against_the_schemas(tool):
    priced = replace(training(), offer=offer())
    task, _ = task_of(priced, tool)
    assert task.get("num_nodes", task.get("nodes")) == 8
    assert offer().instance in json.dumps(task) and offer().region in json.dumps(task)
    task, _ = task_of(serving(), tool)
    assert (task.get("service") or task)["replicas"] == 2
    task, _ = task_of(serving("model: bert-base\nserve: {input: 128, arrival: {rate: 5}}", tp=1, stack="pytorch"), tool)
    assert "YOUR_COMMAND" in json.dumps(task)


def test_tpu_slices_are_named_as_google_counts_them():
    assert task_of(training(on="v5p:64"), "skypilot")[0]["resources"]["accelerators"] == "tpu-v5p-128"
    assert task_of(training(on="v6e:64"), "skypilot")[0]["resources"]["accelerators"] == "tpu-v6e-64"
    assert task_of(training(on="v5e:8"), "dstack")[0]["resources"]["gpu"] == "v5litepod-8"
    with pytest.raises(Refusal, match="dstack starts TPUs of one host"):
        launch(training(on="v5p:64"), "dstack")
    with pytest.raises(Refusal, match="SkyPilot starts one TPU slice"):
        launch(training(on="2*v5e:16x16"), "skypilot")


def test_chips_are_named_as_dstack_knows_them():
    names = recorded("dstack")["accelerators"]["names"]
    for chip, row in accelerator_names().items():
        assert not row["dstack"] or row["dstack"].split(":")[0] in names, chip


def test_megatron_knows_lion_by_name():
    run = training(WORKLOADS[2])
    assert dict(options_of(words_of(run, "megatron")))["--optimizer"] == "lion"
    assert not any("optimizer" in note for note in launch(run).notes)


@pytest.mark.parametrize("tool", ["vllm", "sglang", "tensorrt-llm", "megatron", "torchtitan", "maxtext"])
def test_a_tool_names_the_version_its_options_were_recorded_of(tool):
    assert tools()[tool].version == recorded(tool)["version"]


def test_every_offer_makes_a_task():
    """Every chip, cloud and instance of the price list, in both tools: a task by the schema, or a reason."""
    seen = set()
    for o in load().offers:
        if (o.chip_id, o.cloud, o.chips) in seen or o.chips < 1 or load().chips[o.chip_id].family == "tpu":
            continue
        seen.add((o.chip_id, o.cloud, o.chips))
        run = replace(serving(on=f"{o.chip_id}:{int(o.chips)}", tp=1, replicas=1), offer=o)
        for tool in ("skypilot", "dstack"):
            try:
                _, written = task_of(run, tool)
            except Refusal as refusal:
                assert "has no name for" in str(refusal)
                continue
            if o.cloud not in cloud_tools()[tool].clouds:
                assert any(f"has no cloud {o.cloud}" in note for note in written.notes)
    assert len(seen) > 100


def test_tasks_install_their_tool_and_ask_for_what_is_the_users():
    task, _ = task_of(serving(), "skypilot")
    assert task["setup"] == f"pip install vllm=={tools()['vllm'].version}\n" and "envs" not in task
    task, _ = task_of(serving(), "dstack")
    assert task["commands"][0].startswith("pip install vllm==")
    task, written = task_of(training(on="v5p:2x2x2"), "skypilot")
    assert task["envs"] == {"OUTPUT": None} and any("given with --env" in note for note in written.notes)


def test_instances_of_price_pages_are_not_named():
    page = replace(offer(), instance="community 1x H100", source="https://example.com/pricing")
    task, _ = task_of(replace(serving(tp=2), offer=page), "skypilot")
    assert "instance_type" not in task["resources"] and task["resources"]["accelerators"].startswith("H100:")


def test_sequences_longer_than_the_mean_are_let_in():
    written = dict(options_of(words_of(serving(), "vllm")))
    assert written["--max-model-len"] == "8192"
    short = serving("model: bert-base\nserve: {input: 128, arrival: {rate: 5}}", tp=1)
    assert dict(options_of(words_of(short, "vllm")))["--max-model-len"] == "512"
    jet = " ".join(words_of(serving(on="v5e:2x4", tp=8, stack="jetstream"), "jetstream"))
    assert "max_target_length=1200" in jet  # its cache is as long as that for every slot


def test_a_machine_larger_than_the_run_is_said():
    task, written = task_of(replace(serving(tp=2), offer=offer()), "skypilot")
    assert task["resources"]["accelerators"] == "H100:8"
    assert any("an instance has 8 chips, this takes 2" in note for note in written.notes)


@pytest.mark.parametrize("text", [*WORKLOADS, "model: resnet-50\ntrain: {images: 1M, global_batch: 1024}"])
def test_job_files_are_read_by_the_router(text, tmp_path):
    run = training(text, zero=2, shard=8)
    path = launch(run, "job").write(tmp_path / "run.job.yaml")
    [job] = load_jobs(path, now=0.0)
    [variant] = job.variants
    assert variant.chips == 64 and variant.on == {"h100"} and variant.family == "gpu"
    assert variant.layout == str(run.layout) and job.workload
    assert load_workload(yaml.safe_dump(json.loads(job.workload))) == run.workload


def test_a_job_of_a_service_is_declared_to_end():
    written = launch(serving(), "job")
    [job] = load_jobs(written.text, now=0.0)
    assert job.given[0].seconds.value == 86_400 and job.variants[0].chips == 4
    assert any("declared to run for a day" in note for note in written.notes)
    [job] = load_jobs(launch(serving(duration=DAY), "job").text, now=0.0)
    assert job.given[0].seconds.low == 80_000


def test_the_router_has_no_pools_of_other_chips():
    with pytest.raises(Refusal, match="no pools of gaudi2"):
        launch(training(on="gaudi2:8", stack="pytorch"), "job")


def test_shell_reads_every_script():
    """bash -n parses what is written: scripts, and the commands of tasks and jobs."""
    import subprocess

    runs = [
        training(),
        training(on="v5p:64"),
        training(DEEPSEEK, ep=8, zero=1, shard=64),
        serving(stack="tensorrt-llm", dp=2),
    ]
    for run in runs:
        scripts = [launch(run).text]
        scripts.append(yaml.safe_load(launch(run, "job").text)["command"][2])
        scripts.append(yaml.safe_load(launch(run, "skypilot").text)["run"])
        for script in scripts:
            done = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True, check=False)
            assert done.returncode == 0, done.stderr


# ------------------------------------------------------------------ choosing


@pytest.mark.parametrize(
    ("file", "tool"),
    [
        ("run.sh", "megatron"),
        ("run.sky.yaml", "skypilot"),
        ("sky.yaml", "skypilot"),
        (".dstack.yml", "dstack"),
        ("a.job.yaml", "job"),
        ("a.torchtitan.sh", "torchtitan"),
        ("whatever", "megatron"),
    ],
)
def test_the_ending_of_a_file_says_what_it_is_for(file, tool):
    assert launch(training(), file=file).tool == tool


def test_a_file_of_another_kind_or_an_unknown_tool_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"^launch: 'run.maxtext.yml' is not accepted"):
        launch(serving(), file="run.maxtext.yml")
    with pytest.raises(UnknownName, match=r"^launch_for: unknown name 'megatron'"):
        launch(serving(), "megatron")
    with pytest.raises(UnknownName, match=r"^launch_for: unknown name 'slurm'"):
        check_launch_file(tmp_path / "run.sh", "slurm")
    with pytest.raises(InputError, match="a name that says what it is for"):
        check_launch_file(tmp_path / "run.yaml", None)
    with pytest.raises(InputError, match="a file that can be written"):
        check_launch_file(tmp_path / "missing" / "run.sh", None)
    with pytest.raises(MissingInput, match="launch"):
        check_launch_file(None, "vllm")
    check_launch_file(tmp_path / "run.yaml", "skypilot")


def test_tools_that_do_not_run_there_are_refused():
    with pytest.raises(Refusal, match=r"JetStream .* has no launch of llama-3.1-70b .* on h100"):
        launch(serving(), "jetstream")
    with pytest.raises(Refusal, match="no launch is known for PyTorch"):
        launch(training("model: resnet-50\ntrain: {images: 1M, global_batch: 1024}", stack="pytorch"))


def test_maxtext_is_a_config_or_a_script():
    run = training(on="v5p:64")
    config = yaml.safe_load(launch(run, file="run.maxtext.yml").text)
    assert config["model_name"] == "llama3.1-8b" and "LIBTPU_INIT_ARGS" in launch(run, file="run.maxtext.yml").text
    assert launch(run, file="run.sh").text.startswith("#!/usr/bin/env bash")


def test_a_launch_is_written_whole_or_not_at_all(tmp_path):
    written = launch(training())
    target = tmp_path / "run.sh"
    assert written.write(target) == target and target.read_text(encoding="utf-8") == written.text
    assert list(tmp_path.iterdir()) == [target]
    with pytest.raises(ChipwiseError):
        written.write(tmp_path / "missing" / "run.sh")
    assert set(written.to_dict()) >= {"tool", "version", "date", "text", "notes", "start"}


def test_the_section_is_short_and_names_the_other_tools():
    for run in (training(), training(on="v5p:64"), serving(), training(on="gaudi2:8", stack="pytorch")):
        lines = [block.words for block in section_of(run)]
        assert 2 <= len(lines) <= 24 and "skypilot, dstack, job" in lines[-1]
        tool = own_tool(run.stack.id)
        assert tool is None or tool.id not in re.split(r"[ ,]+", lines[-1])
    assert section_of(None) == []
    assert launch_names("train") == ["megatron", "torchtitan", "trl", "maxtext", "skypilot", "dstack", "job"]
