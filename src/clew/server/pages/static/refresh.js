// A page that brings its content up to date every few seconds while it is visible. Focus, scrolling and folds stay.

import { fetchPage, morph } from "./pages.js";

const PART = "content";
const every = Number(document.getElementById(PART).dataset.refresh) * 1000;

setInterval(async () => {
  const part = document.getElementById(PART);
  const isBusy = part.contains(document.activeElement) && document.activeElement.matches("input, select, textarea, button");
  if (document.hidden || isBusy || !getSelection().isCollapsed) return;
  try {
    const fresh = (await fetchPage(location.href)).getElementById(PART);
    if (fresh) morph(part, fresh);
  } catch { /* The server cannot be reached; the page stays as it is. */ }
}, every);
