// One sample on a canvas of its own size: grey values as ink in a colour, or the picture's own colours.
/** shape: {side, channels}; image: numbers 0-1, a row after the other; colour: [red, green, blue] of the ink. */
export function drawSample(canvas, image, { side, channels = 1 }, colour) {
  const picture = new ImageData(side, side);
  for (let p = 0; p < side * side; p++) {
    if (channels === 3) {
      for (let c = 0; c < 3; c++) picture.data[4 * p + c] = 255 * image[3 * p + c];
      picture.data[4 * p + 3] = 255;
    } else {
      picture.data.set(colour, 4 * p);
      picture.data[4 * p + 3] = 255 * image[p];
    }
  }
  canvas.width = side;
  canvas.height = side;
  canvas.getContext("2d").putImageData(picture, 0, 0);
}
