"use strict";
for (const block of document.querySelectorAll(".searchable")) {
  const rows = Array.from(block.querySelectorAll("tbody tr"));
  const label = document.createElement("label");
  const field = document.createElement("input");
  const told = document.createElement("output");
  label.textContent = "Search the layers";
  field.type = "search";
  field.autocomplete = "off";
  field.spellcheck = false;
  field.placeholder = "name, class, dtype, code …";
  told.setAttribute("aria-live", "polite");
  label.append(field);
  field.addEventListener("input", () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    let found = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      const fits = words.every((word) => text.includes(word));
      row.hidden = !fits;
      found += fits ? 1 : 0;
    }
    told.textContent = words.length ? found + " of " + rows.length : "";
  });
  const search = document.createElement("search");
  search.className = "search";
  search.append(label, told);
  block.prepend(search);
}
for (const block of document.querySelectorAll(".mended")) {
  const lines = block.querySelector("pre");
  if (!lines || !navigator.clipboard) continue;
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(lines.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(lines);
    }
  });
  block.append(button);
}
