//! Front matter: the lines `name: value` between two lines of `---` at the top of a Markdown file.
//!
//! Whether a file needs front matter, and what it must say, is up to the caller.

use crate::domain::parse::Invalid;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrontMatter {
    /// With the numbers of their lines.
    fields: Vec<(usize, String, String)>,
    /// The number of the first line that is not of the form `name: value`. Lines count from 1.
    pub invalid_line: Option<usize>,
    /// The number of the line that ends it.
    pub end_line: usize,
}

impl FrontMatter {
    /// Splits a file into its front matter and its body. Returns `None` and the whole text if the
    /// first line is not `---`.
    pub fn split(text: &str) -> Result<(Option<Self>, String), Invalid> {
        let mut lines = text.lines();
        if lines.next().map(str::trim_end) != Some("---") {
            return Ok((None, text.to_owned()));
        }
        let (mut fields, mut invalid_line) = (Vec::new(), None);
        for (number, line) in (2..).zip(lines.by_ref()) {
            if line.trim_end() == "---" {
                let body = lines.collect::<Vec<_>>().join("\n");
                return Ok((Some(Self { fields, invalid_line, end_line: number }), body));
            }
            match line.split_once(':') {
                Some((name, value)) => fields.push((number, name.trim().to_owned(), value.trim().to_owned())),
                None => invalid_line = invalid_line.or(Some(number)),
            }
        }
        Err(Invalid::new("its front matter does not end with a line of ---"))
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.fields.iter().find_map(|(_, field, value)| (field == name).then_some(value.as_str()))
    }

    /// The number of the line of a field, or of the first line.
    pub fn line_of(&self, name: &str) -> usize {
        self.fields.iter().find_map(|(line, field, _)| (field == name).then_some(*line)).unwrap_or(1)
    }

    /// Every field with its value, in the order of the file.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &str)> {
        self.fields.iter().map(|(_, name, value)| (name.as_str(), value.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn front_matter_is_split_from_the_body() {
        let (front_matter, body) = FrontMatter::split("---\ntitle: One: two \nb:\n--- \n\n# Hi\r\n---\n").unwrap();
        let front_matter = front_matter.unwrap();
        assert_eq!((front_matter.get("title"), front_matter.get("b")), (Some("One: two"), Some("")));
        assert_eq!((front_matter.get("c"), front_matter.invalid_line), (None, None));
        assert_eq!((front_matter.line_of("b"), front_matter.line_of("c")), (3, 1));
        assert_eq!((front_matter.end_line, body.as_str()), (4, "\n# Hi\n---"));
    }

    #[test]
    fn a_file_may_have_no_front_matter() {
        for text in ["", "# Hi\n\n---\na: b\n---\n", "\n---\na: b\n---\n"] {
            assert_eq!(FrontMatter::split(text), Ok((None, text.to_owned())));
        }
    }

    #[test]
    fn front_matter_has_an_end() {
        for text in ["---", "---\na: b\n", "---\na: b\n----\n"] {
            assert!(FrontMatter::split(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_first_line_that_is_no_field_is_reported() {
        let (front_matter, _) = FrontMatter::split("---\na: b\nnonsense\n\nc: d\n---\n").unwrap();
        let front_matter = front_matter.unwrap();
        assert_eq!((front_matter.invalid_line, front_matter.get("c")), (Some(3), Some("d")));
    }
}
