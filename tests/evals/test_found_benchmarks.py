"""Benchmarks of other packages, found by their entry points."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from rolloutlib.evals import run_benchmark
from rolloutlib.evals.benchmarks import list_benchmarks, make

MODULE = """
from rolloutlib.evals import Benchmark
from rolloutlib.evals.benchmarks import MathEnv, MathExample
from rolloutlib.scores import Score


def sums(examples=((1, 2), (3, 4)), *, grade=lambda reply, answer: Score(float(reply == answer))):
    items = [MathExample(question=f"{a} + {b}?", answer=str(a + b)) for a, b in examples]
    return Benchmark("sums", items, lambda item: MathEnv(item, grade))


def nothing():
    return None


number = 5
"""


class Installer:
    """Puts distributions on the path, each in a folder of its own, as an installer lays them out."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._root = root
        self._monkeypatch = monkeypatch

    def __call__(self, distribution: str, module: str, source: str, **entries: str) -> None:
        folder = self._root / distribution
        facts = folder / f"{distribution.replace('-', '_')}-1.0.dist-info"
        facts.mkdir(parents=True)
        (folder / f"{module}.py").write_text(source, encoding="utf-8")
        (facts / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n", encoding="utf-8"
        )
        lines = [f"{name} = {value}\n" for name, value in entries.items()]
        (facts / "entry_points.txt").write_text(
            "".join(["[rolloutlib.benchmarks]\n", *lines]), encoding="utf-8"
        )
        self._monkeypatch.syspath_prepend(folder)
        self._monkeypatch.delitem(sys.modules, module, raising=False)


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Installer:
    return Installer(tmp_path, monkeypatch)


def test_a_benchmark_of_another_package_is_found_and_runs(install: Installer) -> None:
    install("our-sums", "our_sums", MODULE, sums="our_sums:sums")
    assert list_benchmarks() == ["aime", "aime_2024", "aime_2025", "gsm8k", "reasoning_gym", "sums"]
    assert "our_sums" not in sys.modules
    benchmark = make("sums")
    assert run_benchmark(benchmark, policy=lambda chat: "3").score == 0.5
    assert len(make("sums", [(5, 6)]).items) == 1
    assert len(make("our-sums:sums", examples=[(5, 6)]).items) == 1
    with pytest.raises(TypeError, match="unexpected keyword argument 'size'"):
        make("sums", size=3)


def test_a_name_that_two_packages_have_is_refused_and_can_be_told(install: Installer) -> None:
    install("our-sums", "our_sums", MODULE, sums="our_sums:sums")
    install("their-sums", "their_sums", MODULE.replace("sums", "adding"), sums="their_sums:adding")
    with pytest.raises(ValueError, match=r"choose from \['our-sums:sums', 'their-sums:sums'\]"):
        make("sums")
    assert make("our-sums:sums").name == "sums"
    assert make("their-sums:sums").name == "adding"
    assert {"our-sums:sums", "their-sums:sums"} < set(list_benchmarks())
    assert "sums" not in list_benchmarks()


def test_no_package_takes_the_name_of_a_built_in_benchmark(install: Installer) -> None:
    install("our-sums", "our_sums", MODULE, gsm8k="our_sums:sums")
    row = {"question": "q", "answer": "1"}
    with pytest.raises(ValueError, match=r"'our-sums:gsm8k'"):
        make("gsm8k", [row])
    assert make("rolloutlib-evals:gsm8k", [row]).name == "gsm8k"
    assert make("our-sums:gsm8k").name == "sums"


def test_one_distribution_that_is_on_the_path_twice_is_one(
    install: Installer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install("our-sums", "our_sums", MODULE, sums="our_sums:sums")
    monkeypatch.syspath_prepend(tmp_path / "." / "our-sums")
    assert make("sums").name == "sums"


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        ("absent_module:sums", ImportError, "ModuleNotFoundError.*absent_module"),
        ("our_sums:absent", ImportError, "AttributeError.*absent"),
        ("our_sums:number", TypeError, "must be a function, got 5"),
        ("our_sums:nothing", TypeError, "must be made as a Benchmark, got None"),
    ],
)
def test_a_broken_entry_point_is_named_and_harms_no_other(
    install: Installer, value: str, error: type[Exception], message: str
) -> None:
    install("our-sums", "our_sums", MODULE, broken=value, sums="our_sums:sums")
    assert {"broken", "sums"} < set(list_benchmarks())
    assert make("sums").name == "sums"
    with pytest.raises(error, match=message) as caught:
        make("broken")
    assert "'our-sums'" in str(caught.value)
    assert repr(value) in str(caught.value)


def test_a_module_that_fails_when_it_is_imported_is_named(install: Installer) -> None:
    install("our-sums", "our_sums", "raise RuntimeError('no license')", sums="our_sums:sums")
    with pytest.raises(ImportError, match=r"'our_sums:sums'.*RuntimeError: no license") as caught:
        make("sums")
    assert isinstance(caught.value.__cause__, RuntimeError)


def test_an_unknown_name_lists_what_there_is(install: Installer) -> None:
    install("our-sums", "our_sums", MODULE, sums="our_sums:sums")
    for name in ("products", "their-sums:sums", "rolloutlib-evals:sums", ""):
        with pytest.raises(ValueError, match=f"unknown benchmark {name!r}; choose from .*'sums'"):
            make(name)
