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

from fedlab_nb.data.dataset import Dataset, Description, hash_parts
from fedlab_nb.data.schema import make_image_schema
from fedlab_nb.errors import UsageError, check_whole_number, choose
from fedlab_nb.rng import seed_for

if TYPE_CHECKING:
    import torch

LETTERS = "BDEFGHKPRS"
FONTS = (
    "DejaVuSans",
    "DejaVuSans-Bold",
    "DejaVuSans-Oblique",
    "DejaVuSansMono",
    "DejaVuSansMono-Bold",
    "DejaVuSerif",
    "DejaVuSerif-Bold",
    "DejaVuSerif-Italic",
    "STIXGeneral",
    "STIXGeneralBol",
    "STIXGeneralItalic",
    "STIXGeneralBolIta",
    "cmr10",
    "cmss10",
    "cmtt10",
    "cmb10",
)
SHAPES_FILE = Path(__file__).with_name("letters.npz")
VERSION = 2  # raise it whenever the images change: it is part of the digest
CELL = 64  # side of the grid that a letter is drawn in
BLOCK = 256  # samples per random stream
TURN = 4096  # angles are whole steps, so many a turn
COSINE_STEPS = 2**20  # a cosine is a whole number of these parts
NAMES = (
    "glyphs",
    "glyphs:8",
    "glyphs:8g",
    "glyphs:16",
    "glyphs:16g",
    "glyphs:28",
    "glyphs:28g",
    "glyphs:32",
    "glyphs:32g",
)
OPTIONS = {"n_train": 2000, "n_test": 500, "n_public": 500, "seed": 0, "size": 32, "channels": 3}


# ------------------------------------------------------------------------------------- the data set
def load(name: str = "glyphs", **options: Any) -> Dataset:
    """x [N, channels, size, size] in steps of 1/255; sample i shows letter i mod 10.

    name: "glyphs", or one of NAMES, which says size and colours: "glyphs:16g" is `size=16,
    channels=1`. Options: n_train=2000, n_test=500, n_public=500 (0: no public part), seed=0,
    size=32 (8 to 128), channels=3 (or 1, grey).
    """
    import torch

    checked = check_options(options, name)
    seed = checked["seed"]
    size = checked["size"]
    channels = checked["channels"]
    x_train = draw_images(checked["n_train"], "train", seed, size, channels)
    x_test = draw_images(checked["n_test"], "test", seed, size, channels)
    x_public = None
    y_public = None
    if checked["n_public"]:
        x_public = draw_images(checked["n_public"], "public", seed, size, channels)
        y_public = torch.arange(len(x_public)) % len(LETTERS)
    return Dataset(
        name=name,
        x_train=x_train,
        y_train=torch.arange(len(x_train)) % len(LETTERS),
        x_test=x_test,
        y_test=torch.arange(len(x_test)) % len(LETTERS),
        x_public=x_public,
        class_names=tuple(LETTERS),
        digest=hash_options(checked),
        y_public=y_public,
        font_train=draw_fonts(checked["n_train"], "train", seed),
        schema=make_image_schema((channels, size, size), LETTERS, 1, "float32"),
    )


def describe(name: str = "glyphs", **options: Any) -> Description:
    checked = check_options(options, name)
    return Description(
        name=name,
        input_shape=(checked["channels"], checked["size"], checked["size"]),
        classes=len(LETTERS),
        n_train=checked["n_train"],
        n_test=checked["n_test"],
        n_public=checked["n_public"],
        digest=hash_options(checked),
        n_fonts=len(FONTS),
    )


def hash_options(options: Mapping[str, Any]) -> str:
    """Id of the content that these options, all of them, give."""
    return hash_parts("glyphs", VERSION, sorted(options.items()))


def parse_name(name: str) -> dict[str, int]:
    """The options that a short name means.

    >>> parse_name("glyphs:28"), parse_name("glyphs:16g"), parse_name("glyphs")
    ({'size': 28, 'channels': 3}, {'size': 16, 'channels': 1}, {})
    """
    short_name = choose("name of glyphs", name, NAMES).partition(":")[2]
    if not short_name:
        return {}
    if short_name.endswith("g"):
        return {"size": int(short_name.removesuffix("g")), "channels": 1}
    return {"size": int(short_name), "channels": 3}


def check_options(options: Mapping[str, Any], name: str = "glyphs") -> dict[str, Any]:
    """All options, with defaults for those left out; UsageError for unknown ones, values out of
    range, and a size or channels beside a `name` that says them."""
    options_of_name = parse_name(name)
    for option in options:
        choose("option of glyphs", option, OPTIONS)
        if option in options_of_name:
            raise UsageError(
                f"Dataset {name!r} has its {option} in its name; leave {option} out, or name the "
                "data set 'glyphs'."
            )
    checked = {**OPTIONS, **options_of_name, **options}
    checked["n_train"] = check_whole_number("n_train", checked["n_train"], 10)
    checked["n_test"] = check_whole_number("n_test", checked["n_test"], 1)
    checked["n_public"] = check_whole_number("n_public", checked["n_public"], 0)
    checked["size"] = check_whole_number("size", checked["size"], 8, 128)
    checked["seed"] = check_whole_number("seed", checked["seed"])
    checked["channels"] = int(choose("number of channels", str(checked["channels"]), ("1", "3")))
    return checked


# ----------------------------------------------------------------------------------- random numbers
class RandomStream:
    """Uniform and nearly normal numbers from the raw 64-bit words of PCG64. NumPy guarantees this
    stream; it does not guarantee what `numpy.random.Generator` makes of it."""

    def __init__(self, seed: int):
        self._bits = np.random.PCG64(seed)

    def draw_words(self, *shape: int) -> np.ndarray:
        """uint64, all values alike."""
        return self._bits.random_raw(math.prod(shape)).reshape(shape)

    def draw_integers(self, stop: int, *shape: int) -> np.ndarray:
        """int64 from 0 to stop - 1. One value is likelier than another by less than stop / 2^64."""
        return (self.draw_words(*shape) % np.uint64(stop)).astype(np.int64)

    def draw_uniform(self, low: float, high: float, *shape: int) -> np.ndarray:
        """float64 from `low` to `high`: 53 bits of each word."""
        share = (self.draw_words(*shape) >> np.uint64(11)).astype(np.float64) / 2.0**53
        return low + (high - low) * share

    def draw_nearly_normal(self, *shape: int) -> np.ndarray:
        """float64 with mean 0 and variance 1, nearly normal, from -3.47 to 3.47: the sum of the
        four 16-bit parts of each word, whole numbers all, less its mean, over its standard
        deviation."""
        words = self.draw_words(*shape)
        total = np.zeros(shape, np.int64)
        for part in range(4):
            total += ((words >> np.uint64(16 * part)) & np.uint64(0xFFFF)).astype(np.int64)
        mean = 4 * (2**16 - 1) / 2
        deviation = math.sqrt(4 * (2**32 - 1) / 12)
        return (total - mean) / deviation


def make_stream(part: str, seed: int, block: int) -> RandomStream:
    """The random stream of a block of a part's samples."""
    return RandomStream(seed_for(seed, "glyphs", part, block))


# ------------------------------------------------------------------------------------------- images
def draw_images(count: int, part: str, seed: int, size: int, channels: int) -> torch.Tensor:
    """The first `count` images of one part, float32 [count, channels, size, size], whole 255ths."""
    import torch

    images = np.empty((count, channels, size, size), np.float32)
    for start in range(0, count, BLOCK):
        block = draw_block(start, make_stream(part, seed, start // BLOCK), size)
        if channels == 1:
            block = compute_luminance(block)
        levels = np.rint(255 * block).astype(np.float32)
        images[start : start + BLOCK] = levels[: count - start] / np.float32(255)
    return torch.from_numpy(images)


def draw_fonts(count: int, part: str, seed: int) -> torch.Tensor:
    """Which of FONTS the first `count` letters of a part are in, int64 [count]."""
    import torch

    blocks = math.ceil(count / BLOCK)
    drawn = [draw_block_fonts(make_stream(part, seed, block)) for block in range(blocks)]
    return torch.from_numpy(np.concatenate(drawn)[:count])


def draw_block_fonts(random: RandomStream) -> np.ndarray:
    """The fonts of a block's letters, int64 [256]: the first draw of the block's stream."""
    return random.draw_integers(len(FONTS), BLOCK)


def draw_block(start: int, random: RandomStream, size: int) -> np.ndarray:
    """Images start..start+255, float64 [256, 3, size, size] from 0 to 1: background, clutter,
    letter, a thin stroke across, noise."""
    fields = load_distance_fields()
    letter = (start + np.arange(BLOCK)) % len(LETTERS)
    font = draw_block_fonts(random)
    other_font = random.draw_integers(len(FONTS), BLOCK)
    other_letter = random.draw_integers(len(LETTERS), BLOCK)

    # colours [256, 3]: of the background, the letter, the clutter and the stroke
    paper = random.draw_uniform(0, 0.65, BLOCK, 3)
    ink = choose_brightest(random.draw_uniform(0.25, 1, BLOCK, 3, 3))
    ink = lighten(ink, paper)  # light on dark: two polarities need far more samples
    faint = paper + random.draw_uniform(0.2, 0.6, BLOCK, 1) * (
        random.draw_uniform(0, 1, BLOCK, 3) - paper
    )
    line = random.draw_uniform(0, 1, BLOCK, 3)

    axis = make_axis(size)
    down = random.draw_uniform(-0.12, 0.12, BLOCK, 1, 1) * axis[:, None]
    across = random.draw_uniform(-0.12, 0.12, BLOCK, 1, 1) * axis[None, :]
    image = paper[:, :, None, None] + (down + across)[:, None]

    # clutter: a piece of another letter, faint, around the rim, under the letter
    angle = random.draw_integers(TURN, BLOCK)
    radius = random.draw_uniform(0.75, 1.1, BLOCK)
    rim = np.stack([radius * compute_cosine(angle), radius * compute_sine(angle)], axis=1)
    clutter = draw_letter(
        fields[other_letter, other_font],
        size,
        scale=random.draw_uniform(0.7, 1.2, BLOCK),
        turn=random.draw_integers(TURN, BLOCK),
        shear=random.draw_uniform(-0.2, 0.2, BLOCK),
        stretch=random.draw_uniform(0.9, 1.1, BLOCK),
        shift=rim,
        bolder=random.draw_uniform(-0.5, 1.0, BLOCK),
    )
    image = blend(image, faint, clutter)

    most_steps = round(0.35 * TURN / math.tau)  # to either side
    mask = draw_letter(
        fields[letter, font],
        size,
        scale=random.draw_uniform(0.9, 1.35, BLOCK),
        turn=random.draw_integers(2 * most_steps + 1, BLOCK) - most_steps,
        shear=random.draw_uniform(-0.2, 0.2, BLOCK),
        stretch=random.draw_uniform(0.8, 1.25, BLOCK),
        shift=random.draw_uniform(-0.16, 0.16, BLOCK, 2),
        bolder=random.draw_uniform(-0.6, 2.0, BLOCK),
    )
    image = blend(image, ink, mask)

    is_crossed = random.draw_integers(2, BLOCK) == 1
    ends = random.draw_uniform(-1, 1, 2, BLOCK, 2)
    crossing = draw_stroke(ends[0], ends[1], random.draw_uniform(0.02, 0.05, BLOCK), size)
    image = blend(image, line, 0.7 * np.where(is_crossed[:, None, None], crossing, 0.0))

    strength = random.draw_uniform(0.0, 0.08, BLOCK, 1, 1, 1)
    image = image + strength * random.draw_nearly_normal(BLOCK, 3, size, size)
    return np.clip(image, 0.0, 1.0)


def make_axis(size: int) -> np.ndarray:
    """`size` numbers, evenly spaced, from -1 to 1."""
    return (2.0 * np.arange(size) - (size - 1)) / (size - 1)


def draw_letter(
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
    scale = scale[:, None, None]
    shear = shear[:, None, None]
    stretch = stretch[:, None, None]
    bolder = bolder[:, None, None]
    c = compute_cosine(turn)[:, None, None]
    s = compute_sine(turn)[:, None, None]
    pixel = (2.0 * np.arange(size) + 1) / size - 1  # the pixels' middles, from -1 to 1
    x = pixel[None, None, :] - shift[:, 0, None, None]
    y = pixel[None, :, None] - shift[:, 1, None, None]
    # back: first the turn, then shear and stretch, (x, y) -> ((x - shear y) / stretch, y)
    turned_x = (c * x + s * y) / scale
    turned_y = (c * y - s * x) / scale
    straight_x = (turned_x - shear * turned_y) / stretch
    distance = sample_field(field, straight_x, turned_y)
    cells_per_pixel = CELL / size / scale
    return np.clip(0.5 + (bolder - distance) / cells_per_pixel, 0.0, 1.0)


def sample_field(field: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The fields [N, 64, 64] at places [N, H, W] from -1 to 1, between the middles of the four
    cells around each; beyond the border as on it."""
    column = np.clip(((x + 1) * CELL - 1) / 2, 0.0, CELL - 1.0)
    row = np.clip(((y + 1) * CELL - 1) / 2, 0.0, CELL - 1.0)
    left = np.minimum(np.floor(column), CELL - 2.0)
    top = np.minimum(np.floor(row), CELL - 2.0)
    right_share = column - left
    low_share = row - top
    first = np.arange(len(field))[:, None, None] * CELL**2
    corner = first + top.astype(np.int64) * CELL + left.astype(np.int64)  # the upper left cell
    flat = field.reshape(-1)
    upper_left = flat[corner]
    upper_right = flat[corner + 1]
    lower_left = flat[corner + CELL]
    lower_right = flat[corner + CELL + 1]
    upper = upper_left + right_share * (upper_right - upper_left)
    lower = lower_left + right_share * (lower_right - lower_left)
    return upper + low_share * (lower - upper)


def draw_stroke(start: np.ndarray, end: np.ndarray, width: np.ndarray, size: int) -> np.ndarray:
    """Share of each pixel that a straight stroke covers, [N, size, size]; ends [N, 2] in -1..1,
    half width [N]."""
    axis = make_axis(size)
    along_x = (end - start)[:, 0, None, None]
    along_y = (end - start)[:, 1, None, None]
    offset_x = axis[None, None, :] - start[:, 0, None, None]
    offset_y = axis[None, :, None] - start[:, 1, None, None]
    squared_length = np.maximum(along_x * along_x + along_y * along_y, 1e-6)
    # the nearest point of the stroke: t from 0 (start) to 1 (end)
    t = np.clip((offset_x * along_x + offset_y * along_y) / squared_length, 0.0, 1.0)
    distance_x = offset_x - t * along_x
    distance_y = offset_y - t * along_y
    distance = np.sqrt(distance_x * distance_x + distance_y * distance_y)
    return np.clip(0.5 + (width[:, None, None] - distance) * size / 2, 0.0, 1.0)


def blend(image: np.ndarray, colour: np.ndarray, cover: np.ndarray) -> np.ndarray:
    """Paint `colour` [N, 3] over `image` where `cover` [N, H, W] says so."""
    return image + cover[:, None] * (colour[:, :, None, None] - image)


def choose_brightest(candidates: np.ndarray) -> np.ndarray:
    """Of K colours [N, K, 3] the one of greatest luminance, [N, 3]."""
    light = compute_luminance(candidates, axis=2)[:, :, 0]
    return candidates[np.arange(len(candidates)), light.argmax(axis=1)]


def lighten(ink: np.ndarray, paper: np.ndarray, gap: float = 0.25) -> np.ndarray:
    """`ink` [N, 3], mixed with just enough white for its luminance to lie `gap` above that of
    `paper` [N, 3]."""
    light = compute_luminance(ink)
    white = np.clip((compute_luminance(paper) + gap - light) / (1 - light), 0.0, 1.0)
    return ink + white * (1 - ink)


def compute_luminance(images: np.ndarray, axis: int = 1) -> np.ndarray:
    """Grey value of RGB along `axis`, which is kept with length 1."""
    red, green, blue = np.split(images, 3, axis=axis)
    return 0.299 * red + 0.587 * green + 0.114 * blue


def compute_cosine(steps: np.ndarray) -> np.ndarray:
    """Cosines of whole steps of an angle, each a multiple of 2^-20."""
    return make_cosine_table()[steps % TURN]


def compute_sine(steps: np.ndarray) -> np.ndarray:
    return compute_cosine(steps - TURN // 4)


@lru_cache(maxsize=1)
def make_cosine_table() -> np.ndarray:
    """float64 [TURN]: no exact value lies near the middle between two multiples, so each library
    rounds alike."""
    exact = [math.cos(math.tau * step / TURN) for step in range(TURN)]
    return np.rint(np.array(exact) * COSINE_STEPS) / COSINE_STEPS


# ------------------------------------------------------------------------------------------ letters
@lru_cache(maxsize=1)
def load_distance_fields() -> np.ndarray:
    """Signed distances to the outline, float64 [letters, fonts, 64, 64], negative inside, in
    cells.
    """
    return compute_signed_distance(load_letter_shapes())


def load_letter_shapes() -> np.ndarray:
    """True inside the letter, [letters, fonts, 64, 64], each centred and 36 cells high."""
    with np.load(SHAPES_FILE, allow_pickle=False) as file:
        packed = file["shapes"]
    return np.unpackbits(packed, axis=-1).astype(bool)


def compute_signed_distance(inside: np.ndarray) -> np.ndarray:
    """Euclidean distance of every cell of pictures [..., n, n] to the nearest cell of the other
    kind, half a cell less, negative inside. Each picture has cells of both kinds."""
    to_outside = np.sqrt(compute_squared_distance(~inside).astype(np.float64))
    to_inside = np.sqrt(compute_squared_distance(inside).astype(np.float64))
    return np.where(inside, 0.5 - to_outside, to_inside - 0.5)


def compute_squared_distance(goal: np.ndarray) -> np.ndarray:
    """Squared distance of every cell of pictures [..., n, n] to the nearest cell of `goal`, in
    whole numbers: first along each column, then over the columns."""
    n = goal.shape[-1]
    steps = np.arange(n)
    apart = (steps[:, None] - steps[None, :]) ** 2  # [n, n], of two rows or two columns
    far = 4 * n * n  # more than any distance
    nearest = np.full(goal.shape, far, np.int32)
    for row in range(n):
        distance = np.where(goal[..., row, None, :], apart[:, row, None], far)
        nearest = np.minimum(nearest, distance)
    result = np.full(goal.shape, 2 * far, np.int32)
    for column in range(n):
        result = np.minimum(result, nearest[..., :, column, None] + apart[column])
    return result
