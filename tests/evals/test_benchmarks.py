"""The built-in benchmarks: their examples, environments and data sets."""

from __future__ import annotations

import json
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rolloutlib import collect
from rolloutlib.evals import Benchmark, Evaluation, run_benchmark
from rolloutlib.evals.benchmarks import (
    AIME_PROMPT_SUFFIX,
    REGISTRY,
    AIMEEnv,
    GSM8KEnv,
    MathEnv,
    MathExample,
    aime,
    grade_gsm8k,
    gsm8k,
    list_benchmarks,
    make,
    make_example_id,
)
from rolloutlib.scores import Score

ROWS = [
    {"id": "a", "question": "What is 6 times 7?", "answer": "6 * 7 = 42\n#### 42", "level": 1},
    {"id": "b", "question": "What is 2 plus 2?", "answer": "#### 4", "level": 2},
]


def test_gsm8k_asks_the_question_and_grades_the_reply() -> None:
    benchmark = gsm8k([{"question": "What is 6 times 7?", "answer": "#### 42"}])
    environment: GSM8KEnv = benchmark.make_env(benchmark.items[0])
    observation, info = environment.reset(seed=3)
    assert observation == [{"role": "user", "content": "What is 6 times 7?"}]
    assert info == {"example_id": "gsm8k:388ba6637d7cc48d"}
    last, reward, terminated, truncated, info = environment.step("The answer is 42.")
    assert last == [{"role": "assistant", "content": "The answer is 42."}]
    assert (reward, terminated, truncated) == (1.0, True, False)
    assert info["example_id"] == "gsm8k:388ba6637d7cc48d"
    score = Score.from_info(info)
    assert score is not None
    assert score.component_values == {"correct": 1.0}
    assert environment.observation_space.contains(observation)
    assert environment.observation_space.contains(last)
    assert environment.action_space.contains("The answer is 42.")


def test_aime_adds_its_instructions_and_a_system_prompt() -> None:
    example = MathExample(question="Find $n$.", answer="025", example_id="2025-I-1")
    environment = AIMEEnv(example, system_prompt="Be brief.")
    observation, info = environment.reset()
    assert observation == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Find $n$." + AIME_PROMPT_SUFFIX},
    ]
    assert info == {"example_id": "2025-I-1"}
    assert environment.step(r"So \boxed{25}.")[1] == 1.0


def test_an_observation_that_the_caller_changes_changes_no_other() -> None:
    environment = GSM8KEnv(MathExample(question="q", answer="1"))
    observation, _ = environment.reset()
    observation.append({"role": "assistant", "content": "1"})
    assert environment.reset()[0] == [{"role": "user", "content": "q"}]


def test_a_math_environment_takes_any_grader() -> None:
    def length(response: str, expected: str) -> Score:
        return Score(float(len(response) == int(expected)))

    environment = MathEnv(MathExample(question="q", answer="3"), length, prompt_suffix="!")
    assert environment.reset()[0] == [{"role": "user", "content": "q!"}]
    assert environment.step("abc")[1] == 1.0


def test_a_reply_that_is_not_text_is_named() -> None:
    environment = GSM8KEnv(MathExample(question="q", answer="1"))
    environment.reset()
    reply: Any = 5
    with pytest.raises(TypeError, match="got 5"):
        environment.step(reply)


@pytest.mark.parametrize("factory", [aime, gsm8k])
@pytest.mark.parametrize(
    ("row", "answer", "example_id"),
    [
        ({"problem": "p", "answer": "025"}, "025", None),
        ({"question": "p", "answer": 25}, "25", None),
        ({"problem": "p", "ground_truth": "25", "id": 3}, "25", "3"),
        ({"Problem": "p", "Answer": 25, "ID": "2024-I-1"}, "25", "2024-I-1"),
        ({"question": "p", "answer": "25", "example_id": "x"}, "25", "x"),
    ],
)
def test_rows_may_use_the_usual_column_names(
    factory: Callable[..., Benchmark[MathExample]],
    row: dict[str, Any],
    answer: str,
    example_id: str | None,
) -> None:
    benchmark = factory([{**row, "year": 2024}])
    expected = example_id or make_example_id(benchmark.name, "p")
    assert benchmark.items == (
        MathExample(question="p", answer=answer, example_id=expected, metadata={"year": 2024}),
    )
    assert benchmark.item_id is not None
    assert benchmark.item_id(benchmark.items[0]) == expected


def test_each_benchmark_asks_what_its_own_column_says() -> None:
    row = {"question": "asked", "problem": "posed", "answer": "1"}
    assert gsm8k([row]).items[0].question == "asked"
    assert aime([row]).items[0].question == "posed"


def test_examples_survive_their_dictionary_form() -> None:
    items = gsm8k(ROWS).items
    assert gsm8k([item.model_dump() for item in items]).items == items
    assert gsm8k(items).items == items


@pytest.mark.parametrize(
    ("factory", "row", "message"),
    [
        (gsm8k, {"question": "p", "answer": "no number"}, "example 1 .*'no number'"),
        (gsm8k, {"question": "p"}, "example 1 needs .*'answer'"),
        (gsm8k, {"answer": "1"}, "example 1 needs text under 'question'"),
        (gsm8k, {"question": 5, "answer": "1"}, "example 1 needs text .*got 5"),
        (aime, {"problem": "p", "answer": 1000}, "example 1 .*0 to 999, got '1000'"),
        (aime, {"problem": "p", "answer": "-1"}, "example 1 .*0 to 999, got '-1'"),
        (aime, {"problem": "p", "answer": "7/3"}, "example 1 .*0 to 999, got '7/3'"),
        (aime, {"problem": "p", "answer": True}, "example 1 needs text or a number .*True"),
    ],
)
def test_a_row_that_cannot_be_graded_is_named_before_anything_runs(
    factory: Callable[..., Benchmark[MathExample]], row: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        factory([{"question": "fine", "answer": "1"}, row])


def test_a_row_of_another_type_is_named() -> None:
    rows: Any = ["text"]
    with pytest.raises(TypeError, match="example 0 must be a MathExample or a mapping, got 'text'"):
        gsm8k(rows)


def test_make_finds_benchmarks_by_name() -> None:
    assert make("gsm8k", ROWS, system_prompt="s").name == "gsm8k"
    assert (REGISTRY["aime"], REGISTRY["gsm8k"], len(REGISTRY)) == (aime, gsm8k, 2)
    assert set(REGISTRY) <= set(list_benchmarks())
    with pytest.raises(ValueError, match=r"'mmlu'; choose from \['aime', .*'gsm8k'"):
        make("mmlu")


def test_benchmarks_say_where_they_come_from_and_can_be_pickled() -> None:
    benchmark = gsm8k(ROWS, split="train", dataset="our/problems")
    assert benchmark.metadata == {
        "dataset": "our/problems",
        "split": "train",
        "task": "single_turn_math",
    }
    assert pickle.loads(pickle.dumps(benchmark)).items == benchmark.items  # noqa: S301 - our own


def test_a_run_records_the_examples_ids_and_scores() -> None:
    def evaluate(environment: GSM8KEnv) -> Evaluation:
        environment.reset()
        _, reward, _, truncated, info = environment.step("#### 42")
        return Evaluation(Score.from_info(info, default=Score(reward)), truncated=truncated)

    result = run_benchmark(gsm8k(ROWS), evaluate)
    assert [record.item_id for record in result.records] == ["a", "b"]
    assert [record.score for record in result.records] == [
        grade_gsm8k("#### 42", "42"),
        grade_gsm8k("#### 42", "4"),
    ]
    assert result.score == 0.5


def write_lines(path: Path, rows: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(row) + "\n\n" for row in rows), encoding="utf-8")
    return str(path)


def without_datasets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)


def test_a_json_lines_file_needs_no_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_datasets(monkeypatch)
    benchmark = gsm8k(dataset=write_lines(tmp_path / "problems.jsonl", ROWS))
    assert benchmark.items == gsm8k(ROWS).items


def test_a_json_lines_file_may_come_from_windows(tmp_path: Path) -> None:
    path = tmp_path / "PROBLEMS.JSONL"
    text = "".join(json.dumps(row) + "\r\n" for row in ROWS)
    path.write_text(text, encoding="utf-8-sig", newline="")
    assert gsm8k(dataset=str(path)).items == gsm8k(ROWS).items


def test_without_the_extra_a_data_set_name_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    without_datasets(monkeypatch)
    with pytest.raises(ImportError, match=r"rolloutlib-evals\[benchmarks\].*\.jsonl") as caught:
        aime()
    assert isinstance(caught.value.__cause__, ImportError)


def test_a_bad_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "problems.jsonl"
    path.write_text('{"question": "p", "answer": "1"}\n{"question"\n', encoding="utf-8")
    with pytest.raises(ValueError, match=r"line 2 of .*problems\.jsonl"):
        gsm8k(dataset=str(path))
    path.write_text('{"question": "é", "answer": "1"}', encoding="latin-1")
    with pytest.raises(ValueError, match=r"line 1 of .*problems\.jsonl"):
        gsm8k(dataset=str(path))
    path.write_text("[1]\n", encoding="utf-8")
    with pytest.raises(TypeError, match=r"line 1 of .*problems\.jsonl"):
        gsm8k(dataset=str(path))
    with pytest.raises(FileNotFoundError, match=r"no file .*absent\.jsonl.*pass `examples`"):
        gsm8k(dataset=str(tmp_path / "absent.jsonl"))


@pytest.fixture
def datasets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    library = pytest.importorskip("datasets", reason="needs the benchmarks extra")
    monkeypatch.setattr(library.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    library.disable_progress_bars()
    return library


# The library leaves the CSV file that it read to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("kind", ["parquet", "csv", "json"])
def test_files_load_through_the_datasets_library(datasets: Any, tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"problems.{kind}"
    getattr(datasets.Dataset.from_list(ROWS), f"to_{kind}")(path)
    assert gsm8k(dataset=str(path)).items == gsm8k(ROWS).items


def test_folders_load_through_the_datasets_library(datasets: Any, tmp_path: Path) -> None:
    folder = tmp_path / "problems"
    for config in ("main", "socratic"):
        for split, rows in (("train", ROWS[:1]), ("test", ROWS)):
            path = folder / config / f"{split}.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            datasets.Dataset.from_list(rows).to_parquet(path)
    listed = "".join(
        f"- config_name: {config}\n  data_files:\n"
        f"  - split: train\n    path: {config}/train.parquet\n"
        f"  - split: test\n    path: {config}/test.parquet\n"
        for config in ("main", "socratic")
    )
    (folder / "README.md").write_text(f"---\nconfigs:\n{listed}---\n", encoding="utf-8")
    assert gsm8k(dataset=str(folder)).items == gsm8k(ROWS).items
    assert gsm8k(dataset=str(folder), split="train").items == gsm8k(ROWS[:1]).items
    assert gsm8k(dataset=str(folder), split="test[1:]").items == gsm8k(ROWS[1:]).items
    assert len(gsm8k(dataset=str(folder), split="train+test").items) == 1 + len(ROWS)
    with pytest.raises(OSError, match="cannot load"):
        gsm8k(dataset=str(folder), split="dev[:1]")
    with pytest.raises(ValueError, match=r"no split 'dev'; pass one of \['test', 'train'\]"):
        gsm8k(dataset=str(folder), split="dev")
    with pytest.raises(OSError, match=r"available configs: .*main"):
        gsm8k(dataset=str(folder), config="absent")


def test_a_folder_of_everything_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_datasets(monkeypatch)  # it would not come back
    (tmp_path / "deep").mkdir()
    for number in range(10_001):
        (tmp_path / "deep" / f"{number}.csv").touch()
    with pytest.raises(ValueError, match="holds more than 10,000 files: pass that of the data set"):
        gsm8k(dataset=tmp_path)


def test_saved_data_sets_and_sole_splits_load(datasets: Any, tmp_path: Path) -> None:
    rows = datasets.Dataset.from_list(ROWS)
    rows.save_to_disk(tmp_path / "saved")
    (tmp_path / "sole").mkdir()
    rows.to_parquet(tmp_path / "sole" / "data.parquet")
    assert gsm8k(dataset=str(tmp_path / "saved")).items == gsm8k(ROWS).items
    assert gsm8k(dataset=str(tmp_path / "sole")).items == gsm8k(ROWS).items
    assert gsm8k(dataset=str(tmp_path / "sole"), split="train[:1]").items == gsm8k(ROWS[:1]).items


def test_a_data_set_that_cannot_be_loaded_says_what_to_pass(datasets: Any, tmp_path: Path) -> None:
    (tmp_path / "bad.parquet").write_bytes(b"no parquet")
    with pytest.raises(OSError, match=r"cannot load .*bad\.parquet.*pass `examples`") as caught:
        gsm8k(dataset=str(tmp_path / "bad.parquet"))
    assert caught.value.__cause__ is not None


@pytest.mark.parametrize("name", ["absent.jsonl", "absent.csv", "absent.json", "ABSENT.PARQUET"])
def test_no_absent_file_is_looked_for_on_the_hub(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_datasets(monkeypatch)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match=f"no file '{name}' in .*pass `examples`"):
        gsm8k(dataset=name)


def test_a_file_of_another_kind_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_datasets(monkeypatch)
    path = tmp_path / "problems.jsonl.gz"
    path.write_bytes(b"")
    with pytest.raises(ValueError, match=r"must end in one of \['.csv', '.json', '.jsonl', "):
        gsm8k(dataset=str(path))


@pytest.mark.parametrize("split", ["test[:1]", "train+test"])
def test_a_part_of_a_file_is_refused_rather_than_all_of_it_loaded(
    split: str, tmp_path: Path
) -> None:
    path = write_lines(tmp_path / "problems.jsonl", ROWS)
    with pytest.raises(ValueError, match=r"split='t.*pass the rows .* as `examples`, or `limit`"):
        gsm8k(dataset=path, split=split)


def test_data_sets_may_be_given_as_paths(datasets: Any, tmp_path: Path) -> None:
    folder = tmp_path / "problems"
    folder.mkdir()
    write_lines(folder / "test.jsonl", ROWS)
    for path in (folder, folder / "test.jsonl"):
        benchmark = gsm8k(dataset=path)
        assert benchmark.items == gsm8k(ROWS).items
        assert benchmark.metadata["dataset"] == str(path)
        assert aime(dataset=path, year=2024).metadata["dataset"] == str(path)


@pytest.mark.parametrize("factory", [aime, gsm8k])
@pytest.mark.parametrize("given", ["problems.jsonl", {"test": ROWS}, {"question": "q"}, 3])
def test_what_is_no_collection_of_examples_is_named(
    factory: Callable[..., Benchmark[MathExample]], given: Any
) -> None:
    with pytest.raises(TypeError, match=r"needs a collection of examples, got .*`dataset`"):
        factory(given)
    if factory is aime or not isinstance(given, int):
        with pytest.raises(TypeError, match=r"needs a collection of examples, got .*`dataset`"):
            factory(ROWS, few_shot=given)


def test_a_benchmark_is_a_data_set_to_train_on() -> None:
    benchmark = gsm8k(ROWS, split="train")
    dataset = benchmark.to_dataset()
    groups = list(collect(dataset, dataset.make_env, lambda chat: "#### 42", num_rollouts=2))
    assert [(group.item_id, group.rewards) for group in groups] == [
        ("a", (1.0, 1.0)),
        ("b", (0.0, 0.0)),
    ]
    assert dataset.metadata == benchmark.metadata
