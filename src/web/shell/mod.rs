//! The frame of every page for makers: navigation, style, script and font, whatever the makers' own site looks like.

use std::sync::LazyLock;

use axum::response::{IntoResponse as _, Response};
use http::StatusCode;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use minijinja::value::Serde;
use minijinja::{Environment, Error, HtmlEscape, UndefinedBehavior};
use serde_json::{Value, json};

use super::app::App;
use super::representation::HTML;
use crate::domain::sha256::Sha256;
use crate::site::Content;

pub(crate) const STYLE_PATH: &str = "/dashboard.css";
/// Beside the style, which refers to it.
pub(crate) const SERIF_PATH: &str = "/serif.woff2";
/// The folder of the same files at the desk.
const DESK: &str = "/desk";
const SCRIPT: &str = "/desk.js";

const STYLE: &str = include_str!("desk.css");
const SCRIPT_TEXT: &str = include_str!("desk.js");
/// The font, among the files of the site.
const SERIF: &str = "assets/serif.woff2";

const TEMPLATES: [(&str, &str); 28] = [
    ("shell.html", include_str!("shell.html")),
    ("dashboard.html", include_str!("dashboard.html")),
    ("sign_in.html", include_str!("sign_in.html")),
    ("sign_in_link.html", include_str!("sign_in_link.html")),
    ("message.html", include_str!("message.html")),
    ("site.html", include_str!("site.html")),
    ("activity.html", include_str!("activity.html")),
    ("pager.html", include_str!("pager.html")),
    ("filters.html", include_str!("filters.html")),
    ("inbox.html", include_str!("inbox.html")),
    ("inbox_message.html", include_str!("inbox_message.html")),
    ("people.html", include_str!("people.html")),
    ("person.html", include_str!("person.html")),
    ("letters.html", include_str!("letters.html")),
    ("draft.html", include_str!("draft.html")),
    ("draft_problem.html", include_str!("draft_problem.html")),
    ("letter_ask.html", include_str!("letter_ask.html")),
    ("letter.html", include_str!("letter.html")),
    ("letter_recipients.html", include_str!("letter_recipients.html")),
    ("charts.html", include_str!("charts.html")),
    ("update_checks.html", include_str!("update_checks.html")),
    ("releases.html", include_str!("releases.html")),
    ("release.html", include_str!("release.html")),
    ("release_fields.html", include_str!("release_fields.html")),
    ("notes.html", include_str!("notes.html")),
    ("check.html", include_str!("check.html")),
    ("confirm.html", include_str!("confirm.html")),
    ("outcome.html", include_str!("outcome.html")),
];

/// Templates of the program, which no `site_dir` replaces. An undefined variable is an error.
static ENVIRONMENT: LazyLock<Result<Environment<'static>, Error>> = LazyLock::new(|| {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_debug(true);
    environment.add_filter("code", code);
    for (name, text) in TEMPLATES {
        environment.add_template(name, text)?;
    }
    Ok(environment)
});

/// Escapes a text, and shows what stands between backticks as code.
fn code(text: &str) -> minijinja::Value {
    let parts = text.split('`').enumerate().map(|(place, part)| match place % 2 {
        0 => HtmlEscape(part).to_string(),
        _ => format!("<code>{}</code>", HtmlEscape(part)),
    });
    minijinja::Value::from_safe_string(parts.collect())
}

/// What the frame shows besides the page.
#[derive(Clone, Debug, Default)]
pub(crate) struct Frame<'a> {
    /// The path of the page, if the navigation has it.
    pub current: &'a str,
    /// Whose session it is. `None`: nobody is signed in, and there is no navigation.
    pub session: Option<&'a str>,
    /// Whether a link leads to signing in.
    pub offers_sign_in: bool,
    /// Whether the page is one of the desk, which has scripts.
    pub is_of_desk: bool,
    /// The number of messages that wait for an answer.
    pub unanswered: Option<String>,
    /// What was just done.
    pub done: Option<&'static str>,
}

/// The pages of the navigation.
const NAVIGATION: [(&str, &str); 7] = [
    ("Overview", "/desk"),
    ("Inbox", "/desk/inbox"),
    ("People", "/desk/people"),
    ("Letters", "/desk/letters"),
    ("Releases", "/desk/releases"),
    ("Site", "/desk/site"),
    ("Activity", "/desk/activity"),
];

/// Renders a page. `page` has the variables of its template.
pub(crate) fn render(app: &App, status: StatusCode, template: &str, frame: &Frame, page: Value) -> Response {
    let site = &app.built().site;
    let folder = if frame.is_of_desk { DESK } else { "" };
    let style = format!("{folder}{STYLE_PATH}?{}", &*STYLE_VERSION);
    let navigation = NAVIGATION.map(|(name, path)| {
        let count = frame.unanswered.as_ref().filter(|_| name == "Inbox");
        json!({ "name": name, "path": path, "current": path == frame.current, "count": count })
    });
    let mut context = json!({
        "app_name": site.facts.name,
        "icon": site.assets.get("icon.svg").map(|icon| &icon.path),
        "style": style,
        "script": frame.is_of_desk.then(|| format!("{DESK}{SCRIPT}?{}", &*STYLE_VERSION)),
        "navigation": navigation,
        "session": frame.session,
        "offers_sign_in": frame.offers_sign_in,
        "done": frame.done,
    });
    if let (Value::Object(context), Value::Object(page)) = (&mut context, page) {
        context.extend(page);
    }
    let rendered = match &*ENVIRONMENT {
        Ok(environment) => environment.get_template(template).and_then(|template| template.render(Serde(&context))),
        Err(error) => Err(Error::new(error.kind(), error.to_string())),
    };
    match rendered {
        Ok(html) => (status, [(CONTENT_TYPE, HTML)], html + "\n").into_response(),
        Err(error) => {
            tracing::error!(%error, template, "cannot render a page for makers");
            (StatusCode::INTERNAL_SERVER_ERROR, "This page cannot be shown. The log says why.\n").into_response()
        }
    }
}

/// So that a new version of the program is not shown with the style of the old one.
static STYLE_VERSION: LazyLock<String> =
    LazyLock::new(|| Sha256::of([STYLE, SCRIPT_TEXT].concat().as_bytes()).short(8));

/// Responds with the style, the font, or at the desk the script. Browsers may cache them for a day.
pub(crate) fn file(path: &str) -> Option<Response> {
    let (of_desk, path) = path.strip_prefix(DESK).map_or((false, path), |path| (true, path));
    let (kind, bytes) = match path {
        STYLE_PATH => ("text/css; charset=utf-8", STYLE.into()),
        SCRIPT if of_desk => ("text/javascript; charset=utf-8", SCRIPT_TEXT.into()),
        SERIF_PATH => ("font/woff2", Content::default().bytes(SERIF).ok()?),
        _ => return None,
    };
    Some(([(CONTENT_TYPE, kind), (CACHE_CONTROL, "private, max-age=86400")], bytes).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_templates_can_be_read() {
        assert!(ENVIRONMENT.is_ok(), "{:?}", *ENVIRONMENT);
    }

    #[test]
    fn the_colors_and_fonts_are_those_of_the_built_in_site() {
        let site = Content::default().text("assets/style.css").unwrap();
        let of_site: Vec<_> = site.lines().map(str::trim).collect();
        let (_, tokens) = STYLE.split_once("value by value. */").unwrap();
        let tokens: Vec<_> = tokens.lines().skip(2).take_while(|line| *line != "}").map(str::trim).collect();
        assert!(tokens.len() > 15, "{tokens:?}");
        for token in tokens {
            assert!(of_site.contains(&token), "{token}");
        }
    }
}
