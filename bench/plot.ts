/** Plots lines over two logarithmic axes, as SVG. */

export interface Line {
  readonly name: string;
  readonly points: readonly (readonly [x: number, y: number])[];
}

const width = 640;
const height = 400;
const margin = { left: 70, right: 170, top: 40, bottom: 50 };
const colours = ["#c2410c", "#a8a29e", "#1d4ed8", "#15803d", "#7e22ce"];

export function plot(title: string, lines: readonly Line[]): string {
  const xs = lines.flatMap(({ points }) => points.map(([x]) => x));
  const ys = lines.flatMap(({ points }) => points.map(([, y]) => y));
  const toX = createScale(decadesOf(xs), margin.left, width - margin.right);
  const toY = createScale(decadesOf(ys), height - margin.bottom, margin.top);
  const grid = [
    ...powersOf(decadesOf(xs)).map(
      (value) =>
        `<path d="M${toX(value)} ${margin.top}V${height - margin.bottom}" stroke="#e7e5e4"/>` +
        `<text x="${toX(value)}" y="${height - margin.bottom + 20}" text-anchor="middle">${label(value)}</text>`,
    ),
    ...powersOf(decadesOf(ys)).map(
      (value) =>
        `<path d="M${margin.left} ${toY(value)}H${width - margin.right}" stroke="#e7e5e4"/>` +
        `<text x="${margin.left - 8}" y="${toY(value) + 4}" text-anchor="end">${label(value)}</text>`,
    ),
  ];
  const names = spread(lines.map(({ points }) => toY(points.at(-1)?.[1] ?? 1)));
  const drawn = lines.map(({ name, points }, index) => {
    const colour = colours[index % colours.length];
    const path = points.map(([x, y], step) => `${step === 0 ? "M" : "L"}${toX(x)} ${toY(y)}`).join("");
    const dots = points.map(([x, y]) => `<circle cx="${toX(x)}" cy="${toY(y)}" r="3" fill="${colour}"/>`).join("");
    const text = `<text x="${width - margin.right + 8}" y="${(names[index] ?? 0) + 4}" fill="${colour}">${name}</text>`;
    return `<path d="${path}" fill="none" stroke="${colour}" stroke-width="2"/>${dots}${text}`;
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="12">`,
    `<rect width="${width}" height="${height}" fill="#fff"/>`,
    `<text x="${margin.left}" y="22" font-size="14">${title}</text>`,
    ...grid,
    ...drawn,
    "</svg>\n",
  ].join("\n");
}

const lineHeight = 14;

/** Heights so far apart that texts there do not overlap. */
function spread(heights: readonly number[]): readonly number[] {
  const placed: number[] = [];
  for (const [index, height] of [...heights.entries()].toSorted(([, one], [, other]) => one - other)) {
    placed[index] = Math.max(height, ...placed.filter(Number.isFinite).map((other) => other + lineHeight));
  }
  return placed;
}

type Decades = readonly [from: number, to: number];

function decadesOf(values: readonly number[]): Decades {
  return [Math.floor(Math.log10(Math.min(...values))), Math.ceil(Math.log10(Math.max(...values)))];
}

function powersOf([from, to]: Decades): readonly number[] {
  return Array.from({ length: to - from + 1 }, (_, index) => 10 ** (from + index));
}

function createScale([from, to]: Decades, start: number, end: number): (value: number) => number {
  return (value) => Math.round(start + ((Math.log10(value) - from) / (to - from || 1)) * (end - start));
}

function label(value: number): string {
  return value.toLocaleString("en");
}
