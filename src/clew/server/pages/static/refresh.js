// A page that looks again every few seconds, while somebody looks at it.

import { fetchPage, replacePart } from "./pages.js";

const PART = "content";
const every = Number(document.getElementById(PART).dataset.refresh) * 1000;

setInterval(async () => {
  const busy = document.getElementById(PART).contains(document.activeElement);
  if (document.hidden || busy) return;
  try {
    replacePart(PART, await fetchPage(location.href));
  } catch { /* The server is away; the page stays as it is. */ }
}, every);
