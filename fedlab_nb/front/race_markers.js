// The marks of methods, as matplotlib names them (methods/looks.toml), so that browser and still pictures agree.
/** Corners of a regular figure, the first at an angle in degrees (-90 is above); inner: of a star, its inner radius. */
function listCorners(count, angle, inner = null) {
  const all = inner === null ? count : 2 * count;
  return Array.from({ length: all }, (_, i) => {
    const radius = inner !== null && i % 2 ? inner : 1;
    const turn = ((angle + (360 * i) / all) * Math.PI) / 180;
    return [radius * Math.cos(turn), radius * Math.sin(turn)];
  });
}

function listCross(angle) {
  const arm = 0.36;
  const plus = [[-arm, -1], [arm, -1], [arm, -arm], [1, -arm], [1, arm], [arm, arm], [arm, 1], [-arm, 1], [-arm, arm], [-1, arm], [-1, -arm], [-arm, -arm]];
  const [sin, cos] = [Math.sin(angle), Math.cos(angle)];
  return plus.map(([x, y]) => [x * cos - y * sin, x * sin + y * cos]);
}

const MARKER_CORNERS = {
  s: listCorners(4, -45),
  D: listCorners(4, -90),
  d: listCorners(4, -90).map(([x, y]) => [0.6 * x, y]),
  "^": listCorners(3, -90),
  v: listCorners(3, 90),
  "<": listCorners(3, 180),
  ">": listCorners(3, 0),
  p: listCorners(5, -90),
  h: listCorners(6, -90),
  H: listCorners(6, 0),
  8: listCorners(8, -67.5),
  "*": listCorners(5, -90, 0.4),
  P: listCross(0),
  X: listCross(Math.PI / 4),
};

/** Trace a mark round (x, y); an unknown mark is a disc. */
export function traceMarker(pen, marker, x, y, radius) {
  const corners = MARKER_CORNERS[marker];
  pen.beginPath();
  if (corners === undefined) {
    pen.arc(x, y, radius, 0, 2 * Math.PI);
    return;
  }
  const size = 1.15 * radius;
  corners.forEach(([dx, dy], i) => (i ? pen.lineTo(x + size * dx, y + size * dy) : pen.moveTo(x + size * dx, y + size * dy)));
  pen.closePath();
}
