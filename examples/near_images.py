"""Near-duplicate photographs, and the ten nearest neighbours of images of digits.

``python examples/near_images.py [PICTURE.png]`` needs the extra ``examples`` and downloads nothing: the photographs are
part of scikit-image and scikit-learn, the digits are those of scikit-learn. The features are simple: a small grey
image and its gradients. Distances are Euclidean.
"""

import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont
from skimage import data
from skimage.feature import hog
from sklearn.datasets import load_digits, load_sample_images

import minwise as mw

PHOTOGRAPHS = (
    *("astronaut", "brick", "camera", "chelsea", "clock", "coffee", "coins", "grass", "gravel", "horse"),
    *("hubble_deep_field", "immunohistochemistry", "moon", "page", "retina", "rocket", "text"),
)
# Photographs shown in the picture.
DRAWN = ("astronaut", "chelsea", "coffee", "rocket")
# Vectors have length 1. Images of different photographs are at least 0.76 apart, those of one photograph at most
# 0.57.
RADIUS = 0.5
# Rows of the digits to query.
QUERIES = (7, 42, 1234)
TOP = 10

TILE, GAP, MARGIN, LINE = 84, 10, 24, 20
INK, FAINT, PAPER = (34, 34, 34), (120, 120, 120), (255, 255, 255)

Rows = list[tuple[str, list[tuple[Image.Image, str]]]]


def photographs() -> Iterator[tuple[str, Image.Image]]:
    """Yield every photograph, scaled down to speed up processing."""
    shipped: list[tuple[str, Any]] = [(name, getattr(data, name)()) for name in PHOTOGRAPHS]
    samples = load_sample_images()
    shipped += [(Path(name).stem, image) for name, image in zip(samples.filenames, samples.images, strict=True)]
    for name, pixels in shipped:
        scaled = pixels if pixels.dtype == np.uint8 else (255 * pixels).astype(np.uint8)
        image = Image.fromarray(scaled).convert("RGB")
        image.thumbnail((256, 256))
        yield name, image


def variants(image: Image.Image) -> Iterator[tuple[str, Image.Image]]:
    """Yield typical variants of a photograph on the web."""
    width, height = image.size
    yield "as it is", image
    yield "smaller", image.resize((width // 2, height // 2))
    stored = io.BytesIO()
    image.save(stored, "JPEG", quality=20)
    yield "JPEG, 20 %", Image.open(stored).convert("RGB")
    yield "brighter", image.point(lambda value: min(255, int(1.2 * value + 10)))
    yield "grey", image.convert("L").convert("RGB")
    yield "cropped", image.crop((width // 50, height // 50, width - width // 50, height - height // 50))


def features(image: Image.Image) -> NDArray[np.float32]:
    """Return a centred 16 × 16 grey image and gradients of a 64 × 64 one; both parts and the whole have unit length."""
    grey = image.convert("L")
    small = np.asarray(grey.resize((16, 16), Image.Resampling.BOX), dtype=np.float64).ravel()
    gradients = hog(np.asarray(grey.resize((64, 64))), orientations=8, pixels_per_cell=(16, 16), cells_per_block=(2, 2))
    parts = [part / (np.linalg.norm(part) or 1.0) for part in (small - small.mean(), gradients)]
    whole: NDArray[np.float32] = (np.concatenate(parts) / np.sqrt(2)).astype(np.float32)
    return whole


def near_duplicates() -> tuple[list[tuple[str, str, Image.Image]], list[dict[str, Any]]]:
    """Return the pictures (photograph, variant, pixels), and their pairs within the radius."""
    pictures = [(name, kind, changed) for name, image in photographs() for kind, changed in variants(image)]
    vectors = np.stack([features(image) for _, _, image in pictures])
    search = mw.EuclideanLSH.plan(vectors, radius=RADIUS).fit(vectors)
    return pictures, search.pairs(RADIUS).to_pylist()


def neighbours() -> tuple[NDArray[Any], NDArray[Any], list[dict[str, Any]]]:
    """Return the pixels and labels of the digits, and the nearest neighbours of the queried rows."""
    digits = load_digits()
    pixels = digits.data.astype(np.uint8)
    search = mw.EuclideanLSH.plan(pixels, top=TOP + 1, queries=pixels[list(QUERIES)]).fit(pixels)
    found = search.query(pixels[list(QUERIES)], top=TOP + 1).to_pylist()
    return pixels, digits.target, [row for row in found if row["neighbour"] != QUERIES[row["query"]]]


def draw(
    pictures: list[tuple[str, str, Image.Image]],
    pairs: list[dict[str, Any]],
    pixels: NDArray[Any],
    found: list[dict[str, Any]],
) -> Image.Image:
    """Draw some photographs with their near-duplicates, then digits with their neighbours."""
    rows: Rows = [("a photograph and its near-duplicates, with their distance", [])]
    for row_number in (
        number for number, (name, kind, _) in enumerate(pictures) if name in DRAWN and kind == "as it is"
    ):
        near = [(row["right"], row["distance"]) for row in pairs if row["left"] == row_number]
        tiles = [(pictures[row_number][2], pictures[row_number][0])]
        tiles += [(pictures[other][2], f"{pictures[other][1]}  {distance:.2f}") for other, distance in near]
        rows.append(("", tiles))
    rows.append((f"a digit and its {TOP} nearest neighbours, with their distance", []))
    for query, row_number in enumerate(QUERIES):
        tiles = [(_digit(pixels[row_number]), "query")]
        tiles += [
            (_digit(pixels[row["neighbour"]]), f"{row['distance']:.1f}") for row in found if row["query"] == query
        ]
        rows.append(("", tiles))
    return _sheet(rows)


def _digit(values: NDArray[Any]) -> Image.Image:
    grey = 255 - (values.reshape(8, 8).astype(np.float64) * 255 / 16).astype(np.uint8)
    return Image.fromarray(grey).resize((TILE, TILE), Image.Resampling.NEAREST).convert("RGB")


def _sheet(rows: Rows) -> Image.Image:
    """Draw rows of pictures with a line of text below each, or a heading."""
    heights = [TILE + LINE + GAP if tiles else 2 * LINE for _, tiles in rows]
    width = 2 * MARGIN + (TOP + 1) * (TILE + GAP) + GAP
    sheet = Image.new("RGB", (width, 2 * MARGIN + sum(heights)), PAPER)
    pen, top = ImageDraw.Draw(sheet), MARGIN
    for (heading, tiles), height in zip(rows, heights, strict=True):
        if heading:
            pen.text((MARGIN, top + 10), heading, INK, ImageFont.load_default(16))
        for column, (image, label) in enumerate(tiles):
            left = MARGIN + column * (TILE + GAP) + (GAP if column else 0)
            tile = image.copy()
            tile.thumbnail((TILE, TILE))
            sheet.paste(tile, (left + (TILE - tile.width) // 2, top + (TILE - tile.height) // 2))
            if not column:
                pen.rectangle((left - 3, top - 3, left + TILE + 2, top + TILE + 2), outline=FAINT)
            pen.text((left + TILE // 2, top + TILE + 5), label, FAINT, ImageFont.load_default(12), anchor="ma")
        top += height
    return sheet


def main() -> None:
    """Find near-duplicates and neighbours, print them and draw a picture."""
    output = Path(sys.argv[1] if len(sys.argv) > 1 else "near_images.png")
    pictures, pairs = near_duplicates()
    same = sum(pictures[row["left"]][0] == pictures[row["right"]][0] for row in pairs)
    names = {name for name, _, _ in pictures}
    print(f"{len(pictures)} pictures of {len(names)} photographs: {len(pairs)} pairs within {RADIUS}")  # noqa: T201
    print(f"{same} of them are of one photograph")  # noqa: T201
    pixels, labels, found = neighbours()
    for query, row_number in enumerate(QUERIES):
        near = [int(labels[row["neighbour"]]) for row in found if row["query"] == query]
        print(f"digit {row_number}, a {labels[row_number]}: its {len(near)} nearest are {' '.join(map(str, near))}")  # noqa: T201
    draw(pictures, pairs, pixels, found).save(output)
    print(f"drawn in {output}")  # noqa: T201


if __name__ == "__main__":
    main()
