"""`glyphs`: ten letters that are easily taken for one another, in random pose, weight, colour and
clutter. Made on the fly, any number of them, with no download. `glyphs:16g` is 16x16 and grey.

The letters' shapes lie in `letters.npz`, drawn from matplotlib's font files once
(`draw_letters.py`). Each letter of each font becomes a signed distance field (negative inside, in
cells of a 64x64 grid); an image then is that field seen through a random affine map, cut off at a
random level (which makes the stroke thinner or bolder) and coloured. Samples are drawn in blocks of
256 with a random stream for each block, so sample i is the same however many are asked for.

Every machine draws the same pixels, with any version of NumPy or PyTorch:

- random numbers are raw 64-bit words of PCG64, whose stream NumPy guarantees, made into numbers
  here;
- all arithmetic is +, -, ·, /, √ and comparisons of float64 arrays, element by element. IEEE 754
  says what each of them gives, to the last bit. There is no sum, no matrix product and no function
  of a mathematics library, whose last bits depend on processor and version;
- cosines are rounded to multiples of 2^-20, which hides the last bits of theirs;
- a pixel is a whole number of 255ths, as in a real image.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fedlab_nb.data.dataset import Dataset, Description, digest_of
from fedlab_nb.data.schema import image_schema
from fedlab_nb.errors import choose, demand, whole
from fedlab_nb.rng import seed_for

if TYPE_CHECKING:
    import torch

LETTERS = "BDEFGHKPRS"
FONTS = (
    "DejaVuSans", "DejaVuSans-Bold", "DejaVuSans-Oblique", "DejaVuSansMono", "DejaVuSansMono-Bold", "DejaVuSerif",
    "DejaVuSerif-Bold", "DejaVuSerif-Italic", "STIXGeneral", "STIXGeneralBol", "STIXGeneralItalic", "STIXGeneralBolIta",
    "cmr10", "cmss10", "cmtt10", "cmb10",
)  # fmt: skip
SHAPES_FILE = Path(__file__).with_name("letters.npz")
VERSION = 2  # raise it whenever the images change: it is part of the digest
CELL = 64  # side of the grid that a letter is drawn in
BLOCK = 256  # samples per random stream
TURN = 4096  # angles are whole steps, so many a turn
COSINE_STEPS = 2**20  # a cosine is a whole number of these parts
SIZES = (8, 16, 28, 32)  # that have a short name
NAMES = ("glyphs", *(f"glyphs:{size}{grey}" for size in SIZES for grey in ("", "g")))
OPTIONS = {"n_train": 2000, "n_test": 500, "n_public": 500, "seed": 0, "size": 32, "channels": 3}


# ------------------------------------------------------------------------------------- the data set
def load(name: str = "glyphs", **options: Any) -> Dataset:
    """x [N, channels, size, size] in steps of 1/255; sample i shows letter i mod 10.

    name: "glyphs", or one of NAMES, which says size and colours: "glyphs:16g" is `size=16,
    channels=1`. Options: n_train=2000, n_test=500, n_public=500 (0: no public part), seed=0,
    size=32 (8 to 128), channels=3 (or 1, grey).
    """
    import torch

    o = checked(options, name)
    look = o["seed"], o["size"], o["channels"]
    parts = {part: draw(o[f"n_{part}"], part, *look) for part in ("train", "test", "public")}
    labels = {part: torch.arange(len(x)) % len(LETTERS) for part, x in parts.items()}
    return Dataset(
        name, parts["train"], labels["train"], parts["test"], labels["test"],
        parts["public"] if o["n_public"] else None, tuple(LETTERS), digest(o),
        y_public=labels["public"] if o["n_public"] else None, font_train=fonts(o["n_train"], "train", o["seed"]),
        schema=image_schema(parts["train"].shape[1:], LETTERS, 1, "float32"),
    )  # fmt: skip


def describe(name: str = "glyphs", **options: Any) -> Description:
    o = checked(options, name)
    shape = (o["channels"], o["size"], o["size"])
    sizes = o["n_train"], o["n_test"], o["n_public"]
    return Description(name, shape, len(LETTERS), *sizes, digest(o), n_fonts=len(FONTS))


def digest(checked: Mapping[str, Any]) -> str:
    """Id of the content that all these options give."""
    return digest_of("glyphs", VERSION, sorted(checked.items()))


def look_of(name: str) -> dict[str, int]:
    """The options that a short name means.

    >>> look_of("glyphs:28"), look_of("glyphs:16g"), look_of("glyphs")
    ({'size': 28, 'channels': 3}, {'size': 16, 'channels': 1}, {})
    """
    look = choose("name of glyphs", name, NAMES).partition(":")[2]
    if not look:
        return {}
    return {"size": int(look.removesuffix("g")), "channels": 1 if look.endswith("g") else 3}


def checked(options: Mapping[str, Any], name: str = "glyphs") -> dict[str, Any]:
    """All options, with defaults for those left out; UsageError for unknown ones, values out of
    range, and a size or channels beside a `name` that says them."""
    look = look_of(name)
    for option in options:
        choose("option of glyphs", option, OPTIONS)
        instead = f"leave {option} out, or name the data set 'glyphs'"
        demand(option not in look, f"Dataset {name!r} has its {option} in its name; {instead}.")
    o = {**OPTIONS, **look, **options}
    for option, low, high in (
        ("n_train", 10, None),
        ("n_test", 1, None),
        ("n_public", 0, None),
        ("size", 8, 128),
    ):
        o[option] = whole(option, o[option], low, high)
    o["seed"] = whole("seed", o["seed"])
    o["channels"] = int(choose("number of channels", str(o["channels"]), ("1", "3")))
    return o


# ----------------------------------------------------------------------------------- random numbers
class RandomStream:
    """Uniform and nearly normal numbers from the raw 64-bit words of PCG64. NumPy guarantees this
    stream; it does not guarantee what `numpy.random.Generator` makes of it."""

    def __init__(self, seed: int):
        self._bits = np.random.PCG64(seed)

    def words(self, *shape: int) -> np.ndarray:
        """uint64, all values alike."""
        return self._bits.random_raw(math.prod(shape)).reshape(shape)

    def integers(self, stop: int, *shape: int) -> np.ndarray:
        """int64 from 0 to stop - 1. One value is likelier than another by less than stop / 2^64."""
        return (self.words(*shape) % np.uint64(stop)).astype(np.int64)

    def uniform(self, low: float, high: float, *shape: int) -> np.ndarray:
        """float64 from `low` to `high`: 53 bits of each word."""
        share = (self.words(*shape) >> np.uint64(11)).astype(np.float64) / 2.0**53
        return low + (high - low) * share

    def bell(self, *shape: int) -> np.ndarray:
        """float64 with mean 0 and variance 1, nearly normal, from -3.47 to 3.47: the sum of the
        four 16-bit parts of each word, whole numbers all, less its mean, over its standard
        deviation."""
        words = self.words(*shape)
        total = np.zeros(shape, np.int64)
        for part in range(4):
            total += ((words >> np.uint64(16 * part)) & np.uint64(0xFFFF)).astype(np.int64)
        mean = 4 * (2**16 - 1) / 2
        deviation = math.sqrt(4 * (2**32 - 1) / 12)
        return (total - mean) / deviation


def stream_of(part: str, seed: int, block: int) -> RandomStream:
    """The random stream of a block of a part's samples."""
    return RandomStream(seed_for(seed, "glyphs", part, block))


# ------------------------------------------------------------------------------------------- images
def draw(count: int, part: str, seed: int, size: int, channels: int) -> torch.Tensor:
    """The first `count` images of one part, float32 [count, channels, size, size], whole 255ths."""
    import torch

    images = np.empty((count, channels, size, size), np.float32)
    for start in range(0, count, BLOCK):
        block = draw_block(start, stream_of(part, seed, start // BLOCK), size)
        if channels == 1:
            block = luminance(block)
        levels = np.rint(255 * block).astype(np.float32)
        images[start : start + BLOCK] = levels[: count - start] / np.float32(255)
    return torch.from_numpy(images)


def fonts(count: int, part: str, seed: int) -> torch.Tensor:
    """Which of FONTS the first `count` letters of a part are in, int64 [count]."""
    import torch

    blocks = range(-(-count // BLOCK))
    drawn = [draw_fonts(stream_of(part, seed, block)) for block in blocks]
    return torch.from_numpy(np.concatenate(drawn)[:count])


def draw_fonts(random: RandomStream) -> np.ndarray:
    """The fonts of a block's letters, int64 [256]: the first draw of the block's stream."""
    return random.integers(len(FONTS), BLOCK)


def draw_block(start: int, random: RandomStream, size: int) -> np.ndarray:
    """Images start..start+255, float64 [256, 3, size, size] from 0 to 1: background, clutter,
    letter, a thin stroke across, noise."""
    fields = distance_fields()
    letter = (start + np.arange(BLOCK)) % len(LETTERS)
    font = draw_fonts(random)
    other_font = random.integers(len(FONTS), BLOCK)
    other = random.integers(len(LETTERS), BLOCK)

    paper = random.uniform(0, 0.65, BLOCK, 3)
    ink = brightest(random.uniform(0.25, 1, BLOCK, 3, 3))
    ink = lighter(ink, paper)  # light on dark: two polarities need far more samples
    faint = paper + random.uniform(0.2, 0.6, BLOCK, 1) * (random.uniform(0, 1, BLOCK, 3) - paper)
    line = random.uniform(0, 1, BLOCK, 3)

    axis = edge_to_edge(size)
    down = random.uniform(-0.12, 0.12, BLOCK, 1, 1) * axis[:, None]
    across = random.uniform(-0.12, 0.12, BLOCK, 1, 1) * axis[None, :]
    image = paper[:, :, None, None] + (down + across)[:, None]

    # clutter: a piece of another letter, faint, around the rim, under the letter
    angle = random.integers(TURN, BLOCK)
    far = random.uniform(0.75, 1.1, BLOCK)
    rim = np.stack([far * cosine(angle), far * sine(angle)], axis=1)
    clutter = letter_mask(
        fields[other, other_font],
        size,
        scale=random.uniform(0.7, 1.2, BLOCK),
        turn=random.integers(TURN, BLOCK),
        shear=random.uniform(-0.2, 0.2, BLOCK),
        stretch=random.uniform(0.9, 1.1, BLOCK),
        shift=rim,
        bolder=random.uniform(-0.5, 1.0, BLOCK),
    )
    image = blend(image, faint, clutter)

    most = round(0.35 * TURN / math.tau)  # steps to either side
    mask = letter_mask(
        fields[letter, font],
        size,
        scale=random.uniform(0.9, 1.35, BLOCK),
        turn=random.integers(2 * most + 1, BLOCK) - most,
        shear=random.uniform(-0.2, 0.2, BLOCK),
        stretch=random.uniform(0.8, 1.25, BLOCK),
        shift=random.uniform(-0.16, 0.16, BLOCK, 2),
        bolder=random.uniform(-0.6, 2.0, BLOCK),
    )
    image = blend(image, ink, mask)

    is_crossed = random.integers(2, BLOCK) == 1
    ends = random.uniform(-1, 1, 2, BLOCK, 2)
    crossing = stroke(ends[0], ends[1], random.uniform(0.02, 0.05, BLOCK), size)
    image = blend(image, line, 0.7 * np.where(is_crossed[:, None, None], crossing, 0.0))

    strength = random.uniform(0.0, 0.08, BLOCK, 1, 1, 1)
    image = image + strength * random.bell(BLOCK, 3, size, size)
    return np.clip(image, 0.0, 1.0)


def edge_to_edge(size: int) -> np.ndarray:
    """`size` numbers, evenly spaced, from -1 to 1."""
    return (2.0 * np.arange(size) - (size - 1)) / (size - 1)


def letter_mask(
    field: np.ndarray,
    size: int,
    *,
    scale: np.ndarray,
    turn: np.ndarray,
    shear: np.ndarray,
    stretch: np.ndarray,
    shift: np.ndarray,
    bolder: np.ndarray,
) -> np.ndarray:
    """Share of each pixel that the letters cover, float64 [N, size, size], from distance fields [N,
    64, 64].

    The map from image to letter is the inverse of: stretch, shear, turn, scale, then shift (in half
    image widths). All of these are [N], `shift` is [N, 2], and `turn` is in steps. A pixel is
    inside where the field lies below `bolder` (in cells); the edge is one pixel wide.
    """
    scale, shear, stretch = (number[:, None, None] for number in (scale, shear, stretch))
    c = cosine(turn)[:, None, None]
    s = sine(turn)[:, None, None]
    pixel = (2.0 * np.arange(size) + 1) / size - 1  # the pixels' middles, from -1 to 1
    x = pixel[None, None, :] - shift[:, 0, None, None]
    y = pixel[None, :, None] - shift[:, 1, None, None]
    # back: first the turn, then shear and stretch, (x, y) -> ((x - shear y) / stretch, y)
    turned_x = (c * x + s * y) / scale
    turned_y = (c * y - s * x) / scale
    straight_x = (turned_x - shear * turned_y) / stretch
    seen = bilinear(field, straight_x, turned_y)
    cells_per_pixel = CELL / size / scale
    return np.clip(0.5 + (bolder[:, None, None] - seen) / cells_per_pixel, 0.0, 1.0)


def bilinear(field: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The fields [N, 64, 64] at places [N, H, W] from -1 to 1, between the middles of the four
    cells around each; beyond the border as on it."""
    column = np.clip(((x + 1) * CELL - 1) / 2, 0.0, CELL - 1.0)
    row = np.clip(((y + 1) * CELL - 1) / 2, 0.0, CELL - 1.0)
    left = np.minimum(np.floor(column), CELL - 2.0)
    top = np.minimum(np.floor(row), CELL - 2.0)
    right_share = column - left
    low_share = row - top
    first = np.arange(len(field))[:, None, None] * CELL**2
    at = first + top.astype(np.int64) * CELL + left.astype(np.int64)
    flat = field.reshape(-1)
    upper = flat[at] + right_share * (flat[at + 1] - flat[at])
    lower = flat[at + CELL] + right_share * (flat[at + CELL + 1] - flat[at + CELL])
    return upper + low_share * (lower - upper)


def stroke(start: np.ndarray, end: np.ndarray, width: np.ndarray, size: int) -> np.ndarray:
    """Share of each pixel that a straight stroke covers, [N, size, size]; ends [N, 2] in -1..1,
    half width [N]."""
    axis = edge_to_edge(size)
    along_x = (end - start)[:, 0, None, None]
    along_y = (end - start)[:, 1, None, None]
    offset_x = axis[None, None, :] - start[:, 0, None, None]
    offset_y = axis[None, :, None] - start[:, 1, None, None]
    length = np.maximum(along_x * along_x + along_y * along_y, 1e-6)  # squared
    t = np.clip((offset_x * along_x + offset_y * along_y) / length, 0.0, 1.0)
    away_x = offset_x - t * along_x
    away_y = offset_y - t * along_y
    distance = np.sqrt(away_x * away_x + away_y * away_y)
    return np.clip(0.5 + (width[:, None, None] - distance) * size / 2, 0.0, 1.0)


def blend(image: np.ndarray, colour: np.ndarray, cover: np.ndarray) -> np.ndarray:
    """Paint `colour` [N, 3] over `image` where `cover` [N, H, W] says so."""
    return image + cover[:, None] * (colour[:, :, None, None] - image)


def brightest(candidates: np.ndarray) -> np.ndarray:
    """Of K colours [N, K, 3] the one of greatest luminance, [N, 3]."""
    light = luminance(candidates, axis=2)[:, :, 0]
    return candidates[np.arange(len(candidates)), light.argmax(axis=1)]


def lighter(ink: np.ndarray, paper: np.ndarray, gap: float = 0.25) -> np.ndarray:
    """`ink` [N, 3], mixed with just enough white for its luminance to lie `gap` above that of
    `paper` [N, 3]."""
    light = luminance(ink)
    white = np.clip((luminance(paper) + gap - light) / (1 - light), 0.0, 1.0)
    return ink + white * (1 - ink)


def luminance(x: np.ndarray, axis: int = 1) -> np.ndarray:
    """Grey value of RGB along `axis`, which is kept with length 1."""
    red, green, blue = np.split(x, 3, axis=axis)
    return 0.299 * red + 0.587 * green + 0.114 * blue


def cosine(steps: np.ndarray) -> np.ndarray:
    """Cosines of whole steps of an angle, each a multiple of 2^-20."""
    return cosines()[steps % TURN]


def sine(steps: np.ndarray) -> np.ndarray:
    return cosine(steps - TURN // 4)


@lru_cache(maxsize=1)
def cosines() -> np.ndarray:
    """float64 [TURN]: no exact value lies near the middle between two multiples, so each library
    rounds alike."""
    exact = [math.cos(math.tau * step / TURN) for step in range(TURN)]
    return np.rint(np.array(exact) * COSINE_STEPS) / COSINE_STEPS


# ------------------------------------------------------------------------------------------ letters
@lru_cache(maxsize=1)
def distance_fields() -> np.ndarray:
    """Signed distances to the outline, float64 [letters, fonts, 64, 64], negative inside, in
    cells.
    """
    return signed_distance(letter_shapes())


def letter_shapes() -> np.ndarray:
    """True inside the letter, [letters, fonts, 64, 64], each centred and 36 cells high."""
    with np.load(SHAPES_FILE, allow_pickle=False) as file:
        packed = file["shapes"]
    return np.unpackbits(packed, axis=-1).astype(bool)


def signed_distance(inside: np.ndarray) -> np.ndarray:
    """Euclidean distance of every cell of pictures [..., n, n] to the nearest cell of the other
    kind, half a cell less, negative inside. Each picture has cells of both kinds."""
    to_outside = np.sqrt(squared_distance(~inside).astype(np.float64))
    to_inside = np.sqrt(squared_distance(inside).astype(np.float64))
    return np.where(inside, 0.5 - to_outside, to_inside - 0.5)


def squared_distance(goal: np.ndarray) -> np.ndarray:
    """Squared distance of every cell of pictures [..., n, n] to the nearest cell of `goal`, in
    whole numbers: first along each column, then over the columns."""
    n = goal.shape[-1]
    steps = np.arange(n)
    apart = (steps[:, None] - steps[None, :]) ** 2  # [n, n]
    far = 4 * n * n  # more than any distance
    nearest = np.full(goal.shape, far, np.int32)
    for row in range(n):
        there = np.where(goal[..., row, None, :], apart[:, row, None], far)
        nearest = np.minimum(nearest, there)
    result = np.full(goal.shape, 2 * far, np.int32)
    for column in range(n):
        result = np.minimum(result, nearest[..., :, column, None] + apart[column])
    return result
