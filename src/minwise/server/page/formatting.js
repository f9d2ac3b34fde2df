// Formatting of numbers. A share close to 1 is never shown as 1, nor one close to 0 as 0.

const UNITS = ["B", "kB", "MB", "GB", "TB"];

export const formatCount = (value) => value.toLocaleString("en-US");

export const formatPlural = (value, noun, many = `${noun}s`) => `${formatCount(value)} ${value === 1 ? noun : many}`;

// Rounds down, so that a similarity below a threshold does not appear to reach it. Nine digits correct the
// 2899.9999999999995 of 0.29 · 10,000.
export const formatFloor = (value, digits = 4) => {
  const scale = 10 ** digits;
  return (Math.floor(Number((value * scale).toFixed(9))) / scale).toFixed(digits);
};

// Formats a probability or a recall; only 1 itself is shown as 1.
export const formatProbability = (value) => {
  if (value > 0 && value < 0.001) return formatDigits(value, 3);
  return value >= 0.99995 && value < 1 ? "> 0.9999" : value.toFixed(4);
};

export const formatPercent = (part) => {
  const value = 100 * part;
  if (value === 0 || value === 100) return `${value}%`;
  return value < 0.1 ? "< 0.1%" : value > 99.9 ? "> 99.9%" : `${value.toFixed(1)}%`;
};

// Formats with the given number of digits, without trailing zeros; with an exponent for very small values.
export const formatDigits = (value, digits) => {
  if (value === 0) return "0";
  const [digit, exponent] = value.toExponential(digits - 1).split("e");
  if (exponent < -4) return `${Number(digit)}e-${exponent.slice(1).padStart(2, "0")}`;
  return String(Number(value.toPrecision(digits)));
};

export const formatSize = (bytes) => {
  let [count, unit] = [bytes, 0];
  while (count >= 999.5 && unit < UNITS.length - 1) [count, unit] = [count / 1000, unit + 1];
  return `${formatCount(count < 999.5 ? Number(count.toPrecision(3)) : Math.round(count))} ${UNITS[unit]}`;
};

// Replaces unpaired surrogates, as a field contains one when half of a character was deleted, by U+FFFD. Browsers
// before 2024 have no toWellFormed.
export const wellFormed = (text) => text.toWellFormed?.() ?? text.replace(/\p{Surrogate}/gu, "\ufffd");

// Counts the code points of a well-formed text: all units except low surrogates. A text may have a million of them and
// is counted on every key press, so no array is made.
export const codePoints = (text) => {
  let count = 0;
  for (let index = 0; index < text.length; index += 1) if ((text.charCodeAt(index) & 0xfc00) !== 0xdc00) count += 1;
  return count;
};

// Converts a setting name to words: max_document becomes max document.
export const spacedName = (name) => name.replaceAll("_", " ");
