// The search box of every page: / leads to it, Escape back to the page.

const box = document.querySelector("[data-search]");

document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
  const at = event.target;
  if (!box || (at instanceof Element && at.closest("input, select, textarea, [contenteditable]"))) return;
  event.preventDefault();
  box.focus();
  box.select();
});

box?.addEventListener("keydown", (event) => {
  if (event.key === "Escape") document.getElementById("main")?.focus();
});
