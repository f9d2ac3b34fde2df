// Wording: numbers in, how they are written out. Nearly all is never called all, nor nearly none nothing.

const UNITS = ["B", "kB", "MB", "GB", "TB"];

export const amount = (value) => value.toLocaleString("en-US");

export const plural = (value, noun, many = `${noun}s`) => `${amount(value)} ${value === 1 ? noun : many}`;

// Rounded down: what does not reach a threshold does not look as if it did. Nine digits take the
// 2899.9999999999995 out of 0.29 · 10,000.
export const cut = (value, digits = 4) => {
  const scale = 10 ** digits;
  return (Math.floor(Number((value * scale).toFixed(9))) / scale).toFixed(digits);
};

// A probability or a recall, rounded; never a 1 that is none.
export const probability = (value) => {
  if (value > 0 && value < 0.001) return significant(value, 3);
  return value >= 0.99995 && value < 1 ? "> 0.9999" : value.toFixed(4);
};

export const percent = (part) => {
  const value = 100 * part;
  if (value === 0 || value === 100) return `${value}%`;
  return value < 0.1 ? "< 0.1%" : value > 99.9 ? "> 99.9%" : `${value.toFixed(1)}%`;
};

// As many digits, without zeros at the end; with an exponent where there would be many zeros in front.
export const significant = (value, digits) => {
  if (value === 0) return "0";
  const [digit, exponent] = value.toExponential(digits - 1).split("e");
  if (exponent < -4) return `${Number(digit)}e-${exponent.slice(1).padStart(2, "0")}`;
  return String(Number(value.toPrecision(digits)));
};

export const size = (bytes) => {
  let [count, unit] = [bytes, 0];
  while (count >= 999.5 && unit < UNITS.length - 1) [count, unit] = [count / 1000, unit + 1];
  return `${amount(count < 999.5 ? Number(count.toPrecision(3)) : Math.round(count))} ${UNITS[unit]}`;
};

// Half a character, as a field has it when the other half was deleted, is no text: it becomes the sign for what can not
// be read. Browsers before 2024 have no toWellFormed.
export const wellFormed = (text) => text.toWellFormed?.() ?? text.replace(/\p{Surrogate}/gu, "\ufffd");

// How many code points a well-formed text has: all its units but the second halves. A text may have a million of them,
// and is counted on every key press, so nothing is made of them.
export const codePoints = (text) => {
  let count = 0;
  for (let at = 0; at < text.length; at += 1) if ((text.charCodeAt(at) & 0xfc00) !== 0xdc00) count += 1;
  return count;
};

// A setting or a limit as people say it: max_document becomes max document.
export const spoken = (name) => name.replaceAll("_", " ");
