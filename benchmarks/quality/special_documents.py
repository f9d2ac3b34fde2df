"""Pairs of documents that tools treat differently, each with the expected result.

All are generated from a fixed seed. The tools get them as texts and split them in their own way.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from random import Random

THRESHOLD = 0.8
WORDS = 5
SEED = 20
SYLLABLES = "ba be da do fa ga go ka ki la le ma mi na no pa ra re sa si ta te to va vi wa"
KANJI = (
    "日本語文書類似検索大学会社時間電車新聞社会問題研究開発計画技術"
    "情報世界経済政治文化歴史自然科学教育生活料理旅行音楽映画写真"
)
KANA = "のにをはがとでもからまでよりへやこそれあるいるするなるみるくる"
CYRILLIC = "поезд вечер город письмо работа неделя дорога книга ответ вопрос машина погода история рынок школа"
ARABIC = "كتاب مدينة طريق سؤال جواب مدرسة سوق تاريخ طقس رسالة عمل أسبوع قطار مساء بيت"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A pair of documents.

    Attributes:
        name: Description of the pair.
        left: First text.
        right: Second text.
        same: Whether a human reader considers one a copy of the other.
    """

    name: str
    left: str
    right: str
    same: bool


def make_cases() -> list[Case]:
    """Return all pairs."""
    return [*short_cases(), *script_cases(), *page_cases()]


def short_cases() -> list[Case]:
    """Return documents with fewer words than a shingle, or without words."""
    return [
        Case(name="four words, equal", left="good morning to all", right="Good morning to all!", same=True),
        Case(name="four words, different", left="see you on Monday", right="call me back tomorrow", same=False),
        Case(name="no words", left="… — !!!", right="?! (…)", same=False),
    ]


def script_cases() -> list[Case]:
    """Return documents in non-Latin scripts and in several scripts."""
    random = Random(SEED)
    page, other = japanese(random, 600), japanese(random, 600)
    position = next(number for number in range(300, 600) if page[number] not in "、。")
    mixed = [random.choice((CYRILLIC, ARABIC, SYLLABLES)) for _ in range(400)]
    words = [
        random.choice(kind.split()) + (random.choice(SYLLABLES.split()) if kind is SYLLABLES else "") for kind in mixed
    ]
    changed = [*words[:200], "changed", *words[201:]]
    accented = " ".join(f"{word}é{random.choice(SYLLABLES.split())}" for word in prose(random, 200).split())
    return [
        Case(
            name="Japanese, one of 600 characters changed",
            left=page,
            right=replace_character(page, position),
            same=True,
        ),
        Case(
            name="Japanese, one of 200 characters changed",
            left=other[:200],
            right=replace_character(other[:200], 100),
            same=True,
        ),
        Case(name="Japanese, two different pages", left=page, right=other, same=False),
        Case(
            name="Latin, Cyrillic and Arabic, one of 400 words changed",
            left=" ".join(words),
            right=" ".join(changed),
            same=True,
        ),
        Case(
            name="accents as letters or as combining marks",
            left=unicodedata.normalize("NFC", accented),
            right=unicodedata.normalize("NFD", accented),
            same=True,
        ),
    ]


def page_cases() -> list[Case]:
    """Return pages with a common template, in another order, and with an inserted word."""
    random = Random(SEED + 1)
    frame, half = prose(random, 600), prose(random, 100)
    paragraphs = [prose(random, 60) for _ in range(12)]
    long, brief = prose(random, 2000).split(), prose(random, 20).split()
    return [
        Case(
            name="template of 600 words, content of 40",
            left=f"{frame} {prose(random, 40)}",
            right=f"{frame} {prose(random, 40)}",
            same=False,
        ),
        Case(
            name="template of 100 words, content of 100",
            left=f"{half} {prose(random, 100)}",
            right=f"{half} {prose(random, 100)}",
            same=False,
        ),
        Case(
            name="twelve paragraphs in another order",
            left="\n\n".join(paragraphs),
            right="\n\n".join(random.sample(paragraphs, len(paragraphs))),
            same=True,
        ),
        Case(name="a word inserted into 2,000", left=" ".join(long), right=with_word(long), same=True),
        Case(name="a word inserted into 20", left=" ".join(brief), right=with_word(brief), same=True),
    ]


def prose(random: Random, count: int) -> str:
    """Return ``count`` synthetic words, in sentences."""
    words = ["".join(random.choices(SYLLABLES.split(), k=random.randint(1, 3))) for _ in range(count)]
    return " ".join(word + "." if number % 12 == 11 else word for number, word in enumerate(words))


def japanese(random: Random, count: int) -> str:
    """Return ``count`` characters, in clauses of five to fifteen and sentences of two clauses."""
    text = ""
    while len(text) < count:
        for end in "、。":
            text += "".join(random.choice(random.choice((KANJI, KANA))) for _ in range(random.randint(5, 15))) + end
    return text[:count]


def replace_character(text: str, position: int) -> str:
    """Return a text with another character at a position."""
    return f"{text[:position]}{'犬' if text[position] != '犬' else '猫'}{text[position + 1 :]}"


def with_word(words: list[str]) -> str:
    """Return the words with another word inserted in the middle."""
    middle = len(words) // 2
    return " ".join([*words[:middle], "inserted", *words[middle:]])
