// The shapes of a flight on a canvas. A shape's size 1 is a network of 20 by 16 pixels.
const SMALLEST_GLYPH = 0.35; // below it a network is a dot

/** Lines through points, around the shape's middle. */
function stroke(pen, ...lines) {
  pen.beginPath();
  for (const [first, ...rest] of lines) {
    pen.moveTo(...first);
    for (const point of rest) pen.lineTo(...point);
  }
  pen.stroke();
}

function fillDot(pen, x, y, radius) {
  pen.beginPath();
  pen.arc(x, y, radius, 0, 2 * Math.PI);
  pen.fill();
}

function fillBox(pen, x, y, width, height, radius, hasEdge = true) {
  pen.beginPath();
  pen.roundRect(x, y, width, height, radius);
  pen.fill();
  if (hasEdge) pen.stroke();
}

// Each draws around (0, 0) in the shape's colour; `ground` is the stage's own colour.
const GLYPHS = {
  network(pen, ground) {
    const nodes = [[-8, -6], [-8, 6], [0, -7], [0, 7], [8, 0]];
    const [a, b, c, d, e] = nodes;
    stroke(pen, [a, c, e, d, b], [a, d], [b, c], [a, e], [b, e]);
    pen.fillStyle = ground;
    for (const [x, y] of nodes) {
      fillDot(pen, x, y, 2.7);
      pen.stroke();
    }
  },
  envelope(pen, ground) {
    pen.fillStyle = ground;
    fillBox(pen, -10, -7, 20, 14, 2);
    stroke(pen, [[-10, -6], [0, 2], [10, -6]]);
  },
  sums(pen, ground) {
    pen.fillStyle = ground;
    fillBox(pen, -8, -8, 16, 16, 1);
    stroke(pen, [[-8, -2.7], [8, -2.7]], [[-8, 2.7], [8, 2.7]], [[-2.7, -8], [-2.7, 8]], [[2.7, -8], [2.7, 8]]);
  },
  gaussians(pen, ground) {
    pen.fillStyle = ground;
    fillBox(pen, -8, -7, 16, 14, 1);
    stroke(pen, [[-7, 4], [-4, 3], [-2, -3], [0, -5], [2, -3], [4, 3], [7, 4]]);
  },
  note(pen) {
    pen.fillStyle = pen.strokeStyle;
    fillBox(pen, -3.5, -3.5, 7, 7, 1, false);
  },
  images(pen, ground) {
    pen.fillStyle = ground;
    fillBox(pen, -8, -7, 16, 14, 1);
    stroke(pen, [[-8, 4], [-2, -2], [2, 3], [5, 0], [8, 4]]);
    pen.fillStyle = pen.strokeStyle;
    fillDot(pen, 4, -3, 1.6);
  },
  generator(pen, ground) {
    pen.fillStyle = ground;
    fillBox(pen, -9, -5, 12, 11, 1);
    fillBox(pen, -5, -8, 12, 11, 1);
    stroke(pen, [[-5, 1], [0, -4], [3, 0], [7, -3]]);
  },
  answers(pen) {
    pen.fillStyle = pen.strokeStyle;
    [5, 12, 8, 3].forEach((high, i) => pen.fillRect(-8 + 4.3 * i, 7 - high, 3, high));
  },
  answer(pen, ground) {
    pen.fillStyle = ground;
    fillBox(pen, -38, -10, 76, 20, 10);
    pen.fillStyle = pen.strokeStyle;
    pen.textAlign = "center";
    pen.fillText("one answer", 0, 4);
  },
  dot(pen) {
    pen.fillStyle = pen.strokeStyle;
    fillDot(pen, 0, 0, 1);
  },
};

const PAINTERS = {
  box(pen, { x, y, width, height }, { card }) {
    pen.fillStyle = card;
    pen.lineWidth = 1;
    fillBox(pen, x, y, width, height, 6);
  },
  gate(pen, { x, y, width, share }, { bad }) {
    pen.strokeStyle = bad;
    pen.lineWidth = 4;
    const half = (share * width) / 2;
    const left = x - width / 2;
    const right = x + width / 2;
    stroke(pen, [[left, y], [left + half, y]], [[right - half, y], [right, y]]);
  },
  path(pen, { from, bend, to }) {
    pen.lineWidth = 1;
    pen.beginPath();
    pen.moveTo(from.x, from.y);
    pen.quadraticCurveTo(bend.x, bend.y, to.x, to.y);
    pen.stroke();
  },
  line(pen, { from, to }) {
    pen.lineWidth = 1.2;
    stroke(pen, [[from.x, from.y], [to.x, to.y]]);
  },
  text(pen, { x, y, text, align }) {
    pen.fillStyle = pen.strokeStyle;
    pen.textAlign = align;
    pen.fillText(text, x, y);
  },
};

/** style: {ground, card, server, quiet, bad, font}, colours of the theme. */
export function paintScene(pen, shapes, style) {
  pen.font = `11px ${style.font}`;
  for (const shape of shapes) {
    pen.save();
    pen.globalAlpha = shape.alpha;
    pen.strokeStyle = { server: style.server, quiet: style.quiet }[shape.colour] ?? shape.colour ?? style.quiet;
    if (PAINTERS[shape.kind]) PAINTERS[shape.kind](pen, shape, style);
    else paintGlyph(pen, shape, style);
    pen.restore();
  }
}

function paintGlyph(pen, { kind, x, y, size }, { ground }) {
  pen.translate(x, y);
  pen.scale(size, size);
  pen.lineWidth = kind === "envelope" ? 1.6 : 1.3;
  const isTiny = size < SMALLEST_GLYPH && kind === "network";
  if (!isTiny) return GLYPHS[kind](pen, ground);
  pen.fillStyle = pen.strokeStyle;
  return fillDot(pen, 0, 0, 7);
}
