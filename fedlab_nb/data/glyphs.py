"""Draw the data set `glyphs`: images of ten letters that are easily taken for one another.

Pose, stroke weight, colour and clutter are random. Any number of images can be drawn, with no download.
`glyphs:16g` is 16x16 and grey.

The shapes of the letters are in `letters.npz`; `draw_letters.py` drew them once from matplotlib's
fonts. Each letter of each font becomes a signed distance field (negative inside, in cells of a 64x64
grid). An image is this field under a random affine map, cut off at a random level, which makes the
stroke thinner or bolder, and coloured. Samples are drawn in blocks of 256 with a random stream for
each block, so sample i is the same however many are drawn.

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
from typing import TYPE_CHECKING, Literal

import numpy as np

from fedlab_nb.data.array_types import (
    Colours,
    Coordinates,
    Coverage,
    DistanceAtEachPoint,
    FontIndices,
    GreyValues,
    ImageArray,
    LetterMasks,
    NumberPerImage,
    PixelMasks,
    PointPerImage,
    SignedDistances,
    SquaredDistances,
)
from fedlab_nb.data.dataset import Dataset, DatasetDescription, hash_parts_to_short_id
from fedlab_nb.data.schema import make_image_schema
from fedlab_nb.errors import UsageError, check_allowed_name, check_whole_number
from fedlab_nb.rng import derive_stream_seed

if TYPE_CHECKING:
    from fedlab_nb.tensor_types import FontIndexPerSample, Images

GlyphsOptions = dict[str, int]  # n_train, n_test, n_public, seed, size, channels

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


GlyphsPart = Literal["train", "test", "public"]


# ------------------------------------------------------------------------------------- the data set
def load(name: str = "glyphs", **options: int) -> Dataset:
    """x [N, channels, size, size] in steps of 1/255; sample i shows letter i mod 10.

    name: "glyphs", or one of NAMES, which says size and colours: "glyphs:16g" is `size=16,
    channels=1`. Options: n_train=2000, n_test=500, n_public=500 (0: no public part), seed=0,
    size=32 (8 to 128), channels=3 (or 1, grey).
    """
    import torch

    checked = check_glyphs_options_and_add_defaults(options, name)
    seed = checked["seed"]
    size = checked["size"]
    channels = checked["channels"]
    x_train = draw_first_images_of_part(checked["n_train"], "train", seed, size, channels)
    x_test = draw_first_images_of_part(checked["n_test"], "test", seed, size, channels)
    x_public = None
    y_public = None
    if checked["n_public"]:
        x_public = draw_first_images_of_part(checked["n_public"], "public", seed, size, channels)
        y_public = torch.arange(len(x_public)) % len(LETTERS)
    return Dataset(
        name=name,
        x_train=x_train,
        y_train=torch.arange(len(x_train)) % len(LETTERS),
        x_test=x_test,
        y_test=torch.arange(len(x_test)) % len(LETTERS),
        x_public=x_public,
        class_names=tuple(LETTERS),
        digest=hash_glyphs_options(checked),
        y_public=y_public,
        font_train=draw_font_indices_of_images(checked["n_train"], "train", seed),
        schema=make_image_schema((channels, size, size), LETTERS, 1, "float32"),
    )


def describe(name: str = "glyphs", **options: int) -> DatasetDescription:
    checked = check_glyphs_options_and_add_defaults(options, name)
    return DatasetDescription(
        name=name,
        input_shape=(checked["channels"], checked["size"], checked["size"]),
        classes=len(LETTERS),
        n_train=checked["n_train"],
        n_test=checked["n_test"],
        n_public=checked["n_public"],
        digest=hash_glyphs_options(checked),
        n_fonts=len(FONTS),
    )


def hash_glyphs_options(options: Mapping[str, int]) -> str:
    """Id of the content that these options, all of them, give."""
    return hash_parts_to_short_id("glyphs", VERSION, sorted(options.items()))


def parse_glyphs_name(name: str) -> GlyphsOptions:
    """Parse the options in a short name.

    >>> parse_glyphs_name("glyphs:28"), parse_glyphs_name("glyphs:16g"), parse_glyphs_name("glyphs")
    ({'size': 28, 'channels': 3}, {'size': 16, 'channels': 1}, {})
    """
    short_name = check_allowed_name("name of glyphs", name, NAMES).partition(":")[2]
    if not short_name:
        return {}
    if short_name.endswith("g"):
        return {"size": int(short_name.removesuffix("g")), "channels": 1}
    return {"size": int(short_name), "channels": 3}


def check_glyphs_options_and_add_defaults(
    options: Mapping[str, int], name: str = "glyphs"
) -> GlyphsOptions:
    """Return all options, with defaults for those left out.

    Raises UsageError for unknown options, for values out of range, and for a size or channels that
    the `name` gives already.
    """
    options_of_name = parse_glyphs_name(name)
    for option in options:
        check_allowed_name("option of glyphs", option, OPTIONS)
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
    checked["channels"] = int(
        check_allowed_name("number of channels", str(checked["channels"]), ("1", "3"))
    )
    return checked


# ----------------------------------------------------------------------------------- random numbers
class Pcg64WordStream:
    """Uniform and nearly normal numbers from the raw 64-bit words of PCG64. NumPy guarantees these
    words, but not the numbers that `numpy.random.Generator` makes of them."""

    def __init__(self, seed: int) -> None:
        self._bits = np.random.PCG64(seed)

    def draw_uint64(self, *shape: int) -> np.ndarray:
        """Draw uint64 numbers, all values equally likely."""
        return self._bits.random_raw(math.prod(shape)).reshape(shape)

    def draw_integers_below(self, stop: int, *shape: int) -> np.ndarray:
        """Draw int64 numbers from 0 to stop - 1, equally likely to within stop / 2^64."""
        return (self.draw_uint64(*shape) % np.uint64(stop)).astype(np.int64)

    def draw_uniform(self, low: float, high: float, *shape: int) -> np.ndarray:
        """Draw float64 numbers from `low` to `high`, from 53 bits of each word."""
        share = (self.draw_uint64(*shape) >> np.uint64(11)).astype(np.float64) / 2.0**53
        return low + (high - low) * share

    def draw_nearly_normal(self, *shape: int) -> np.ndarray:
        """Draw nearly normal float64 numbers with mean 0 and variance 1, from -3.47 to 3.47.

        Each is the sum of the four 16-bit parts of a word, standardised. The parts are whole numbers,
        so the sum is exact.
        """
        random_bits = self.draw_uint64(*shape)
        total = np.zeros(shape, np.int64)
        for part in range(4):
            total += ((random_bits >> np.uint64(16 * part)) & np.uint64(0xFFFF)).astype(np.int64)
        mean = 4 * (2**16 - 1) / 2
        deviation = math.sqrt(4 * (2**32 - 1) / 12)
        return (total - mean) / deviation


def make_random_stream_of_block(part: GlyphsPart, seed: int, block_index: int) -> Pcg64WordStream:
    """Make the random stream of one block of a part's samples."""
    return Pcg64WordStream(derive_stream_seed(seed, "glyphs", part, block_index))


# ------------------------------------------------------------------------------------------- images
def draw_first_images_of_part(
    image_count: int, part: GlyphsPart, seed: int, side_in_pixels: int, channel_count: int
) -> Images:
    """Draw the first `image_count` images of one part: float32 [N, channels, side, side], in whole
    255ths."""
    import torch

    images = np.empty((image_count, channel_count, side_in_pixels, side_in_pixels), np.float32)
    for start in range(0, image_count, BLOCK):
        block = draw_block_of_256_images(
            start, make_random_stream_of_block(part, seed, start // BLOCK), side_in_pixels
        )
        if channel_count == 1:
            block = compute_luminance(block)
        levels = np.rint(255 * block).astype(np.float32)
        images[start : start + BLOCK] = levels[: image_count - start] / np.float32(255)
    return torch.from_numpy(images)


def draw_font_indices_of_images(
    image_count: int, part: GlyphsPart, seed: int
) -> FontIndexPerSample:
    """Draw the index in FONTS of the letters on the first `image_count` images of a part: int64
    [N]."""
    import torch

    blocks = math.ceil(image_count / BLOCK)
    fonts_by_block = [
        draw_font_indices_of_block(make_random_stream_of_block(part, seed, block))
        for block in range(blocks)
    ]
    return torch.from_numpy(np.concatenate(fonts_by_block)[:image_count])


def draw_font_indices_of_block(stream: Pcg64WordStream) -> FontIndices:
    """Draw the fonts of a block's letters, int64 [256]: the first draw of the block's stream."""
    return stream.draw_integers_below(len(FONTS), BLOCK)


def draw_block_of_256_images(
    first_index: int, stream: Pcg64WordStream, side_in_pixels: int
) -> ImageArray:
    """Draw the images first_index … first_index + 255: float64 [256, 3, side, side] from 0 to 1.

    The layers are, from the bottom: background, clutter, letter, a thin stroke across, noise.
    """
    fields = load_signed_distances_of_letters()
    letter = (first_index + np.arange(BLOCK)) % len(LETTERS)
    font = draw_font_indices_of_block(stream)
    other_font = stream.draw_integers_below(len(FONTS), BLOCK)
    other_letter = stream.draw_integers_below(len(LETTERS), BLOCK)

    # colours [256, 3]: of the background, the letter, the clutter and the stroke
    paper = stream.draw_uniform(0, 0.65, BLOCK, 3)
    ink = choose_brightest_colour_of_each_image(stream.draw_uniform(0.25, 1, BLOCK, 3, 3))
    # Light on dark only: with both, learning would need far more samples.
    ink = lighten_ink_to_luminance_gap(ink, paper)
    faint = paper + stream.draw_uniform(0.2, 0.6, BLOCK, 1) * (
        stream.draw_uniform(0, 1, BLOCK, 3) - paper
    )
    line = stream.draw_uniform(0, 1, BLOCK, 3)

    axis = make_even_coordinates_from_minus_1_to_1(side_in_pixels)
    down = stream.draw_uniform(-0.12, 0.12, BLOCK, 1, 1) * axis[:, None]
    across = stream.draw_uniform(-0.12, 0.12, BLOCK, 1, 1) * axis[None, :]
    image = paper[:, :, None, None] + (down + across)[:, None]

    # clutter: a faint piece of another letter, near the rim, beneath the letter
    angle = stream.draw_integers_below(TURN, BLOCK)
    radius = stream.draw_uniform(0.75, 1.1, BLOCK)
    rim = np.stack(
        [radius * compute_rounded_cosine(angle), radius * compute_rounded_sine(angle)], axis=1
    )
    clutter = compute_letter_coverage(
        fields[other_letter, other_font],
        side_in_pixels,
        scale=stream.draw_uniform(0.7, 1.2, BLOCK),
        turn_in_table_steps=stream.draw_integers_below(TURN, BLOCK),
        shear=stream.draw_uniform(-0.2, 0.2, BLOCK),
        stretch=stream.draw_uniform(0.9, 1.1, BLOCK),
        shift_in_half_widths=rim,
        boldness_in_cells=stream.draw_uniform(-0.5, 1.0, BLOCK),
    )
    image = blend_colour_into_images(image, faint, clutter)

    most_steps = round(0.35 * TURN / math.tau)  # to either side
    mask = compute_letter_coverage(
        fields[letter, font],
        side_in_pixels,
        scale=stream.draw_uniform(0.9, 1.35, BLOCK),
        turn_in_table_steps=stream.draw_integers_below(2 * most_steps + 1, BLOCK) - most_steps,
        shear=stream.draw_uniform(-0.2, 0.2, BLOCK),
        stretch=stream.draw_uniform(0.8, 1.25, BLOCK),
        shift_in_half_widths=stream.draw_uniform(-0.16, 0.16, BLOCK, 2),
        boldness_in_cells=stream.draw_uniform(-0.6, 2.0, BLOCK),
    )
    image = blend_colour_into_images(image, ink, mask)

    is_crossed = stream.draw_integers_below(2, BLOCK) == 1
    ends = stream.draw_uniform(-1, 1, 2, BLOCK, 2)
    crossing = compute_stroke_coverage(
        ends[0], ends[1], stream.draw_uniform(0.02, 0.05, BLOCK), side_in_pixels
    )
    image = blend_colour_into_images(
        image, line, 0.7 * np.where(is_crossed[:, None, None], crossing, 0.0)
    )

    strength = stream.draw_uniform(0.0, 0.08, BLOCK, 1, 1, 1)
    image = image + strength * stream.draw_nearly_normal(BLOCK, 3, side_in_pixels, side_in_pixels)
    return np.clip(image, 0.0, 1.0)


def make_even_coordinates_from_minus_1_to_1(count: int) -> Coordinates:
    """`count` numbers, evenly spaced, from -1 to 1."""
    return (2.0 * np.arange(count) - (count - 1)) / (count - 1)


def compute_letter_coverage(
    letter_distance_fields: SignedDistances,
    image_side_in_pixels: int,
    *,
    scale: NumberPerImage,
    turn_in_table_steps: NumberPerImage,
    shear: NumberPerImage,
    stretch: NumberPerImage,
    shift_in_half_widths: PointPerImage,
    boldness_in_cells: NumberPerImage,
) -> Coverage:
    """Compute the share of each pixel that the letters cover, float64 [N, side, side], from
    distance fields [N, 64, 64].

    A letter is stretched, sheared, turned, scaled and then shifted. A turn is a whole number of
    steps, TURN of which are a full turn. A shift of 1 is half the side of the image.

    A pixel is inside the letter where the distance, in cells of the field, is less than
    `boldness_in_cells`; a negative boldness makes the strokes thinner. The edge is one pixel wide.
    """
    scale = scale[:, None, None]
    shear = shear[:, None, None]
    stretch = stretch[:, None, None]
    boldness_in_cells = boldness_in_cells[:, None, None]
    c = compute_rounded_cosine(turn_in_table_steps)[:, None, None]
    s = compute_rounded_sine(turn_in_table_steps)[:, None, None]
    pixel = (
        2.0 * np.arange(image_side_in_pixels) + 1
    ) / image_side_in_pixels - 1  # the pixels' centres, from -1 to 1
    x = pixel[None, None, :] - shift_in_half_widths[:, 0, None, None]
    y = pixel[None, :, None] - shift_in_half_widths[:, 1, None, None]
    # the inverse map: first the turn, then shear and stretch, (x, y) -> ((x - shear y) / stretch, y)
    turned_x = (c * x + s * y) / scale
    turned_y = (c * y - s * x) / scale
    straight_x = (turned_x - shear * turned_y) / stretch
    distance = interpolate_distance_fields_at_points(letter_distance_fields, straight_x, turned_y)
    cells_per_pixel = CELL / image_side_in_pixels / scale
    return np.clip(0.5 + (boldness_in_cells - distance) / cells_per_pixel, 0.0, 1.0)


def interpolate_distance_fields_at_points(
    distance_fields: SignedDistances, x: Coordinates, y: Coordinates
) -> DistanceAtEachPoint:
    """Interpolate the fields [N, 64, 64] at points [N, H, W] from -1 to 1.

    Each value is interpolated between the centres of the four cells around the point. A point beyond
    the border gets the value at the border.
    """
    column = np.clip(((x + 1) * CELL - 1) / 2, 0.0, CELL - 1.0)
    row = np.clip(((y + 1) * CELL - 1) / 2, 0.0, CELL - 1.0)
    left_column = np.minimum(np.floor(column), CELL - 2.0)
    top_row = np.minimum(np.floor(row), CELL - 2.0)
    right_share = column - left_column
    low_share = row - top_row
    first_cell = np.arange(len(distance_fields))[:, None, None] * CELL**2
    # The index of the upper left one of the four cells.
    corner = first_cell + top_row.astype(np.int64) * CELL + left_column.astype(np.int64)
    flat_fields = distance_fields.reshape(-1)
    upper_left = flat_fields[corner]
    upper_right = flat_fields[corner + 1]
    lower_left = flat_fields[corner + CELL]
    lower_right = flat_fields[corner + CELL + 1]
    upper = upper_left + right_share * (upper_right - upper_left)
    lower = lower_left + right_share * (lower_right - lower_left)
    return upper + low_share * (lower - upper)


def compute_stroke_coverage(
    start: PointPerImage,
    end: PointPerImage,
    half_width_in_half_image_sides: NumberPerImage,
    image_side_in_pixels: int,
) -> Coverage:
    """Compute the share of each pixel that a straight stroke covers, float64 [N, side, side]."""
    axis = make_even_coordinates_from_minus_1_to_1(image_side_in_pixels)
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
    return np.clip(
        0.5 + (half_width_in_half_image_sides[:, None, None] - distance) * image_side_in_pixels / 2,
        0.0,
        1.0,
    )


def blend_colour_into_images(
    images: ImageArray, colours: Colours, coverage_of_colour: Coverage
) -> ImageArray:
    """Blend `colours` [N, 3] into `images`, as much as `coverage_of_colour` [N, H, W] says."""
    return images + coverage_of_colour[:, None] * (colours[:, :, None, None] - images)


def choose_brightest_colour_of_each_image(candidate_colours: np.ndarray) -> Colours:
    """Choose the colour of greatest luminance, [N, 3], among K colours [N, K, 3]."""
    light = compute_luminance(candidate_colours, channel_axis=2)[:, :, 0]
    return candidate_colours[np.arange(len(candidate_colours)), light.argmax(axis=1)]


def lighten_ink_to_luminance_gap(
    ink_colours: Colours, paper_colours: Colours, luminance_gap: float = 0.25
) -> Colours:
    """Mix `ink_colours` [N, 3] with just enough white that their luminance is `luminance_gap` above
    that of `paper_colours` [N, 3]."""
    light = compute_luminance(ink_colours)
    white = np.clip(
        (compute_luminance(paper_colours) + luminance_gap - light) / (1 - light), 0.0, 1.0
    )
    return ink_colours + white * (1 - ink_colours)


def compute_luminance(rgb_values: np.ndarray, channel_axis: int = 1) -> GreyValues:
    """Compute the grey value of RGB along `channel_axis`, which is kept with length 1."""
    red, green, blue = np.split(rgb_values, 3, axis=channel_axis)
    return 0.299 * red + 0.587 * green + 0.114 * blue


def compute_rounded_cosine(angle_in_steps_of_table: np.ndarray) -> np.ndarray:
    """Look up the cosines of angles in whole steps, each rounded to a multiple of 2^-20."""
    return make_cosine_table()[angle_in_steps_of_table % TURN]


def compute_rounded_sine(angle_in_steps_of_table: np.ndarray) -> np.ndarray:
    return compute_rounded_cosine(angle_in_steps_of_table - TURN // 4)


@lru_cache(maxsize=1)
def make_cosine_table() -> np.ndarray:
    """Make the table of rounded cosines, float64 [TURN]. No exact value lies near the middle between
    two multiples of 2^-20, so all libraries round to the same one."""
    exact = [math.cos(math.tau * step / TURN) for step in range(TURN)]
    return np.rint(np.array(exact) * COSINE_STEPS) / COSINE_STEPS


# ------------------------------------------------------------------------------------------ letters
@lru_cache(maxsize=1)
def load_signed_distances_of_letters() -> SignedDistances:
    """Load the signed distances to the outline: float64 [letters, fonts, 64, 64], in cells, negative
    inside.
    """
    return compute_signed_distance_to_outline(load_letter_masks())


def load_letter_masks() -> LetterMasks:
    """Load the letters' masks: bool [letters, fonts, 64, 64], True inside the letter. Each letter is
    centred and 36 cells high."""
    with np.load(SHAPES_FILE, allow_pickle=False) as file:
        packed = file["shapes"]
    return np.unpackbits(packed, axis=-1).astype(bool)


def compute_signed_distance_to_outline(is_inside_shape: PixelMasks) -> SignedDistances:
    """Compute the signed distance of every cell of masks [..., n, n] to the shape's outline.

    It is the Euclidean distance to the nearest cell of the other kind, less half a cell; it is
    negative inside the shape. Each mask needs cells of both kinds.
    """
    to_outside = np.sqrt(
        compute_squared_distance_to_nearest_cell(~is_inside_shape).astype(np.float64)
    )
    to_inside = np.sqrt(
        compute_squared_distance_to_nearest_cell(is_inside_shape).astype(np.float64)
    )
    return np.where(is_inside_shape, 0.5 - to_outside, to_inside - 0.5)


def compute_squared_distance_to_nearest_cell(is_target_cell: PixelMasks) -> SquaredDistances:
    """Compute the squared distance, a whole number, of every cell of [..., n, n] to the nearest target
    cell: first along each column, then over the columns."""
    n = is_target_cell.shape[-1]
    steps = np.arange(n)
    apart = (steps[:, None] - steps[None, :]) ** 2  # [n, n], of two rows or two columns
    far = 4 * n * n  # more than any distance
    nearest = np.full(is_target_cell.shape, far, np.int32)
    for row in range(n):
        distance = np.where(is_target_cell[..., row, None, :], apart[:, row, None], far)
        nearest = np.minimum(nearest, distance)
    result = np.full(is_target_cell.shape, 2 * far, np.int32)
    for column in range(n):
        result = np.minimum(result, nearest[..., :, column, None] + apart[column])
    return result
