// API client, events between the parts of the page, and information about the index.

import { wellFormed } from "./formatting.js";

// Events: "index-info" was loaded, "documents-changed", "token-needed", "authorized" by a token, "search-for" a text,
// "text-changed" for the query text.
const events = new EventTarget();

export const publish = (name, detail) => events.dispatchEvent(new CustomEvent(name, { detail }));

export const subscribe = (name, listener) => events.addEventListener(name, (event) => listener(event.detail));

// How often a request to a busy server is sent, and the pause if it does not specify one.
const MAX_TRIES = 3;
const PAUSE_SECONDS = 1;

export class ServiceError extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

// The token is kept in memory only.
let token = "";

export const useToken = (given) => {
  token = given;
};

// An integer beyond 2^53 would be rounded, so it stays a string of digits; as an id that is equivalent.
const isRounded = (value) => typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value);

const exact = (_, value, context) => (isRounded(value) ? (context?.source ?? value) : value);

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
    const policy = { cache: "no-store", credentials: "omit", redirect: "error" };
    const answer = await fetch(path, { method, headers, body, signal, ...policy });
    return [answer, await answer.text()];
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ServiceError(0, "unreachable", "The server does not respond. Is it still running?");
  }
};

const failure = (answer, text) => {
  try {
    const { code, message } = parse(text).error;
    return new ServiceError(answer.status, code, message);
  } catch {
    const message = `The server responded with status ${answer.status} and no error message.`;
    return new ServiceError(answer.status, "unknown", message);
  }
};

// Sends a string body unchanged, any other as JSON, and returns the parsed response. An abort throws an AbortError.
export const callApi = async (method, path, body, signal) => {
  const content = body === undefined || typeof body === "string" ? body : JSON.stringify(body);
  for (let tries = 1; ; tries += 1) {
    const sent = token;
    const [answer, text] = await send(method, path, content, signal);
    if (answer.ok) return parse(text);
    const error = failure(answer, text);
    // A late response to a replaced token says nothing about the new one.
    if (error.status === 401 && sent === token) publish("token-needed", { again: token !== "" });
    if (error.code !== "busy" || tries === MAX_TRIES) throw error;
    await pause(Number(answer.headers.get("Retry-After")) || PAUSE_SECONDS, signal);
  }
};

// Returns a function that runs one task at a time: a new task aborts the previous one, and `drop` aborts the current
// one. `fail` is called with an error unless the task was aborted.
export const latestOnly = () => {
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

// Returns a document. Browsers resolve the ids "." and ".." as path segments and would request another path.
export const fetchDocument = async (id, signal) => {
  if (id === "." || id === "..") {
    const message = `A browser cannot request a document with the id “${id}”; other clients can.`;
    throw new ServiceError(0, "unreachable", message);
  }
  return callApi("GET", `/v1/documents/${encodeURIComponent(wellFormed(String(id)))}`, undefined, signal);
};

export const removeDocument = (id) => callApi("DELETE", "/v1/documents", { ids: [id] });

// Rights of clients of a server without tokens.
const ALL_RIGHTS = ["read", "write"];

export const indexInfo = {
  known: false,
  documents: 0,
  mayWrite: false,
  storesTexts: true,
  threshold: 0,
  plan: null,
  limits: {},
  all: {},
};

export const refreshIndexInfo = async () => {
  const [all, plan] = await Promise.all([callApi("GET", "/v1/stats"), callApi("GET", "/v1/plan")]);
  Object.assign(indexInfo, {
    known: true,
    documents: all.documents,
    mayWrite: all.read_only !== true && (all.rights ?? ALL_RIGHTS).includes("write"),
    storesTexts: all.settings.store === "text",
    threshold: plan.threshold,
    plan,
    limits: all.limits,
    all,
  });
  publish("index-info");
};
