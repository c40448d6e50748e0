// The desk works without this. It adds keys to lists: j and k move through the rows, Enter opens one, e does what the row or the
// page offers as its one key (a message is answered), / leads to the search.

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

const read = async (url) => {
  const answer = await fetch(url).catch(() => null);
  return answer?.ok ? new DOMParser().parseFromString(await answer.text(), 'text/html') : null;
};

// A draft is saved a second after the last key, at least every three seconds, and when the page is left. It is shown as it will
// arrive. An image that is chosen or dropped is put into the text.
const draft = document.querySelector('form[data-autosave]');
if (draft) {
  const { body, image } = draft.elements;
  const frame = document.querySelector('#preview-frame');
  const said = document.querySelector('#saved');
  const refused = document.querySelector('#refused');
  let timer;
  let saving = Promise.resolve();
  // It is read aloud only if it says something else.
  const say = (text) => said.textContent === text || (said.textContent = text);
  // When the oldest change was made that is not saved.
  let since = 0;
  let isSaving = false;
  // Until then there is no place where the maker was.
  let wasTyped = false;
  body.addEventListener('focus', () => (wasTyped = true), { once: true });
  const fields = (images) => {
    const all = new FormData(draft);
    if (!images) all.delete('image');
    all.set('then', 'json');
    return all;
  };
  const refuse = (text) => {
    refused.textContent = text ?? '';
    refused.hidden = !text;
  };
  const show = async () => {
    // There is no document if a link in the letter was followed.
    const place = frame.contentDocument?.scrollingElement?.scrollTop ?? 0;
    frame.addEventListener('load', () => frame.contentWindow.scrollTo(0, place), { once: true });
    frame.contentWindow.location.replace(`${draft.action}/preview`);
    const page = await read(location.href);
    for (const part of ['#shown-subject', '#images-and-problems']) if (page) document.querySelector(part).replaceWith(page.querySelector(part));
  };
  const save = async (images = false) => {
    const changed = since;
    [since, isSaving] = [0, true];
    const answer = await fetch(draft.action, { method: 'POST', body: fields(images) }).catch(() => null);
    const gone = { 403: 'Your session has ended. Sign in on another page, then press Save.', 404: 'This draft was deleted or sent elsewhere. Copy what you wrote into a new one.' }[answer?.status];
    const { saved, at, images: names = [], refused: why = gone } = (answer?.ok && (await answer.json().catch(() => null))) || {};
    isSaving = false;
    if (images) image.value = '';
    refuse(why);
    if (saved) {
      draft.elements.saved.value = saved;
      say(`Saved at ${at} UTC`);
    } else {
      since ||= changed || Date.now();
      say(why ? 'Your last changes are not saved' : 'Not saved: the service does not answer. It is tried again.');
      if (!why) timer = setTimeout(begin, 5000, false);
    }
    for (const name of names) {
      const place = wasTyped ? body.selectionEnd : body.value.length;
      const gap = place && body.value[place - 1] !== '\n' ? '\n\n' : '';
      body.setRangeText(`${gap}![What it shows](${name})\n`, place, place, 'end');
      wasTyped = true;
    }
    if (names.length) await save();
    else await show();
  };
  const begin = (images) => (saving = saving.then(() => save(images), () => save(images)));
  const later = () => {
    since ||= Date.now();
    clearTimeout(timer);
    timer = setTimeout(begin, Math.max(0, Math.min(1000, since + 3000 - Date.now())), false);
  };
  const add = () => {
    clearTimeout(timer);
    say('Adding…');
    begin(true);
  };
  draft.addEventListener('input', (event) => event.target === image || later());
  image.addEventListener('change', add);
  draft.addEventListener('dragover', (event) => event.dataTransfer?.types.includes('Files') && event.preventDefault());
  draft.addEventListener('drop', (event) => {
    if (!event.dataTransfer?.files.length) return;
    event.preventDefault();
    image.files = event.dataTransfer.files;
    add();
  });
  // What is being saved carries the number that the form needs next.
  draft.addEventListener('submit', (event) => {
    clearTimeout(timer);
    if (draft.dataset.waited) return;
    event.preventDefault();
    // A form cannot be submitted before this event has ended.
    saving.then(() => setTimeout(() => {
      since = 0;
      draft.dataset.waited = 'yes';
      draft.requestSubmit(event.submitter);
      delete draft.dataset.waited;
    }));
  });
  addEventListener('beforeunload', (event) => {
    if (since && (isSaving || !refused.hidden)) event.preventDefault();
  });
  addEventListener('pagehide', () => {
    if (since) navigator.sendBeacon(draft.action, fields(false));
  });
}

// The progress of a letter, every two seconds.
const live = () => document.querySelector('#progress[data-live]');
const refresh = async () => {
  const page = await read(location.href);
  const now = page?.querySelector('#progress');
  if (now) {
    const before = live().contains(document.activeElement) && document.activeElement.textContent;
    live().replaceWith(now);
    // Enter must not go on with what another window has just stopped.
    const same = [...now.querySelectorAll('button')].find((button) => button.textContent === before);
    if (before) (same ?? document.querySelector('main')).focus();
    const ended = document.querySelector('#ended');
    const [who, whoNow] = [document, page].map((each) => each.querySelector('section[aria-labelledby=who]'));
    if (whoNow && !who?.contains(document.activeElement)) who ? who.replaceWith(whoNow) : ended.after(whoNow);
    if (!live()) ended.textContent = now.querySelector('[data-sentence]').textContent;
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
  const arrived = upload.querySelector('[role=status]');
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

  /** With the name of the field that cannot be used. */
  const end = (text, name, kind = 'failing') => {
    request = undefined;
    sending.hidden = true;
    publish.disabled = false;
    arrived.textContent = '';
    failure.textContent = text;
    failure.className = kind;
    failure.hidden = false;
    const field = upload.elements[name];
    field?.setAttribute('aria-invalid', 'true');
    field?.closest('details').setAttribute('open', '');
    (field ?? publish).focus();
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
    if (status !== 200 && (page.querySelector('form[data-upload]') || !notes)) return end(text ?? 'The service did not answer as expected. Try again.', page.querySelector('main [aria-invalid]')?.name);
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
      if (loaded === total) arrived.textContent = sentence.textContent;
    };
    if (!fields.has('length')) sent.upload.addEventListener('progress', progress);
    sent.addEventListener('load', () => finish(sent));
    sent.addEventListener('error', () => end('The connection was lost, and nothing was published. Press the button to try again.'));
    sent.addEventListener('abort', () => end('The upload was cancelled. Nothing was published.', '', 'of'));
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
    upload.querySelector('[aria-invalid]')?.removeAttribute('aria-invalid');
    publish.disabled = true;
    sentence.textContent = 'The upload begins.';
    bar.value = 0;
    sending.hidden = false;
    cancel.focus();
    send(fields);
  });
  cancel.addEventListener('click', () => request?.abort());
}
