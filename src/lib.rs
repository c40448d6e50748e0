//! Porchlight: the website service of a native Mac app.
//!
//! Layers, each using only those below it: `cli` 5, [`serve`] 4, [`web`] 3, [`actions`] 2, [`store`],
//! [`mail`], [`site`], [`bucket`], [`probe`], [`tls`], [`acme`] and [`logging`] 1, [`domain`], [`config`], [`clock`],
//! `blocking` and [`http_client`] 0. See `ARCHITECTURE.md`.

pub mod acme;
pub mod actions;
mod blocking;
pub mod bucket;
pub mod cli;
pub mod clock;
pub mod config;
pub mod domain;
pub mod http_client;
pub mod logging;
pub mod mail;
pub mod probe;
pub mod serve;
pub mod site;
pub mod store;
pub mod tls;
pub mod web;
