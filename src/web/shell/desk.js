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

// A draft is saved a second after the last key, and shown as it will arrive.
const draft = document.querySelector('form[data-autosave]');
if (draft) {
  const frame = document.querySelector('#preview-frame');
  const said = document.querySelector('#saved');
  let timer;
  let saving = Promise.resolve();
  const save = async () => {
    const fields = new FormData(draft);
    fields.delete('image');
    fields.set('then', 'json');
    const answer = await fetch(draft.action, { method: 'POST', body: fields }).catch(() => null);
    if (!answer?.ok) {
      said.textContent = answer?.status === 422 ? 'Not saved: press Save to see why.' : 'Not saved: the service does not answer. It is tried again.';
      if (answer?.status !== 422) timer = setTimeout(() => (saving = saving.then(save)), 5000);
      return;
    }
    const { saved, at } = await answer.json();
    draft.elements.saved.value = saved;
    said.textContent = `Saved at ${at} UTC`;
    const place = frame.contentWindow.scrollY;
    frame.addEventListener('load', () => frame.contentWindow.scrollTo(0, place), { once: true });
    frame.contentWindow.location.reload();
  };
  draft.addEventListener('input', (event) => {
    if (event.target.type === 'file') return;
    clearTimeout(timer);
    timer = setTimeout(() => (saving = saving.then(save)), 1000);
  });
  draft.addEventListener('change', (event) => {
    if (event.target.type === 'file') draft.requestSubmit(draft.querySelector('[value=save]'));
  });
  // What is being saved carries the number that the form needs next.
  draft.addEventListener('submit', (event) => {
    clearTimeout(timer);
    if (draft.dataset.waited) return;
    event.preventDefault();
    // A form cannot be submitted before this event has ended.
    saving.then(() => setTimeout(() => {
      draft.dataset.waited = 'yes';
      draft.requestSubmit(event.submitter);
      delete draft.dataset.waited;
    }));
  });
}

// The progress of a letter, every two seconds.
const live = () => document.querySelector('#progress[data-live]');
const refresh = async () => {
  const answer = await fetch(location.href).catch(() => null);
  const page = answer?.ok && new DOMParser().parseFromString(await answer.text(), 'text/html');
  const now = page && page.querySelector('#progress');
  if (now) {
    const focused = live().contains(document.activeElement);
    live().replaceWith(now);
    if (focused) now.querySelector('button')?.focus();
    document.querySelector('#who + dl')?.replaceWith(page.querySelector('#who + dl') ?? '');
  }
  if (live()) setTimeout(refresh, 2000);
};
if (live()) setTimeout(refresh, 2000);
