// Service: a request in, its answer out, or an error that carries the one line that the service says of it.

import { wellFormed } from "./wording.js";

// What one part of the page tells the others: "facts" are known, documents "changed", a token is "wanted",
// somebody was "let-in", a text is to be "looked-for", another text is "asked" about.
export const news = new EventTarget();

export const tell = (name, detail) => news.dispatchEvent(new CustomEvent(name, { detail }));

export const hear = (name, listener) => news.addEventListener(name, (event) => listener(event.detail));

// How often a busy server is asked again, and after how long if it does not say.
const MOST_TRIES = 3;
const PAUSE_SECONDS = 1;

export class ServiceError extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

// It is in memory only, and gone with the page.
let token = "";

export const useToken = (given) => {
  token = given;
};

// A number beyond 2^53 would come out as another one. It stays the digits it was; an id means the same either way.
const exact = (_, value, context) =>
  typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value) ? (context?.source ?? value) : value;

const parse = (text) => (/\d{16}/.test(text) ? JSON.parse(text, exact) : JSON.parse(text));

const pause = (seconds, signal) =>
  new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, 1000 * seconds);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });

const send = async (method, path, body, signal) => {
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  if (body !== undefined) headers["Content-Type"] = "application/json";
  try {
    const answer = await fetch(path, { method, headers, body, signal, cache: "no-store", credentials: "omit", redirect: "error" });
    return [answer, await answer.text()];
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ServiceError(0, "unreachable", "The server does not answer. Is it still running?");
  }
};

const failure = (answer, text) => {
  try {
    const { code, message } = parse(text).error;
    return new ServiceError(answer.status, code, message);
  } catch {
    return new ServiceError(answer.status, "unknown", `The server answers with status ${answer.status} and does not say why.`);
  }
};

// Sends a body that is a string as it is, anything else as JSON. What was aborted is thrown as an AbortError.
export const ask = async (method, path, body, signal) => {
  const content = body === undefined || typeof body === "string" ? body : JSON.stringify(body);
  for (let tries = 1; ; tries += 1) {
    const sent = token;
    const [answer, text] = await send(method, path, content, signal);
    if (answer.ok) return parse(text);
    const error = failure(answer, text);
    // A late answer to a token that was replaced since says nothing about the new one.
    if (error.status === 401 && sent === token) tell("wanted", { again: token !== "" });
    if (error.code !== "busy" || tries === MOST_TRIES) throw error;
    await pause(Number(answer.headers.get("Retry-After")) || PAUSE_SECONDS, signal);
  }
};

// Runs the latest of several questions; those before it are dropped, and `drop` drops that one too. Tells what failed,
// unless it was dropped.
export const latest = () => {
  let running = null;
  const drop = () => running?.abort();
  const run = async (work, fail) => {
    drop();
    const mine = new AbortController();
    running = mine;
    try {
      await work(mine.signal);
    } catch (error) {
      if (!mine.signal.aborted) fail(error);
    } finally {
      if (running === mine) running = null;
    }
  };
  return Object.assign(run, { drop });
};

// A document by its id. A browser takes the dots of these two for parts of a path, and would ask for something else.
export const fetchDocument = async (id, signal) => {
  if (id === "." || id === "..") {
    throw new ServiceError(0, "unreachable", `A browser can not ask for a document whose id is “${id}”; other clients can.`);
  }
  return ask("GET", `/v1/documents/${encodeURIComponent(wellFormed(String(id)))}`, undefined, signal);
};

export const removeDocument = (id) => ask("DELETE", "/v1/documents", { ids: [id] });
