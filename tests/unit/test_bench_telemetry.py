"""Looking at the device: the sampler on this machine's /proc, and the words for what drivers say."""

import time
import types

import pytest

from chipwise.bench import nvml, tpu
from chipwise.bench.frameworks.interface import Device
from chipwise.bench.host import Host
from chipwise.bench.telemetry import Reading, Sampler, Silent, Span, Unreadable, open_source
from patience import until

CPU = Device("cpu", "a CPU", 1.0, 1)
GPU = Device("cuda", "a GPU", 1.0, 1)


def test_the_sampler_reads_this_machine_while_work_runs():
    with Sampler(open_source(CPU), hz=50) as sampler, sampler.window() as window:
        until(lambda: sum(range(100_000)) and len(sampler._readings) > 4, step=0.0)
    watched = window.watched(10, 0.03)
    assert watched.samples >= 3 and 0 < watched.utilization <= 1 and watched.memory_bytes > 2**20


def test_windows_do_not_see_each_other():
    with Sampler(Host(), hz=200) as sampler:
        with sampler.window() as first:
            time.sleep(0.05)
        with sampler.window() as second:
            time.sleep(0.02)
    assert first.readings[-1].time_s <= second.readings[0].time_s


def test_a_source_that_fails_goes_silent_and_says_why():
    class Lost(Silent):
        name = "lost"

        def read(self):
            raise RuntimeError("fell off the bus")

    sampler = Sampler(Lost(""), hz=100)
    with sampler, sampler.window() as window:
        pass
    assert window.watched(1, 1.0).samples == 0 and sampler.reason == "lost stopped answering: fell off the bus"


def test_energy_comes_from_the_counter_over_long_windows_and_from_power_over_short_ones():
    long = Span((Reading(0.0, 100.0, 50.0), Reading(1.0, 300.0, 250.0)))
    assert long.watched(10, 0.1).energy_j == 20.0 and long.watched(10, 0.1).power_w == 200.0
    short = Span((Reading(0.0, 100.0, 50.0), *(Reading(0.05 * i, 300.0, 50.0) for i in (1, 2, 3))))
    assert short.watched(10, 0.01).energy_j == pytest.approx(3.0)
    wrapped = Span((Reading(0.0, None, 50.0), Reading(1.0, None, 3.0)))
    assert wrapped.watched(10, 0.1).energy_j is None


def test_energy_over_very_few_readings_is_not_told():
    span = Span((Reading(0.0, 100.0), Reading(0.03, 300.0)))
    assert span.watched(10, 0.003).energy_j is None and span.watched(10, 0.003).power_w is None


def test_a_window_keeps_the_hottest_the_most_and_every_reason():
    span = Span(
        (
            Reading(0.0, temperature_c=99.0),
            Reading(0.1, temperature_c=60.0, memory_bytes=5.0, clock_hz=1e9, throttled=("power cap",)),
            Reading(0.2, temperature_c=70.0, memory_bytes=4.0, clock_hz=3e9),
        )
    )
    seen = span.watched(1, 1.0)
    assert (seen.temperature_c, seen.memory_bytes, seen.clock_hz, seen.throttled) == (70.0, 5.0, 2e9, ("power cap",))


@pytest.mark.parametrize(
    "bits, words",
    [
        (0x0, ()),
        (0x1, ()),
        (0x2, ()),
        (0x4, ("power cap",)),
        (0x8, ("hardware slowdown",)),
        (0x10, ()),
        (0x20, ("thermal slowdown (software)",)),
        (0x40, ("thermal slowdown (hardware)",)),
        (0x80, ("power brake",)),
        (0x100, ()),
        (0x48, ("hardware slowdown", "thermal slowdown (hardware)")),
    ],
)
def test_throttle_bits_in_words(bits, words):
    assert nvml.reasons(bits) == words


def test_the_bits_are_those_of_the_real_library():
    pynvml = pytest.importorskip("pynvml")
    assert set(nvml.THROTTLING) == {
        pynvml.nvmlClocksThrottleReasonSwPowerCap,
        pynvml.nvmlClocksThrottleReasonHwSlowdown,
        pynvml.nvmlClocksThrottleReasonSwThermalSlowdown,
        pynvml.nvmlClocksThrottleReasonHwThermalSlowdown,
        pynvml.nvmlClocksThrottleReasonHwPowerBrakeSlowdown,
    }
    assert nvml.POWER_INSTANT == pynvml.NVML_FI_DEV_POWER_INSTANT


def test_no_driver_is_a_reason_and_not_an_error():
    pynvml = pytest.importorskip("pynvml")
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        source = open_source(GPU)
        assert isinstance(source, Silent) and source.reason.startswith("no NVML: ")
    else:
        pytest.skip("this machine has an NVIDIA driver")


def test_no_library_is_a_reason_with_the_command(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pynvml", None)
    assert open_source(GPU).reason == "no NVML: nvidia-ml-py is not installed (pip install nvidia-ml-py)"


def test_a_platform_without_a_source_says_so():
    assert open_source(Device("rocm", "", 1.0, 1)).reason == "nothing here reads a rocm device"


class OldGpu(types.SimpleNamespace):
    """Answers like NVML on a GPU that knows neither energy nor instant power."""

    class NVMLError(Exception):
        value = 3  # not supported

    NVML_TEMPERATURE_GPU, NVML_CLOCK_SM, NVML_CLOCK_MEM = 0, 1, 2

    def __init__(self):
        super().__init__(asked=[])

    def __getattr__(self, name):
        answers = {
            "nvmlInit": None,
            "nvmlShutdown": None,
            "nvmlDeviceGetHandleByIndex": "handle",
            "nvmlDeviceGetHandleByUUID": "handle",
            "nvmlDeviceGetPowerUsage": 250_000,
            "nvmlDeviceGetUtilizationRates": types.SimpleNamespace(gpu=75),
            "nvmlDeviceGetMemoryInfo": types.SimpleNamespace(used=2**30),
            "nvmlDeviceGetTemperature": 61,
            "nvmlDeviceGetClockInfo": 1410,
            "nvmlDeviceGetMaxClockInfo": 1980,
            "nvmlDeviceGetEnforcedPowerLimit": 300_000,
            "nvmlDeviceGetCurrentClocksThrottleReasons": 0x4,
            "nvmlSystemGetDriverVersion": "550.1",
        }

        def call(*arguments):
            self.asked.append((name, arguments))
            if name not in answers:
                raise self.NVMLError
            return answers[name]

        return call


def test_a_gpu_is_read_in_si_units_and_not_asked_again_for_what_it_lacks():
    library = OldGpu()
    gpu = nvml.Nvml(Device("cuda", "", 1.0, 1, uuid="abc"), library)
    assert ("nvmlDeviceGetHandleByUUID", ("GPU-abc",)) in library.asked
    reading = [gpu.read() for _ in range(3)][-1]
    assert (reading.power_w, reading.energy_j, reading.utilization, reading.memory_bytes) == (
        250.0,
        None,
        0.75,
        2.0**30,
    )
    assert (reading.temperature_c, reading.clock_hz, reading.throttled) == (61.0, 1.41e9, ("power cap",))
    assert sum(name == "nvmlDeviceGetTotalEnergyConsumption" for name, _ in library.asked) == 1
    assert gpu.settings() == {
        "driver": "550.1",
        "power_limit_w": 300.0,
        "power_w": 250.0,
        "clock_hz": 1.41e9,
        "max_clock_hz": 1.98e9,
        "memory_clock_hz": 1.41e9,
        "temperature_c": 61.0,
    }


@pytest.mark.parametrize(
    "visible, call",
    [
        ("3,1", ("nvmlDeviceGetHandleByIndex", (1,))),
        ("", ("nvmlDeviceGetHandleByIndex", (1,))),
        ("GPU-a,GPU-b", ("nvmlDeviceGetHandleByUUID", ("GPU-b",))),
    ],
)
def test_the_gpu_is_the_one_cuda_shows(monkeypatch, visible, call):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    library = OldGpu()
    nvml.Nvml(Device("cuda", "", 1.0, 2, index=1), library)
    assert call in library.asked


class Metrics:
    def __init__(self, **data):
        self.values = data

    def list_supported_metrics(self):
        return list(self.values)

    def get_metric(self, name):
        if self.values[name] is None:
            raise RuntimeError("not ready")
        return types.SimpleNamespace(data=lambda: self.values[name])


def test_a_tpu_is_read_by_chip():
    monitor = tpu.TpuMonitor(
        1, Metrics(duty_cycle_pct=["0.00", "87.50"], hbm_capacity_usage=["1", "1024"], tpu_throttle_score=["0", "2"])
    )
    reading = monitor.read()
    assert (reading.utilization, reading.memory_bytes, reading.throttled) == (0.875, 1024.0, ("throttled by 20 %",))


def test_a_tpu_metric_that_fails_is_left_alone():
    monitor = tpu.TpuMonitor(0, Metrics(duty_cycle_pct=None, hbm_capacity_usage=[]))
    assert monitor.read() == Reading(monitor.read().time_s) or monitor.read().utilization is None
    with pytest.raises(Unreadable):
        tpu.TpuMonitor(0, Metrics(other=[]))


def test_sys_files_give_energy_temperature_and_clock(tmp_path):
    files = {
        "proc/stat": "cpu 100 0 100 800 0 0 0 0 0 0\n",
        "proc/meminfo": "MemTotal: 100 kB\nMemAvailable: 40 kB\n",
        "sys/class/thermal/thermal_zone0/temp": "41000\n",
        "sys/class/thermal/thermal_zone1/temp": "52000\n",
        "sys/class/powercap/intel-rapl:0/energy_uj": "5000000\n",
        "sys/class/powercap/intel-rapl:1/energy_uj": "1000000\n",
        "sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq": "2400000\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    host = Host(tmp_path)
    (tmp_path / "proc/stat").write_text("cpu 150 0 150 900 0 0 0 0 0 0\n")
    reading = host.read()
    assert (reading.energy_j, reading.temperature_c, reading.clock_hz, reading.memory_bytes) == (
        6.0,
        52.0,
        2.4e9,
        60 * 1024,
    )
    assert reading.utilization == 0.5 and host.settings() == {"clock_hz": 2.4e9}


def test_energy_goes_on_where_a_counter_of_the_kernels_begins_again(tmp_path):
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/stat").write_text("cpu 100 0 100 800 0 0 0 0 0 0\n")
    packages = [tmp_path / f"sys/class/powercap/intel-rapl:{package}" for package in range(2)]

    def at(*counters):
        for package, counter in zip(packages, counters, strict=True):
            (package / "energy_uj").write_text(f"{counter}\n")

    for package in packages:
        package.mkdir(parents=True)
        (package / "max_energy_range_uj").write_text("9000000\n")
    at(8_000_000, 1_000_000)
    host = Host(tmp_path)
    joules = [host.read().energy_j]
    at(500_000, 2_000_000)
    joules.append(host.read().energy_j)
    at(1_500_000, 3_000_000)
    joules.append(host.read().energy_j)
    assert joules == pytest.approx([9.0, 11.5, 13.5])
    (packages[0] / "energy_uj").unlink()
    assert host.read().energy_j is None


def test_no_proc_is_a_reason(tmp_path):
    with pytest.raises(Unreadable, match="no /proc"):
        Host(tmp_path)
