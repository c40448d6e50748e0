//! Checks whether DNS has the public key with which receivers verify the signatures of mail.

use tokio::time::timeout;

use super::PROBE_TIMEOUT;
use super::finding::Finding;
use crate::domain::dkim::{KeyKind, Published};
use crate::mail::DkimSigner;
use crate::probe::NameServers;

const NAME: &str = "dkim";
const PRINTED: &str = "the TXT record that `porchlight mail record` prints";

/// Returns `None` if mail is not signed here.
pub(super) async fn check_dkim(signer: Option<&DkimSigner>, name_servers: &NameServers) -> Option<Finding> {
    let signer = signer?;
    let name = signer.record_name();
    let error = match timeout(PROBE_TIMEOUT, name_servers.txt_records(&name)).await {
        Ok(Ok(texts)) => {
            return Some(match problem(&name, signer.record().compare(&texts)) {
                Some(problem) => Finding::note(NAME, problem),
                None => match signer.record().kind {
                    KeyKind::Rsa => Finding::ok(NAME, format!("{name} has the public key of `dkim_key`")),
                    KeyKind::Ed25519 => Finding::note(
                        NAME,
                        format!(
                            "{name} has the public key of `dkim_key`. But it is an Ed25519 key, which some large receivers do \
                             not verify: to them, mail is not signed. `porchlight mail key` makes an RSA key."
                        ),
                    ),
                },
            });
        }
        Ok(Err(failure)) => failure.to_string(),
        Err(_) => "no name server responded in time".to_owned(),
    };
    Some(Finding::note(NAME, format!("The DNS lookup of {name} failed: {error}. It needs {PRINTED}.")))
}

fn problem(name: &str, published: Published) -> Option<String> {
    match published {
        Published::Same => None,
        Published::Missing => {
            Some(format!("{name} does not exist in DNS, so receivers cannot verify mail: add {PRINTED}."))
        }
        Published::Other => Some(format!(
            "{name} does not have the public key of `dkim_key`, so receivers find the signature of all mail invalid: \
             replace it by {PRINTED}."
        )),
        Published::Revoked => Some(format!(
            "{name} says that the key is revoked (`p=` is empty), so receivers find the signature of all mail invalid: \
             replace it by {PRINTED}, or make a new key with `porchlight mail key`."
        )),
        Published::Several(count) => Some(format!(
            "{name} has {count} TXT records, and it is undefined which one receivers take: keep only {PRINTED}."
        )),
        Published::SameAsTest => {
            Some(format!("{name} has the flag `t=y`, so receivers may ignore signatures: remove `y` from `t=`."))
        }
    }
}
