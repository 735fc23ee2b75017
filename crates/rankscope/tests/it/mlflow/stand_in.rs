//! A stand-in HTTP server: answers each request by the next of its scripted replies and keeps what it got.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

#[derive(Clone)]
pub enum Reply {
    /// Status line and headers after `HTTP/1.1 `, and a body.
    Http(String, String),
    /// Reads the request, answers nothing and closes.
    Close,
    /// Answers, then closes the idle connection without having said so.
    ThenClose(String),
    /// Waits before answering.
    Slow(Duration),
}

pub fn json(body: &str) -> Reply {
    Reply::Http("200 OK\r\nContent-Type: application/json".into(), body.into())
}

pub fn status(head: &str, body: &str) -> Reply {
    Reply::Http(head.into(), body.into())
}

#[derive(Clone, Debug)]
pub struct Got {
    pub head: String,
    pub body: Vec<u8>,
    /// Number of the connection it came over.
    pub connection: usize,
}

impl Got {
    pub fn header(&self, name: &str) -> Option<&str> {
        let line = self
            .head
            .lines()
            .find(|l| l.to_ascii_lowercase().starts_with(&format!("{}:", name.to_ascii_lowercase())));
        line.and_then(|l| l.split_once(':')).map(|(_, v)| v.trim())
    }

    pub fn target(&self) -> &str {
        self.head.split(' ').nth(1).unwrap()
    }
}

pub struct StandIn {
    pub port: u16,
    got: Arc<Mutex<Vec<Got>>>,
}

impl StandIn {
    pub fn new(replies: Vec<Reply>) -> Self {
        Self::start(replies, None)
    }

    /// With a certificate and its key in `dir`: `cert.pem`, `key.pem`.
    pub fn tls(replies: Vec<Reply>, dir: &Path, client_roots: Option<&Path>) -> Self {
        let certs =
            CertificateDer::pem_file_iter(dir.join("cert.pem")).unwrap().map(Result::unwrap).collect();
        let key = PrivateKeyDer::from_pem_file(dir.join("key.pem")).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = rustls::ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .unwrap();
        let builder = match client_roots {
            None => builder.with_no_client_auth(),
            Some(path) => {
                let mut roots = rustls::RootCertStore::empty();
                roots.add_parsable_certificates(
                    CertificateDer::pem_file_iter(path).unwrap().map(Result::unwrap),
                );
                let verifier =
                    rustls::server::WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                builder.with_client_cert_verifier(verifier.build().unwrap())
            }
        };
        Self::start(replies, Some(Arc::new(builder.with_single_cert(certs, key).unwrap())))
    }

    fn start(replies: Vec<Reply>, tls: Option<Arc<rustls::ServerConfig>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let got = Arc::new(Mutex::new(Vec::new()));
        let replies = Arc::new(Mutex::new(replies.into_iter()));
        let kept = got.clone();
        std::thread::spawn(move || {
            for (connection, stream) in listener.incoming().enumerate() {
                let stream = stream.unwrap();
                let (replies, kept, tls) = (replies.clone(), kept.clone(), tls.clone());
                std::thread::spawn(move || match tls {
                    None => serve(stream, connection, &replies, &kept),
                    Some(config) => {
                        let conn = rustls::ServerConnection::new(config).unwrap();
                        serve(rustls::StreamOwned::new(conn, stream), connection, &replies, &kept);
                    }
                });
            }
        });
        Self { port, got }
    }

    pub fn got(&self) -> Vec<Got> {
        self.got.lock().unwrap().clone()
    }
}

type Replies = Mutex<std::vec::IntoIter<Reply>>;

fn serve(mut stream: impl Read + Write, connection: usize, replies: &Replies, kept: &Mutex<Vec<Got>>) {
    while let Some((head, body)) = request(&mut stream) {
        kept.lock().unwrap().push(Got { head, body, connection });
        let reply = replies.lock().unwrap().next().expect("a request more than expected");
        match reply {
            Reply::Http(head, body) => answer(&mut stream, &head, &body),
            Reply::Close => return,
            Reply::ThenClose(body) => {
                return answer(&mut stream, "200 OK\r\nContent-Type: application/json", &body);
            }
            Reply::Slow(wait) => {
                std::thread::sleep(wait);
                answer(&mut stream, "200 OK", "{}");
            }
        }
    }
}

fn answer(stream: &mut impl Write, head: &str, body: &str) {
    let text = format!("HTTP/1.1 {head}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let _ = stream.write_all(text.as_bytes()).and_then(|()| stream.flush());
}

fn request(stream: &mut impl Read) -> Option<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    let head_end = loop {
        if let Some(at) = bytes.windows(4).position(|w| w == b"\r\n\r\n") {
            break at + 4;
        }
        match stream.read(&mut buffer) {
            Ok(n) if n > 0 => bytes.extend_from_slice(&buffer[..n]),
            _ => return None,
        }
    };
    let head = String::from_utf8(bytes[..head_end].to_vec()).unwrap();
    let length = head
        .lines()
        .find_map(|l| l.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse().ok());
    while bytes.len() < head_end + length.unwrap_or(0) {
        match stream.read(&mut buffer) {
            Ok(n) if n > 0 => bytes.extend_from_slice(&buffer[..n]),
            _ => return None,
        }
    }
    Some((head, bytes.split_off(head_end)))
}

/// A server that takes one connection after the other by hand: for what a script can't say.
pub fn listen() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

/// Reads one request and answers `{}`.
pub fn serve_one(stream: &mut TcpStream) {
    request(stream).unwrap();
    answer(stream, "200 OK", "{}");
}
