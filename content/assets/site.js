// The two forms in place, copy buttons and the counter. Without this file everything still works by plain post.

const speaker = document.createElement("p");
speaker.className = "unseen";
speaker.setAttribute("role", "status");
document.body.append(speaker);
const say = (words) => {
  speaker.textContent = "";
  requestAnimationFrame(() => { speaker.textContent = words; });
};

// Forms ---------------------------------------------------------------------

const AWAY = "The service cannot be reached just now. Nothing is lost; please try again in a moment.";
const BUSY = "The service is busy just now. Please try again in a moment; sending twice does no harm.";

for (const form of document.querySelectorAll("form[data-api]")) {
  form.noValidate = true;
  form.addEventListener("submit", (event) => {
    if (form.elements.website_confirm.value) return; // the plain post says what is wrong
    event.preventDefault();
    if (form.ariaBusy !== "true") send(form);
  });
  form.addEventListener("input", ({ target }) => {
    if (target.ariaInvalid === "true") show(form, target.name, "");
  });
  const summary = form.querySelector(".summary");
  if (!summary.hidden) summary.focus();
}

function bodyOf(form) {
  const { name, email, message, updates } = form.elements;
  if (updates) return { email: email.value, updates: updates.checked, source: "site" };
  const body = { email: email.value, message: message.value };
  if (name.value) body.name = name.value;
  return body;
}

async function send(form) {
  const button = form.querySelector("[type=submit]");
  const idle = button.textContent;
  clear(form);
  form.ariaBusy = "true";
  button.setAttribute("aria-disabled", "true");
  button.textContent = button.dataset.busy;
  say(button.dataset.busy);
  try {
    const response = await fetch(form.dataset.api, {
      method: "POST",
      headers: { "Content-Type": "application/json", Accept: "application/json" },
      body: JSON.stringify(bodyOf(form)),
      signal: AbortSignal.timeout(20000),
    });
    const answer = await response.json();
    if (response.ok) return done(form, answer);
    refuse(form, answer);
  } catch {
    complain(form, AWAY);
  }
  form.ariaBusy = "false";
  button.removeAttribute("aria-disabled");
  button.textContent = idle;
}

function refuse(form, problem) {
  let first;
  for (const { pointer, detail } of problem.errors ?? []) {
    const field = form.elements[pointer.slice(2)];
    if (!field) continue;
    show(form, field.name, detail);
    first ??= field;
  }
  if (first) first.focus();
  else complain(form, problem.status === 503 ? BUSY : problem.detail ?? AWAY);
}

function show(form, name, words) {
  const field = form.elements[name];
  const error = document.getElementById(`${name}-error`);
  if (!error) return;
  error.textContent = words;
  if (words) field.setAttribute("aria-invalid", "true");
  else field.removeAttribute("aria-invalid");
}

function complain(form, words) {
  const summary = form.querySelector(".summary");
  const line = document.createElement("p");
  line.textContent = words;
  summary.replaceChildren(line);
  summary.hidden = false;
  summary.focus();
}

function clear(form) {
  const summary = form.querySelector(".summary");
  summary.hidden = true;
  summary.replaceChildren();
  for (const error of form.querySelectorAll(".error")) show(form, error.id.replace(/-error$/, ""), "");
}

function done(form, answer) {
  const panel = document.getElementById(form.dataset.done).content.firstElementChild.cloneNode(true);
  if (!answer.already) panel.querySelector("[data-already]")?.remove();
  const again = panel.querySelector("[data-url]");
  if (again) again.href = answer.url;
  form.closest(".sheet").classList.add("done");
  form.replaceWith(panel);
  panel.focus();
  if (!answer.url) return;
  const link = document.createElement("a");
  link.href = answer.url;
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
  const format = new Intl.NumberFormat("en");
  const count = () => {
    const left = limit - [...message.value].length;
    counter.hidden = left > limit / 10;
    counter.classList.toggle("over", left < 0);
    counter.textContent = left < 0
      ? `${format.format(-left)} over the limit of ${format.format(limit)}`
      : `${format.format(left)} characters left`;
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
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(pre.textContent);
        button.textContent = "Copied";
      } catch {
        button.textContent = "Not copied";
      }
      say(button.textContent);
      setTimeout(() => { button.textContent = "Copy"; }, 2000);
    });
    box.prepend(button);
  }
}

// The contents mark the section in view --------------------------------------

const entries = new Map();
for (const link of document.querySelectorAll(".contents a")) entries.set(link.hash.slice(1), link);
if (entries.size) {
  const watcher = new IntersectionObserver((seen) => {
    for (const { isIntersecting, target } of seen) {
      if (!isIntersecting) continue;
      for (const link of entries.values()) link.removeAttribute("aria-current");
      entries.get(target.id).setAttribute("aria-current", "true");
    }
  }, { rootMargin: "-10% 0px -75% 0px" });
  for (const id of entries.keys()) {
    const heading = document.getElementById(id);
    if (heading) watcher.observe(heading);
  }
}
