"""`glyphs`: ten letters that are easily taken for one another, drawn from matplotlib's own font files in random pose,
weight, colour and clutter. Made on the fly, any number of them, with no download. `glyphs:16g` is 16x16 and grey.

Each letter of each font becomes a signed distance field once (negative inside, in cells of a 64x64 grid); an image
then is that field seen through a random affine map, cut off at a random level (which makes the stroke thinner or
bolder) and coloured. Samples are drawn in blocks of 256 with a random stream for each block, so sample i is the same
however many are asked for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from fedlab_nb.data.dataset import Dataset, Description, digest_of
from fedlab_nb.errors import choose, demand, whole
from fedlab_nb.rng import generator

if TYPE_CHECKING:
    import torch

LETTERS = "BDEFGHKPRS"
FONTS = (
    "DejaVuSans", "DejaVuSans-Bold", "DejaVuSans-Oblique", "DejaVuSansMono", "DejaVuSansMono-Bold", "DejaVuSerif",
    "DejaVuSerif-Bold", "DejaVuSerif-Italic", "STIXGeneral", "STIXGeneralBol", "STIXGeneralItalic", "STIXGeneralBolIta",
    "cmr10", "cmss10", "cmtt10", "cmb10",
)  # fmt: skip
VERSION = 1  # raise it whenever the images change: it is part of the digest
CELL, HEIGHT, BLOCK = (
    64,
    36,
    256,
)  # grid of a letter, height of the letter in it, samples per random stream
SIZES = (8, 16, 28, 32)  # that have a short name
NAMES = ("glyphs", *(f"glyphs:{size}{grey}" for size in SIZES for grey in ("", "g")))
OPTIONS = {"n_train": 2000, "n_test": 500, "n_public": 500, "seed": 0, "size": 32, "channels": 3}


def load(name: str = "glyphs", **options: Any) -> Dataset:
    """x [N, channels, size, size] in [0, 1]; sample i shows letter i mod 10.

    name: "glyphs", or one of NAMES, which says size and colours: "glyphs:16g" is `size=16, channels=1`.
    Options: n_train=2000, n_test=500, n_public=500 (0: no public part), seed=0, size=32 (8 to 128), channels=3 (or 1,
    grey).
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
    """All options, with defaults for those left out; UsageError for unknown ones, values out of range, and a size or
    channels beside a `name` that says them."""
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


def draw(count: int, part: str, seed: int, size: int, channels: int) -> torch.Tensor:
    """The first `count` images of one part, [count, channels, size, size]."""
    import torch

    images = torch.empty(count, channels, size, size)
    for start in range(0, count, BLOCK):
        block = draw_block(start, generator(seed, "glyphs", part, start // BLOCK), size)
        block = block if channels == 3 else luminance(block)
        images[start : start + BLOCK] = block[: count - start]
    return images


def fonts(count: int, part: str, seed: int) -> torch.Tensor:
    """Which of FONTS the first `count` letters of a part are in, int64 [count]: the first draw of each block."""
    import torch

    streams = (generator(seed, "glyphs", part, block) for block in range(-(-count // BLOCK)))
    return torch.cat([torch.randint(len(FONTS), (BLOCK,), generator=stream) for stream in streams])[
        :count
    ]


def draw_block(start: int, random: torch.Generator, size: int) -> torch.Tensor:
    """Images start..start+255, [256, 3, size, size]: background, clutter, letter, a thin stroke across, noise."""
    import torch

    fields = distance_fields()

    def uniform(low: float, high: float, *shape: int) -> torch.Tensor:
        return low + (high - low) * torch.rand(BLOCK, *shape, generator=random)

    letter = (start + torch.arange(BLOCK)) % len(LETTERS)
    # the letters' fonts first: `fonts` counts on it
    font, other_font = (torch.randint(len(FONTS), (BLOCK,), generator=random) for _ in range(2))
    other = torch.randint(len(LETTERS), (BLOCK,), generator=random)
    paper = uniform(0, 0.65, 3)
    ink = lighter(
        brightest(uniform(0.25, 1, 3, 3)), paper
    )  # light on dark: two polarities need far more samples
    faint = paper + uniform(0.2, 0.6, 1) * (uniform(0, 1, 3) - paper)
    line = uniform(0, 1, 3)

    axis = torch.linspace(-1, 1, size)
    shade = (
        uniform(-0.12, 0.12, 1, 1) * axis[None, :, None]
        + uniform(-0.12, 0.12, 1, 1) * axis[None, None, :]
    )
    image = paper[:, :, None, None] + shade[:, None]

    # clutter: a piece of another letter, faint, around the rim, under the letter
    angle, far = uniform(0, 2 * math.pi), uniform(0.75, 1.1)
    rim = torch.stack([far * angle.cos(), far * angle.sin()], dim=1)
    image = blend(image, faint, letter_mask(
        fields[other, other_font], size, scale=uniform(0.7, 1.2), turn=uniform(-math.pi, math.pi),
        shear=uniform(-0.2, 0.2), stretch=uniform(0.9, 1.1), shift=rim, bolder=uniform(-0.5, 1.0),
    ))  # fmt: skip
    image = blend(image, ink, letter_mask(
        fields[letter, font], size, scale=uniform(0.9, 1.35), turn=uniform(-0.35, 0.35), shear=uniform(-0.2, 0.2),
        stretch=uniform(0.8, 1.25), shift=uniform(-0.16, 0.16, 2), bolder=uniform(-0.6, 2.0),
    ))  # fmt: skip
    drawn = (uniform(0, 1) < 0.5).float()[:, None, None]
    image = blend(
        image,
        line,
        drawn * 0.7 * stroke(uniform(-1, 1, 2), uniform(-1, 1, 2), uniform(0.02, 0.05), size),
    )
    noise = torch.randn(BLOCK, 3, size, size, generator=random)
    return (image + uniform(0.0, 0.08, 1, 1, 1) * noise).clamp(0, 1)


def letter_mask(field, size, *, scale, turn, shear, stretch, shift, bolder) -> torch.Tensor:
    """Share of each pixel that the letters cover, [N, size, size], from distance fields [N, 64, 64].

    The map from image to letter is the inverse of: stretch, shear, turn, scale, then shift (in half image widths). A
    pixel is inside where the field lies below `bolder` (in cells); the edge is one pixel wide.
    """
    import torch
    from torch.nn.functional import affine_grid, grid_sample

    c, s = turn.cos(), turn.sin()
    turned = torch.stack([torch.stack([c, -s], 1), torch.stack([s, c], 1)], 1)  # [N, 2, 2]
    zero, one = torch.zeros_like(shear), torch.ones_like(shear)
    sheared = torch.stack([torch.stack([stretch, shear], 1), torch.stack([zero, one], 1)], 1)
    inverse = torch.linalg.inv(scale[:, None, None] * turned @ sheared)
    theta = torch.cat([inverse, -inverse @ shift[:, :, None]], dim=2)
    grid = affine_grid(theta, [len(field), 1, size, size], align_corners=False)
    seen = grid_sample(field[:, None], grid, padding_mode="border", align_corners=False)[:, 0]
    cells_per_pixel = CELL / size / scale[:, None, None]
    return (0.5 + (bolder[:, None, None] - seen) / cells_per_pixel).clamp(0, 1)


def stroke(start: torch.Tensor, end: torch.Tensor, width: torch.Tensor, size: int) -> torch.Tensor:
    """Share of each pixel that a straight stroke covers, [N, size, size]; ends [N, 2] in -1..1, half width [N]."""
    import torch

    axis = torch.linspace(-1, 1, size)
    pixels = torch.stack(
        [axis[None, :].expand(size, size), axis[:, None].expand(size, size)], dim=-1
    )
    along = (end - start)[:, None, None]  # [N, 1, 1, 2]
    offset = pixels[None] - start[:, None, None]
    t = ((offset * along).sum(-1) / along.square().sum(-1).clamp_min(1e-6)).clamp(0, 1)
    distance = (offset - t[..., None] * along).norm(dim=-1)
    return (0.5 + (width[:, None, None] - distance) * size / 2).clamp(0, 1)


def blend(image: torch.Tensor, colour: torch.Tensor, cover: torch.Tensor) -> torch.Tensor:
    """Paint `colour` [N, 3] over `image` where `cover` [N, H, W] says so."""
    return image + cover[:, None] * (colour[:, :, None, None] - image)


def brightest(candidates: torch.Tensor) -> torch.Tensor:
    """Of K colours [N, K, 3] the one of greatest luminance, [N, 3]."""
    import torch

    return candidates[
        torch.arange(len(candidates)), luminance(candidates, dim=2).squeeze(2).argmax(dim=1)
    ]


def lighter(ink: torch.Tensor, paper: torch.Tensor, gap: float = 0.25) -> torch.Tensor:
    """`ink` [N, 3], mixed with just enough white for its luminance to lie `gap` above that of `paper` [N, 3]."""
    light = luminance(ink)
    white = ((luminance(paper) + gap - light) / (1 - light)).clamp(0, 1)
    return ink + white * (1 - ink)


def luminance(x: torch.Tensor, dim: int = 1) -> torch.Tensor:
    """Grey value of RGB along `dim`, which is kept with length 1."""
    r, g, b = x.unbind(dim)
    return (0.299 * r + 0.587 * g + 0.114 * b).unsqueeze(dim)


@lru_cache(maxsize=1)
def distance_fields() -> torch.Tensor:
    """Signed distances to the outline, float32 [letters, fonts, 64, 64], negative inside, in cells."""
    import torch

    return torch.from_numpy(signed_distance(letter_shapes()))


def letter_shapes() -> np.ndarray:
    """True inside the letter, [letters, fonts, 64, 64], each centred and 36 cells high; all drawn as one picture."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.font_manager import FontProperties
    from matplotlib.patches import PathPatch
    from matplotlib.textpath import TextPath
    from matplotlib.transforms import Affine2D, IdentityTransform

    rows, columns = len(LETTERS), len(FONTS)
    figure = Figure(figsize=(columns * CELL / 100, rows * CELL / 100), dpi=100, facecolor="white")
    canvas = FigureCanvasAgg(figure)
    for column, name in enumerate(FONTS):
        font = FontProperties(fname=f"{matplotlib.get_data_path()}/fonts/ttf/{name}.ttf")
        for row, letter in enumerate(LETTERS):
            outline = TextPath((0, 0), letter, size=100, prop=font)
            box = outline.get_extents()
            centred = Affine2D().translate(*-(box.p0 + box.p1) / 2).scale(HEIGHT / box.height)
            placed = outline.transformed(
                centred.translate((column + 0.5) * CELL, (rows - row - 0.5) * CELL)
            )
            figure.add_artist(
                PathPatch(placed, facecolor="black", linewidth=0, transform=IdentityTransform())
            )
    canvas.draw()
    inside = np.asarray(canvas.buffer_rgba())[:, :, 0] < 128
    return inside.reshape(rows, CELL, columns, CELL).transpose(0, 2, 1, 3)


def signed_distance(inside: np.ndarray) -> np.ndarray:
    """Euclidean distance of every cell of pictures [..., n, n] to the nearest cell of the other kind, half a cell less,
    negative inside."""
    from scipy.ndimage import distance_transform_edt as distance

    pictures = inside.reshape(-1, *inside.shape[-2:])
    fields = [
        np.where(one, 0.5 - distance(one).astype("f4"), distance(~one).astype("f4") - 0.5)
        for one in pictures
    ]
    return np.stack(fields).astype(np.float32).reshape(inside.shape)
