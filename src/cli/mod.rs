//! The command line: one file or folder per subject.

mod activity;
mod backup;
mod check;
mod commands;
mod config;
mod contact;
mod desk;
mod failure;
mod health;
mod help;
mod letters;
mod mail;
pub mod people;
mod releases;
mod run;
mod serve;
mod site;
mod statistics;
mod terminal;
mod tokens;

pub use commands::main;
