"""The translations of the page: complete, without unused texts, with the same values and plural forms."""

import json
import re
from pathlib import Path

import pytest

from wotd_env.policies import POLICIES, STRENGTHS
from wotd_env.web import agents
from wotd_env.web.refused import REASONS

WEB = Path(agents.__file__).parent
LANGUAGES = ("es", "de", "hi")
STRING = r'"((?:[^"\\]|\\.)*)"'


def texts() -> tuple[set[str], set[str]]:
    """Return all English texts of the page: plain ones, and those with a number."""
    plain, counted = set(), set()
    for file in [*(WEB / "static").glob("*.js"), *(WEB / "demo").glob("*.js")]:
        code = re.sub(r"/\*.*?\*/", "", file.read_text(), flags=re.DOTALL)
        plain |= set(re.findall(rf"\bt\(\s*{STRING}", code))
        counted |= {other for _, other in re.findall(rf"\bplural\([^\"]+?,\s*{STRING},\s*{STRING}", code)}
    page = (WEB / "static" / "index.html").read_text()
    plain |= set(re.findall(r"data-text>([^<]+)<", page))
    plain |= set(re.findall(r'aria-label="([^"]+)" data-label', page))
    for step in json.loads((WEB / "static" / "lesson.json").read_text()):
        plain |= {
            step["title"],
            *(task[part] for task in step["tasks"] for part in ("words", "done", "hint")),
        }
    plain |= {*STRENGTHS, *(strength.words for strength in STRENGTHS.values())}
    plain |= {POLICIES[name].words.partition(";")[0] for name in agents.AGENTS}
    plain.add("an agent of this server")
    return {json.loads(f'"{text}"') for text in plain - {""}}, counted


def values(text: str) -> set[str]:
    return set(re.findall(r"\{(\w+)\}", text))


@pytest.fixture(params=LANGUAGES)
def translated(request) -> dict[str, str | dict[str, str]]:
    return {english: text for english, text in load(request.param).items() if english != "server"}


def load(language: str) -> dict[str, str | dict[str, str]]:
    content: dict[str, str | dict[str, str]] = json.loads(
        (WEB / "static" / "texts" / f"{language}.json").read_text()
    )
    return content


def test_the_page_has_texts():
    plain, counted = texts()
    assert len(plain) > 250
    assert {"{count} point", "Rules"} & plain == {"Rules"}
    assert "{count} points" in counted


def test_translations_are_complete_and_used(translated):
    plain, counted = texts()
    assert plain | counted == set(translated)


def test_translations_contain_the_values(translated):
    _, counted = texts()
    for english, text in translated.items():
        if english in counted:
            assert set(text) == {"one", "other"}
            assert all(values(form) <= {"count"} for form in text.values())
            assert values(text["other"]) == {"count"}
        else:
            assert isinstance(text, str)
            assert text.strip()
            assert values(text) == values(english), english


@pytest.mark.parametrize("language", LANGUAGES)
def test_translated_reasons_are_those_of_the_server(language):
    reasons, german = load(language)["server"], load("de")["server"]
    assert isinstance(reasons, dict)
    assert isinstance(german, dict)
    assert reasons.keys() == german.keys() <= REASONS.keys()
    for code, text in reasons.items():
        assert values(text) <= values(REASONS[code]), code  # some values are in English


def test_few_translations_equal_the_english_text(translated):
    same = {english for english, text in translated.items() if text == english}
    equal = {"metal", "{name}: {words}", "{who}: {question}", "Pause", "Phase", "Start", "error", "normal"}
    assert same <= equal
