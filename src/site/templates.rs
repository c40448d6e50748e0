//! Renders templates. The file name decides how values are escaped: for HTML, for XML, or not at all.
//! An undefined variable is an error.

use std::fmt::Write;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, ValueKind};
use minijinja::{AutoEscape, Environment, Error, ErrorKind, Output, State, UndefinedBehavior, escape_formatter};
use serde::Serialize;
use serde_json::{Value, json};

use super::assets::AssetLink;
use super::content::{Content, SiteFailure};
use super::filters;
use super::language::Words;
use crate::domain::text::did_you_mean;

const FOLDER: &str = "templates/";

/// Every template of the site, parsed.
#[derive(Clone, Debug)]
pub(super) struct Templates(Environment<'static>);

impl Templates {
    /// `link` finds an asset by its name, or says why there is none.
    pub(super) fn read(
        content: &Content,
        link: impl Fn(&str) -> Result<AssetLink, String> + Clone + Send + Sync + 'static,
    ) -> Result<Self, SiteFailure> {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        // So that a failure names the undefined variable.
        environment.set_debug(true);
        environment.set_syntax(syntax().map_err(|error| SiteFailure::fault(FOLDER, 1, error.to_string()))?);
        environment.set_auto_escape_callback(|name| match name.rsplit_once('.') {
            Some((_, "html" | "svg")) => AutoEscape::Html,
            Some((_, "xml" | "atom")) => AutoEscape::Custom("xml".into()),
            _ => AutoEscape::None,
        });
        environment.set_formatter(write_value);
        let link = move |name: String| link(&name).map_err(|why| Error::new(ErrorKind::InvalidOperation, why));
        let integrity = link.clone();
        environment
            .add_function("asset", move |name| link(name).map(|asset| minijinja::Value::from_safe_string(asset.path)));
        environment.add_function("integrity", move |name| {
            integrity(name).map(|asset| minijinja::Value::from_safe_string(asset.integrity))
        });
        filters::add(&mut environment);
        for file in content.names(FOLDER) {
            let name = file.trim_start_matches(FOLDER).to_owned();
            let text = content.text(&file)?;
            let added = environment.add_template_owned(name, text);
            added.map_err(|error| SiteFailure::fault(&file, error.line().unwrap_or(1), why(&error)))?;
        }
        Ok(Self(environment))
    }

    /// Adds the members of an object as global variables. The variables that a template is rendered with take precedence.
    pub(super) fn define(&mut self, variables: &Value) {
        for (name, value) in variables.as_object().into_iter().flatten() {
            self.0.add_global(name.clone(), minijinja::Value::from(Serde(value)));
        }
    }

    /// The same templates with the words of a language.
    pub(super) fn in_language(&self, words: &Words) -> Self {
        let mut templates = self.clone();
        templates.define(&json!({
            "language": words.language.as_str(),
            "words": words.groups,
            "script_words": words.for_script(),
        }));
        templates
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.0.get_template(name).is_ok()
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.templates().map(|(name, _)| name)
    }

    /// Renders one of the templates.
    pub(super) fn render(&self, name: &str, context: &Value) -> Result<String, SiteFailure> {
        let template = self.0.get_template(name).map_err(|error| self.fault(name, &error, context))?;
        template.render(Serde(context)).map_err(|error| self.fault(name, &error, context))
    }

    /// Renders a text that is not one of the templates: a page, or a file for agents.
    pub(super) fn render_str(&self, file: &str, text: &str, context: &impl Serialize) -> Result<String, SiteFailure> {
        self.0.render_named_str(file, text, Serde(context)).map_err(|error| self.fault(file, &error, context))
    }

    /// Names the nearest variable or template if an unknown one is the fault.
    fn fault(&self, file: &str, error: &Error, context: &impl Serialize) -> SiteFailure {
        let innermost = innermost(error);
        let (name, line, why) = (innermost.name().unwrap_or(file), innermost.line().unwrap_or(1), why(innermost));
        let is_template = self.names().any(|template| template == name);
        let file = if is_template { format!("{FOLDER}{name}") } else { name.to_owned() };
        let is_unknown = why.ends_with("is undefined") || why.contains("template");
        let Some(unknown) = why.split(['`', '"', '\'']).nth(1).filter(|_| is_unknown) else {
            return SiteFailure::fault(&file, line, why);
        };
        let context = json!(context);
        let variables = context.as_object().into_iter().flatten();
        let variables = variables.map(|(name, value)| (name.as_str(), minijinja::Value::from(Serde(value))));
        let mut known: Vec<_> = self.names().map(str::to_owned).collect();
        for (name, value) in self.0.globals().chain(variables) {
            let members = if value.kind() == ValueKind::Map { value.try_iter().ok() } else { None };
            known.extend(members.into_iter().flatten().map(|member| format!("{name}.{member}")));
            known.push(name.to_owned());
        }
        let meant = did_you_mean(unknown, known.iter().map(String::as_str));
        SiteFailure::fault(&file, line, format!("{why}.{meant}"))
    }
}

/// The failure in the innermost template.
fn innermost(error: &Error) -> &Error {
    let errors = std::iter::successors(Some(error), |error| {
        std::error::Error::source(*error).and_then(|source| source.downcast_ref::<Error>())
    });
    errors.filter(|error| error.name().is_some()).last().unwrap_or(error)
}

fn why(error: &Error) -> String {
    match (error.kind(), error.detail()) {
        (ErrorKind::UndefinedError | ErrorKind::TemplateNotFound, Some(detail)) => detail.to_owned(),
        (kind, Some(detail)) => format!("{kind}: {detail}"),
        (kind, None) => kind.to_string(),
    }
}

/// Writes a value into the output. In XML, characters that it does not allow are replaced, because they
/// cannot be escaped; the other formats are minijinja's own.
fn write_value(out: &mut Output, state: &mut State, value: &minijinja::Value) -> Result<(), Error> {
    if !matches!(state.auto_escape(), AutoEscape::Custom(_)) {
        return escape_formatter(out, state, value);
    }
    for c in value.to_string().chars() {
        match c {
            '&' => out.write_str("&amp;")?,
            '<' => out.write_str("&lt;")?,
            '>' => out.write_str("&gt;")?,
            '"' => out.write_str("&quot;")?,
            '\'' => out.write_str("&apos;")?,
            '\t' | '\n' | '\r' | ' '..='\u{fffd}' | '\u{10000}'.. => out.write_char(c)?,
            _ => out.write_char(char::REPLACEMENT_CHARACTER)?,
        }
    }
    Ok(())
}

/// The default syntax except for comments, whose `{#` would clash with `{#anchor}`.
fn syntax() -> Result<SyntaxConfig, Error> {
    SyntaxConfig::builder().comment_delimiters("<#", "#>").keep_trailing_newline(true).build()
}
