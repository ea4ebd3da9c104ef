// Where the names in a race's plane stand: beside their marks, where they lie on no line, mark or other name. Pure.
export const NAME_HEIGHT = 14; // pixels
const FROM_MARK = 11; // pixels from the middle of a mark to its name
const CORNER = 4; // pixels by which a name at a corner reaches over the middle of its mark
// The first of those that are equally free is taken.
const SIDES = ["right", "left", "above", "below", "above left", "below left", "above right", "below right"];
const COSTS = { line: 1, mark: 2, name: 3, outside: 100 };

/** The box of a name so many pixels wide at a side of a mark at (x, y): {left, right, top, bottom}. */
export function placeName({ x, y }, side, width) {
  let left = x - width / 2;
  let middle = y;
  if (side === "right") left = x + FROM_MARK;
  else if (side === "left") left = x - FROM_MARK - width;
  else if (side.endsWith(" left")) left = x + CORNER - width;
  else if (side.endsWith(" right")) left = x - CORNER;
  if (side.startsWith("above")) middle = y - FROM_MARK - 3;
  if (side.startsWith("below")) middle = y + FROM_MARK + 3;
  return { left, right: left + width, top: middle - NAME_HEIGHT / 2, bottom: middle + NAME_HEIGHT / 2 };
}

/** Whether a stretch from a to b, [x, y] each, enters a box: the part of it within all four edges is not empty. */
export function entersBox([ax, ay], [bx, by], { left, right, top, bottom }) {
  let from = 0;
  let to = 1;
  for (const [start, way, low, high] of [[ax, bx - ax, left, right], [ay, by - ay, top, bottom]]) {
    if (way === 0) {
      if (start < low || start > high) return false;
      continue;
    }
    const ends = [(low - start) / way, (high - start) / way];
    from = Math.max(from, Math.min(...ends));
    to = Math.min(to, Math.max(...ends));
  }
  return from <= to;
}

const overlap = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;

/** The side at which each name stands. marks: [{x, y, width}], width: of the name;   lines: [[{x, y}, …]];   plane: the
    box that no name leaves */
export function chooseSides(marks, lines, plane) {
  const taken = [];
  return marks.map((mark, i) => {
    let best = null;
    for (const side of SIDES) {
      const box = placeName(mark, side, mark.width);
      let cost = 0;
      for (const line of lines) {
        const isCrossed = line.some((point, j) => j > 0 && entersBox([line[j - 1].x, line[j - 1].y], [point.x, point.y], box));
        if (isCrossed) cost += COSTS.line;
      }
      const others = marks.filter((_, j) => j !== i);
      cost += COSTS.mark * others.filter(({ x, y }) => entersBox([x, y], [x, y], box)).length;
      cost += COSTS.name * taken.filter((other) => overlap(other, box)).length;
      const isInside = box.left >= plane.left && box.right <= plane.right && box.top >= plane.top && box.bottom <= plane.bottom;
      if (!isInside) cost += COSTS.outside;
      if (best === null || cost < best.cost) best = { side, box, cost };
    }
    taken.push(best.box);
    return best.side;
  });
}
