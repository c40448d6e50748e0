//! Where published disk images are, in a folder or in a bucket of an S3-compatible service, and the bucket for backups.
//!
//! The service, its region and the key of a bucket come from the variables that other programs use for them. They are the only
//! settings with names of their own.

use std::path::{Path, PathBuf};

use age::x25519::Recipient;
use url::Url;

use super::secret::Secret;
use super::text::{InvalidSettings, Texts, both};
use crate::domain::network::BaseUrl;

const RELEASES: &str = "releases_url";
const BACKUPS: &str = "backup_url";
/// What the command `restore` is given instead of a folder.
const ARGUMENT: &str = "s3://…";

#[derive(Clone, Debug)]
pub enum ImagePlace {
    Folder(PathBuf),
    Bucket(Box<BucketSettings>),
}

/// A bucket for backups, and the public key by which they are encrypted: the settings `backup_url` and `backup_recipient`.
#[derive(Clone, Debug)]
pub struct BackupSettings {
    pub bucket: BucketSettings,
    pub recipient: Recipient,
}

/// A bucket: `s3://bucket/prefix`, and for images `s3://bucket/prefix?proxy=true`.
#[derive(Clone, Debug)]
pub struct BucketSettings {
    /// Which setting it is.
    pub setting: &'static str,
    /// The setting as it was given, without its options.
    pub name: String,
    /// Whether images are sent by the service. Otherwise downloads are redirected to the bucket.
    pub proxy: bool,
    /// Only what deals with images needs it, so a command may run without.
    pub access: Result<BucketAccess, InvalidSettings>,
}

/// What a request to the bucket needs.
#[derive(Clone, Debug)]
pub struct BucketAccess {
    /// The URL of the bucket. It ends with a slash.
    pub url: Url,
    /// What the names of all objects start with: nothing, or such as `prefix/`.
    pub prefix: String,
    pub region: String,
    pub key: AccessKey,
}

/// The key that signs requests to the bucket.
#[derive(Clone, Debug)]
pub struct AccessKey {
    pub id: String,
    pub secret: Secret,
    pub session_token: Option<Secret>,
}

impl ImagePlace {
    /// `environment` returns the value of a variable.
    pub(super) fn parse(
        texts: &mut Texts,
        environment: impl Fn(&str) -> Option<String>,
        data_dir: &Path,
        base_url: Option<&BaseUrl>,
    ) -> Result<Self, InvalidSettings> {
        let (folder, url) = (texts.take("releases_dir"), texts.take(RELEASES));
        let Some(url) = url else {
            return Ok(Self::Folder(folder.map_or_else(|| data_dir.join("releases"), PathBuf::from)));
        };
        if folder.is_some() {
            return Err(InvalidSettings::new(
                RELEASES,
                "`releases_dir` is set too; images are in one place, so remove one",
            ));
        }
        BucketSettings::parse(RELEASES, &url, environment, base_url).map(|bucket| Self::Bucket(bucket.into()))
    }

    /// The folder, if images are in one.
    pub fn folder(&self) -> Option<&Path> {
        match self {
            Self::Folder(folder) => Some(folder),
            Self::Bucket(_) => None,
        }
    }

    /// The host of the bucket, if downloads are redirected there.
    pub fn redirect_host(&self) -> Option<String> {
        match self {
            Self::Bucket(bucket) if !bucket.proxy => Some(bucket.access.as_ref().ok()?.url.host_str()?.to_owned()),
            _ => None,
        }
    }
}

impl BackupSettings {
    pub(super) fn parse(
        texts: &mut Texts,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, InvalidSettings> {
        let bucket = texts.take(BACKUPS).map(|url| BucketSettings::parse(BACKUPS, &url, environment, None));
        let recipient = texts.parse("backup_recipient", |text| {
            text.parse().map_err(|_| "it is not a public key such as age1…; `porchlight backup key` makes one")
        })?;
        let settings = both((BACKUPS, bucket.transpose()?), ("backup_recipient", recipient))?;
        Ok(settings.map(|(bucket, recipient)| Self { bucket, recipient }))
    }
}

impl BucketSettings {
    /// Parses a bucket that is not in the settings, but an argument of a command.
    pub(super) fn parse_argument(
        url: &str,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, InvalidSettings> {
        Self::parse(ARGUMENT, url, environment, None)
    }

    fn parse(
        setting: &'static str,
        text: &str,
        environment: impl Fn(&str) -> Option<String>,
        base_url: Option<&BaseUrl>,
    ) -> Result<Self, InvalidSettings> {
        // Empty variables count as missing ones, as for other programs.
        let environment = |name: &str| environment(name).filter(|value| !value.is_empty());
        let invalid = |why: &str| match setting {
            ARGUMENT => InvalidSettings::flag(setting, why),
            _ => InvalidSettings::new(setting, why),
        };
        let place = text.strip_prefix("s3://").ok_or_else(|| invalid("it does not start with s3://"))?;
        let (place, proxy) = match place.split_once('?') {
            None => (place, false),
            Some((place, "proxy=true")) if setting == RELEASES => (place, true),
            Some((place, "proxy=false")) if setting == RELEASES => (place, false),
            Some(_) if setting != RELEASES => return Err(invalid("it has no options")),
            Some(_) => return Err(invalid("the only option is ?proxy=true")),
        };
        let (bucket, prefix) = place.split_once('/').unwrap_or((place, ""));
        if !is_bucket_name(bucket) {
            return Err(invalid("it has no valid name of a bucket; write s3://bucket/prefix"));
        }
        let prefix = prefix.trim_end_matches('/');
        let is_valid = |part: &str| !matches!(part, "" | "." | "..") && part.bytes().all(is_unreserved);
        if !prefix.is_empty() && !prefix.split('/').all(is_valid) {
            return Err(invalid("the prefix may have letters, digits, `-`, `_`, `.`, `~` and single slashes only"));
        }
        let access = BucketAccess::read(bucket, prefix, environment);
        let access = access.map_err(|why| invalid(&why)).and_then(|access| {
            let is_https_site = base_url.is_some_and(BaseUrl::is_https);
            if is_https_site && access.url.scheme() == "http" && !proxy {
                return Err(invalid(
                    "browsers do not follow a redirect from https to the http of AWS_ENDPOINT_URL; add ?proxy=true",
                ));
            }
            Ok(access)
        });
        let slash = if prefix.is_empty() { "" } else { "/" };
        Ok(Self { setting, name: format!("s3://{bucket}{slash}{prefix}"), proxy, access })
    }
}

impl BucketAccess {
    fn read(bucket: &str, prefix: &str, environment: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let endpoint = environment("AWS_ENDPOINT_URL_S3").or_else(|| environment("AWS_ENDPOINT_URL"));
        let region = environment("AWS_REGION").or_else(|| environment("AWS_DEFAULT_REGION"));
        let (url, region) = match (endpoint, region) {
            // Services other than Amazon's have one region, and most of them accept this name for it.
            (Some(endpoint), region) => {
                (with_bucket(parse_endpoint(&endpoint)?, bucket), region.unwrap_or_else(|| "us-east-1".to_owned()))
            }
            (None, Some(region)) => (amazon_url(&region, bucket)?, region),
            (None, None) => {
                return Err("it needs AWS_ENDPOINT_URL, or AWS_REGION for a bucket of Amazon S3".to_owned());
            }
        };
        let prefix = if prefix.is_empty() { String::new() } else { format!("{prefix}/") };
        Ok(Self { url, prefix, region, key: AccessKey::read(environment)? })
    }
}

impl AccessKey {
    fn read(environment: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let why = match (environment("AWS_ACCESS_KEY_ID"), environment("AWS_SECRET_ACCESS_KEY")) {
            (Some(id), Some(secret)) => {
                let session_token = environment("AWS_SESSION_TOKEN").map(Secret::new);
                return Ok(Self { id, secret: Secret::new(secret), session_token });
            }
            (None, None) => "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set",
            _ => "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY belong together, and only one of them is set",
        };
        Err(why.to_owned())
    }
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~')
}

fn is_bucket_name(text: &str) -> bool {
    let is_valid = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
    (3..=63).contains(&text.len()) && text.bytes().all(is_valid) && !text.contains("..")
}

fn parse_endpoint(text: &str) -> Result<Url, String> {
    let endpoint = Url::parse(text).ok().filter(|url| {
        let is_web = matches!(url.scheme(), "http" | "https") && url.has_host();
        is_web
            && url.query().is_none()
            && url.fragment().is_none()
            && url.username().is_empty()
            && url.password().is_none()
    });
    endpoint.ok_or_else(|| "AWS_ENDPOINT_URL is not an http or https URL of a host".to_owned())
}

/// Adds the bucket to the path, which every service understands.
fn with_bucket(mut endpoint: Url, bucket: &str) -> Url {
    let path = format!("{}/{bucket}/", endpoint.path().trim_end_matches('/'));
    endpoint.set_path(&path);
    endpoint
}

/// Amazon has a host name for each bucket. Its certificate is not valid for the name of a bucket with a dot.
fn amazon_url(region: &str, bucket: &str) -> Result<Url, String> {
    let is_region = !region.is_empty() && region.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    if !is_region {
        return Err("AWS_REGION is not the name of a region".to_owned());
    }
    let url = if bucket.contains('.') {
        format!("https://s3.{region}.amazonaws.com/{bucket}/")
    } else {
        format!("https://{bucket}.s3.{region}.amazonaws.com/")
    };
    Url::parse(&url).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: [(&str, &str); 2] = [("AWS_ACCESS_KEY_ID", "id"), ("AWS_SECRET_ACCESS_KEY", "hunter2")];

    fn parse(url: &str, base_url: Option<&str>, variables: &[(&str, &str)]) -> Result<BucketSettings, String> {
        let value = |name: &str| {
            let found = variables.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let base_url = base_url.map(|url| BaseUrl::parse(url).unwrap());
        let place = ImagePlace::parse(
            &mut [(RELEASES.to_owned(), url.to_owned())].into_iter().collect(),
            value,
            Path::new("data"),
            base_url.as_ref(),
        );
        match place.map_err(|error| error.to_string())? {
            ImagePlace::Bucket(bucket) => Ok(*bucket),
            ImagePlace::Folder(folder) => panic!("{}", folder.display()),
        }
    }

    fn access(url: &str, more: &[(&str, &str)]) -> Result<BucketAccess, String> {
        let variables = [&KEY[..], more].concat();
        parse(url, None, &variables).unwrap().access.map_err(|error| error.to_string())
    }

    #[test]
    fn a_bucket_is_at_its_own_host_at_amazon_and_in_the_path_elsewhere() {
        let amazon = [("AWS_REGION", "eu-west-1")];
        let url = |url: &str, more: &[(&str, &str)]| {
            let access = access(url, more).unwrap();
            format!("{}{}", access.url, access.prefix)
        };
        assert_eq!(url("s3://images", &amazon), "https://images.s3.eu-west-1.amazonaws.com/");
        assert_eq!(url("s3://images/a/b/", &amazon), "https://images.s3.eu-west-1.amazonaws.com/a/b/");
        assert_eq!(url("s3://a.images/b", &amazon), "https://s3.eu-west-1.amazonaws.com/a.images/b/");
        let elsewhere = [("AWS_ENDPOINT_URL", "https://files.example:8443/s3/")];
        assert_eq!(url("s3://images/b", &elsewhere), "https://files.example:8443/s3/images/b/");
        let both = [("AWS_ENDPOINT_URL_S3", "https://s3.example"), ("AWS_ENDPOINT_URL", "https://files.example")];
        assert_eq!(url("s3://images", &both), "https://s3.example/images/");
        assert_eq!(access("s3://images", &both).unwrap().region, "us-east-1");
        let default = [("AWS_DEFAULT_REGION", "auto"), ("AWS_ENDPOINT_URL", "https://files.example")];
        assert_eq!(access("s3://images", &default).unwrap().region, "auto");
    }

    #[test]
    fn what_is_not_a_bucket_is_rejected() {
        for wrong in ["", "https://a.example", "s3://", "s3://ab", "s3://A", "s3://images?proxy", "s3://images/a//b"] {
            assert!(parse(wrong, None, &KEY).unwrap_err().contains("`releases_url`"), "{wrong}");
        }
        for wrong in ["s3://images/../b", "s3://images/a b", "s3://images/%61", "s3://images/a?proxy=perhaps"] {
            assert!(parse(wrong, None, &KEY).unwrap_err().contains("`releases_url`"), "{wrong}");
        }
        assert!(parse("s3://images?proxy=true", None, &KEY).unwrap().proxy);
        assert!(!parse("s3://images", None, &KEY).unwrap().proxy);
    }

    #[test]
    fn what_is_missing_for_the_bucket_is_named() {
        for (variables, expected) in [
            (&[][..], "AWS_ENDPOINT_URL, or AWS_REGION"),
            (&[("AWS_ENDPOINT_URL", "files")], "AWS_ENDPOINT_URL is not"),
            (&[("AWS_REGION", "eu/west")], "AWS_REGION is not"),
        ] {
            assert!(access("s3://images", variables).unwrap_err().contains(expected), "{expected}");
        }
        let access = |variables: &[(&str, &str)]| {
            let variables = [&[("AWS_REGION", "eu-west-1")], variables].concat();
            parse("s3://images", None, &variables).unwrap().access.unwrap_err().to_string()
        };
        assert!(access(&[("AWS_ACCESS_KEY_ID", "id")]).contains("only one of them"));
        assert!(access(&[]).contains("are not set."));
    }

    #[test]
    fn the_key_is_never_shown() {
        let variables = [("AWS_REGION", "eu-west-1"), ("AWS_SESSION_TOKEN", "hunter3")];
        let found = access("s3://images", &variables).unwrap();
        assert!(!format!("{found:?}").contains("hunter"), "{found:?}");
        let AccessKey { id, secret, session_token } = found.key;
        assert_eq!((id.as_str(), secret.expose()), ("id", "hunter2"));
        assert_eq!(session_token.unwrap().expose(), "hunter3");
    }

    #[test]
    fn a_site_with_https_does_not_redirect_to_http() {
        let variables = [&KEY[..], &[("AWS_ENDPOINT_URL", "http://10.0.0.1:9000")]].concat();
        let usable = |url, base_url| parse(url, base_url, &variables).unwrap().access.is_ok();
        assert!(!usable("s3://images", Some("https://troupe.example")));
        assert!(usable("s3://images?proxy=true", Some("https://troupe.example")));
        assert!(usable("s3://images", Some("http://127.0.0.1:8080")));
        assert!(usable("s3://images", None));
    }
}
