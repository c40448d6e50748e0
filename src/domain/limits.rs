//! The published limits, each written here and nowhere else.
//!
//! Lengths count Unicode code points unless they say otherwise.

/// Longest address, as typed.
pub const EMAIL: usize = 254;
/// Longest local part of an address, in octets.
pub const LOCAL_PART: usize = 64;
/// Longest `source`: where a request came from.
pub const SOURCE: usize = 32;
/// Longest name of somebody who writes to the makers.
pub const NAME: usize = 100;
/// Shortest message, surrounding space left out.
pub const MESSAGE_MIN: usize = 2;
/// Longest message.
pub const MESSAGE: usize = 4000;
/// Largest request body, in bytes.
pub const BODY: usize = 64 * 1024;
/// How deep a JSON body may nest.
pub const JSON_DEPTH: usize = 127;
