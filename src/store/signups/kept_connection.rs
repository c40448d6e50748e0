//! The connection of the last batch. The pool asks every connection that it hands out or gets back whether it works, which takes
//! round trips each time. After a while without writes the writer gives it back to the pool.

#[derive(Debug)]
pub(super) struct KeptConnection<C>(Option<C>);

impl<C> Default for KeptConnection<C> {
    fn default() -> Self {
        Self(None)
    }
}

impl<C> KeptConnection<C> {
    pub(super) const fn take(&mut self) -> Option<C> {
        self.0.take()
    }

    /// Keeps a connection whose last statement succeeded.
    pub(super) fn keep(&mut self, connection: C) {
        self.0 = Some(connection);
    }
}
