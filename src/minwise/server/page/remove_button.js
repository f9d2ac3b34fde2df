// Button that removes a document after a confirmation.

import { indexInfo, publish, removeDocument } from "./api.js";
import { button, make, showError } from "./elements.js";

// `removed` is called after the removal. Returns null if the client may not write.
export const removeButton = (id, removed) => {
  if (!indexInfo.mayWrite) return null;
  const container = make("span", { class: "removal" });
  const trouble = make("span", { class: "trouble", role: "alert", hidden: true });

  const remove = async () => {
    try {
      await removeDocument(id);
    } catch (error) {
      offer();
      showError(trouble, error);
      container.firstElementChild.focus();
      return;
    }
    removed();
    publish("documents-changed");
  };

  const confirm = () => {
    const no = button("No, keep it", keep);
    const yes = button("Yes, remove it", remove, { class: "grave" });
    container.replaceChildren("Remove this document permanently? ", yes, " ", no);
    no.focus();
  };

  const offer = () => container.replaceChildren(button("Remove", confirm), trouble);

  const keep = () => {
    offer();
    container.firstElementChild.focus();
  };

  container.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || container.contains(trouble)) return;
    event.stopPropagation();
    keep();
  });
  offer();
  return container;
};
