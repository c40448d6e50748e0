//! Filters of the templates. Most write values in the words of a language: the global variable `words`.

use minijinja::value::Kwargs;
use minijinja::{AutoEscape, Environment, Error, ErrorKind, HtmlEscape, State, Value};

use super::markdown::text_as_markdown;

pub(super) fn add(environment: &mut Environment<'static>) {
    environment.add_filter("fill", fill);
    environment.add_filter("date", date);
    environment.add_filter("size", size);
    environment.add_filter("period", period);
    environment.add_filter("markdown", |text: &str| text_as_markdown(text));
}

/// Replaces each `{name}` in a word by the value of that name. In HTML, the word and the values are escaped, unless they are safe.
#[expect(clippy::needless_pass_by_value, reason = "minijinja passes named arguments by value")]
fn fill(state: &State, word: &str, values: Kwargs) -> Result<Value, Error> {
    let is_html = matches!(state.auto_escape(), AutoEscape::Html);
    let escaped = |text: &str| if is_html { HtmlEscape(text).to_string() } else { text.to_owned() };
    let mut filled = escaped(word);
    for name in values.args() {
        let value: Value = values.get(name)?;
        if value.is_undefined() {
            return Err(Error::new(ErrorKind::UndefinedError, format!("the value of {name} is undefined")));
        }
        let text = value.to_string();
        filled = filled.replace(&format!("{{{name}}}"), &if value.is_safe() { text } else { escaped(&text) });
    }
    values.assert_all_used()?;
    Ok(if is_html { Value::from_safe_string(filled) } else { Value::from(filled) })
}

/// Writes a date such as `2026-11-15`.
fn date(state: &State, iso: String) -> Result<String, Error> {
    let words = words(state, "date")?;
    let [year, month, day] = iso.splitn(3, '-').collect::<Vec<_>>()[..] else { return Ok(iso) };
    let (Ok(month), Ok(day)) = (month.parse::<usize>(), day.parse::<u32>()) else { return Ok(iso) };
    let month = words.get_attr("months")?.get_item(&Value::from(month.saturating_sub(1)))?.to_string();
    let format = words.get_attr(if day == 1 { "first" } else { "format" })?.to_string();
    let day = day.to_string();
    let parts = [("{iso}", iso.as_str()), ("{day}", &day), ("{month}", &month), ("{year}", year)];
    Ok(parts.into_iter().fold(format, |format, (name, value)| format.replace(name, value)))
}

/// Writes a size such as `20.4 MB`.
fn size(state: &State, english: String) -> Result<String, Error> {
    let words = words(state, "size")?;
    let Some((number, unit)) = english.split_once(' ') else { return Ok(english) };
    let number = number.replace('.', &words.get_attr("decimal")?.to_string());
    Ok(format!("{number}{}{}", words.get_attr("space")?, words.get_attr(unit)?))
}

/// Writes a period such as `24 months`.
fn period(state: &State, english: String) -> Result<String, Error> {
    let (space, units) = (words(state, "size")?.get_attr("space")?, words(state, "period")?);
    let Some((number, unit)) = english.split_once(' ') else { return Ok(english) };
    Ok(format!("{number}{space}{}", units.get_attr(unit)?))
}

fn words(state: &State, group: &str) -> Result<Value, Error> {
    let words = state.lookup("words").ok_or_else(|| Error::new(ErrorKind::UndefinedError, "there are no words"))?;
    words.get_attr(group)
}
