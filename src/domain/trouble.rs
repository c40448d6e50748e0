//! What needs a hand of the makers.

/// Something that does not mend itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// What it is about, as a title.
    pub about: &'static str,
    /// What is wrong, one or more sentences.
    pub problem: String,
    /// What to do, one or more sentences.
    pub to_do: &'static str,
}
