//! Helps with names that somebody mistyped.

/// A sentence that names the known name that is most like `name`, with a space before it; empty if none is.
pub fn did_you_mean<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let distance = |known: &str| strsim::osa_distance(&name.to_lowercase(), &known.to_lowercase());
    let nearest = known.into_iter().map(|known| (distance(known), known)).min();
    let likely = nearest.filter(|(distance, known)| *distance <= 1 + known.chars().count() / 4);
    likely.map(|(_, known)| format!(" Did you mean `{known}`?")).unwrap_or_default()
}

/// The message of serde about an unknown field, with the nearest known one instead of all of them.
pub fn name_nearest_field(message: &str) -> String {
    let mut names = message.split('`').skip(1).step_by(2);
    match names.next().filter(|_| message.starts_with("unknown field")) {
        Some(unknown) => format!("unknown name `{unknown}`.{}", did_you_mean(unknown, names)),
        None => message.to_owned(),
    }
}

/// The number of the line in which the byte at this place is.
pub fn line_at(text: &str, place: usize) -> usize {
    1 + text.as_bytes().iter().take(place).filter(|byte| **byte == b'\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_similar_name_is_suggested_unless_it_is_too_different() {
        let known = ["base_url", "data_dir", "site_dir"];
        for (name, expected) in [("base_ulr", "base_url"), ("Site_dir", "site_dir"), ("sitedir", "site_dir")] {
            assert_eq!(did_you_mean(name, known), format!(" Did you mean `{expected}`?"));
        }
        assert_eq!(did_you_mean("colour", known), "");
        assert_eq!(did_you_mean("x", []), "");
    }

    #[test]
    fn an_unknown_field_is_shown_with_the_nearest_one_alone() {
        let message = "unknown field `nmae`, expected one of `name`, `language`, `tagline`";
        assert_eq!(name_nearest_field(message), "unknown name `nmae`. Did you mean `name`?");
        assert_eq!(name_nearest_field("unknown field `x`, there are no fields"), "unknown name `x`.");
        assert_eq!(name_nearest_field("missing field `name`"), "missing field `name`");
    }
}
