"""The server: responses, errors, and a clean shutdown."""

import math
import signal
import threading
from pathlib import Path

import numpy as np
import pytest
import torch
from view_server import ask, serving
from warm import COMMAND, WarmProcess

from dendritree import MLNClassifier, save
from dendritree.errors import OptionError
from dendritree_lab.data import load_dataset
from dendritree_lab.view import open_gallery, server
from dendritree_lab.view.opened_models import Gallery
from dendritree_lab.view.page_examples import exhibit_of
from dendritree_lab.view.server import open_socket

STATIC = Path(server.__file__).parent / "static"


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    return MLNClassifier(64, 10, branching=8)


@pytest.fixture(scope="module")
def port(model):
    with serving(Gallery("one", ["net"], lambda _: exhibit_of("net", model, data="digits", normalized=False))) as port:
        yield port


def drawn(image):
    """A drawing of squares whose pixels are an image of 8x8."""
    return np.round(image.reshape(8, 8).numpy() * 255).astype(np.uint8).repeat(14, 0).repeat(14, 1).tobytes()


def test_the_page_and_its_files_are_there_and_fetch_from_nowhere_else(port):
    status, headers, page = ask(port, "/")
    assert status == 200
    assert "default-src 'self'" in headers["content-security-policy"]
    for file in sorted(STATIC.iterdir()):
        status, headers, content = ask(port, f"/static/{file.name}")
        assert (status, content) == (200, file.read_bytes())
        assert b"https://" not in content  # no CDN
        assert headers["x-content-type-options"] == "nosniff"
    assert ask(port, "/static/app.js")[1]["content-type"].startswith(("text/javascript", "application/javascript"))
    assert b'src="/static/app.js"' in page


def test_a_drawing_is_answered_as_the_model_would(port, model):
    test = load_dataset("digits").test
    image = test.x[0]
    status, _, seen = ask(port, "/api/models/0/activity?layer=0&neuron=3", "POST", drawn(image))
    assert status == 200
    with torch.no_grad():
        expected = model(image[None])[0].softmax(-1).numpy()
    np.testing.assert_allclose(seen["classes"], expected, atol=2e-3)  # 8 bits per pixel
    np.testing.assert_allclose(seen["image"], image, atol=3e-3)
    assert seen["dendrites"][-1] == pytest.approx(seen["neurons"][0][3], abs=1e-3)
    _, _, sample = ask(port, "/api/models/0/activity?sample=4", "POST")
    _, _, about = ask(port, "/api/models/0")
    _, _, pixels = ask(port, "/api/models/0/samples")
    assert about["samples"][4] == "4"
    np.testing.assert_allclose(np.array(pixels[4]) / 255, sample["image"], atol=3e-3)


def test_the_tree_of_a_neuron_has_the_models_weights(port, model):
    _, _, tree = ask(port, "/api/models/0/tree?layer=0&neuron=9")
    forest = model.layer.forest
    edges = forest.neuron_of_node[forest.node_of_edge] == 9
    np.testing.assert_allclose(tree["weight"], model.layer.weight.detach().numpy()[edges], atol=1e-4)
    assert ask(port, "/api/models")[2] == {"title": "one", "models": ["net"], "training": False}


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example"])
def test_a_name_that_was_pointed_at_this_machine_is_rejected(port, host):
    for path, method in (("/", "GET"), ("/api/models/0", "GET"), ("/api/models/0/activity", "POST")):
        assert ask(port, path, method, Host=host)[0] == 400
    assert ask(port, "/", Host=f"localhost:{port}")[0] == 200


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        ("/api/models/7", None, "model"),
        ("/api/models/0/tree?layer=1", None, "layer"),
        ("/api/models/0/tree?neuron=10", None, "neuron"),
        ("/api/models/0/tree?neuron=-1", None, "neuron"),
        ("/api/models/0/activity", b"abc", "12544"),
        ("/api/models/0/activity", bytes(3 << 20), "12544"),
        ("/api/models/0/activity?sample=400", b"", "sample"),
    ],
)
def test_a_question_that_makes_no_sense_is_rejected_with_the_rule(port, path, body, message):
    status, _, answer = ask(port, path, "GET" if body is None else "POST", body)
    assert status == 400
    assert message in answer["error"]


@pytest.mark.parametrize("origin", ["http://evil.example", "http://localhost:1", "null"])
def test_pages_of_other_origins_are_not_answered(port, origin):
    for path, method in (("/api/models/0/activity?sample=4", "POST"), ("/api/models", "GET")):
        status, _, answer = ask(port, path, method, Origin=origin)
        assert status == 403
        assert origin in answer["error"]
    for own in ("127.0.0.1", "localhost"):
        headers = {"Host": f"{own}:{port}", "Origin": f"http://{own}:{port}"}
        assert ask(port, "/api/models/0/activity?sample=4", "POST", **headers)[0] == 200


def test_a_model_of_nan_is_answered_in_json(caplog):
    broken = MLNClassifier(64, 10, branching=8)
    torch.nn.init.constant_(broken.layer.weight, math.nan)
    torch.nn.init.constant_(broken.layer.bias, math.inf)
    with serving(Gallery("nan", ["net"], lambda _: exhibit_of("net", broken, data="digits", normalized=False))) as port:
        for path, method in (("/tree?neuron=3", "GET"), ("/activity?sample=1", "POST"), ("", "GET")):
            assert ask(port, f"/api/models/0{path}", method)[0] == 200
    assert caplog.records == []


def test_an_error_in_a_model_is_an_answer_and_not_a_traceback(caplog):
    def broken(_):
        raise ZeroDivisionError("no such thing")

    with serving(Gallery("broken", ["net"], broken)) as port:
        assert ask(port, "/api/models/0")[::2] == (500, {"error": "ZeroDivisionError: no such thing"})
    assert caplog.records == []


@pytest.mark.parametrize(
    "path", ["/static/../server.py", "/static/%2e%2e%2fserver.py", "/static/none.js", "/api/models/x"]
)
def test_nothing_else_is_served(port, path):
    assert ask(port, path)[0] == 404


def test_ten_at_once_all_get_their_own_answer(port):
    images, answers = load_dataset("digits").test.x[:10], {}

    def draw(number):
        for _ in range(3):
            answers[number] = ask(port, f"/api/models/0/activity?neuron={number}", "POST", drawn(images[number]))[2]

    threads = [threading.Thread(target=draw, args=(number,)) for number in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(10):
        np.testing.assert_allclose(answers[number]["image"], images[number], atol=3e-3)
        assert answers[number]["dendrites"][-1] == pytest.approx(answers[number]["neurons"][0][number], abs=1e-3)


def test_a_port_that_is_taken_is_rejected():
    with open_socket() as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OptionError, match=str(port)):
            open_socket(port)
    with pytest.raises(OptionError, match="70000"):
        open_socket(70000)


def test_the_command_prints_the_address_and_ctrl_c_ends_it_without_a_word(model, tmp_path):
    save(model, tmp_path / "net")
    assert open_gallery(tmp_path / "net").names == ["net"]
    with WarmProcess(COMMAND, "view", tmp_path / "net", "--no-browser", "--data", "digits") as process:
        line = process.stdout.readline()
        assert line.startswith("net: http://127.0.0.1:")
        port = int(line.split("/")[2].rpartition(":")[2])
        assert ask(port, "/api/models")[0] == 200
        process.send_signal(signal.SIGINT)
        out, error = process.communicate()
    assert (process.returncode, out, error) == (0, "", "")
