"""Read a picture's file as an array, and scale the pixels of images to [0, 1].

The range of the pixels is found from their values: 0 and 1, 0 to 16, 0 to 255, 16 bits, or else the
range of the training images. `PixelScale` keeps it, so that new images are scaled as the training
images were.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from fedlab_nb.data.array_types import ImageArray, SampleArray
from fedlab_nb.data.input_types import PictureOrPath
from fedlab_nb.errors import UsageError
from fedlab_nb.value_types import HeightAndWidth, Sentence

if TYPE_CHECKING:
    from PIL.Image import Image

OpaquePicture: TypeAlias = "Image"  # a Pillow image without transparency
ColourMode = Literal["L", "RGB"]  # grey, or colour, as Pillow calls them

EIGHT_BITS = 255
SIXTEEN_BITS = 65535
FAR_BELOW = 128  # images of 8 bits whose largest pixel is below this are scaled by that pixel


@dataclass(frozen=True)
class PixelScale:
    """Pixels become (value - low) / (high - low), clipped to [0, 1].

    low, high:   the range of the raw pixels
    number_type: the raw pixels' type, as NumPy calls it: "uint8", "float64", "bool"
    mode:        "L" for grey, "RGB" for colour
    resized:     whether pictures of other sizes are cropped to the middle square and resized, as
                 the training images were (`folder` data sets)
    """

    low: float
    high: float
    number_type: str
    mode: ColourMode | Literal[""] = ""
    resized: bool = False

    def scale_to_0_to_1(self, pixels: SampleArray) -> SampleArray:
        """Scale pixels to float32 of the same shape, in [0, 1]."""
        if (self.low, self.high) == (0.0, 1.0):
            ready = np.ascontiguousarray(pixels, dtype=np.float32)
            return ready if pixels.dtype.kind == "b" else np.clip(ready, 0, 1)
        if self.number_type == "uint8" and self.low == 0:
            # divided in float32, so that a large file needs no copy of 64-bit numbers
            ready = pixels.astype(np.float32) / np.float32(self.high)
            return np.clip(ready, 0, 1)
        span = self.high - self.low
        return np.clip((pixels.astype(np.float64) - self.low) / span, 0, 1).astype(np.float32)

    def describe_scaling(self) -> Sentence:
        """Describe the scale in a sentence, for the data set's note."""
        if self.number_type == "bool":
            return "Pixels are true or false, and become 1 or 0."
        if (self.low, self.high) == (0, 1):
            return "Pixels are used as they are."
        if self.number_type == "uint8" and self.high == EIGHT_BITS:
            return "Pixels are divided by 255."
        return f"Pixels are scaled by the training set's range {self.low:g} to {self.high:g}."

    def check_pixel_range(self, pixels: SampleArray) -> None:
        """Raise UsageError for pixels whose range is clearly not that of the training images."""
        low = float(pixels.min())
        high = float(pixels.max())
        span = self.high - self.low
        trained = (
            f"the training images had {self.number_type} pixels from {self.low:g} to {self.high:g}"
        )
        if low < self.low - span or high > self.high + span:
            raise UsageError(
                f"The images have pixels from {low:g} to {high:g}, but {trained}; scale them alike."
            )
        if pixels.dtype == np.uint8 and self.high > EIGHT_BITS:
            raise UsageError(f"The images have 8 bits, but {trained}; scale them alike.")
        has_fractions = pixels.dtype.kind == "f" and low >= 0 and 0 < high <= 1
        had_whole_numbers = self.number_type != "bool" and self.high >= 16
        if has_fractions and had_whole_numbers:
            raise UsageError(
                f"The images have fractions from {low:g} to {high:g}, but {trained}; scale them "
                "alike."
            )


def find_pixel_scale(
    images_by_array_name: dict[str, np.ndarray], training_array_name: str
) -> PixelScale:
    """Find the scale of images of one number type: the range of the training images
    (`training_array_name`), or the range of their number type."""
    images = images_by_array_name[training_array_name]
    number_type = str(images.dtype)
    low = float(images.min())
    high = float(images.max())
    smallest_pixel = min(float(part.min()) for part in images_by_array_name.values())
    largest_pixel = max(float(part.max()) for part in images_by_array_name.values())
    if images.dtype.kind == "b" or (smallest_pixel >= 0 and largest_pixel <= 1):
        return PixelScale(0.0, 1.0, number_type)
    if images.dtype == np.uint8:
        if largest_pixel >= FAR_BELOW:
            return PixelScale(0.0, float(EIGHT_BITS), number_type)
        return PixelScale(0.0, largest_pixel, number_type)
    if high == low:
        high = low + 1.0
    return PixelScale(low, high, number_type)


# -------------------------------------------------------------------------------- files of pictures
def are_pillow_images_or_paths(samples: object) -> bool:
    """Whether these are paths of picture files or Pillow images, and not an array."""
    if isinstance(samples, list | tuple):
        return len(samples) > 0 and all(is_pillow_image_or_path(sample) for sample in samples)
    return is_pillow_image_or_path(samples)


def is_pillow_image_or_path(sample: object) -> bool:
    """Whether this is the path of a picture file or a Pillow image."""
    return isinstance(sample, str | Path) or hasattr(sample, "getbands")


def read_pictures(
    pictures_or_paths: PictureOrPath | Sequence[PictureOrPath],
    mode: ColourMode,
    size_if_resized: HeightAndWidth,
    should_resize: bool,
) -> ImageArray:
    """Read picture files or Pillow images as [N, C, H, W], in the numbers of the files (8 or 16
    bits)."""
    if isinstance(pictures_or_paths, list | tuple):
        sources = list(pictures_or_paths)
    else:
        sources = [pictures_or_paths]
    pictures = [
        read_picture(source, mode, size_if_resized if should_resize else None) for source in sources
    ]
    shapes = {picture.shape for picture in pictures}
    if len(shapes) > 1:
        raise UsageError(
            f"The pictures have different sizes ({sorted(shapes)}); give pictures of one size."
        )
    return np.stack(pictures)


def read_picture(
    picture_or_path: PictureOrPath,
    mode: ColourMode,
    size_or_none_to_keep: HeightAndWidth | None = None,
) -> np.ndarray:
    """Read one picture as [C, H, W], turned upright (EXIF), with transparent parts on white.

    mode: "L" for grey, "RGB" for colour
    size_or_none_to_keep: (H, W) to which the middle of the picture is cropped and resized

    The numbers are uint8, or uint16 of a picture with 16 bits. Raises UsageError for a file that
    cannot be read.
    """
    from PIL import Image, ImageOps

    name = picture_or_path.name if isinstance(picture_or_path, Path) else str(picture_or_path)
    try:
        picture: Image.Image
        if isinstance(picture_or_path, str | Path):
            picture = Image.open(picture_or_path)
        else:
            picture = picture_or_path
        picture.load()
        picture = ImageOps.exif_transpose(picture)
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise make_picture_error(name, error) from None
    if has_16_bits_per_pixel(picture):
        if mode != "L":
            raise UsageError(f"The picture {name!r} has 16 bits, and the others 8; save all alike.")
        picture = picture.convert("I")
    elif picture.mode == "F":
        raise UsageError(
            f"The picture {name!r} has pixels of type {picture.mode}; save it with 8 or 16 bits."
        )
    else:
        picture = fill_transparent_with_white(picture).convert(mode)
    if size_or_none_to_keep is not None:
        height, width = size_or_none_to_keep
        picture = ImageOps.fit(picture, (width, height), Image.Resampling.BILINEAR)
    pixels = np.asarray(picture)
    if picture.mode == "I":
        if pixels.min() < 0 or pixels.max() > SIXTEEN_BITS:
            raise UsageError(
                f"The picture {name!r} has pixels beyond 16 bits; save it with 8 or 16 bits."
            )
        pixels = pixels.astype(np.uint16)
    return pixels[None] if pixels.ndim == 2 else np.moveaxis(pixels, 2, 0)


def has_16_bits_per_pixel(picture: Image) -> bool:
    """Whether a grey picture has 16 bits a pixel; Pillow would cut these off at 255."""
    return picture.mode == "I" or picture.mode.startswith("I;16")


def fill_transparent_with_white(picture: Image) -> OpaquePicture:
    """Fill the transparent parts of a picture with white."""
    from PIL import Image

    if not find_picture_mode(picture).startswith("transparent"):
        return picture
    transparent = picture.convert("RGBA")
    white = Image.new("RGBA", transparent.size, (255, 255, 255, 255))
    opaque = Image.alpha_composite(white, transparent)
    is_grey = find_picture_mode(picture).endswith("grey")
    return opaque.convert("L" if is_grey else "RGB")


PictureMode = Literal["grey", "colour", "transparent", "transparent grey", "16 bits"]


@dataclass(frozen=True)
class PictureSizeAndMode:
    """What a picture's file says before its pixels are read.

    size: (height, width) in pixels, upright
    """

    size: tuple[int, int]
    mode: PictureMode


def read_picture_size_and_mode(path: Path) -> PictureSizeAndMode:
    """Read the facts of a picture's file. Raises UsageError if it cannot be opened."""
    from PIL import Image

    try:
        with Image.open(path) as picture:
            width, height = picture.size
            is_turned = picture.getexif().get(ORIENTATION, 1) >= 5
            if is_turned:
                width, height = height, width
            return PictureSizeAndMode((height, width), find_picture_mode(picture))
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise make_picture_error(path.name, error) from None


ORIENTATION = 0x0112  # the EXIF tag: from 5 on the picture lies on its side


def make_picture_error(picture_name: str, error: Exception) -> UsageError:
    why = " ".join(str(error).split())[:160]
    return UsageError(
        f"The picture {picture_name!r} cannot be read ({why}); save it again, or remove it."
    )


def has_grey_palette(picture: Image) -> bool:
    """Whether a picture has a list of colours, all of which are greys."""
    if picture.mode != "P":
        return False
    colours = np.array(picture.getpalette("RGB")).reshape(-1, 3)
    return bool((colours == colours[:, :1]).all())


def find_picture_mode(picture: Image) -> PictureMode:
    """Find the mode of a Pillow image: its colours, and whether it is transparent or has 16 bits a
    pixel."""
    if has_16_bits_per_pixel(picture):
        return "16 bits"
    is_grey = picture.mode in ("1", "L", "LA", "La") or has_grey_palette(picture)
    has_alpha = "A" in picture.getbands() or "a" in picture.getbands()
    if has_alpha or "transparency" in picture.info:
        return "transparent grey" if is_grey else "transparent"
    return "grey" if is_grey else "colour"
