# SPDX-License-Identifier: BSD-3-Clause
"""Options, variables, the configuration file, exit codes and messages, up to where EAL starts or
does not: no privileges, no huge pages. tests/unit/ring/test_options.c has what the parser says."""

import os
import platform
import re
import subprocess
from pathlib import Path

import pytest
from ended import ended

NO_DEVICE = ["--no-huge", "-m", "64", "--no-pci", "--no-telemetry"]


def run(binary: Path, *args: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return ended(binary, *args, env=os.environ | variables)


def start_eal(binary: Path, *eal: str) -> subprocess.CompletedProcess[str]:
    """With EAL options that it does not start with."""
    prefix = ["--file-prefix", f"tokd-options-{os.getpid()}"]
    return run(binary, *prefix, *eal, "--", "--ip", "10.0.0.1")


def last_line(done: subprocess.CompletedProcess[str]) -> str:
    return done.stderr.splitlines()[-1]


@pytest.mark.parametrize("args", [["--help"], ["-l", "99", "--help"], ["--", "--help"]])
def test_help_is_shown_on_both_sides_of_the_dashes(binary: Path, args: list[str]) -> None:
    done = run(binary, *args)
    assert done.returncode == 0
    assert done.stderr == ""
    for option in ("--ip ADDR", "--vocab VOCAB", "--ring-size BYTES", "--drain MS"):
        assert option in done.stdout
    assert "default 16M" in done.stdout


@pytest.mark.parametrize("args", [["--version"], ["--", "--version"]])
def test_version_names_ours_and_dpdks(binary: Path, args: list[str]) -> None:
    done = run(binary, *args)
    assert done.returncode == 0
    first, built, runs, drivers = done.stdout.splitlines()
    assert re.fullmatch(r"dpdk-tokd \d+\.\d+\.\d+, revision ([0-9a-f]{12}(-dirty)?|unknown)", first)
    assert re.match(r"built with: DPDK \d+\.\d+\.\d+, (gcc|.*[Cc]lang)", built)
    assert runs.startswith("runs with: DPDK ")
    assert drivers.startswith("drivers ")


@pytest.mark.parametrize("asked", ["--help", "--version", "--check-config"])
def test_what_cannot_be_printed_is_a_failure(binary: Path, gpt2_file: Path, asked: str) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [binary, asked, "--", "--ip", "10.0.0.1", "--vocab", gpt2_file],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=30,
            check=False,
        )
    assert (done.returncode, done.stderr) == (
        1,
        "dpdk-tokd: standard output: No space left on device\n",
    )


def test_eal_answers_h_with_its_own_options(binary: Path) -> None:
    done = run(binary, "-l", "0", "-h")
    assert done.returncode == 0
    assert "--file-prefix" in done.stdout
    assert "dpdk-tokd --help lists the application options" in done.stdout


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--vocab", "gpt2"], "put it after --"),
        (
            ["--", "--ip", "10.0.0.1", "--mtu", "575"],
            "replies need 576 or more; 0: the driver's",
        ),
        (["--", "--ip", "10.0.0.1", "--vocab", "a\nb"], "a?b: byte 2 is a control character"),
        (["--check-config", "--", "--ip", "10.0.0"], "10.0.0: not an IPv4 address"),
        (["--", "--block-keys", "sha256"], "--block-keys sha256: give off, llm-d, vllm-sha256"),
        (["--", "--block-keys", "vllm-xxhash-cbor"], "needs --block-seed; start vLLM with"),
        (["--", "--block-keys", "llm-d", "--block-model", "a,b"], "a,b: 2 names for 1 vocab"),
        (
            ["--", "--block-keys", "llm-d", "--ring-size", "64k"],
            "too small for --block-keys with --block-size 16; give ",
        ),
        (["--", "--check-config", "--ip", "10.0.0.1", "--vocab", "/no.json"], "/no.json"),
        (["--", "--sink-full", "shed"], "--sink-full shed: needs --sink"),
        (["--", "-d", "mlx5_0"], "--rdma-device: only for --sink gpu=verbs:HOST"),
        (["--", "-x", "0", "--sink", "gpu=shm"], "--rdma-gid: only for --sink gpu=verbs:HOST"),
        (["--", "--pipeline", "nic"], "--pipeline nic: give dpu, cpu or gpu"),
        (["--", "--pipeline", "gpu"], "--pipeline gpu: needs --sink"),
        (["--", "--pipeline", "gpu", "--sink", "gpu", "--strict-utf8"], "not with --strict-utf8"),
        (["--", "--pipeline", "gpu", "--sink", "gpu", "--added-tokens"], "not with --added-tokens"),
        (["--", "--pipeline", "gpu", "--sink", "gpu", "--block-keys", "llm-d"], "--block-keys"),
    ],
)
def test_a_bad_option_is_one_line_and_exit_code_2(binary: Path, args: list[str], says: str) -> None:
    done = run(binary, *args)
    assert done.returncode == 2
    assert done.stdout == ""
    assert says in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_pipeline_is_that_of_the_machine(binary: Path, gpt2_file: Path) -> None:
    arm = platform.machine() == "aarch64"
    check = ["--", "--ip", "10.0.0.1", "--vocab", str(gpt2_file), "--check-config"]
    assert f"\npipeline = {'dpu' if arm else 'cpu'}\n" in run(binary, *check).stdout
    assert run(binary, *check, "--pipeline", "cpu").returncode == 0
    dpu = run(binary, *check, "--pipeline", "dpu")
    assert (dpu.returncode, "no ARM cores" in dpu.stderr) == ((0, False) if arm else (2, True))


# ------------------------------------------------------------------- what EAL does not start with


def test_a_wrong_eal_option_is_a_wrong_option(binary: Path) -> None:
    done = start_eal(binary, "--no-such-option")
    assert done.returncode == 2
    assert "--no-such-option" in done.stderr
    assert "EAL rejects an option before --" in last_line(done)
    assert done.stdout == ""  # not its usage of a hundred lines
    assert len(done.stderr.splitlines()) < 15


def test_a_wrong_value_of_one_is_a_wrong_option(binary: Path) -> None:
    assert start_eal(binary, *NO_DEVICE, "--file-prefix=").returncode == 2


def test_a_driver_that_cannot_be_loaded_is_said_to_be_one(binary: Path) -> None:
    """From DPDK 25.11 on a wrong value looks the same."""
    version = re.search(r"runs with: DPDK (\d+)\.(\d+)", run(binary, "--version").stdout)
    assert version is not None
    is_new = tuple(map(int, version.groups())) >= (25, 11)
    done = start_eal(binary, *NO_DEVICE, "-d", "nosuch.so")
    assert done.returncode == 2
    assert "nosuch.so" in done.stderr
    says = ", or cannot load a driver (-d): " if is_new else "EAL cannot load a driver (-d): "
    assert says in last_line(done)


def test_more_lcores_than_cpus_are_answered_with_how_many_there_are(binary: Path) -> None:
    done = start_eal(binary, *NO_DEVICE, "-l", "0-1000")
    assert done.returncode == 2
    assert f"CPUs: 0 to {os.cpu_count() - 1}" in last_line(done)


def test_what_is_no_option_of_eals_is_not_passed_over(binary: Path) -> None:
    done = start_eal(binary, *NO_DEVICE, "10.0.0.1")
    assert done.returncode == 2
    assert "10.0.0.1: before --, but neither an EAL option" in last_line(done)


def test_an_unknown_driver_says_what_to_look_at(binary: Path) -> None:
    done = start_eal(binary, *NO_DEVICE, "--vdev=net_nosuch0")
    assert done.returncode == 2
    assert "net_nosuch0" in done.stderr
    assert "check the names and arguments of -a and --vdev" in last_line(done)


def test_a_missing_interface_is_named(binary: Path) -> None:
    done = start_eal(binary, *NO_DEVICE, "--vdev=net_af_packet0,iface=nosuch")
    assert done.returncode == 1
    assert "--vdev net_af_packet0: no interface nosuch in this network namespace" in done.stderr


def test_a_file_prefix_in_use_asks_for_another(start, binary: Path, gpt2_file: Path) -> None:
    first = start("--vocab", str(gpt2_file)).ready()
    done = run(binary, *NO_DEVICE, "--file-prefix", first.prefix, "--", "--ip", "10.0.0.1")
    assert done.returncode == 1
    assert "if another process uses this --file-prefix, give another one" in last_line(done)


def test_huge_pages_that_cannot_be_had_are_the_remedy(binary: Path) -> None:
    done = start_eal(binary, "--no-pci", "--huge-dir", "/nonexistent")
    assert done.returncode == 1
    reserved = [p.read_text() != "0\n" for p in Path("/sys/kernel/mm").glob("*/*/nr_hugepages")]
    said = (
        "start: huge pages are reserved, but"
        if any(reserved)
        else "start: no huge pages are reserved"
    )
    assert said in last_line(done)


def test_a_folder_eal_cannot_make_is_the_remedy(binary: Path) -> None:
    # Root's is /var/run/dpdk, whatever the variable says.
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    command = [*(nobody if os.geteuid() == 0 else []), binary, *NO_DEVICE, "--", "--ip", "10.0.0.1"]
    done = ended(*command, env=os.environ | {"XDG_RUNTIME_DIR": "/nonexistent"})
    if done.stderr.startswith("setpriv: failed to execute"):
        pytest.skip(f"who is not root does not reach {binary}")
    assert done.returncode == 1
    assert "set XDG_RUNTIME_DIR to a folder of yours" in last_line(done)


# ---------------------------------------------------------------- variables and the configuration


def test_the_environment_overrides_the_file_and_is_overridden(binary, gpt2_file, tmp_path) -> None:
    path = tmp_path / "tokd.conf"
    path.write_text(f"[tokd]\nip = 10.0.0.1\nvocab = {gpt2_file}\nrxd = 64\ntxd = 64\ndrain = 1\n")
    done = run(
        binary,
        *["--check-config", "--", "--drain", "3"],
        TOKD_CONFIG=str(path),
        TOKD_DRAIN="2",
        TOKD_RXD="128",
    )
    assert done.returncode == 0, done.stderr
    for line in (
        "# from the file\nip = 10.0.0.1\n",
        "# from the environment\nrxd = 128\n",
        "# from the file\ntxd = 64\n",
        "# from the command line\ndrain = 3\n",
        ")\nmbufs = 8192\n",
    ):
        assert line in done.stdout


def test_help_and_version_come_in_any_environment(binary: Path) -> None:
    for option in ("--help", "--version"):
        done = run(binary, option, TOKD_NONSENSE="1", TOKD_CONFIG="/no/where", TOKD_RXD="x")
        assert done.returncode == 0


def test_a_wrong_file_is_one_line_and_exit_code_2(binary: Path, tmp_path: Path) -> None:
    path = tmp_path / "tokd.conf"
    path.write_bytes(b"[tokd]\nip = 10.0.0.1\0\n")
    done = run(binary, "--check-config", "--", "--config", str(path))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"dpdk-tokd: {path}: line 2: byte 14 is 0x00: not text")
    assert done.stderr.count("\n") == 1
    path.write_text('[tokd]\nvocab = "gpt2"\n')
    done = run(binary, "--check-config", "--", "--config", str(path))
    assert done.returncode == 2
    assert (
        done.stderr == f"dpdk-tokd: {path}: line 2: vocab: a value has no quotes; leave them out\n"
    )
    done = run(binary, "--check-config", "--", "--vocab", '"gpt2"')
    assert done.stderr == 'dpdk-tokd: --vocab "gpt2": in quotes; leave them out\n'


def test_a_byte_order_mark_before_the_file_is_passed_over(binary, gpt2_file, tmp_path) -> None:
    path = tmp_path / "tokd.conf"
    path.write_text(f"[tokd]\nip = 10.0.0.1\nvocab = {gpt2_file}\n", "utf-8-sig")
    done = run(binary, "--check-config", "--", "--config", str(path))
    assert (done.returncode, done.stderr) == (0, "")
    path.write_text("[tokd]\n\ufeffip = 10.0.0.1\n")
    assert run(binary, "--check-config", "--", "--config", str(path)).returncode == 2


def test_what_is_no_file_is_not_waited_for(binary: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path, says in ((pipe, "a pipe or device"), (tmp_path, "a folder"), ("/dev/zero", "device")):
        done = run(binary, "--", "--config", str(path))
        assert done.returncode == 2
        assert f"{path}: " in done.stderr
        assert says in done.stderr


def test_a_file_without_permission_is_named(binary: Path, tmp_path: Path) -> None:
    path = tmp_path / "tokd.conf"
    path.write_text("[tokd]\n")
    path.chmod(0)
    # Root reads what it may not, unless it gives that up.
    give_up = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
    command = [*(give_up if os.geteuid() == 0 else []), binary, "--", "--config", str(path)]
    done = ended(*command)
    assert done.returncode == 2
    assert f"{path}: cannot open the configuration file: Permission denied" in done.stderr


def test_the_log_and_telemetry_say_where_values_came_from(start, gpt2_file, monkeypatch) -> None:
    monkeypatch.setenv("TOKD_DRAIN", "7")
    appliance = start("--vocab", str(gpt2_file), "--rxd", "512").ready()
    assert re.search(r"options \(command line\):.* rxd=512", appliance.said())
    assert re.search(r"options \(environment\): drain=7\n", appliance.said())
    assert "txd=" not in appliance.said()  # a default
    config = appliance.telemetry("/tokd/config")
    assert config["rxd_from"] == "command line"
    assert config["drain"] == "7"
    assert config["drain_from"] == "environment"
    assert config["txd_from"] == "default"


def test_what_chooses_an_rdma_device_has_the_letters_of_its_tools(
    binary: Path, gpt2_file: Path
) -> None:
    def shown(*args: str) -> list[str]:
        common = ["--", "--ip", "10.0.0.1", "--vocab", str(gpt2_file), "--check-config"]
        common += ["--sink", "gpu=verbs:127.0.0.1", "--rdma-tclass", "104", "--rdma-sl", "15"]
        done = run(binary, *common, *args)
        assert done.returncode == 0, done.stderr
        return [line for line in done.stdout.splitlines() if line.startswith("rdma-")]

    chosen = ["rdma-device = mlx5_1", "rdma-port = 2", "rdma-gid = 3"]
    chosen += ["rdma-tclass = 104", "rdma-sl = 15"]
    assert shown("-d", "mlx5_1", "-i", "2", "-x", "3") == chosen
    assert shown("-dmlx5_1", "-i2", "-x3") == chosen
    assert shown("-d", "mlx5_0", "--rdma-port", "2", "-x", "3", "-d", "mlx5_1") == chosen
    assert "-d, --rdma-device NAME" in run(binary, "--help").stdout
    done = run(binary, "--", "--ip", "10.0.0.1", "-x")
    assert done.returncode == 2
    assert last_line(done) == "dpdk-tokd: --rdma-gid: value missing; write --rdma-gid INDEX"
    done = run(binary, "--", "--ip", "10.0.0.1", "-i", "256")
    assert done.returncode == 2
    assert "--rdma-port 256" in last_line(done)
    for option in ("--rdma-tclass 256", "--rdma-sl 16"):
        done = run(binary, "--", "--ip", "10.0.0.1", *option.split())
        assert done.returncode == 2
        assert option in last_line(done)
