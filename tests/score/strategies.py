"""Texts that tokenizers get wrong."""

from __future__ import annotations

from hypothesis import strategies as st

SPACES = (
    "\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2003\u200a\u2028\u2029\u202f\u205f\u3000"
)
PIECES = [
    *SPACES,
    *"ab01.,-'\"&;:!?()[]{}|~`@<>/\\+=$%^*#_",
    *"\x00\x07\x7f\u200b\u2060\ufeff",
    *"éßΣςσİıﬁ中文。，！～「」٠५²½Ⅳ€₿😀नमस्ते",
    *("&quot;", "&amp;", "&lt;", "&gt;", "&amp;lt;", "<skipped>", "-\n", "1.5", "..", ",.,", "3-4"),
    *("the", "cat", "sat", "running", "runs", " ", " ", " "),
]

# Rows that share words, so that there is something to match.
texts = st.lists(
    st.one_of(st.sampled_from(PIECES), st.characters(exclude_categories=["Cs"])), max_size=12
).map("".join)
words = st.lists(
    st.sampled_from(["a", "b", "c", "the", "cat", "sat", ".", ",", "1.5", "naïve"]), max_size=10
).map(" ".join)
any_text = st.one_of(texts, words)


def rows(
    text: st.SearchStrategy[str] = any_text, *, max_references: int = 3, max_rows: int = 8
) -> st.SearchStrategy[list[tuple[str, list[str]]]]:
    """Lists of (prediction, references)."""
    references = st.lists(text, min_size=1, max_size=max_references)
    return st.lists(st.tuples(text, references), max_size=max_rows)
