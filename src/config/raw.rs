//! Settings as text, from the command line, the environment or the file. Nothing is validated here.

use std::fmt;

use clap::Args;
use serde::{Deserialize, Serialize};

use super::secret::redacted;

/// The text of each setting. The doc comments are the help texts. Each must end in `[default: …]`, because
/// `config example` and `config show` parse it; a default without spaces is a literal value.
#[derive(Args, Clone, Default, Deserialize, Serialize)]
#[command(next_help_heading = "Settings (each also a line of porchlight.toml)")]
#[serde(default)]
pub struct RawSettings {
    /// Address and port of the public listener, or several, separated by commas; with a certificate port 443 of all addresses [default: 127.0.0.1:8080]
    #[arg(long, global = true, env = "PORCHLIGHT_LISTEN", value_name = "ADDRESSES")]
    pub listen: Option<String>,

    /// Public URL of the site, without a path; all absolute links start with it [default: http:// + listen]
    #[arg(long, global = true, env = "PORCHLIGHT_BASE_URL", value_name = "URL")]
    pub base_url: Option<String>,

    /// Gets certificates from an ACME authority, whose terms you accept with it; your address, for its notices [default: none]
    #[arg(long, global = true, env = "PORCHLIGHT_ACME_EMAIL", value_name = "ADDRESS")]
    pub acme_email: Option<String>,

    /// Directory URL of the ACME authority [default: Let's Encrypt]
    #[arg(long, global = true, env = "PORCHLIGHT_ACME_DIRECTORY", value_name = "URL")]
    pub acme_directory: Option<String>,

    /// PEM file with the root by which the ACME authority's own https is trusted [default: those of the system]
    #[arg(long, global = true, env = "PORCHLIGHT_ACME_CA_FILE", value_name = "FILE")]
    pub acme_ca_file: Option<String>,

    /// PEM file with the certificate of the site and those of its issuers; needs `tls_key` [default: none, plain HTTP]
    #[arg(long, global = true, env = "PORCHLIGHT_TLS_CERT", value_name = "FILE")]
    pub tls_cert: Option<String>,

    /// PEM file with the private key of `tls_cert` [default: none]
    #[arg(long, global = true, env = "PORCHLIGHT_TLS_KEY", value_name = "FILE")]
    pub tls_key: Option<String>,

    /// Address and port of plain HTTP that redirects to https, or several, or off [default: port 80 beside a `listen` on 443 with a certificate, else off]
    #[arg(long, global = true, env = "PORCHLIGHT_REDIRECT_LISTEN", value_name = "ADDRESSES|off")]
    pub redirect_listen: Option<String>,

    /// Further host names of the site, such as www.troupe.example, that redirect to `base_url`, separated by commas [default: none]
    #[arg(long, global = true, env = "PORCHLIGHT_ALSO_HOSTS", value_name = "HOSTS")]
    pub also_hosts: Option<String>,

    /// Folder of the embedded database [default: data]
    #[arg(long, global = true, env = "PORCHLIGHT_DATA_DIR", value_name = "FOLDER")]
    pub data_dir: Option<String>,

    /// Folder of the published disk images; all instances must share it [default: releases in the data folder]
    #[arg(long, global = true, env = "PORCHLIGHT_RELEASES_DIR", value_name = "FOLDER")]
    pub releases_dir: Option<String>,

    /// Bucket of an S3-compatible service for the disk images, instead of a folder: `s3://bucket/prefix`; its key comes from AWS_ variables [default: none]
    #[arg(long, global = true, env = "PORCHLIGHT_RELEASES_URL", value_name = "URL")]
    pub releases_url: Option<String>,

    /// `sqlite:PATH` or `postgres://user:password@host/database` [default: SQLite in the data folder]
    #[arg(long, global = true, env = "PORCHLIGHT_DATABASE_URL", hide_env_values = true, value_name = "URL")]
    pub database_url: Option<String>,

    /// URL on another host that always leads to the newest disk image [default: none]
    #[arg(long, global = true, env = "PORCHLIGHT_DOWNLOAD_URL", value_name = "URL")]
    pub download_url: Option<String>,

    /// Folder whose files replace those of the built-in site, by name [default: none]
    #[arg(long, global = true, env = "PORCHLIGHT_SITE_DIR", value_name = "FOLDER")]
    pub site_dir: Option<String>,

    /// Origins, other than the site's own, that may call /mcp from a browser, separated by commas [default: none]
    #[arg(long, global = true, env = "PORCHLIGHT_ALLOWED_ORIGINS", value_name = "ORIGINS")]
    pub allowed_origins: Option<String>,

    /// Address and port of the ops listener (dashboard, /metrics, /healthz, /readyz), or off [default: 127.0.0.1:8081]
    #[arg(long, global = true, env = "PORCHLIGHT_OPS_LISTEN", value_name = "ADDRESS|off")]
    pub ops_listen: Option<String>,

    /// Token required by the ops listener; needed if `ops_listen` is not a loopback address [default: none]
    #[arg(long, global = true, env = "PORCHLIGHT_OPS_TOKEN", hide_env_values = true, value_name = "TOKEN")]
    pub ops_token: Option<String>,

    /// Postal address printed in the monthly letter, as many countries require; needed to send one [default: none]
    #[arg(long, global = true, env = "PORCHLIGHT_POSTAL_ADDRESS", value_name = "ADDRESS")]
    pub postal_address: Option<String>,

    /// How many letters are sent per second [default: 10]
    #[arg(long, global = true, env = "PORCHLIGHT_LETTER_RATE", value_name = "NUMBER")]
    pub letter_rate: Option<String>,

    /// Whether robots.txt allows AI training on the site: yes or no [default: no]
    #[arg(long, global = true, env = "PORCHLIGHT_AI_TRAIN", value_name = "YES|NO")]
    pub ai_train: Option<String>,

    /// Whether HSTS, which an https `base_url` turns on, includes subdomains: yes or no [default: no]
    #[arg(long, global = true, env = "PORCHLIGHT_HSTS_SUBDOMAINS", value_name = "YES|NO")]
    pub hsts_subdomains: Option<String>,

    /// Mail server that sends all mail: smtps:// or smtp://, with user and password [default: none, mail waits]
    #[arg(long, global = true, env = "PORCHLIGHT_SMTP_URL", hide_env_values = true, value_name = "URL")]
    pub smtp_url: Option<String>,

    /// Sender of all mail: an address or `Name <address>`; needed with `smtp_url` [default: none]
    #[arg(long, global = true, env = "PORCHLIGHT_MAIL_FROM", value_name = "SENDER")]
    pub mail_from: Option<String>,

    /// Address that contact messages are forwarded to; needed with `smtp_url` [default: none]
    #[arg(long, global = true, env = "PORCHLIGHT_CONTACT_TO", value_name = "ADDRESS")]
    pub contact_to: Option<String>,

    /// Whether an opt-in counts only after the person has confirmed it by mail: yes or no [default: no]
    #[arg(long, global = true, env = "PORCHLIGHT_CONFIRM_UPDATES", value_name = "YES|NO")]
    pub confirm_updates: Option<String>,

    /// Address that mail servers return undeliverable letters to, for `porchlight bounce` [default: that of `mail_from`]
    #[arg(long, global = true, env = "PORCHLIGHT_BOUNCE_ADDRESS", value_name = "ADDRESS")]
    pub bounce_address: Option<String>,

    /// Selector of the DKIM key that signs all mail; needs `dkim_key` [default: none]
    #[arg(long, global = true, env = "PORCHLIGHT_DKIM_SELECTOR", value_name = "NAME")]
    pub dkim_selector: Option<String>,

    /// PEM file (PKCS#8) with the DKIM key, see `porchlight mail key`; needs `dkim_selector` [default: none]
    #[arg(long, global = true, env = "PORCHLIGHT_DKIM_KEY", value_name = "FILE")]
    pub dkim_key: Option<String>,

    /// How long contact messages are kept after they were forwarded: forever, or such as `24 months` [default: forever]
    #[arg(long, global = true, env = "PORCHLIGHT_KEEP_MESSAGES", value_name = "TIME")]
    pub keep_messages: Option<String>,

    /// Format of the log on standard error: text, logfmt, json or off [default: text on a terminal, else logfmt]
    #[arg(long, global = true, env = "PORCHLIGHT_LOG_FORMAT", value_name = "FORMAT")]
    pub log_format: Option<String>,

    /// Header in which a proxy names the client, such as x-forwarded-for; needs `trusted_proxies` [default: none]
    #[arg(long, global = true, env = "PORCHLIGHT_CLIENT_IP_HEADER", value_name = "HEADER")]
    pub client_ip_header: Option<String>,

    /// Networks of the proxies that are believed, such as 10.0.0.0/8, separated by commas; needs `client_ip_header` [default: none]
    #[arg(long, global = true, env = "PORCHLIGHT_TRUSTED_PROXIES", value_name = "NETWORKS")]
    pub trusted_proxies: Option<String>,

    /// Whether each client is limited in requests and connections: on or off [default: on]
    #[arg(long, global = true, env = "PORCHLIGHT_CLIENT_LIMITS", value_name = "ON|OFF")]
    pub client_limits: Option<String>,
}

/// Shows the settings that are set, without their secrets.
impl fmt::Debug for RawSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = named(self).into_iter().map(|(name, text)| (name.clone(), redacted(&name, &text)));
        f.debug_map().entries(shown).finish()
    }
}

/// Returns the name and text of each setting that is set.
pub(super) fn named(settings: &RawSettings) -> Vec<(String, String)> {
    let Ok(serde_json::Value::Object(members)) = serde_json::to_value(settings) else {
        return Vec::new();
    };
    members.into_iter().filter_map(|(name, value)| Some((name, value.as_str()?.to_owned()))).collect()
}

pub(super) fn names() -> Vec<String> {
    match serde_json::to_value(RawSettings::default()) {
        Ok(serde_json::Value::Object(members)) => members.into_iter().map(|(name, _)| name).collect(),
        _ => Vec::new(),
    }
}
