"""The notebooks as Jupyter runs them, and the tour's pictures as a browser shows them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import nbclient
import nbconvert
import nbformat
import pytest

import ruleguider as rg
from conftest import skip

NOTEBOOKS = sorted((Path(__file__).parents[2] / "examples").glob("*.ipynb"))


def html_of(cell: nbformat.NotebookNode) -> str:
    outputs = (output.get("data", {}) for output in cell.get("outputs", []))
    return "".join(data.get("text/html", "") for data in outputs)


def executed(path: Path, folder: Path) -> nbformat.NotebookNode:
    """A notebook, executed by a kernel of its own."""
    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(folder)}}).execute()
    return notebook


@pytest.fixture(scope="session")
def tour(tmp_path_factory: pytest.TempPathFactory) -> nbformat.NotebookNode:
    (path,) = [path for path in NOTEBOOKS if path.stem == "tour"]
    return executed(path, tmp_path_factory.mktemp("tour"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_cell_runs(path: Path, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    notebook = request.getfixturevalue("tour") if path.stem == "tour" else executed(path, tmp_path)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert cells and all(cell.execution_count for cell in cells)
    assert not [cell for cell in nbformat.read(path, as_version=4).cells if cell.get("outputs")], "kept without outputs"


def test_the_tour_has_all_pictures(tour: nbformat.NotebookNode) -> None:
    pictures = [cell for cell in tour.cells if 'class="ruleguider"' in html_of(cell)]
    shown = "".join(map(html_of, pictures))
    for view in ("graphView", "predictionView", "explanationView", "rulesView", "factsView"):
        assert f"show(place, {view}, " in shown, view


def exported(notebook: nbformat.NotebookNode) -> str:
    """The page that nbconvert makes by JupyterLab's template; nothing is fetched."""
    exporter = nbconvert.HTMLExporter(template_name="lab")
    exporter.require_js_url = exporter.mathjax_url = exporter.jquery_url = exporter.mermaid_js_url = ""
    return exporter.from_notebook_node(notebook)[0]


def browsed(text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """What becomes of a page in a browser."""
    browser = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if not browser:
        skip("chromium", "the pictures of a notebook in a browser")
    page = folder / "tour.html"
    page.write_text(text)
    command = [str(browser), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--dump-dom"]
    command += ["--enable-logging=stderr", "--v=0", "--no-first-run", f"--user-data-dir={folder / 'browser'}"]
    done = subprocess.run([*command, f"file://{page}"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done


# Which of the figures beside a graph's drawing cover another one.
OVERLAPS = """<script>addEventListener("load", () => {
  const boxes = [...document.querySelectorAll(".ruleguider dl.figures")].map((list) =>
    [...list.querySelectorAll("dt, dd")].map((one) => one.getBoundingClientRect()));
  const covers = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
  const count = boxes.map((all) => all.filter((a, at) => all.slice(at + 1).some((b) => covers(a, b))).length);
  document.body.dataset.overlaps = `${boxes.flat().length} boxes, ${count.reduce((sum, one) => sum + one, 0)} covered`;
});</script></body>"""


def test_the_figures_of_a_graph_do_not_overlap_in_the_lab_template(tour: nbformat.NotebookNode, tmp_path: Path) -> None:
    page = exported(tour)
    theirs = page.index(".jp-OutputArea-output dt {")
    assert "float: left" in page[theirs : theirs + 200], "the template floats them; without that, this tests nothing"
    # As specific as theirs, so the later one counts.
    ours = page.rindex(".ruleguider dt, .ruleguider dd { float: none;")
    assert theirs < ours
    shown = browsed(page.replace("</body>", OVERLAPS), tmp_path).stdout
    said = shown.split('data-overlaps="')[1].split('"')[0]
    assert said.endswith(", 0 covered") and int(said.split()[0]) >= 6, said


def test_a_browser_draws_them(tour: nbformat.NotebookNode, tmp_path: Path) -> None:
    done = browsed(exported(tour), tmp_path)
    ours = [line for line in done.stderr.splitlines() if ":CONSOLE" in line and "Error" in line and "tour" in line]
    assert not [line for line in ours if "ReferenceError" not in line or "ruleguider" in line], ours
    # Every picture is drawn: the text that was there instead is gone.
    assert done.stdout.count('<svg class="paths"') >= 10
    drawn = done.stdout.split('class="ruleguider"')[1:]
    assert drawn and all("<pre>" not in part.split("<script>")[0] for part in drawn)


@pytest.mark.parametrize("kind", ["graph", "prediction", "predictions", "explanation", "rules", "facts"])
def test_everything_that_has_paths_has_a_picture(kind: str, model: rg.Model) -> None:
    subject, relation = "Ilse_Hagenthal", "cousin_of"
    first = model.predict(subject, relation)[0]
    result = {
        "graph": lambda: model.graph,
        "prediction": lambda: model.predict(subject, relation),
        "predictions": lambda: model.predict_many([(subject, relation)] * 3, progress=False),
        "explanation": lambda: model.explain(subject, relation, first.entity),
        "rules": lambda: model.rules(relation),
        "facts": lambda: model.complete(relation, top=5, progress=False),
    }[kind]()
    html = result._repr_html_()
    assert "function drawing(" in html and "<pre>" in html
    assert html.count("<script>") == html.count("</script>") == (2 if kind == "predictions" else 1)
