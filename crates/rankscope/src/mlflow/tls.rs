//! Certificates → ureq's TLS settings (rustls with ring).

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use ureq::tls::{Certificate, ClientCert, PemItem, RootCerts, TlsConfig, parse_pem};

use super::settings::{Settings, SettingsError, Tls};

pub fn config(settings: &Settings) -> Result<TlsConfig, SettingsError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = TlsConfig::builder().unversioned_rustls_crypto_provider(provider);
    if !settings.server.https {
        return Ok(builder.build());
    }
    let builder = match &settings.tls {
        Tls::Insecure => builder.disable_verification(true),
        Tls::System => builder.root_certs(system_roots()),
        Tls::Bundle(path) => builder.root_certs(RootCerts::from(bundle(path)?.into_iter())),
    };
    let client_cert = settings.client_cert.as_deref().map(client_cert).transpose()?;
    Ok(builder.client_cert(client_cert).build())
}

/// The system's, else Mozilla's: slim images have none, and there MLflow's Python client brings its own too.
fn system_roots() -> RootCerts {
    let found = rustls_native_certs::load_native_certs().certs;
    match found.is_empty() {
        true => RootCerts::WebPki,
        false => RootCerts::from(found.iter().map(|der| Certificate::from_der(der).to_owned())),
    }
}

fn bad(path: &Path, why: impl std::fmt::Display) -> SettingsError {
    SettingsError::Invalid(format!("certificates in {}: {why}", path.display()))
}

fn bundle(path: &Path) -> Result<Vec<Certificate<'static>>, SettingsError> {
    let files = match path.is_dir() {
        true => {
            let entries = std::fs::read_dir(path).map_err(|e| bad(path, e))?;
            entries.filter_map(Result::ok).map(|e| e.path()).filter(|p| p.is_file()).collect()
        }
        false => vec![path.to_owned()],
    };
    let mut certs = Vec::new();
    for file in files {
        let pem = std::fs::read(&file).map_err(|e| bad(&file, e))?;
        // In a directory other files may stand too.
        certs.extend(parse_pem(&pem).filter_map(Result::ok).filter_map(|item| match item {
            PemItem::Certificate(cert) => Some(cert),
            _ => None,
        }));
    }
    match certs.is_empty() {
        true => Err(bad(path, "no certificate in PEM form")),
        false => Ok(certs),
    }
}

fn client_cert(path: &Path) -> Result<ClientCert, SettingsError> {
    let pem = std::fs::read(path).map_err(|e| bad(path, e))?;
    let mut chain = Vec::new();
    let mut key = None;
    for item in parse_pem(&pem) {
        match item.map_err(|_| bad(path, "not in PEM form"))? {
            PemItem::Certificate(cert) => chain.push(cert),
            PemItem::PrivateKey(found) => key = Some(found),
            _ => {}
        }
    }
    let key = key.ok_or_else(|| {
        bad(path, "no private key beside the certificate (an encrypted one is not supported)")
    })?;
    // ureq would panic on a key that does not belong to the certificate.
    let provider = rustls::crypto::ring::default_provider();
    let ders = chain.iter().map(|c| CertificateDer::from(c.der().to_vec())).collect();
    let der = PrivateKeyDer::try_from(key.der().to_vec()).map_err(|e| bad(path, e))?;
    rustls::sign::CertifiedKey::from_der(ders, der, &provider).map_err(|e| bad(path, e))?;
    Ok(ClientCert::new_with_certs(&chain, key))
}
