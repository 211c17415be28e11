// A page that reloads its content every few seconds while it is visible.

import { fetchPage, replacePart } from "./pages.js";

const PART = "content";
const every = Number(document.getElementById(PART).dataset.refresh) * 1000;

setInterval(async () => {
  const busy = document.getElementById(PART).contains(document.activeElement);
  if (document.hidden || busy) return;
  try {
    replacePart(PART, await fetchPage(location.href));
  } catch { /* The server cannot be reached; the page stays as it is. */ }
}, every);
