//! Certificates and keys in PEM files → a rustls configuration (ring).

use std::path::Path;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

use super::settings::{Settings, SettingsError, Tls};

pub fn config(settings: &Settings) -> Result<ClientConfig, SettingsError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier: Arc<dyn ServerCertVerifier> = match &settings.tls {
        Tls::Insecure => Arc::new(Unchecked(provider.clone())),
        Tls::System => Arc::new(Checked::new(system_roots(), Vec::new(), &provider)?),
        Tls::Bundle(path) => {
            let certs = bundle(path)?;
            let mut roots = RootCertStore::empty();
            roots.add_parsable_certificates(certs.iter().cloned());
            Arc::new(Checked::new(roots, certs, &provider)?)
        }
    };
    let builder = ClientConfig::builder_with_provider(provider);
    let builder =
        builder.with_safe_default_protocol_versions().map_err(|e| SettingsError::Invalid(e.to_string()))?;
    let builder = builder.dangerous().with_custom_certificate_verifier(verifier);
    match &settings.client_cert {
        None => Ok(builder.with_no_client_auth()),
        Some(path) => {
            let (chain, key) = client_cert(path)?;
            builder.with_client_auth_cert(chain, key).map_err(|e| bad(path, e))
        }
    }
}

/// The system's, else Mozilla's: slim images have none, and there MLflow's Python client brings its own too.
fn system_roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    roots
}

fn bad(path: &Path, why: impl std::fmt::Display) -> SettingsError {
    SettingsError::Invalid(format!("certificates in {}: {why}", path.display()))
}

/// Every certificate of a PEM file, or of the PEM files of a directory, where other files may stand too.
fn bundle(path: &Path) -> Result<Vec<CertificateDer<'static>>, SettingsError> {
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
        certs.extend(CertificateDer::pem_slice_iter(&pem).filter_map(Result::ok));
    }
    match certs.is_empty() {
        true => Err(bad(path, "no certificate in PEM form")),
        false => Ok(certs),
    }
}

type Chain = Vec<CertificateDer<'static>>;

fn client_cert(path: &Path) -> Result<(Chain, PrivateKeyDer<'static>), SettingsError> {
    let pem = std::fs::read(path).map_err(|e| bad(path, e))?;
    let chain = CertificateDer::pem_slice_iter(&pem).filter_map(Result::ok).collect();
    let key = PrivateKeyDer::from_pem_slice(&pem);
    let key =
        key.map_err(|_| bad(path, "no private key beside the certificate (an encrypted one can't be used)"))?;
    Ok((chain, key))
}

/// The usual check, and one thing more: a self-signed certificate that was itself named as trusted is accepted also
/// if it calls itself an authority. That is what `openssl req -x509` makes, and what OpenSSL accepts.
#[derive(Debug)]
struct Checked {
    usual: Arc<WebPkiServerVerifier>,
    trusted: Vec<CertificateDer<'static>>,
}

impl Checked {
    fn new(
        roots: RootCertStore,
        trusted: Vec<CertificateDer<'static>>,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Self, SettingsError> {
        let usual = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build();
        let usual = usual.map_err(|e| SettingsError::Invalid(format!("trusted certificates: {e}")))?;
        Ok(Self { usual, trusted })
    }
}

impl ServerCertVerifier for Checked {
    fn verify_server_cert(
        &self,
        cert: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let result = self.usual.verify_server_cert(cert, chain, name, ocsp, now);
        match &result {
            // The validity in time was checked before this.
            Err(rustls::Error::InvalidCertificate(CertificateError::Other(why)))
                if why.to_string() == "CaUsedAsEndEntity" && self.trusted.iter().any(|t| t == cert) =>
            {
                let parsed = rustls::server::ParsedCertificate::try_from(cert)?;
                rustls::client::verify_server_name(&parsed, name)?;
                Ok(ServerCertVerified::assertion())
            }
            _ => result,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.usual.verify_tls12_signature(message, cert, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.usual.verify_tls13_signature(message, cert, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.usual.supported_verify_schemes()
    }
}

/// MLFLOW_TRACKING_INSECURE_TLS: any certificate will do.
#[derive(Debug)]
struct Unchecked(Arc<CryptoProvider>);

impl ServerCertVerifier for Unchecked {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
