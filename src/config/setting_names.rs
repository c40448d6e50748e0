//! Settings as text, from the command line, the environment or the file. Nothing is validated here.

use std::fmt;

use clap::Args;
use serde::{Deserialize, Serialize};

use super::secret::redacted;

/// A setting with its environment variable and the placeholder of its value.
macro_rules! raw_settings {
    ($($(#[$help:meta])* $name:ident($variable:literal, $value:literal $(, $option:ident)?),)+) => {
        /// The text of each setting. The doc comments are the help texts. Each must end in `[default: …]`, because `config example`
        /// and `config show` parse it; a default without spaces is a literal value.
        #[derive(Args, Clone, Default, Deserialize, Serialize)]
        #[command(next_help_heading = "Settings (each also a line of porchlight.toml)")]
        #[serde(default)]
        pub struct RawSettings {
            $(
                $(#[$help])*
                #[arg(long, global = true, env = $variable, value_name = $value $(, $option = true)?)]
                pub $name: Option<String>,
            )+
        }
    };
}

raw_settings! {
    /// Address and port of the public listener, or several, separated by commas; with a certificate port 443 of all addresses [default: 127.0.0.1:8080]
    listen("PORCHLIGHT_LISTEN", "ADDRESSES"),

    /// Public URL of the site, without a path; all absolute links start with it [default: http:// + listen]
    base_url("PORCHLIGHT_BASE_URL", "URL"),

    /// Gets certificates from an ACME authority, whose terms you accept with it; your address, for its notices [default: none]
    acme_email("PORCHLIGHT_ACME_EMAIL", "ADDRESS"),

    /// Directory URL of the ACME authority [default: Let's Encrypt]
    acme_directory("PORCHLIGHT_ACME_DIRECTORY", "URL"),

    /// PEM file with the root by which the ACME authority's own https is trusted [default: those of the system]
    acme_ca_file("PORCHLIGHT_ACME_CA_FILE", "FILE"),

    /// PEM file with the certificate of the site and those of its issuers; needs `tls_key` [default: none, plain HTTP]
    tls_cert("PORCHLIGHT_TLS_CERT", "FILE"),

    /// PEM file with the private key of `tls_cert` [default: none]
    tls_key("PORCHLIGHT_TLS_KEY", "FILE"),

    /// Address and port of plain HTTP that redirects to https, or several, or off [default: port 80 beside a `listen` on 443 with a certificate, else off]
    redirect_listen("PORCHLIGHT_REDIRECT_LISTEN", "ADDRESSES|off"),

    /// Further host names of the site, such as www.troupe.example, that redirect to `base_url`, separated by commas [default: none]
    also_hosts("PORCHLIGHT_ALSO_HOSTS", "HOSTS"),

    /// Folder of the embedded database [default: data]
    data_dir("PORCHLIGHT_DATA_DIR", "FOLDER"),

    /// Folder of the published disk images; all instances must share it [default: releases in the data folder]
    releases_dir("PORCHLIGHT_RELEASES_DIR", "FOLDER"),

    /// Bucket of an S3-compatible service for the disk images, instead of a folder: `s3://bucket/prefix`; its key comes from AWS_ variables [default: none]
    releases_url("PORCHLIGHT_RELEASES_URL", "URL"),

    /// Bucket of an S3-compatible service for an encrypted backup every day: `s3://bucket/prefix`; its key comes from AWS_ variables, and it needs `backup_recipient` [default: none]
    backup_url("PORCHLIGHT_BACKUP_URL", "URL"),

    /// Public key by which these backups are encrypted, see `porchlight backup key`; needs `backup_url` [default: none]
    backup_recipient("PORCHLIGHT_BACKUP_RECIPIENT", "KEY"),

    /// `sqlite:PATH` or `postgres://user:password@host/database` [default: SQLite in the data folder]
    database_url("PORCHLIGHT_DATABASE_URL", "URL", hide_env_values),

    /// URL on another host that always leads to the newest disk image [default: none]
    download_url("PORCHLIGHT_DOWNLOAD_URL", "URL"),

    /// Folder whose files replace those of the built-in site, by name [default: none]
    site_dir("PORCHLIGHT_SITE_DIR", "FOLDER"),

    /// Origins, other than the site's own, that may call /mcp from a browser, separated by commas [default: none]
    allowed_origins("PORCHLIGHT_ALLOWED_ORIGINS", "ORIGINS"),

    /// Address and port of the ops listener (dashboard, /metrics, /healthz, /readyz), or off [default: 127.0.0.1:8081]
    ops_listen("PORCHLIGHT_OPS_LISTEN", "ADDRESS|off"),

    /// Token required by the ops listener; needed if `ops_listen` is not a loopback address [default: none]
    ops_token("PORCHLIGHT_OPS_TOKEN", "TOKEN", hide_env_values),

    /// Where the desk is: private (ops listener alone), public (also at `base_url`, with https), or api (there for tokens alone) [default: private]
    desk("PORCHLIGHT_DESK", "private|api|public"),

    /// Address that links to sign in to the desk are mailed to, when somebody asks for one there; needs `smtp_url` [default: none, only `porchlight desk` makes links]
    desk_email("PORCHLIGHT_DESK_EMAIL", "ADDRESS"),

    /// Postal address printed in the monthly letter, as many countries require; needed to send one [default: none]
    postal_address("PORCHLIGHT_POSTAL_ADDRESS", "ADDRESS"),

    /// How many letters are sent per second [default: 10]
    letter_rate("PORCHLIGHT_LETTER_RATE", "NUMBER"),

    /// Whether robots.txt allows AI training on the site: yes or no [default: no]
    ai_train("PORCHLIGHT_AI_TRAIN", "YES|NO"),

    /// Whether HSTS, which an https `base_url` turns on, includes subdomains: yes or no [default: no]
    hsts_subdomains("PORCHLIGHT_HSTS_SUBDOMAINS", "YES|NO"),

    /// Mail server that sends all mail: smtps:// or smtp://, with user and password [default: none, mail waits]
    smtp_url("PORCHLIGHT_SMTP_URL", "URL", hide_env_values),

    /// Sender of all mail: an address or `Name <address>`; needed with `smtp_url` [default: none]
    mail_from("PORCHLIGHT_MAIL_FROM", "SENDER"),

    /// Address that contact messages are forwarded to; needed with `smtp_url` [default: none]
    contact_to("PORCHLIGHT_CONTACT_TO", "ADDRESS"),

    /// Whether an opt-in counts only after the person has confirmed it by mail: yes or no [default: no]
    confirm_updates("PORCHLIGHT_CONFIRM_UPDATES", "YES|NO"),

    /// Whether letters that are sent can be read on the site, at /letters: yes or no [default: no]
    letters_archive("PORCHLIGHT_LETTERS_ARCHIVE", "YES|NO"),

    /// Address that mail servers return undeliverable letters to, for `porchlight bounce` [default: that of `mail_from`]
    bounce_address("PORCHLIGHT_BOUNCE_ADDRESS", "ADDRESS"),

    /// Selector of the DKIM key that signs all mail; needs `dkim_key` [default: none]
    dkim_selector("PORCHLIGHT_DKIM_SELECTOR", "NAME"),

    /// PEM file (PKCS#8) with the DKIM key, see `porchlight mail key`; needs `dkim_selector` [default: none]
    dkim_key("PORCHLIGHT_DKIM_KEY", "FILE"),

    /// How long contact messages are kept after they were forwarded: forever, or such as `24 months` [default: forever]
    keep_messages("PORCHLIGHT_KEEP_MESSAGES", "TIME"),

    /// Format of the log on standard error: text, logfmt, json or off [default: text on a terminal, else logfmt]
    log_format("PORCHLIGHT_LOG_FORMAT", "FORMAT"),

    /// Header in which a proxy names the client, such as x-forwarded-for; needs `trusted_proxies` [default: none]
    client_ip_header("PORCHLIGHT_CLIENT_IP_HEADER", "HEADER"),

    /// Networks of the proxies that are believed, such as 10.0.0.0/8, separated by commas; needs `client_ip_header` [default: none]
    trusted_proxies("PORCHLIGHT_TRUSTED_PROXIES", "NETWORKS"),

    /// Whether each client is limited in requests and connections: on or off [default: on]
    client_limits("PORCHLIGHT_CLIENT_LIMITS", "ON|OFF"),
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
