"""Secrets by look: known formats and random values are refused, ordinary variables are not.

Formats and their issuers: https://docs.github.com/en/code-security/reference/secret-security/supported-secret-scanning-patterns
(2026-11-16) and the rules of https://github.com/gitleaks/gitleaks, config/gitleaks.toml (2026). Bodies are
drawn here: no line of this file is anybody's secret, nor looks like one to a scanner.
"""

import random
import re
import string

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from chipwise.errors import InputError
from chipwise.route.load import load_jobs
from chipwise.route.load.secrecy import refuse_arguments, refuse_secrets
from chipwise.route.load.secret_forms import PREFIXES, looks_secret
from chipwise.route.secret import named_secret

HEX, ALNUM, UPPER = "0123456789abcdef", string.ascii_letters + string.digits, string.ascii_uppercase + string.digits
BASE64 = ALNUM + "+/"
# issuer, what comes before the drawn part, its alphabet and length, what comes after
FORMATS = [
    ("1Password", "ops_" + "eyJ", BASE64, 250, ""),
    ("age", "AGE-SECRET-KEY-1", UPPER, 58, ""),
    ("Airtable", "pat" + "a" * 14 + ".", HEX, 64, ""),
    ("Alibaba Cloud", "LTAI", ALNUM, 20, ""),
    ("Anthropic", "sk-ant-api03-", ALNUM, 93, "AA"),
    ("OpenAI project", "sk-proj-", ALNUM, 74, ""),
    ("OpenAI user", "sk-", ALNUM, 48, ""),
    ("Atlassian", "ATATT3", ALNUM, 186, ""),
    ("AWS access key", "AKIA", UPPER, 16, ""),
    ("AWS temporary key", "ASIA", UPPER, 16, ""),
    ("AWS Bedrock", "ABSK", BASE64, 109, ""),
    ("Azure client secret", "abc8Q~", ALNUM, 34, ""),
    ("Azure storage", "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=", BASE64, 86, "==;EndpointSuffix=x"),
    ("Azure service bus", "Endpoint=sb://a/;SharedAccessKeyName=r;SharedAccessKey=", BASE64, 43, "="),
    ("Azure SAS", "https://a.blob.core.windows.net/c?sv=2024&sig=", ALNUM, 43, "%3D"),
    ("Databricks", "dapi", HEX, 32, ""),
    ("DigitalOcean", "dop_v1_", HEX, 64, ""),
    ("Docker", "dckr_pat_", ALNUM, 27, ""),
    ("Doppler", "dp.pt.", ALNUM, 43, ""),
    ("GitHub classic", "ghp_", ALNUM, 36, ""),
    ("GitHub fine-grained", "github_pat_", ALNUM, 22, "_" + "b" * 59),
    ("GitHub app", "ghs_", ALNUM, 36, ""),
    ("GitLab", "glpat-", ALNUM, 20, ""),
    ("GitLab runner", "glrt-", ALNUM, 20, ""),
    ("GitLab deploy", "gldt-", ALNUM, 20, ""),
    ("Google API", "AIza", ALNUM, 35, ""),
    ("Google OAuth", "ya29.", ALNUM, 60, ""),
    ("Google client secret", "GOCSPX-", ALNUM, 28, ""),
    ("Google HMAC", "GOOG1E", UPPER, 55, ""),
    ("Grafana", "glsa_", ALNUM, 32, "_00000000"),
    ("Groq", "gsk_", ALNUM, 52, ""),
    ("HashiCorp Vault", "hvs.", ALNUM, 90, ""),
    ("Hugging Face", "hf_", ALNUM, 34, ""),
    ("Hugging Face organization", "api_org_", ALNUM, 34, ""),
    ("JSON Web Token", "eyJ" + "hbGciOiJIUzI1NiJ9.eyJ", ALNUM, 40, ".c2ln"),
    ("LangSmith", "lsv2_pt_", HEX, 32, "_0000000000"),
    ("Linear", "lin_api_", ALNUM, 40, ""),
    ("New Relic", "NRAK-", UPPER, 27, ""),
    ("NVIDIA", "nvapi-", ALNUM, 64, ""),
    ("Notion", "ntn_", ALNUM, 46, ""),
    ("npm", "npm_", ALNUM, 36, ""),
    ("Perplexity", "pplx-", ALNUM, 48, ""),
    ("Pulumi", "pul-", HEX, 40, ""),
    ("PyPI", "pypi-" + "AgEIcHlwaS5vcmc", ALNUM, 70, ""),
    ("Replicate", "r8_", ALNUM, 37, ""),
    ("SendGrid", "SG.", ALNUM, 22, "." + "c" * 43),
    ("Sentry", "sntrys_", BASE64, 60, ""),
    ("Shopify", "shpat_", HEX, 32, ""),
    ("Slack bot", "xoxb-", string.digits, 24, "-abc"),
    ("Slack app", "xapp-1-", UPPER, 30, ""),
    ("Slack hook", "https://hooks.slack.com/services/", UPPER, 20, ""),
    ("Stripe", "sk_" + "live_", ALNUM, 24, ""),
    ("Stripe webhook", "whsec_", ALNUM, 32, ""),
    ("Tailscale", "tskey-auth-", ALNUM, 24, ""),
    ("Telegram", "123456789:AA", ALNUM, 33, ""),
    ("Twilio", "SK", HEX, 32, ""),
    ("Cerebras", "csk-", ALNUM, 48, ""),
    ("Cloudflare", "v1.0-" + "a" * 24 + "-", HEX, 146, ""),
    ("Fireworks", "fw_", ALNUM, 24, ""),
    ("Heroku", "HRKU-", ALNUM, 60, ""),
    ("Postman", "PMAK-" + "a" * 24 + "-", HEX, 34, ""),
    ("RunPod", "rpa_", UPPER, 40, ""),
    ("Weights & Biases", "wandb_v1_", ALNUM, 77, ""),
    ("Yandex", "AQVN", ALNUM, 35, ""),
    ("SQL Server", "Server=db;Database=a;User Id=b;Password=", ALNUM, 8, ";"),
    ("xAI", "xai-", ALNUM, 80, ""),
    ("private key", "-----BEGIN " + "OPENSSH PRIVATE KEY-----\n", BASE64, 64, ""),
    ("private key, RSA", "-----BEGIN " + "RSA PRIVATE KEY-----\n", BASE64, 64, ""),
    ("address", "postgresql://router:", ALNUM, 12, "@db/chipwise"),
    ("header", "Authorization: Bearer ", ALNUM, 30, ""),
    ("basic header", "Basic ", ALNUM, 24, "=="),
    ("AWS secret access key", "", BASE64, 40, ""),
    ("32 random bytes", "", BASE64, 43, "="),
    ("24 random letters and digits", "", ALNUM, 32, ""),
]  # fmt: skip
NAMES = [
    "WANDB_KEY", "WANDB_API_KEY", "OPENAI_KEY", "OPENAI_API_KEY", "DB_PASS", "DB_PASSWORD", "MYSQL_PWD", "PGPASSWORD", "GH_PAT",
    "GITHUB_TOKEN", "JWT", "SESSION_JWT", "AZURE_STORAGE_KEY", "MASTER_KEY", "CONNECTION_STRING", "AZURE_STORAGE_CONNECTION_STRING",
    "SENTRY_DSN", "DATABASE_DSN", "AWS_SECRET_ACCESS_KEY", "API_KEY_2", "SSHPASS", "REDISCLI_AUTH", "HF_TOKEN", "hfToken",
    "api-key", "SLACK_BOT_TOKEN", "COMET_API_KEY", "NGC_API_KEY", "SESSION_COOKIE", "clientSecret", "SIGNING_KEY", "ENCRYPTION_KEY",
]  # fmt: skip
ORDINARY = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/bin", "PWD": "/home/ada/run-7", "OLDPWD": "/tmp", "HOME": "/home/ada",
    "KEYBOARD": "us", "MONKEY": "see", "TURKEY": "TR", "KEY": "value", "COMPASS": "north", "PASSES": "3", "EPOCHS_PER_PASS": "2",
    "CUDA_VISIBLE_DEVICES": "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6,1,2", "TOKENIZERS_PARALLELISM": "false", "MAX_TOKENS": "1000000",
    "TOKENIZER": "meta-llama/Meta-Llama-3.1-8B", "PAD_TOKEN": "<pad>", "EOS_TOKEN": "</s>", "MASK_TOKEN": "[MASK]", "TOKEN_COUNT": "9000000000",
    "NCCL_DEBUG": "INFO", "NCCL_IB_HCA": "mlx5_0:1,mlx5_1:1,mlx5_2:1", "NCCL_SOCKET_IFNAME": "^lo,docker0", "NCCL_ALGO": "Ring,Tree",
    "NCCL_TOPO_FILE": "/etc/nccl/topo-H100x8-NVSwitch.xml", "NCCL_NET_GDR_LEVEL": "PHB", "XLA_FLAGS": "--xla_gpu_enable_latency_hiding_scheduler=true",
    "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True,max_split_size_mb:512", "LIBTPU_INIT_ARGS": "--xla_tpu_enable_async_collective_fusion=true",
    "DATASET_SHA256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", "DATASET_MD5": "d41d8cd98f00b204e9800998ecf8427e",
    "GIT_COMMIT": "da39a3ee5e6b4b0d3255bfef95601890afd80709", "IMAGE_DIGEST": "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "RUN_ID": "01890a5d-ac96-774b-bcce-b302099a8057", "S3_PATH": "s3://Bucket-7/Run12/CheckPoint000123/Shard00017of00128.safetensors",
    "MODEL": "mistralai/Mixtral-8x22B-Instruct-v0.1", "LAYOUT": "dp8tp4pp2ep2cp1zero1mbs4gas16", "CLUSTER": "H100x8_A100x4_B200x8_MI300Xx8",
    "WANDB_RUN_NAME": "Llama3.1-8B-SFT-LR1e-4-BS128-Seed42", "OMP_NUM_THREADS": "8", "LD_LIBRARY_PATH": "/usr/local/cuda-12.8/lib64",
    "SORT_KEY": "created_at", "PARTITION_KEY": "day", "PUBLIC_KEY": "ssh-ed25519 AAAA", "IMAGE_KEY": "jpg", "PRIMARY_KEY": "id",
    "GOOGLE_APPLICATION_CREDENTIALS": "/var/run/sa.json", "SSH_AUTH_SOCK": "/tmp/ssh-1/agent.1", "HF_TOKEN_PATH": "/run/hf", "KEY_FILE": "/run/key",
    "ENDPOINT": "https://api.example.com:8443/v1/Models?page=2", "JSON": '{"learningRate": 0.0003, "warmupSteps": 2000, "optimizer": "AdamW"}',
    "PYTHONPATH": "/opt/MyProject2/src:/opt/OtherProject3/src", "MODULE": "torch.nn.modules.transformer.TransformerEncoderLayer",
    "CLASS": "FullyShardedDataParallelMixedPrecisionPolicyForCausalLM", "HYDRA": "model=Llama3,data=FineWebEdu10BT,trainer=FSDP2", "EMPTY": "",
}  # fmt: skip


def drawn(before, alphabet, length, after, seed):
    return before + "".join(random.Random(seed).choices(alphabet, k=length)) + after


@pytest.mark.parametrize(("issuer", "before", "alphabet", "length", "after"), FORMATS, ids=[f[0] for f in FORMATS])
def test_secrets_of_known_formats_are_refused_and_never_shown(issuer, before, alphabet, length, after):
    for seed in range(20):
        value = drawn(before, alphabet, length, after, f"{issuer} {seed}")
        with pytest.raises(InputError) as refused:
            refuse_secrets({"SETTING": value}, "environment")
        assert value not in str(refused.value) and "secrets: [SETTING]" in str(refused.value)
        with pytest.raises(InputError) as refused:
            refuse_arguments(["python", f"--setting={value}"], "command")
        assert value not in str(refused.value)


def test_every_form_has_an_example():
    """A form that no example matches could be wrong without anybody noticing."""
    words = [drawn(*parts[1:], 0) for parts in FORMATS]
    lacking = [issuer for issuer, form in PREFIXES.items() if not any(re.search(form, word) for word in words)]
    assert lacking == []


@pytest.mark.parametrize("name", NAMES)
def test_variables_named_like_secrets_are_refused(name):
    assert named_secret(name)
    with pytest.raises(InputError):
        refuse_secrets({name: "hunter2"}, "environment")
    refuse_secrets({name: ""}, "environment")


@pytest.mark.parametrize("name", ORDINARY)
def test_ordinary_variables_are_taken(name):
    refuse_secrets({name: ORDINARY[name]}, "environment")
    refuse_arguments([ORDINARY[name], f"--{name.lower().replace('_', '-')}={ORDINARY[name]}"], "command")


@pytest.mark.parametrize(
    "argument", ["--api-key=hunter2", "--password=hunter2", "-Ddb.password=hunter2", "--hf_token=abcdef"]
)
def test_flags_named_like_secrets_are_refused(argument):
    with pytest.raises(InputError, match="argument 1 looks like a secret"):
        refuse_arguments(["train", argument], "command")


@given(st.text(HEX, min_size=20, max_size=128), st.uuids(), st.integers())
def test_hashes_numbers_and_ids_are_never_taken_for_secrets(digest, uid, number):
    assert not any(map(looks_secret, ("x" + digest, str(uid), str(number), f"sha256:{digest}")))


def test_of_random_keys_nearly_all_are_found():
    keys = [drawn("", ALNUM, length, "", seed) for length in (24, 32, 40) for seed in range(500)]
    assert sum(map(looks_secret, keys)) >= 0.98 * len(keys)


def test_a_job_file_says_how_to_pass_a_secret_by_reference():
    job = {
        "name": "a",
        "command": ["a"],
        "environment": {"WANDB_KEY": "hunter2"},
        "variants": {"cpu": {"on": ["cpu"], "chips": 1}},
        "estimates": {"cpu": "1h"},
    }
    with pytest.raises(InputError) as refused:
        load_jobs(yaml.safe_dump(job), 0.0)
    line = str(refused.value)
    assert "hunter2" not in line and "`secrets: [WANDB_KEY]`" in line and "pools file" in line and "\n" not in line
