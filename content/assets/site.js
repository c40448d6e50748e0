// Sends both forms with fetch, adds copy buttons and the character counter, and marks the current section.
// Without JavaScript the forms are posted as usual.

// A live region: screen readers announce its text.
const liveRegion = document.createElement("p");
liveRegion.className = "unseen";
liveRegion.setAttribute("role", "status");
document.body.append(liveRegion);
const announce = (text) => {
  liveRegion.textContent = "";
  requestAnimationFrame(() => { liveRegion.textContent = text; });
};

// Forms ---------------------------------------------------------------------

// Those of the page's language, if it is not English. The errors of the service are English then.
const translated = document.body.dataset.words;
const words = {
  unreachable: "The service cannot be reached just now. Nothing is lost; please try again in a moment.",
  left: "{count} characters left",
  over: "{count} over the limit of {limit}",
  copy: "Copy",
  copied: "Copied",
  notCopied: "Not copied",
  ...JSON.parse(translated ?? "{}"),
};

for (const form of document.querySelectorAll("form[data-api]")) {
  form.noValidate = true;
  form.addEventListener("submit", (event) => {
    if (form.elements.website_confirm.value) return; // The server responds to a filled honeypot.
    event.preventDefault();
    if (form.ariaBusy !== "true") send(form);
  });
  form.addEventListener("input", ({ target }) => {
    if (target.ariaInvalid === "true") showError(form, target.name, "");
  });
  const summary = form.querySelector(".summary");
  if (!summary.hidden) summary.focus();
}

function requestBody(form) {
  const { name, email, message, updates } = form.elements;
  if (updates) return { email: email.value, updates: updates.checked, source: "site" };
  const body = { email: email.value, message: message.value };
  if (name.value) body.name = name.value;
  return body;
}

async function send(form) {
  const button = form.querySelector("[type=submit]");
  const label = button.textContent;
  clearErrors(form);
  form.ariaBusy = "true";
  button.setAttribute("aria-disabled", "true");
  button.textContent = button.dataset.busy;
  announce(button.dataset.busy);
  try {
    const response = await fetch(form.dataset.api, {
      method: "POST",
      headers: { "Content-Type": "application/json", Accept: "application/json" },
      body: JSON.stringify(requestBody(form)),
      signal: AbortSignal.timeout(20000),
    });
    const body = await response.json();
    announce("");
    if (response.ok) return showDone(form, body);
    if (translated) return form.submit(); // The page that it leads to says what is wrong.
    showProblem(form, body);
  } catch {
    announce("");
    showSummary(form, words.unreachable);
  }
  form.ariaBusy = "false";
  button.removeAttribute("aria-disabled");
  button.textContent = label;
}

function showProblem(form, problem) {
  let first;
  for (const { pointer, detail } of problem.errors ?? []) {
    const field = form.elements[pointer.slice(2)];
    if (!field) continue;
    showError(form, field.name, detail);
    first ??= field;
  }
  if (first) first.focus();
  else showSummary(form, problem.detail ?? words.unreachable);
}

function showError(form, name, text) {
  const field = form.elements[name];
  const error = document.getElementById(`${name}-error`);
  if (!error) return;
  error.textContent = text;
  if (text) field.setAttribute("aria-invalid", "true");
  else field.removeAttribute("aria-invalid");
}

function showSummary(form, text) {
  const summary = form.querySelector(".summary");
  const line = document.createElement("p");
  line.textContent = text;
  summary.replaceChildren(line);
  summary.hidden = false;
  summary.focus();
}

function clearErrors(form) {
  const summary = form.querySelector(".summary");
  summary.hidden = true;
  summary.replaceChildren();
  for (const error of form.querySelectorAll(".error")) showError(form, error.id.replace(/-error$/, ""), "");
}

function showDone(form, result) {
  const panel = document.getElementById(form.dataset.done).content.firstElementChild.cloneNode(true);
  if (!result.already) panel.querySelector("[data-already]")?.remove();
  if (!form.elements.updates?.checked) panel.querySelector("[data-updates]")?.remove();
  const again = panel.querySelector("[data-url]");
  if (again) again.href = result.url;
  form.closest(".sheet").classList.add("done");
  form.replaceWith(panel);
  panel.focus();
  if (!result.url) return;
  const link = document.createElement("a");
  link.href = result.url;
  link.hidden = true;
  document.body.append(link);
  link.click();
  link.remove();
}

// Counter -------------------------------------------------------------------

const message = document.querySelector("textarea[data-limit]");
if (message) {
  const limit = Number(message.dataset.limit);
  const counter = document.getElementById("message-count");
  const format = new Intl.NumberFormat(document.documentElement.lang);
  const count = () => {
    const left = limit - [...message.value].length;
    counter.hidden = left > limit / 10;
    counter.classList.toggle("over", left < 0);
    // Hidden text would still describe the field.
    const text = left < 0 ? words.over.replace("{limit}", format.format(limit)) : words.left;
    counter.textContent = counter.hidden ? "" : text.replace("{count}", format.format(Math.abs(left)));
  };
  message.addEventListener("input", count);
  count();
}

// Copy buttons --------------------------------------------------------------

if (navigator.clipboard) {
  for (const pre of document.querySelectorAll("main pre")) {
    let box = pre.closest(".code");
    if (!box) {
      box = document.createElement("div");
      box.className = "code";
      pre.replaceWith(box);
      box.append(pre);
    }
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = words.copy;
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(pre.textContent);
        button.textContent = words.copied;
      } catch {
        button.textContent = words.notCopied;
      }
      announce(button.textContent);
      setTimeout(() => { button.textContent = words.copy; }, 2000);
    });
    box.append(button);
  }
}

// Table of contents ---------------------------------------------------------

const links = new Map();
for (const link of document.querySelectorAll(".contents a")) links.set(link.hash.slice(1), link);
if (links.size) {
  const observer = new IntersectionObserver((changes) => {
    for (const { isIntersecting, target } of changes) {
      if (!isIntersecting) continue;
      for (const link of links.values()) link.removeAttribute("aria-current");
      links.get(target.id).setAttribute("aria-current", "true");
    }
  }, { rootMargin: "-10% 0px -75% 0px" });
  for (const id of links.keys()) {
    const heading = document.getElementById(id);
    if (heading) observer.observe(heading);
  }
}
