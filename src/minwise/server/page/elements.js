// DOM helpers. Content always becomes text nodes, never markup.

const SVG = "http://www.w3.org/2000/svg";

export const byId = (id) => document.getElementById(id);

// `on` contains listeners. The value true makes an attribute without a value; false, null and undefined make none.
const fill = (element, { on = {}, ...attributes }, children) => {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    element.setAttribute(name, value === true ? "" : value);
  }
  for (const [name, listener] of Object.entries(on)) element.addEventListener(name, listener);
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
};

export const make = (name, attributes = {}, ...children) => fill(document.createElement(name), attributes, children);

export const draw = (name, attributes = {}, ...children) =>
  fill(document.createElementNS(SVG, name), attributes, children);

export const button = (label, press, attributes = {}) =>
  make("button", { type: "button", on: { click: press }, ...attributes }, label);

// Sets a text only if it changes, so that a screen reader does not repeat it.
export const setText = (element, text) => {
  if (element.textContent !== text) element.textContent = text;
};

// Shows the message of an error, or hides it if there is none. Screen readers announce it.
export const showError = (element, error) => {
  setText(element, error ? error.message : "");
  element.hidden = !error;
};

// Control characters, which are invisible, and direction marks, which reorder the text after them.
const INVISIBLE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu;

const symbol = (character) => {
  const code = character.codePointAt(0);
  if (code < 0x20) return String.fromCharCode(0x2400 + code);
  return code === 0x7f ? "\u2421" : `\u27e8U+${code.toString(16).toUpperCase().padStart(4, "0")}\u27e9`;
};

// Replaces control characters and direction marks by visible symbols.
export const visibleText = (text) => String(text).replaceAll("\r\n", "\n").replace(INVISIBLE, symbol);

// Returns the beginning and the end of a long name.
export const shorten = (name, most) => {
  const characters = Array.from(visibleText(name));
  if (characters.length <= most) return characters.join("");
  return `${characters.slice(0, most / 2).join("")}…${characters.slice(-most / 2).join("")}`;
};

// Element of a name, isolated from the text direction around it; the whole of a long name is its tooltip.
export const nameElement = (id, most = 160) => {
  const short = shorten(id, most);
  return make("bdi", { class: "id", title: short === visibleText(id) ? null : visibleText(id) }, short);
};

// Keeps a slider and a number field equal, and calls `changed` with each valid value. A typed value extends the slider.
export const linkSliderAndNumber = (slider, number, changed) => {
  let last = Number(number.value);

  const set = (value) => {
    last = value;
    if (value > Number(slider.max)) slider.max = value;
    slider.value = value;
    number.value = value;
  };
  const allowed = () => number.value !== "" && number.checkValidity();

  slider.addEventListener("input", () => {
    last = Number(slider.value);
    number.value = slider.value;
    changed(last);
  });
  number.addEventListener("input", () => {
    if (!allowed()) return;
    set(Number(number.value));
    changed(last);
  });
  // Replaces an invalid value by the last valid one.
  number.addEventListener("change", () => {
    if (!allowed()) number.value = last;
  });
  return { set, get: () => last };
};
