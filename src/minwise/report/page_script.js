"use strict";
// Makes a list of the selected ids for `minwise restore`. Nothing leaves the page without a click.
(() => {
  const find = (id) => document.getElementById(id);
  const bar = find("selection");
  const boxes = [...document.querySelectorAll("input[data-id]")];
  const selected = () => boxes.filter((box) => box.checked);

  // One id per line. An id that a line cannot hold unchanged, or that would be read as something else, becomes an ASCII
  // JSON string: some readers take U+0085 or U+2028 for a line end.
  const needsJson = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]|^"|^[\s\ufeff]|[\s\ufeff]$|^$/u;
  const ascii = (text) =>
    text.replace(/[\u007f-\uffff]/g, (unit) => "\\u" + unit.charCodeAt(0).toString(16).padStart(4, "0"));
  const line = (id) => (needsJson.test(id) ? ascii(JSON.stringify(id)) : id) + "\n";
  const list = () => [...new Set(selected().map((box) => JSON.parse(box.dataset.id)))].map(line).join("");

  // The page is in its output directory, so the command can name it. Shells quote drive letters differently.
  const folder = location.protocol === "file:" ? decodeURIComponent(location.pathname).replace(/\/[^/]*$/, "") : "";
  const quoted = /^[\w@%+=:,./-]+$/.test(folder) ? folder : "'" + folder.replaceAll("'", "'\\''") + "'";
  if (folder && !/^\/[A-Za-z]:/.test(folder)) find("command").textContent = find("command").textContent.replace("OUT", () => quoted);

  const show = () => {
    const count = selected().length;
    bar.hidden = count === 0;
    find("selection-count").textContent = count === 1 ? "1 document to keep" : count.toLocaleString("en") + " documents to keep";
    for (const box of boxes) box.closest("li").classList.toggle("to-keep", box.checked);
  };

  const download = () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([list()], { type: "text/plain;charset=utf-8" }));
    link.download = "keep-ids.txt";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  };

  const showBriefly = (button, label) => {
    const before = button.dataset.label || (button.dataset.label = button.textContent);
    button.textContent = label;
    setTimeout(() => (button.textContent = before), 1500);
  };

  // If a page opened from disk may not use the clipboard, the command is selected instead.
  const copy = async () => {
    const command = find("command");
    try {
      await navigator.clipboard.writeText(command.textContent);
      showBriefly(find("copy"), "copied");
    } catch {
      getSelection().selectAllChildren(command);
      showBriefly(find("copy"), document.execCommand("copy") ? "copied" : "selected");
    }
  };

  const clear = () => {
    for (const box of selected()) box.checked = false;
    show();
    find("clusters-name").focus();
  };

  document.documentElement.classList.add("live");
  for (const box of boxes) box.addEventListener("change", show);
  find("download").addEventListener("click", download);
  find("copy").addEventListener("click", copy);
  find("clear").addEventListener("click", clear);
  addEventListener("pageshow", show);
})();
