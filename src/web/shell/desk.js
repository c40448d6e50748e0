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

// The notes of a release are shown as they are typed: the answer takes the place of what the frame shows, so that it keeps its
// place, and the history of the browser gets no entries. Without this, a button sends the form into the frame.
function previewNotes(text) {
  const frame = text.form.querySelector('iframe');
  let [timer, latest] = [0, 0];
  text.form.querySelector('[formtarget]').hidden = true;
  const show = async () => {
    const number = (latest += 1);
    const body = new FormData();
    body.append('notes', text.value);
    const answer = await fetch(text.dataset.preview, { method: 'POST', body }).catch(() => undefined);
    if (!answer?.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
    if (number === latest) frame.contentDocument?.body.replaceWith(page.body);
  };
  text.addEventListener('input', () => {
    clearTimeout(timer);
    timer = setTimeout(show, 250);
  });
  // What was typed before the page was sent.
  if (text.value !== '') frame.addEventListener('load', show, { once: true });
}
document.querySelectorAll('textarea[data-preview]').forEach(previewNotes);

// A disk image can be dropped anywhere on the page. First the service checks the fields with the length and the end of the image;
// then all of it is sent, with its progress and a button that stops it. A refusal leaves the form as it is.
const upload = document.querySelector('form[data-upload]');
if (upload) {
  const file = upload.elements.file;
  const sending = upload.querySelector('.sending');
  const [bar, sentence, cancel] = ['progress', 'p', 'button'].map((name) => sending.querySelector(name));
  const failure = upload.querySelector('[data-failure]');
  const publish = upload.querySelector('button.button');
  const hasFiles = (event) => event.dataTransfer?.types.includes('Files');
  const mark = (on) => document.body.classList.toggle('dropping', on);
  let request;

  addEventListener('dragover', (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    mark(true);
  });
  addEventListener('dragleave', (event) => event.relatedTarget ?? mark(false));
  addEventListener('drop', (event) => {
    mark(false);
    if (!hasFiles(event) || event.target === file) return;
    event.preventDefault();
    upload.closest('details').open = true;
    if (!request) file.files = event.dataTransfer.files;
    (upload.elements.version.value ? publish : upload.elements.version).focus();
  });

  addEventListener('beforeunload', (event) => request && event.preventDefault());

  const end = (text, name = 'failing') => {
    request = undefined;
    sending.hidden = true;
    publish.disabled = false;
    failure.textContent = text;
    failure.className = name;
    failure.hidden = false;
    publish.focus();
  };
  const megabytes = (bytes) => Math.floor(bytes / 1e6).toLocaleString('en');
  const wait = (seconds) => {
    if (seconds < 90) return `about ${Math.max(1, Math.round(seconds))} second${Math.round(seconds) > 1 ? 's' : ''} left`;
    return `about ${Math.round(seconds / 60)} minutes left`;
  };

  const finish = ({ status, responseURL, responseText }) => {
    if (status === 204) return send(new FormData(upload));
    const page = new DOMParser().parseFromString(responseText, 'text/html');
    const text = (page.querySelector('#refused') ?? page.querySelector('main p'))?.textContent;
    const [main, notes] = ['main', 'main textarea[data-preview]'].map((name) => page.querySelector(name));
    if (status !== 200 && (page.querySelector('form[data-upload]') || !notes)) return end(text ?? 'The service did not answer as expected. Try again.');
    request = undefined;
    if (status === 200) return location.assign(responseURL);
    // The release is published already: its page has what was typed.
    document.querySelector('main').replaceWith(main);
    document.title = page.title;
    history.replaceState(null, '', notes.form.action);
    previewNotes(notes);
    main.focus();
  };
  const send = (fields) => {
    const sent = (request = new XMLHttpRequest());
    const started = performance.now();
    let shown = 0;
    const progress = ({ loaded, total }) => {
      const now = performance.now();
      if (loaded < total && now - shown < 500) return;
      shown = now;
      bar.value = loaded / total;
      const left = ((now - started) / 1000 / loaded) * (total - loaded);
      sentence.textContent = loaded < total
        ? `${megabytes(loaded)} of ${megabytes(total)} MB, ${wait(left)}`
        : 'All of it has arrived, and is being checked.';
    };
    if (!fields.has('length')) sent.upload.addEventListener('progress', progress);
    sent.addEventListener('load', () => finish(sent));
    sent.addEventListener('error', () => end('The connection was lost, and nothing was published. Press the button to try again.'));
    sent.addEventListener('abort', () => end('The upload was cancelled. Nothing was published.', 'of'));
    sent.open('POST', upload.action);
    sent.send(fields);
  };
  upload.addEventListener('submit', (event) => {
    if (event.submitter?.formTarget) return;
    event.preventDefault();
    if (request) return;
    const fields = new FormData(upload);
    const [image] = file.files;
    // What follows a file is not read.
    fields.delete('file');
    fields.set('length', image.size);
    fields.set('file', image.slice(-512), image.name);
    failure.hidden = true;
    publish.disabled = true;
    sentence.textContent = 'The upload begins.';
    bar.value = 0;
    sending.hidden = false;
    cancel.focus();
    send(fields);
  });
  cancel.addEventListener('click', () => request?.abort());
}
