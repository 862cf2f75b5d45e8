/** Geometry of the maps of points [x, y]: alignment (Procrustes), scaling to a box, label placement. */

/**
 * Rotates and mirrors each map towards the next one, so that points move as little as possible from layer to layer.
 * Distances within a map do not change.
 */
export function align(maps) {
  const aligned = maps.map(centre);
  for (let layer = aligned.length - 2; layer >= 0; layer--) {
    aligned[layer] = procrustes(aligned[layer + 1], aligned[layer]);
  }
  return aligned;
}

/**
 * Scales a layer's map to the distances of vectors of length 1 with its cosines: the vectors of one layer may be
 * longer than those of another, and only their direction counts here.
 */
export function byCosine({ map, cosines }) {
  let [expected, actual] = [0, 0];
  map.forEach(([x, y], one) => {
    map.slice(0, one).forEach((other, number) => {
      expected += Math.max(0, 2 - 2 * cosines[one][number]); // the squared distance of vectors of length 1
      actual += (x - other[0]) ** 2 + (y - other[1]) ** 2;
    });
  });
  const scale = actual > 0 ? Math.sqrt(expected / actual) : 0;
  return map.map(([x, y]) => [x * scale, y * scale]);
}

function centre(points) {
  const [x, y] = [0, 1].map((axis) => points.reduce((sum, point) => sum + point[axis], 0) / points.length);
  return points.map((point) => [point[0] - x, point[1] - y]);
}

/** Points rotated, and mirrored if that is better, to fit a target (orthogonal Procrustes in the plane). */
function procrustes(target, points) {
  const mirrored = points.map(([x, y]) => [x, -y]);
  const [plain, other] = [points, mirrored].map((candidate) => rotation(target, candidate));
  const [{ cos, sin }, chosen] = plain.fit >= other.fit ? [plain, points] : [other, mirrored];
  return chosen.map(([x, y]) => [cos * x - sin * y, sin * x + cos * y]);
}

function rotation(target, points) {
  let along = 0;
  let across = 0;
  points.forEach(([x, y], number) => {
    along += x * target[number][0] + y * target[number][1];
    across += x * target[number][1] - y * target[number][0];
  });
  const fit = Math.hypot(along, across);
  return fit > 0 ? { fit, cos: along / fit, sin: across / fit } : { fit, cos: 1, sin: 0 };
}

const LEAST_EXTENT = 0.05; // smaller differences than this are not enlarged to fill the map

/** Scales all maps of a model to a box by one factor, so that distances can be compared across layers. */
export function fit(maps, { width, height, marginX, marginY }) {
  const [across, up] = [0, 1].map((axis) => range(maps.flat().map((point) => point[axis])));
  const scale = Math.min((width - 2 * marginX) / across.extent, (height - 2 * marginY) / up.extent);
  const place = ([x, y]) => [width / 2 + (x - across.middle) * scale, height / 2 - (y - up.middle) * scale];
  return maps.map((points) => points.map(place));
}

function range(values) {
  const [least, most] = [Math.min(...values), Math.max(...values)];
  return { middle: (least + most) / 2, extent: Math.max(most - least, LEAST_EXTENT) };
}

/**
 * A place for the label of each point, close to it, avoiding overlaps with points and other labels where possible.
 *
 * @param {[number, number][]} points
 * @param {{width: number, height: number}[]} sizes of the labels
 * @param {{width: number, height: number, gap: number}} box
 * @returns {[number, number][]} the upper left corners
 */
export function placeLabels(points, sizes, { width, height, gap }) {
  const dots = points.map(([x, y]) => ({ left: x - gap / 2, top: y - gap / 2, width: gap, height: gap }));
  const box = { width, height, gap };
  const choices = points.map((point, number) => candidates(point, sizes[number], box, points.length));
  const order = [...points.keys()].sort((one, other) => points[one][1] - points[other][1]);
  const chosen = new Map();
  for (const number of Array(ROUNDS).fill(order).flat()) { // later rounds use room that the first left free
    chosen.delete(number);
    chosen.set(number, cheapest(choices[number], [...dots, ...chosen.values()]));
  }
  return points.map((_, number) => [chosen.get(number).left, chosen.get(number).top]);
}

const ROUNDS = 3;

function cheapest(choices, taken) {
  const costs = choices.map((choice) => choice.cost + 1000 * taken.filter((other) => overlaps(choice, other)).length);
  return choices[costs.indexOf(Math.min(...costs))];
}

/** Candidate places right and left of a point, and line by line above and below; farther ones cost more. */
function candidates([x, y], size, { width, height, gap }, lines) {
  const choices = [];
  for (let line = -lines; line <= lines; line++) {
    for (const side of [1, -1]) {
      const left = side > 0 ? x + gap : x - gap - size.width;
      const top = y - size.height / 2 + line * size.height;
      const outside = left < EDGE || left + size.width > width - EDGE || top < 0 || top + size.height > height;
      const outward = (x - width / 2) * side > 0 ? 0 : 0.5;
      choices.push({ ...size, left: clamp(left, width - size.width), top: clamp(top, height - size.height),
        cost: Math.abs(line) + outward + (outside ? 500 : 0) });
    }
  }
  return choices;
}

const EDGE = 6;
const clamp = (value, most) => Math.max(0, Math.min(value, most));

function overlaps(one, other) {
  return one.left < other.left + other.width && other.left < one.left + one.width
    && one.top < other.top + other.height - 1 && other.top < one.top + one.height - 1;
}
