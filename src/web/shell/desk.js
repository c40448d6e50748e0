// The desk works without this. It adds keys to lists: j and k move through the rows, Enter opens one, e does what the row or the
// page offers as its one key (a message is answered), / leads to the search. On a phone the row of pages shows the current one.
document.querySelector('.rail [aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'nearest' });

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
  e: () => {
    const row = document.activeElement.closest('.rows > li');
    const buttons = (row ?? document.querySelector('main')).querySelectorAll('[data-key=e]');
    if (row || buttons.length === 1) buttons[0]?.click();
  },
};

addEventListener('keydown', (event) => {
  const typing = event.target.closest?.('input, textarea, select, [contenteditable]');
  if (typing || event.ctrlKey || event.metaKey || event.altKey || !KEYS[event.key]) return;
  event.preventDefault();
  KEYS[event.key]();
});
