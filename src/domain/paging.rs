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

/// One page, newest first, and whether there are others beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    pub items: Vec<T>,
    pub has_newer: bool,
    pub has_older: bool,
}

impl<T> Page<T> {
    /// Makes the newest page of at most `limit` items, from one more than that if there is.
    pub fn newest(mut items: Vec<T>, limit: usize) -> Self {
        let has_older = items.len() > limit;
        items.truncate(limit);
        Self { items, has_newer: false, has_older }
    }

    /// As [`Self::newest`], from items in the order in which they follow the start. Returns `None` if fewer than a page are newer
    /// than that: then the newest page is the one to show.
    pub fn new<P>(start: &PageStart<P>, items: Vec<T>, limit: usize) -> Option<Self> {
        let mut page = Self::newest(items, limit);
        match start {
            PageStart::Newest => {}
            PageStart::OlderThan(_) => page.has_newer = true,
            PageStart::NewerThan(_) if !page.has_older => return None,
            PageStart::NewerThan(_) => {
                page.items.reverse();
                page.has_newer = true;
            }
        }
        Some(page)
    }
}
