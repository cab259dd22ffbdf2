// Carries what a reader does to the server: every element says itself what it is for, by data-do and data-arg.
(() => {
  const send = (what, arg) => window.emitEvent && window.emitEvent("truc", [what, String(arg ?? "")]);
  let kept = null; // what had the focus, to give it back when its part of the page is drawn anew

  const key = (el) => el && el.dataset && (el.dataset.do || el.dataset.change || el.name)
    ? [el.dataset.do || "", el.dataset.arg || "", el.dataset.change || "", el.name || ""].join("\u0001") : null;

  document.addEventListener("click", (event) => {
    const el = event.target.closest("[data-do]");
    if (!el || el.disabled || el.tagName === "FORM") return;
    event.preventDefault();
    kept = key(el);
    el.classList.add("busy");
    send(el.dataset.do, el.dataset.arg);
  });
  document.addEventListener("change", (event) => {
    const el = event.target.closest("[data-change]");
    if (!el) return;
    kept = key(el);
    send(el.dataset.change, el.type === "checkbox" ? (el.checked ? "1" : "") : el.value);
  });
  document.addEventListener("submit", (event) => {
    const form = event.target.closest("form[data-do]");
    if (!form) return;
    event.preventDefault();
    send(form.dataset.do, JSON.stringify(Object.fromEntries(new FormData(form))));
  });

  // Hovering: only when the pointer has come to rest on a cell for a moment.
  let over = null, wait = 0;
  document.addEventListener("pointerover", (event) => {
    if (event.pointerType === "touch") return;
    const el = event.target.closest("[data-hover]");
    const name = el ? el.dataset.hover : null;
    if (name === over) return;
    over = name;
    clearTimeout(wait);
    wait = setTimeout(() => send("hover", name ?? ""), name === null ? 250 : 40);
  });

  // Arrow keys walk the cells of a drawing; Enter and space press them.
  document.addEventListener("keydown", (event) => {
    const cell = event.target.closest("svg.grid .cell");
    if (cell) {
      const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
      if (event.key in moves) {
        event.preventDefault();
        const [dx, dy] = moves[event.key];
        let x = +cell.dataset.x + dx, y = +cell.dataset.y + dy;
        const grid = cell.closest("svg.grid");
        const next = grid.querySelector(`[data-x="${x}"][data-y="${y}"]`) || neighbour(grid, dx, dy);
        if (next) { next.tabIndex = 0; next.focus(); cell.tabIndex = -1; if (next.dataset.hover) send("hover", next.dataset.hover); }
      } else if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        kept = key(cell);
        if (cell.dataset.do) send(cell.dataset.do, cell.dataset.arg);
      }
      return;
    }
    if (event.altKey || event.ctrlKey || event.metaKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
    const shortcut = document.querySelector(`.tab-panel:not([hidden]) [data-key="${CSS.escape(event.key)}"]:not([disabled])`);
    if (shortcut) { event.preventDefault(); shortcut.click(); }
  });
  const neighbour = (grid, dx, dy) => {
    const all = [...grid.closest(".grids, .map-box, body").querySelectorAll("svg.grid")].filter((g) => g.getClientRects().length);
    const at = all.indexOf(grid) + (dx + dy > 0 ? 1 : -1);
    return all[at] ? all[at].querySelector(".cell[data-do]") : null;
  };

  window.addEventListener("popstate", () => send("location", location.pathname + location.search));

  // The first cell of each drawing can be reached by Tab, even if none is chosen; focus survives redrawing.
  const mend = () => {
    for (const el of document.querySelectorAll(".busy")) el.classList.remove("busy");
    for (const grid of document.querySelectorAll("svg.grid"))
      if (!grid.querySelector('[tabindex="0"]')) { const c = grid.querySelector(".cell[data-do]"); if (c) c.setAttribute("tabindex", "0"); }
    if (kept !== null && (document.activeElement === document.body || document.activeElement === null)) {
      for (const el of document.querySelectorAll("[data-do], [data-change], [name]"))
        if (key(el) === kept && el.getClientRects().length) { el.focus({ preventScroll: true }); break; }
    }
  };
  let planned = false;
  new MutationObserver(() => {
    if (planned) return;
    planned = true;
    requestAnimationFrame(() => { planned = false; mend(); });
  }).observe(document.documentElement, { childList: true, subtree: true });

  // Light or dark: as the system says until the reader says otherwise; remembered in this browser.
  const stored = localStorage.getItem("truc-theme");
  if (stored) document.documentElement.dataset.theme = stored;
  document.addEventListener("click", (event) => {
    if (!event.target.closest("[data-theme-switch]")) return;
    const dark = document.documentElement.dataset.theme === "dark" ||
      (!document.documentElement.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches);
    document.documentElement.dataset.theme = dark ? "light" : "dark";
    localStorage.setItem("truc-theme", dark ? "light" : "dark");
  });
})();
