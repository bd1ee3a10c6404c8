"""Reading what is longer than any window: piece by piece, with a memory of fixed size that each piece may overwrite."""

from sharpwave.memory.reading.document import Document, Piece, describe, piece_at
from sharpwave.memory.reading.extractive import ExtractiveReader
from sharpwave.memory.reading.llm import ModelReader
from sharpwave.memory.reading.reader import Found, Memory, Reader

__all__ = [
    "Document",
    "ExtractiveReader",
    "Found",
    "Memory",
    "ModelReader",
    "Piece",
    "Reader",
    "describe",
    "piece_at",
]
