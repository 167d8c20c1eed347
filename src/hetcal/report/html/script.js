"use strict";
(() => {
  const root = document.documentElement;
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const theme = document.getElementById("theme");
  const isDark = () => (root.dataset.theme || (dark.matches ? "dark" : "light")) === "dark";
  const nameTheme = () => { theme.textContent = isDark() ? "Light" : "Dark"; };
  theme.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    nameTheme();
  });
  dark.addEventListener("change", nameTheme);
  nameTheme();

  // Sorting: numbers by the full value in data-value, everything else as text.
  const keyOf = (row, column) => {
    const value = row.cells[column].dataset.value;
    if (value === undefined || value === "") return null;
    const number = Number(value);
    return Number.isNaN(number) ? value : number;
  };
  const compare = (a, b) => {
    if (a === null || b === null) return (a === null) - (b === null);
    if (typeof a === "number" && typeof b === "number") return a - b;
    return String(a).localeCompare(String(b));
  };
  for (const button of document.querySelectorAll("table.sortable button.sort")) {
    button.addEventListener("click", () => {
      const head = button.closest("th");
      const table = head.closest("table");
      const column = head.cellIndex;
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const other of table.tHead.rows[0].cells) {
        if (other.hasAttribute("aria-sort")) other.setAttribute("aria-sort", "none");
      }
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const body = table.tBodies[0];
      const rows = [...body.rows].map((row) => [keyOf(row, column), row]);
      rows.sort((x, y) => {
        if (x[0] === null || y[0] === null) return compare(x[0], y[0]);
        return down ? compare(y[0], x[0]) : compare(x[0], y[0]);
      });
      body.append(...rows.map((pair) => pair[1]));
    });
  }

  // What is under the pointer, in words.
  const tip = document.getElementById("tip");
  const hide = () => { tip.hidden = true; };
  document.addEventListener("pointerover", (event) => {
    const target = event.target instanceof Element ? event.target.closest("[data-tip]") : null;
    if (!target) { hide(); return; }
    tip.textContent = target.dataset.tip;
    tip.hidden = false;
    const box = target.getBoundingClientRect();
    const own = tip.getBoundingClientRect();
    const left = Math.min(Math.max(8, box.left + box.width / 2 - own.width / 2), root.clientWidth - own.width - 8);
    const above = box.top - own.height - 8;
    tip.style.left = `${left}px`;
    tip.style.top = `${above > 4 ? above : box.bottom + 8}px`;
  });
  document.addEventListener("scroll", hide, { passive: true });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });

  const select = (element) => {
    const range = document.createRange();
    range.selectNodeContents(element);
    const selection = window.getSelection();
    selection.removeAllRanges();
    selection.addRange(range);
  };
  for (const button of document.querySelectorAll("button.copy")) {
    button.addEventListener("click", async () => {
      const code = document.getElementById(`code-${button.dataset.copy}`);
      const before = button.textContent;
      try {
        await navigator.clipboard.writeText(code.textContent);
        button.textContent = "Copied";
      } catch (_) {
        // Without permission to the clipboard the text is selected: one key press copies it.
        select(code);
        button.textContent = "Selected";
      }
      window.setTimeout(() => { button.textContent = before; }, 1600);
    });
  }

  const save = document.getElementById("save");
  save.addEventListener("click", () => {
    const text = document.getElementById("report").textContent;
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
    link.download = "report.json";
    link.click();
    window.setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });
})();
