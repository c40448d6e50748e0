// The desk works without this. It adds keys to lists: j and k move through the rows, Enter opens one, / leads to the search.
const rows = () => [...document.querySelectorAll('.rows > li')];
const link = (row) => row?.querySelector('a[href]');

function move(by) {
  const all = rows().filter(link);
  const at = all.findIndex((row) => row.contains(document.activeElement));
  link(all[Math.min(Math.max(at + by, 0), all.length - 1)])?.focus();
}

const KEYS = {
  j: () => move(1),
  k: () => move(-1),
  '/': () => document.querySelector('input[type=search]')?.focus(),
  // What the page offers as its one key, such as "answered" of a message.
  e: () => document.querySelector('[data-key=e]')?.click(),
};

addEventListener('keydown', (event) => {
  const typing = event.target.closest?.('input, textarea, select, [contenteditable]');
  if (typing || event.ctrlKey || event.metaKey || event.altKey || !KEYS[event.key]) return;
  event.preventDefault();
  KEYS[event.key]();
});
