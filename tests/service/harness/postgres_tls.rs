//! A PostgreSQL server that accepts TLS connections only.

use super::Identity;
use super::postgres::{Server, new_folder, start};

/// Starts a server that presents this certificate.
pub fn start_with_tls(identity: &Identity) -> Server {
    let folder = new_folder();
    std::fs::copy(identity.certificate(), folder.join("certificate")).expect("to be copied");
    std::fs::copy(identity.key(), folder.join("key")).expect("to be copied");
    std::fs::write(folder.join("hba"), "hostssl all all all trust\n").expect("a file");
    let shown = folder.display();
    let options = [
        "ssl=on".to_owned(),
        format!("ssl_cert_file={shown}/certificate"),
        format!("ssl_key_file={shown}/key"),
        format!("hba_file={shown}/hba"),
    ];
    start(folder, &options.map(|option| format!("-c{option}")))
}
