//! The validated settings.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use super::file_and_environment::{
    ResolvedSetting, environment, exposed_secrets, settings_file, unknown_variables, writable_folder,
};
use super::https::{CertificateSource, Tls, parse_hosts};
use super::images::{BackupSettings, BucketSettings, ImagePlace};
use super::mail::MailSettings;
use super::ops_and_clients::{ClientSettings, Desk, Ops};
use super::secret::Secret;
use super::setting_names::RawSettings;
use super::text::{InvalidSettings, Texts, parse_addresses, parse_list};
use crate::domain::contact::Retention;
use crate::domain::limits::MAX_LETTER_RATE;
use crate::domain::network::{BaseUrl, HostName, parse_origin, parse_web_url};
use crate::domain::parse::word_enum;

/// The validated settings.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each one stands for a setting")]
pub struct Settings {
    /// The settings file that was read, if any was.
    pub file: Option<PathBuf>,
    /// At least one address.
    pub listen: Vec<SocketAddr>,
    /// `None`: the address of the listener.
    pub base_url: Option<BaseUrl>,
    pub data_dir: PathBuf,
    /// Where published disk images are: the setting `releases_dir` or `releases_url`.
    pub images: ImagePlace,
    /// `None`: backups are made by commands alone.
    pub backup: Option<Box<BackupSettings>>,
    /// `None`: SQLite in `data_dir`.
    pub database_url: Option<Secret>,
    pub download_url: Option<String>,
    pub site_dir: Option<PathBuf>,
    /// Whether the makers look at the site while they change it: the option `--watch` of `serve`.
    pub watches_site: bool,
    pub allowed_origins: Vec<String>,
    pub ops: Ops,
    pub desk: Desk,
    pub ai_train: bool,
    /// `None`: plain HTTP.
    pub tls: Option<Tls>,
    /// Further host names, which redirect to `base_url`.
    pub also_hosts: Vec<HostName>,
    /// Whether HSTS includes subdomains.
    pub hsts_subdomains: bool,
    pub postal_address: Option<String>,
    /// Letters per second.
    pub letter_rate: u32,
    /// `None`: messages stay in the outbox.
    pub mail: Option<MailSettings>,
    /// Whether an opt-in counts only after the person has confirmed it by mail.
    pub confirm_updates: bool,
    /// Whether letters that are sent can be read on the site.
    pub letters_archive: bool,
    /// How long contact messages are kept after they were forwarded. `None`: forever.
    pub keep_messages: Option<Retention>,
    /// `None`: text on a terminal, else logfmt.
    pub log_format: Option<LogFormat>,
    pub clients: ClientSettings,
    /// Warnings about secrets that other users of this machine can read.
    pub exposed_secrets: Vec<String>,
    /// Warnings about variables that look like settings and are none.
    pub unknown_variables: Vec<String>,
}

impl Settings {
    /// Merges and validates the settings. `arguments`, which `clap` has read from flags and the
    /// environment, override the file.
    pub fn load(file: Option<&Path>, arguments: &RawSettings) -> Result<Self, InvalidSettings> {
        let resolved = ResolvedSetting::resolve(file, arguments)?;
        let exposed_secrets = exposed_secrets(&resolved);
        let texts = resolved.into_iter().map(|(name, setting)| (name, setting.value)).collect();
        let file = settings_file(file).map(ToOwned::to_owned);
        Ok(Self { file, exposed_secrets, unknown_variables: unknown_variables(), ..Self::parse(texts)? })
    }

    /// Parses a bucket that is an argument of a command.
    pub fn bucket_argument(url: &str) -> Result<BucketSettings, InvalidSettings> {
        BucketSettings::parse_argument(url, environment)
    }

    /// The public URL of the site: the setting, or the URL of the listener.
    pub fn public_url(&self) -> BaseUrl {
        self.base_url.clone().unwrap_or_else(|| BaseUrl::from_listen_address(self.listen[0]))
    }

    /// The host names of the site, which a certificate has to be for. The first one is that of its URL.
    pub fn host_names(&self, base_url: &BaseUrl) -> Vec<String> {
        std::iter::once(base_url.host()).chain(self.also_hosts.iter().map(ToString::to_string)).collect()
    }

    /// Everything that the start points out.
    pub fn warnings(&self) -> Vec<String> {
        [self.unknown_variables.clone(), self.exposed_secrets.clone(), self.writable_folders()].concat()
    }

    /// Warnings about folders of the service that other users of this machine can write to.
    pub fn writable_folders(&self) -> Vec<String> {
        let images = self.images.folder().map(|folder| ("releases_dir", folder));
        let folders = std::iter::once(("data_dir", self.data_dir.as_path())).chain(images);
        folders.filter_map(|(name, folder)| writable_folder(name, folder)).collect()
    }

    pub fn uses_acme(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| matches!(tls.certificate, CertificateSource::Acme(_)))
    }

    fn parse(mut texts: Texts) -> Result<Self, InvalidSettings> {
        let base_url = texts.parse("base_url", BaseUrl::parse)?;
        let listen = texts.parse("listen", parse_addresses)?;
        let also_hosts = texts.parse("also_hosts", |text| parse_hosts(text, base_url.as_ref()))?;
        let tls = Tls::parse(&mut texts, base_url.as_ref(), listen.as_deref())?;
        let data_dir = texts.take("data_dir").map_or_else(|| PathBuf::from("data"), PathBuf::from);
        let images = ImagePlace::parse(&mut texts, environment, &data_dir, base_url.as_ref())?;
        let confirm_updates = texts.switch("confirm_updates")?;
        let download_url = texts.parse("download_url", parse_web_url)?;
        if download_url.is_some() && images.folder().is_none() {
            let both = "`releases_url` is set too, and no download would come from that bucket; remove one of the two";
            return Err(InvalidSettings::new("download_url", both));
        }
        Ok(Self {
            file: None,
            images,
            backup: BackupSettings::parse(&mut texts, environment)?.map(Box::new),
            postal_address: texts
                .take("postal_address")
                .map(|text| text.trim().to_owned())
                .filter(|text| !text.is_empty()),
            letter_rate: texts.parse("letter_rate", parse_letter_rate)?.unwrap_or(10),
            ops: Ops::parse(&mut texts)?,
            desk: Desk::parse_setting(&mut texts, base_url.as_ref())?,
            data_dir,
            database_url: texts.take("database_url").map(Secret::new),
            download_url,
            site_dir: texts.take("site_dir").map(PathBuf::from),
            watches_site: false,
            allowed_origins: texts.parse("allowed_origins", parse_origins)?.unwrap_or_default(),
            ai_train: texts.switch("ai_train")?,
            hsts_subdomains: texts.switch("hsts_subdomains")?,
            confirm_updates,
            letters_archive: texts.switch("letters_archive")?,
            keep_messages: texts.parse("keep_messages", Retention::parse)?.flatten(),
            log_format: texts.parse("log_format", parse_log_format)?,
            exposed_secrets: Vec::new(),
            unknown_variables: Vec::new(),
            mail: MailSettings::parse(&mut texts, confirm_updates)?,
            clients: ClientSettings::parse(&mut texts)?,
            listen: listen.unwrap_or_else(|| match &tls {
                None => vec![SocketAddr::from(([127, 0, 0, 1], 8080))],
                Some(_) => Tls::default_listen(),
            }),
            base_url,
            tls,
            also_hosts: also_hosts.unwrap_or_default(),
        })
    }
}

fn parse_letter_rate(text: &str) -> Result<u32, String> {
    let rate = text.parse().ok().filter(|rate| (1..=MAX_LETTER_RATE).contains(rate));
    rate.ok_or_else(|| format!("it is not a number from 1 to {MAX_LETTER_RATE}"))
}

fn parse_origins(text: &str) -> Result<Vec<String>, String> {
    parse_list(text, parse_origin).map_err(|error| format!("one of the origins is invalid: {error}"))
}

word_enum! {
    pub enum LogFormat {
        /// For people: time, level, message, then the fields.
        Text = "text",
        /// `key=value` pairs.
        Logfmt = "logfmt",
        /// One object per line.
        Json = "json",
        /// Only the sentence that says why the service ended.
        Off = "off",
    }
}

fn parse_log_format(text: &str) -> Result<LogFormat, &'static str> {
    LogFormat::parse(text).ok_or("it is none of text, logfmt, json and off")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(toml: &str, arguments: &RawSettings) -> Result<Settings, String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("porchlight.toml");
        std::fs::write(&file, toml).unwrap();
        Settings::load(Some(&file), arguments).map_err(|error| error.to_string())
    }

    #[test]
    fn arguments_override_the_file_which_overrides_the_default() {
        let settings = load("listen = '127.0.0.1:1'\nai_train = 'yes'", &RawSettings::default()).unwrap();
        assert_eq!(settings.listen[0].port(), 1);
        assert!(settings.ai_train);
        assert_eq!(settings.data_dir, Path::new("data"));

        let arguments = &RawSettings { listen: Some("127.0.0.1:2".to_owned()), ..RawSettings::default() };
        assert_eq!(load("listen = '127.0.0.1:1'", arguments).unwrap().listen[0].port(), 2);
    }

    #[test]
    fn an_invalid_setting_is_named() {
        for (toml, name) in [
            ("listen = 'here'", "`listen`"),
            ("base_url = 'https://a.example/b'", "`base_url`"),
            ("download_url = 'latest.dmg'", "`download_url`"),
            ("allowed_origins = 'https://a.example, b'", "`allowed_origins`"),
            ("releases_url = 'images'", "`releases_url`"),
            ("releases_url = 's3://images'\nreleases_dir = 'images'", "`releases_dir`"),
            ("releases_url = 's3://images'\ndownload_url = 'https://a.example/b.dmg'", "`download_url`"),
            ("backup_url = 's3://backups'", "`backup_recipient`"),
            ("backup_url = 'backups'", "`backup_url`"),
            ("backup_url = 's3://backups?proxy=true'", "`backup_url`"),
            ("backup_recipient = 'age1'", "`backup_recipient`"),
            ("ai_train = 'perhaps'", "`ai_train`"),
            ("hsts_subdomains = 'some'", "`hsts_subdomains`"),
            ("log_format = 'xml'", "`log_format`"),
            ("letter_rate = 0", "`letter_rate`"),
            ("ops_listen = 'here'", "`ops_listen`"),
            ("ops_listen = '0.0.0.0:8081'", "`ops_token`"),
            ("ops_token = 'short'", "`ops_token`"),
            ("desk = 'open'", "`desk`"),
            ("desk = 'api'", "`base_url`"),
            ("desk = 'public'\nbase_url = 'http://a.example'", "`base_url`"),
            ("smtp_url = 'mail.example'", "`smtp_url`"),
            ("smtp_url = 'smtp://mail.example'\ncontact_to = 'a@b.example'", "`mail_from`"),
            ("smtp_url = 'smtp://mail.example'\nmail_from = 'a@b.example'", "`contact_to`"),
            ("contact_to = 'makers'", "`contact_to`"),
            ("confirm_updates = 'perhaps'", "`confirm_updates`"),
            ("confirm_updates = true", "`smtp_url`"),
            ("keep_messages = '24'", "`keep_messages`"),
            ("bounce_address = 'bounces'", "`bounce_address`"),
            ("dkim_selector = 'mail'", "`dkim_key`"),
            ("dkim_key = 'key.pem'", "`dkim_selector`"),
            ("dkim_selector = 'a b'\ndkim_key = 'key.pem'", "`dkim_selector`"),
            ("client_ip_header = 'x-forwarded-for'", "`trusted_proxies`"),
            ("client_ip_header = 'x-forwarded-for'", "`client_ip_header`"),
            ("trusted_proxies = '10.0.0.0/8'", "`client_ip_header`"),
            ("trusted_proxies = '10.0.0.0/8'", "`trusted_proxies`"),
            ("trusted_proxies = 'proxy'\nclient_ip_header = 'x-forwarded-for'", "`trusted_proxies`"),
            ("trusted_proxies = []\nclient_ip_header = 'x-forwarded-for'", "`trusted_proxies`"),
            ("trusted_proxies = '10.0.0.0/8'\nclient_ip_header = 'x forwarded for'", "`client_ip_header`"),
            ("client_limits = 'some'", "`client_limits`"),
            ("listen = ''", "`listen`"),
            ("listen = '127.0.0.1:1, here'", "`listen`"),
            ("tls_cert = 'a.pem'", "`tls_key`"),
            ("tls_key = 'a.pem'", "`tls_cert`"),
            ("tls_cert = 'a'\ntls_key = 'b'", "`base_url`"),
            ("tls_cert = 'a'\ntls_key = 'b'\nbase_url = 'http://troupe.example'", "`base_url`"),
            ("tls_cert = 'a'\ntls_key = 'b'\nbase_url = 'https://192.0.2.1'", "`base_url`"),
            (
                "tls_cert = 'a'\ntls_key = 'b'\nbase_url = 'https://a.example'\nredirect_listen = 'x'",
                "`redirect_listen`",
            ),
            ("redirect_listen = '0.0.0.0:80'", "`redirect_listen`"),
            ("also_hosts = 'www'", "`also_hosts`"),
            ("also_hosts = 'a.example'\nbase_url = 'https://a.example'", "`also_hosts`"),
            ("acme_directory = 'https://a.example'", "`acme_email`"),
            ("acme_email = 'me@a.example'", "`base_url`"),
            ("acme_email = 'me'\nbase_url = 'https://a.example'", "`acme_email`"),
            ("acme_email = 'me@a.example'\nbase_url = 'https://localhost'", "`base_url`"),
            ("acme_email = 'me@a.example'\nbase_url = 'https://127.0.0.1'", "`base_url`"),
            (
                "acme_email = 'me@a.example'\nbase_url = 'https://a.example'\nredirect_listen = 'off'",
                "`redirect_listen`",
            ),
            (
                "acme_email = 'me@a.example'\nbase_url = 'https://a.example'\nlisten = '127.0.0.1:8443'",
                "`redirect_listen`",
            ),
            (
                "acme_email = 'me@a.example'\nbase_url = 'https://a.example'\ntls_cert = 'a'\ntls_key = 'b'",
                "`tls_cert`",
            ),
            (
                "acme_email = 'me@a.example'\nbase_url = 'https://a.example'\nacme_directory = 'http://a.example'",
                "`acme_directory`",
            ),
            ("listen = { a = 1 }", "`listen`"),
            ("lissen = '127.0.0.1:1'", "`lissen`"),
        ] {
            let sentence = load(toml, &RawSettings::default()).unwrap_err();
            assert!(sentence.contains(name), "{toml}: {sentence}");
        }
    }

    #[test]
    fn a_switch_may_be_a_boolean_of_toml() {
        for (toml, expected) in [("ai_train = true", true), ("ai_train = false", false), ("ai_train = 'yes'", true)] {
            assert_eq!(load(toml, &RawSettings::default()).unwrap().ai_train, expected, "{toml}");
        }
        for (toml, expected) in [("client_limits = true", true), ("client_limits = false", false), ("", true)] {
            assert_eq!(load(toml, &RawSettings::default()).unwrap().clients.limits, expected, "{toml}");
        }
        for toml in ["data_dir = true", "listen = false", "ai_train = 1", "ai_train = 'true'", "ai_train = [true]"] {
            let sentence = load(toml, &RawSettings::default()).unwrap_err();
            assert!(sentence.contains("cannot be used"), "{toml}: {sentence}");
        }
    }

    #[test]
    fn no_secret_is_shown_by_debug() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("porchlight.toml");
        std::fs::write(&file, "ops_token = 'hunter2-hunter2-hunter2'").unwrap();
        let arguments = RawSettings {
            database_url: Some("postgres://me:hunter2@db.example/site?password=hunter2".to_owned()),
            smtp_url: Some("smtps://me:hunter2@mail.example".to_owned()),
            mail_from: Some("a@troupe.example".to_owned()),
            contact_to: Some("b@troupe.example".to_owned()),
            ..RawSettings::default()
        };
        let resolved = ResolvedSetting::resolve(Some(&file), &arguments).unwrap();
        let settings = Settings::load(Some(&file), &arguments).unwrap();
        assert!(settings.ops.token.is_some() && settings.database_url.is_some() && settings.mail.is_some());
        for shown in [format!("{settings:#?}"), format!("{arguments:?}"), format!("{resolved:?}")] {
            assert!(!shown.contains("hunter2"), "{shown}");
        }
        assert!(format!("{arguments:?}").contains("a@troupe.example"));
    }

    #[test]
    fn with_a_certificate_the_service_listens_on_443_and_redirects_from_80() {
        let https = "tls_cert = 'a'\ntls_key = 'b'\nbase_url = 'https://troupe.example'\n";
        let addresses = |toml: &str| {
            let settings = load(toml, &RawSettings::default()).unwrap();
            let redirect = settings.tls.map(|tls| tls.redirect_listen).unwrap_or_default();
            [settings.listen, redirect].map(|addresses| addresses.iter().map(ToString::to_string).collect::<Vec<_>>())
        };
        assert_eq!(addresses(https), [["0.0.0.0:443", "[::]:443"], ["0.0.0.0:80", "[::]:80"]]);
        let elsewhere = format!("{https}listen = '127.0.0.1:8443'");
        assert_eq!(addresses(&elsewhere), [vec!["127.0.0.1:8443"], vec![]]);
        let without = format!("{https}redirect_listen = 'off'");
        assert_eq!(addresses(&without)[1], Vec::<String>::new());
        let own = format!("{elsewhere}\nredirect_listen = '127.0.0.1:8080'");
        assert_eq!(addresses(&own)[1], ["127.0.0.1:8080"]);
        assert_eq!(addresses("listen = '127.0.0.1:1, [::1]:1'")[0], ["127.0.0.1:1", "[::1]:1"]);
    }

    #[test]
    fn origins_may_be_a_list_and_are_normalized() {
        let settings =
            load("allowed_origins = ['HTTPS://A.example:443', 'tauri://localhost']", &RawSettings::default());
        assert_eq!(settings.unwrap().allowed_origins, ["https://a.example", "tauri://localhost"]);
    }

    #[test]
    fn proxies_may_be_a_list_and_limits_can_be_off() {
        let settings = load(
            "client_ip_header = 'X-Forwarded-For'\ntrusted_proxies = ['10.0.0.0/8', '::1']\nclient_limits = 'off'",
            &RawSettings::default(),
        );
        let clients = settings.unwrap().clients;
        let proxies = clients.proxies.unwrap();
        assert_eq!(proxies.header(), "x-forwarded-for");
        assert!(proxies.contains("10.1.2.3".parse().unwrap()) && proxies.contains("::1".parse().unwrap()));
        assert!(!clients.limits);
        assert!(load("", &RawSettings::default()).unwrap().clients.limits);
    }
}
