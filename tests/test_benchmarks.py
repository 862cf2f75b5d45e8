"""The benchmarks run. How fast they find things is not for a test to say."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from polyseme.kernels import native

SPEED = Path(__file__).parents[1] / "benchmarks" / "speed.py"


@pytest.mark.skipif(native.library() is None, reason="needs the compiled loops")
def test_speed_measures_what_is_there_and_says_what_is_not(tmp_path):
    text, results = tmp_path / "text.txt", tmp_path / "speed.json"
    text.write_text("".join(f"the word{number} stood {number} times in line 7 , no more\n" for number in range(40)))
    subjects = ["allennlp", "int8", "torch"]
    command = [sys.executable, str(SPEED), "--quick", "--sizes", "tiny", "--threads", "1"]
    command += ["--subjects", *subjects, "--text", str(text), "--json", str(results)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr

    found = json.loads(results.read_text())
    rows = {row["subject"]: row for row in found["rows"]}
    assert rows.keys() == {"int8", "torch"}
    assert [line.split(":")[0] for line in found["skipped"]] == ["AllenNLP 2.10.1 tiny"]
    assert found["text"] == {"name": "text.txt", "sentences": 40, "words": 440, "distinct": 88}
    for row in rows.values():
        assert row["words_per_second"] > 0
        assert row["ratio"] > 0
        assert row["peak_mib"] > 0
        assert row["latency"]["cold"].keys() == {"10", "20", "40"}
    assert rows["int8"]["latency"]["warm"].keys() == {"10", "20", "40"}
    assert rows["int8"]["hit_rate"] == pytest.approx(1 - 89 / 441)  # the warm-up's word among them
    assert "polyseme, int8" in done.stdout
