// Facts: what the service says of itself and its index, asked for once and after every change.

import { ask, tell } from "./service.js";

// Whoever needs no token may do everything, as far as the server does it at all.
const EVERY_RIGHT = ["read", "write"];

export const facts = { known: false, documents: 0, mayWrite: false, storesTexts: true, threshold: 0, limits: {}, all: {} };

export const refreshFacts = async () => {
  const [all, plan] = await Promise.all([ask("GET", "/v1/stats"), ask("GET", "/v1/plan")]);
  Object.assign(facts, {
    known: true,
    documents: all.documents,
    mayWrite: all.read_only !== true && (all.rights ?? EVERY_RIGHT).includes("write"),
    storesTexts: all.settings.store === "text",
    threshold: plan.threshold,
    limits: all.limits,
    all,
  });
  tell("facts");
};
