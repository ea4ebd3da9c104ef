// Where the tiles of the piles stand: data in, rectangles out. Nothing here depends on a screen.
const LARGEST = 24; // pixels of a tile's side
const SMALLEST = 6;
const STANDS_FOR = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000];

/** How many tiles a pile needs, where a tile stands for `many` samples of one class. */
function countTiles(counts, many) {
  if (many === 1) return counts.reduce((total, count) => total + count, 0);
  return counts.reduce((total, count) => total + Math.ceil(count / many), 0);
}

/** The largest tiles with which all piles fit: {side, across, many}. counts: samples by client and class, [M, C];
    step: a side is a multiple of it. */
export function chooseTile(counts, column, height, step = 0.5) {
  const room = Math.max(3, column - (column > 24 ? 8 : 2));
  const fit = (side) => step * Math.max(1, Math.floor(side / step + 1e-9));
  const smallest = fit(Math.min(SMALLEST, room));
  for (const many of STANDS_FOR) {
    const most = Math.max(...counts.map((row) => countTiles(row, many)));
    for (let side = fit(Math.min(LARGEST, room)); side >= smallest - 1e-9; side -= step) {
      const across = Math.max(1, Math.floor(room / side));
      if (Math.ceil(most / across) * side <= height) return { side, across, many };
    }
  }
  return { side: smallest, across: Math.max(1, Math.floor(room / smallest)), many: STANDS_FOR.at(-1) };
}

/** Tiles of all piles. piles: sample numbers by client, class by class; labels: the class of each sample.
    `tiles`: {client, label, sample, slot, x, y}, x and y of the upper left corner, slot: a number that no other tile has,
    the sample's own where one client holds it; `tops`: where each pile ends above. */
export function layOutPiles({ piles, labels, counts, width, height, head = 18, step = 0.5 }) {
  const column = width / piles.length;
  const { side, across, many } = chooseTile(counts, column, height - head, step);
  const tiles = [];
  const tops = [];
  const copies = new Uint16Array(labels.length); // tiles of a sample so far: a double holds it, too
  piles.forEach((pile, client) => {
    const left = column * (client + 0.5) - (across * side) / 2;
    let place = 0;
    let label = -1;
    let within = 0; // samples of this class that the last tile stands for
    for (const sample of pile) {
      const isNew = labels[sample] !== label || within === many;
      if (isNew) {
        label = labels[sample];
        within = 0;
        const x = left + (place % across) * side;
        const y = height - (Math.floor(place / across) + 1) * side;
        tiles.push({ client, label, sample, slot: sample + labels.length * copies[sample], x, y });
        copies[sample] += 1;
        place += 1;
      }
      within += 1;
    }
    tops.push(height - Math.ceil(place / across) * side);
  });
  return { tiles, tops, column, side, many, width, height };
}

/** The pile at x, and the class of the tile at (x, y); client -1 outside, label null beside the tiles. */
export function findAt({ tiles, column, side, width }, x, y) {
  if (x < 0 || x >= width) return { client: -1, label: null, sample: null };
  const client = Math.floor(x / column);
  const isInside = (tile) => tile.client === client && x >= tile.x && x < tile.x + side && y >= tile.y && y < tile.y + side;
  const tile = tiles.find(isInside);
  return { client, label: tile?.label ?? null, sample: tile?.sample ?? null };
}
