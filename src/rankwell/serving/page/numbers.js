// How numbers are written.

const COUNT = new Intl.NumberFormat("en");
const BYTE_UNITS = ["bytes", "kB", "MB", "GB", "TB"];

export const count = (number) => COUNT.format(number);

export const plural = (number, noun, nouns = `${noun}s`) => `${count(number)} ${number === 1 ? noun : nouns}`;

const typeset = (text) => text.replace("-", "−");
const isExtreme = (number) => number !== 0 && (Math.abs(number) < 1e-4 || Math.abs(number) >= 1e7);

/** Four significant digits. */
export function figure(number) {
  if (typeof number !== "number") return "missing"; // JSON has no NaN: it comes as null
  return typeset(isExtreme(number) ? number.toExponential(2) : String(Number(number.toPrecision(4))));
}

/** Decimals that suit the largest of several numbers, so that they line up; with a sign. */
export function signedFigure(number, largest) {
  if (isExtreme(largest)) return typeset(number.toExponential(2));
  const decimals = Math.max(0, 3 - Math.floor(Math.log10(largest || 1)));
  const text = number.toFixed(decimals);
  return typeset(number > 0 ? `+${text}` : text);
}

export function milliseconds(time) {
  const digits = time >= 100 ? 0 : time >= 10 ? 1 : 2;
  return `${time.toFixed(digits)} ms`;
}

export function bytes(number) {
  let unit = 0;
  let size = number;
  while (size >= 1000 && unit < BYTE_UNITS.length - 1) {
    size /= 1000;
    unit += 1;
  }
  return `${Number(size.toPrecision(3))} ${BYTE_UNITS[unit]}`;
}
