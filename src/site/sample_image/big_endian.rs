//! Numbers as Apple's formats write them, the most significant byte first.

#[derive(Default)]
pub(super) struct BigEndian(Vec<u8>);

impl BigEndian {
    pub(super) fn u8(self, number: usize) -> Self {
        self.number(number, 1)
    }

    pub(super) fn u16(self, number: usize) -> Self {
        self.number(number, 2)
    }

    pub(super) fn u32(self, number: usize) -> Self {
        self.number(number, 4)
    }

    pub(super) fn u64(self, number: usize) -> Self {
        self.number(number, 8)
    }

    pub(super) fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    pub(super) fn zeros(mut self, count: usize) -> Self {
        self.0.resize(self.0.len() + count, 0);
        self
    }

    pub(super) fn finish(self) -> Vec<u8> {
        self.0
    }

    fn number(self, number: usize, width: usize) -> Self {
        self.bytes(&(number as u64).to_be_bytes()[8 - width..])
    }
}
