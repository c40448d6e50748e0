// A page as a screen reader reads it: the browser's accessibility tree from its beginning to its end, as text.

/** Roles that begin a line of their own, with the word that is said for them; those without a word are said by their content. */
const BLOCKS = {
  banner: 'banner', navigation: 'navigation', main: 'main', contentinfo: 'content info', complementary: 'complementary', region: 'region',
  form: 'form', article: 'article', figure: 'figure', group: 'group', list: 'list', listitem: '•', heading: 'heading', paragraph: '',
  status: 'status', alert: 'alert', table: 'table', row: 'row', textbox: 'edit', checkbox: 'check box', button: 'button',
  DisclosureTriangle: 'disclosure', Details: '', DescriptionList: 'list of terms', term: 'term', definition: 'definition', image: 'image',
  blockquote: 'quote', separator: 'separator', search: 'search', searchbox: 'search field', combobox: 'edit with suggestions', Date: 'date',
  progressbar: 'progress bar', Iframe: 'frame',
};
const CONTROLS = ['link', 'button', 'textbox', 'searchbox', 'checkbox', 'DisclosureTriangle', 'combobox', 'Date', 'progressbar', 'Iframe'];
/** Said as a whole: what is in them is their name. */
const LEAVES = ['heading', 'textbox', 'searchbox', 'checkbox', 'button', 'DisclosureTriangle', 'image', 'term', 'combobox', 'Date', 'progressbar', 'Iframe'];
const FIELDS = ['textbox', 'searchbox', 'combobox'];
/** Parts of a line. */
const INLINE = ['StaticText', 'InlineTextBox', 'ListMarker', 'LineBreak', 'link'];
/** Nothing is said for them if they have no content. */
const SILENT_IF_EMPTY = ['paragraph', 'status', 'alert', 'listitem'];
const LIVE = ['status', 'alert'];

/** Notes what is announced; runs in the page before its own scripts. */
export function noteAnnouncements() {
  const LIVE = '[role=alert], [role=status], [aria-live=polite], [aria-live=assertive]';
  const announced = (window.announced = []);
  const last = new Map();
  const note = (changes, isNew) => {
    const regions = new Set(changes.map(({ target }) => (target.closest ? target : target.parentElement)?.closest(LIVE)));
    for (const region of regions) {
      const text = region?.checkVisibility() ? region.innerText.replace(/\s+/g, ' ').trim() : '';
      if (isNew && text && last.get(region) !== text) announced.push(text);
      if (region) last.set(region, text);
    }
  };
  // What is there from the beginning is read in its place. The changes of the parser may come after its end.
  const observer = new MutationObserver((changes) => note(changes, document.readyState !== 'loading'));
  document.addEventListener('readystatechange', () => note(observer.takeRecords(), false), { once: true });
  observer.observe(document, { subtree: true, childList: true, characterData: true, attributes: true, attributeFilter: ['hidden'] });
}

/** What a screen reader says, and what is wrong with it whatever was recorded. */
export async function readAloud(page) {
  const session = await page.context().newCDPSession(page);
  await session.send('Accessibility.enable');
  const { nodes } = await session.send('Accessibility.getFullAXTree');
  const { root } = await session.send('DOM.getDocument', { depth: -1 });
  await session.detach();
  const reading = new Reading(nodes, new Set(currentPages(root)));
  const announced = await page.evaluate(() => window.announced ?? []);
  const head = [`title: ${await page.title()}`, ...announced.map((text) => `announced: ${text}`), ...reading.focus()];
  return { text: [...head, '', ...reading.lines()].join('\n') + '\n', findings: reading.findings };
}

class Reading {
  constructor(nodes, current) {
    this.current = current;
    this.byId = new Map(nodes.map((node) => [node.nodeId, node]));
    this.root = nodes[0];
    this.findings = [];
  }

  focus() {
    const focused = [...this.byId.values()].filter((node) => property(node, 'focused') && role(node) !== 'RootWebArea');
    return focused.map((node) => `focus: ${this.#label(node) || role(node)}`);
  }

  lines() {
    const lines = this.#children(this.root).flatMap((child) => this.#block(child));
    // As they are read: the nodes themselves come in another order.
    const below = (node) => this.#children(node).flatMap((child) => [child, ...below(child)]);
    const headings = below(this.root).filter((node) => role(node) === 'heading').map((node) => property(node, 'level'));
    if (headings.filter((level) => level === 1).length !== 1) this.findings.push('there is not exactly one heading of level 1');
    headings.reduce((before, level) => {
      if (level > before + 1) this.findings.push(`a heading of level ${level} follows one of level ${before}`);
      return level;
    }, 0);
    return merged(lines).map(({ depth, text }) => `${'  '.repeat(depth)}${text}`);
  }

  /** The children that are said; those that are left out themselves are replaced by theirs. */
  #children(node) {
    return (node.childIds ?? []).map((id) => this.byId.get(id)).filter(Boolean)
      .flatMap((child) => (child.ignored || (['generic', 'none'].includes(role(child)) && !name(child)) ? this.#children(child) : [child]));
  }

  /** Lines of a node. Pieces of text that follow each other belong to one line, and have `inline`. */
  #block(node) {
    const kind = role(node);
    if (CONTROLS.includes(kind) && !name(node)) this.findings.push(`a ${kind} without a name`);
    if (kind === 'image' && !name(node)) this.findings.push('an image without a name');
    if (INLINE.includes(kind)) return [{ depth: 0, text: this.#inline(node), inline: true }];
    if (!(kind in BLOCKS)) return this.#children(node).flatMap((child) => this.#block(child));
    const label = this.#label(node);
    if (LEAVES.includes(kind)) return [{ depth: 0, text: label }];
    const inner = merged(this.#children(node).flatMap((child) => this.#block(child)));
    if (!inner.length && SILENT_IF_EMPTY.includes(kind)) return [];
    if (!label) return inner.map((line) => ({ ...line, inline: false }));
    // A short item and its content are one line.
    if (inner.length && !inner[0].depth && !name(node) && ['listitem', 'definition'].includes(kind)) {
      const [first, ...others] = inner;
      return [{ depth: 0, text: `${label} ${first.text}` }, ...others.map((line) => ({ ...line, depth: line.depth + 1, inline: false }))];
    }
    return [{ depth: 0, text: label }, ...inner.map((line) => ({ ...line, depth: line.depth + 1, inline: false }))];
  }

  #inline(node) {
    const kind = role(node);
    if (kind === 'StaticText') return name(node);
    if (kind === 'InlineTextBox' || kind === 'ListMarker') return '';
    if (kind === 'LineBreak') return ' ';
    return `[link: ${this.#label(node)}]`;
  }

  /** The word for the role, the name, and the states. */
  #label(node) {
    const kind = role(node);
    const value = node.value?.value;
    const is = (key, wanted = true) => String(property(node, key)) === String(wanted);
    const states = [
      is('required') && 'required', is('invalid') && 'invalid', is('disabled') && 'unavailable', is('busy') && 'busy',
      kind === 'checkbox' && (is('checked') ? 'checked' : 'not checked'),
      kind === 'DisclosureTriangle' && (is('expanded') ? 'expanded' : 'collapsed'),
      this.current.has(node.backendDOMNodeId) && 'current page',
      node.description?.value && `described as “${node.description.value}”`,
      kind === 'progressbar' && `${value} of ${property(node, 'valuemax')}`,
      FIELDS.includes(kind) && (value ? `contains “${value.length > 80 ? `${value.slice(0, 60)}…” (${value.length} characters)` : `${value}”`}` : 'empty'),
    ].filter(Boolean);
    const word = kind === 'heading' ? `heading ${property(node, 'level')}` : kind === 'list' ? `list of ${this.#children(node).length}` : BLOCKS[kind] ?? '';
    const called = name(node).replace(/\s+/g, ' ').trim();
    return [[word, called].filter(Boolean).join(LIVE.includes(kind) || called ? ': ' : ''), ...states].filter(Boolean).join(', ');
  }
}

/** The elements that are marked as the current page, which the protocol leaves out of the accessibility tree. */
const currentPages = ({ attributes = [], children = [], backendNodeId }) =>
  [...(attributes[attributes.indexOf('aria-current') + 1] === 'page' ? [backendNodeId] : []), ...children.flatMap(currentPages)];

const role = (node) => node.role?.value;
const name = (node) => node.name?.value ?? '';
const property = (node, key) => node.properties?.find((each) => each.name === key)?.value.value;

/** Joins pieces of text that follow each other, and leaves out what is empty. */
function merged(lines) {
  const result = [];
  for (const line of lines) {
    const before = result.at(-1);
    if (line.inline && before?.inline) before.text += (before.text.endsWith(']') && line.text.startsWith('[') ? ' ' : '') + line.text;
    else result.push({ ...line });
  }
  return result.map((line) => ({ ...line, text: line.text.replace(/\s+/g, ' ').trim() })).filter(({ text }) => text);
}
