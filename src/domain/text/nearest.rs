//! Helps with names that somebody mistyped.

/// A sentence that names the known name that is most like `name`, with a space before it; empty if none is.
pub fn did_you_mean<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let distance = |known: &str| strsim::osa_distance(&name.to_lowercase(), &known.to_lowercase());
    let nearest = known.into_iter().map(|known| (distance(known), known)).min();
    let likely = nearest.filter(|(distance, known)| *distance <= 1 + known.chars().count() / 4);
    likely.map(|(_, known)| format!(" Did you mean `{known}`?")).unwrap_or_default()
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
}
