//! Pages of a list that is shown newest first.

/// Where a page begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PageStart<P> {
    Newest,
    /// After this place, towards older ones.
    OlderThan(P),
    /// Before this place, towards newer ones.
    NewerThan(P),
}

impl<P> PageStart<P> {
    /// The same way on, after another place.
    pub fn after(&self, place: P) -> Self {
        match self {
            Self::Newest | Self::OlderThan(_) => Self::OlderThan(place),
            Self::NewerThan(_) => Self::NewerThan(place),
        }
    }

    /// Whether the newest page is the one to show, because no more than a page was found that is newer.
    pub const fn leads_to_newest(&self, found: usize, limit: usize) -> bool {
        matches!(self, Self::NewerThan(_)) && found <= limit
    }
}

/// One page, newest first, and whether there are others beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    pub items: Vec<T>,
    pub has_newer: bool,
    pub has_older: bool,
}

impl<T> Page<T> {
    /// Makes a page of at most `limit` items from up to one more than that, in the order in which they follow the start.
    pub fn new<P>(start: &PageStart<P>, mut items: Vec<T>, limit: usize) -> Self {
        let has_more = items.len() > limit;
        items.truncate(limit);
        match start {
            PageStart::Newest => Self { items, has_newer: false, has_older: has_more },
            PageStart::OlderThan(_) => Self { items, has_newer: true, has_older: has_more },
            PageStart::NewerThan(_) => {
                items.reverse();
                Self { items, has_newer: has_more, has_older: true }
            }
        }
    }
}
