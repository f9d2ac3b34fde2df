// Elements: what is to be seen in, elements out. Whatever came from others becomes text, never markup.

const SVG = "http://www.w3.org/2000/svg";

export const find = (id) => document.getElementById(id);

// `on` holds listeners; true makes an attribute that has no value, false, null and undefined make none.
const fill = (element, { on = {}, ...attributes }, children) => {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value === true ? "" : value);
  }
  for (const [name, listener] of Object.entries(on)) element.addEventListener(name, listener);
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
};

export const make = (name, attributes = {}, ...children) => fill(document.createElement(name), attributes, children);

export const draw = (name, attributes = {}, ...children) => fill(document.createElementNS(SVG, name), attributes, children);

export const button = (words, press, attributes = {}) =>
  make("button", { type: "button", on: { click: press }, ...attributes }, words);

// The least amount of work for a screen reader: a line that did not change is not told again.
export const say = (element, words) => {
  if (element.textContent !== words) element.textContent = words;
};

// An error in its place, which is announced as it appears; nothing takes it away again.
export const complain = (element, error) => {
  say(element, error ? error.message : "");
  element.hidden = !error;
};

// Controls would be dropped, and others turn the direction of everything behind them: each is shown as a sign.
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu;

const sign = (character) => {
  const code = character.codePointAt(0);
  if (code < 0x20) return String.fromCharCode(0x2400 + code);
  return code === 0x7f ? "\u2421" : `\u27e8U+${code.toString(16).toUpperCase().padStart(4, "0")}\u27e9`;
};

export const visible = (text) => String(text).replaceAll("\r\n", "\n").replace(UNSEEN, sign);

// Of a very long name the beginning and the end.
export const shortened = (name, most) => {
  const characters = Array.from(visible(name));
  if (characters.length <= most) return characters.join("");
  return `${characters.slice(0, most / 2).join("")}…${characters.slice(-most / 2).join("")}`;
};

// A name, apart from the direction of what stands around it; all of a long one on pointing there.
export const named = (id, most = 160) => {
  const short = shortened(id, most);
  return make("bdi", { class: "id", title: short === visible(id) ? null : visible(id) }, short);
};
