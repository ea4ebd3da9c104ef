// One sample on a canvas. An image at its own size: grey values as ink in a colour, or the picture's own colours.
// A recording: a line a channel, one under the other.
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

const REACH = 3; // standard deviations from a channel's mean to the edges of its band

/** The points [[x, y], …] of one channel's line in a band that begins at `top`: values are standardised, [T]. */
export function placeLine(values, width, top, height) {
  return Array.from(values, (value, t) => {
    const share = Math.min(1, Math.max(-1, value / REACH));
    return [(t * width) / Math.max(1, values.length - 1), top + (height * (1 - share)) / 2];
  });
}

/** curve: {values: [channels * steps] standardised, channels}; side: of the square in pixels of the page. */
export function drawRecording(canvas, { values, channels }, side, colour) {
  const scale = devicePixelRatio || 1;
  canvas.width = Math.round(side * scale);
  canvas.height = canvas.width;
  const pen = canvas.getContext("2d");
  pen.scale(scale, scale);
  pen.strokeStyle = `rgb(${colour.join(" ")})`;
  pen.lineWidth = 1;
  const steps = values.length / channels;
  const height = side / channels;
  for (let channel = 0; channel < channels; channel++) {
    const line = placeLine(values.subarray(channel * steps, (channel + 1) * steps), side, channel * height, height);
    pen.beginPath();
    for (const [x, y] of line) pen.lineTo(x, y);
    pen.stroke();
  }
}
