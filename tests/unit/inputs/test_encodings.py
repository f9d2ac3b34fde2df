"""Encodings: detection from the first bytes, conversion in chunks of any size, and the way back to the same bytes."""

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minwise.checks import check_encoding
from minwise.errors import ConfigError
from minwise.inputs.encodings import Encoding, choose_encoding, detect_encoding
from minwise.inputs.source import UnreadableError

WESTERN = {
    "french": "L'été dernier, à la gare, où l'élève créée rêvait « d'un œuf » — 12 €, n° 4, çà et là.",
    "german": "Die Größe der Fähre überrascht: 20 m² Fläche, 5 °C, „schön“ für Äpfel, Öl und Übung. §5 gilt.",
    "spanish": "¿Qué hora es? ¡Mañana salió el camión número 3ª a España! Él y ella, ó quizás él.",
    "portuguese": "Não há informações à disposição; a situação é crítica. Órgãos públicos são órgãos.",
    "italian": "La città è più bella; però c’è perché così va. È vero, 10º posto.",
    "swedish": "På båten åt hon ett ägg i går. Örat hör å och ö.",
    "danish": "Færgen sejler til øen hver dag, og så går vi på grå veje. Der er en å.",
    "icelandic": "Þýðing á þessu er góð; það þýðir ekki að ég þurfi þess.",
    "dashes": "The ferry – late again – left at six… “Really?” it’s £5, © 2020.",
}
OTHERS = {
    "cp1251": "Паром уходит в шесть часов утра и не возвращается до вечера.",
    "koi8-r": "Паром уходит в шесть часов утра и не возвращается до вечера.",
    "cp1253": "Το πλοίο φεύγει στις έξι το πρωί και δεν επιστρέφει.",
    "cp1250": "Łódź żegluje każdego dnia, aż wiatr ją złamie; wróżę źle, że żagiel pękł, choć był mały.",
    "iso-8859-2": "Łódź żegluje każdego dnia, aż wiatr ją złamie; wróżę źle, że żagiel pękł, choć był mały.",
    "shift_jis": "港の朝は早い。漁師たちは網を引く。",
    "gbk": "渡轮早上六点离开港口，晚上才回来。",
    "cp1255": "המעבורת יוצאת בשש בבוקר ואינה חוזרת עד הערב",
}
# cp1252 without the five bytes that it does not define.
CP1252_TEXT = st.text(
    st.sampled_from(bytes(b for b in range(256) if b not in (0x81, 0x8D, 0x8F, 0x90, 0x9D)).decode("cp1252"))
)


@pytest.mark.parametrize("language", WESTERN)
def test_western_texts_are_detected_as_cp1252(language: str) -> None:
    data = WESTERN[language].encode("cp1252")
    assert detect_encoding(data, complete=True) == Encoding("cp1252", "cp1252")
    assert b"".join(Encoding("cp1252", "cp1252").decode([data])).decode() == WESTERN[language]


@pytest.mark.parametrize("language", WESTERN)
@pytest.mark.parametrize("mark", [b"", codecs.BOM_UTF8])
def test_utf8_is_utf8_even_if_cut_within_a_character(language: str, mark: bytes) -> None:
    data = mark + WESTERN[language].encode()
    assert detect_encoding(data, complete=True) is None
    for end in range(3, len(data)):
        assert detect_encoding(data[:end], complete=False) is None


@pytest.mark.parametrize("codec", OTHERS)
def test_texts_in_other_encodings_are_undecidable(codec: str) -> None:
    data = b"id,text\n1," + OTHERS[codec].encode(codec)
    with pytest.raises(
        UnreadableError, match=r"^is neither UTF-8 nor cp1252 from byte 1\d on; name its encoding, such"
    ):
        detect_encoding(data, complete=True)
    named = choose_encoding(codec, data, complete=True)
    assert named is not None
    assert b"".join(named.decode([data])).decode().endswith(OTHERS[codec])


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_a_byte_order_mark_decides(codec: str) -> None:
    mark = "\ufeff".encode(codec)
    data = mark + "text\nПаром\n".encode(codec)
    found = detect_encoding(data, complete=True)
    assert found == Encoding(codec[:6], codec, mark)
    assert choose_encoding(codec[:6], data, complete=True) == choose_encoding(codec, data, complete=True) == found
    assert choose_encoding(None, data, complete=True, guess=False) == found
    without = choose_encoding(codec, data[len(mark) :], complete=True)
    assert without == Encoding(codec, codec)


@pytest.mark.parametrize(
    "data",
    [
        b"text\nfine\nbroken \xff\n",
        b"\xff\xfe",
        b"\xff\xfe broken",
        "Größe für Äpfel ".encode() + b"\xe4 \xff",
        b"word " * 1000 + b"\x00\x01\xfe\xfd\xfc\xfb\xfa\xf9\xf8\xf7",
    ],
)
def test_single_damaged_bytes_do_not_change_the_encoding(data: bytes) -> None:
    """They are faults of their rows."""
    assert detect_encoding(data, complete=True) is None


@given(
    text=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\ufeff")),
    codec=st.sampled_from(["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be", "gb18030"]),
    marked=st.booleans(),
    size=st.integers(1, 7),
    lines=st.booleans(),
)
def test_any_text_is_converted_and_converted_back_whatever_the_chunks(
    text: str, codec: str, marked: bool, size: int, lines: bool
) -> None:
    mark = "\ufeff".encode(codec) if marked and codec.startswith("utf") else b""
    data = mark + text.encode(codec)
    encoding = Encoding(codec, codec, mark)
    converted = b"".join(encoding.decode(data[start : start + size] for start in range(0, len(data), size)))
    assert converted.decode() == text
    encode = encoding.encoder()
    pieces = converted.splitlines(keepends=True) if lines else [converted]
    assert b"".join(map(encode, pieces)) == (data if pieces else b"")


@given(data=st.binary(), size=st.integers(1, 5))
def test_any_bytes_are_cp1252_and_come_back(data: bytes, size: int) -> None:
    """Also the five bytes that the standard does not define."""
    encoding = Encoding("cp1252", "cp1252")
    converted = b"".join(encoding.decode(data[start : start + size] for start in range(0, len(data), size)))
    assert encoding.encoder()(converted) == data


@given(text=CP1252_TEXT)
def test_cp1252_is_that_of_python(text: str) -> None:
    assert b"".join(Encoding("cp1252", "cp1252").decode([text.encode("cp1252")])).decode() == text


@pytest.mark.parametrize(
    ("data", "before", "offset"),
    [(b"a\x00b\x00\x00\xd8c\x00", b"ab", 4), (b"a\x00b\x00c", b"ab", 4), (b"\x00\xdc", b"", 0)],
)
@pytest.mark.parametrize("size", [1, 3, 9])
def test_bytes_that_are_not_of_the_encoding_end_the_text(data: bytes, before: bytes, offset: int, size: int) -> None:
    found: list[bytes] = []
    chunks = [data[at : at + size] for at in range(0, len(data), size)]
    with pytest.raises(UnreadableError, match=rf"^is not valid utf-16 at byte {offset}; name its encoding"):
        found.extend(Encoding("utf-16", "utf-16-le").decode(chunks))
    assert b"".join(found) == before


@pytest.mark.parametrize("given_name", ["klingon", "", "base64", "idna", "a\0b", 5])
def test_an_unknown_encoding_is_refused(given_name: object) -> None:
    with pytest.raises(ConfigError, match=r"^encoding must be that of a text, such as utf-8, cp1252 or utf-16, got "):
        check_encoding(given_name)


@pytest.mark.parametrize("name", ["utf-8", "UTF8", "utf-8-sig", "ascii"])
def test_utf8_by_any_name_is_read_without_detection(name: str) -> None:
    assert choose_encoding(check_encoding(name), b"\xe4\xf6\xfc", complete=True) is None
