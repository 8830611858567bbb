"""The examples run as a user runs them, and end at the numbers that they assert."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from book.notebooks import SHORT

FOLDER = Path(__file__).parent.parent / "examples"
LONGEST = 80

ENDINGS = {
    "affine": r"^\[ 2 -1\]\n",
    "char_rnn": r"^after 3 epochs, [234]\.\d\d bits a letter:\n",
    "clusters": r"each centre within 0.\d\d of the truth; plotted in clusters.png\n$",
    "convolutional_digits": r"\d\d\.\d\d% of 450 test images; .* in convolutional_digits.png\n$",
    "digits": r"accuracy +\d\d\.\d\d% of 450 test images\n(cold compile|warm start).*\na step .* times as fast\n$",
    "double_pendulum": r"energy is kept to 1e-5; .*; plotted in double_pendulum.png\n$",
    "edges": r"the error falls from 0.035 to 0.031; plotted in edges.png\n$",
    "epidemic": r"all rates within three deviations of the truth; plotted in epidemic.png\n$",
    "gaussian_process": r"the truth lies within three deviations; plotted in gaussian_process.png\n$",
    "greeks": r"6 sensitivities as their formulas give them; plotted in greeks.png\n$",
    "hamiltonian": r"the truth lies within three deviations; plotted in hamiltonian.png\n$",
    "heat": r"80 steps as NumPy makes them, and their derivative; plotted in heat.png\n$",
    "ising": r"away from the critical temperature within 0.03; plotted in ising.png\n$",
    "logistic_regression": r"patients told rightly; every step as NumPy takes it\n$",
    "lotka_volterra": r"every parameter within 10% of the truth; plotted in lotka_volterra.png\n$",
    "mandelbrot": r"of the picture stays bounded, as in Python; plotted in mandelbrot.png\n$",
    "mlp_regression": r"every loss and every parameter as NumPy has it\n$",
    "outliers": r"Cauchy's loss forgives the outliers; plotted in outliers.png\n$",
    "past_memory": r"ten times the memory, and every weight within 0.0\d+ of the truth\n$",
    "perceptron": r"100% of the points are classified rightly\n$",
    "planets": r"10000 steps keep the energy to \d+e-\d\d; plotted in planets.png\n$",
    "portfolio": r"none of 4000 drawn ones has less risk; plotted in portfolio.png\n$",
    "sigmoid_surface": r"right at all 625 points; plotted in sigmoid_surface.png\n$",
    "spectrum": r"both frequencies within four deviations; plotted in spectrum.png\n$",
    "spelling": r"7 of 7 words are found; plotted in spelling.png\n$",
    "tracking": r"the error falls from 0.50 to 0.23 m; plotted in tracking.png\n$",
    "valley": r"all methods end at \(1, 1\); plotted in valley.png\n$",
    "variational_autoencoder": r"after 2 epochs at most \d\d\.\d\d nats.*\na page of digits is in",
    "vowels": r"vowels: a e i o .*\n.*plotted in vowels.png\n$",
    "xor": r"0\.18333462.* 0\.0694832.*\n.*0\.18353091.* 0\.0692319.*\n",
}
"""For each example what its output must show."""

UNPLOTTED = {"affine", "digits", "logistic_regression", "mlp_regression", "past_memory", "perceptron", "xor"}
"""Examples that draw nothing."""


def run(name: str, folder: Path, *arguments: str) -> str:
    """The output of an example, run in an empty folder."""
    command = [sys.executable, str(FOLDER / f"{name}.py"), *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_example_is_here() -> None:
    assert {path.stem for path in FOLDER.glob("*.py")} == set(ENDINGS)


@pytest.mark.slow
@pytest.mark.parametrize("name", ENDINGS)
def test_example(name: str, tmp_path: Path) -> None:
    output = run(name, tmp_path, *SHORT.get(name, []))
    assert re.search(ENDINGS[name], output), output
    if name not in UNPLOTTED:
        assert (tmp_path / f"{name}.png").stat().st_size > 10_000


@pytest.mark.slow
def test_digits_start_warm_in_the_second_run(tmp_path: Path) -> None:
    run("digits", tmp_path, "1")
    output = run("digits", tmp_path, "1")
    assert re.search(
        r"^warm start +\d+ ms; the step: key [\d.]+ ms, cache [\d.]+ ms, load [\d.]+ ms$", output, re.MULTILINE
    )


@pytest.mark.parametrize("name", ENDINGS)
def test_examples_are_short(name: str) -> None:
    assert len((FOLDER / f"{name}.py").read_text(encoding="utf-8").splitlines()) < LONGEST
