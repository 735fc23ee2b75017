//! One request at a time: sends bytes, follows a redirect without losing them, repeats at once what met a dead
//! keep-alive socket, and turns everything else into `Error`. No queue, no waiting.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use serde::Deserialize;
use ureq::http::{Request, Response, header};
use ureq::unversioned::resolver::DefaultResolver;
use ureq::unversioned::transport::{ConnectProxyConnector, Connector, TcpConnector};

use super::address::{Address, encode};
use super::error::{Broken, Error};
use super::secret::Secret;
use super::settings::{Auth, Settings, SettingsError};
use super::tls_connector::TlsConnector;
use super::{retry_after, tls};

/// Servers close idle connections after 5 s.
const IDLE: Duration = Duration::from_secs(4);
const CONNECT: Duration = Duration::from_secs(30);
const MAX_REDIRECTS: usize = 5;
const MAX_ANSWER: u64 = 256 << 20;
const MAX_MESSAGE: usize = 2000;

/// What to send.
pub struct Call<'a> {
    pub method: &'static str,
    /// From `/api` on, with query.
    pub path: String,
    pub body: Option<&'a [u8]>,
    pub content_type: &'static str,
    /// Sending it twice does no more than sending it once.
    pub repeatable: bool,
}

pub struct Http {
    agent: ureq::Agent,
    server: Address,
    headers: Vec<(&'static str, Secret)>,
    secrets: Vec<String>,
    timeout: Duration,
    settings: Settings,
    /// A connection may be waiting in the pool, and may be dead by now.
    warm: bool,
}

impl Http {
    pub fn new(settings: &Settings) -> Result<Self, SettingsError> {
        let agent = agent(settings, settings.server.https)?;
        let mut headers = Vec::new();
        let mut secrets: Vec<String> = Vec::new();
        if let Some((user, _)) = settings.proxy.as_ref().and_then(|p| p.reveal().rsplit_once('@')) {
            let user = user.rsplit('/').next().unwrap_or(user);
            secrets.extend([user.to_owned(), user.rsplit(':').next().unwrap_or(user).to_owned()]);
        }
        match &settings.auth {
            Auth::None => {}
            Auth::Basic { user, password } => {
                let pair = format!("{}:{}", user.reveal(), password.reveal());
                let encoded = base64::engine::general_purpose::STANDARD.encode(pair);
                headers.push(("Authorization", Secret::new(format!("Basic {encoded}"))));
                // `https://token@host` has no password.
                let secret = if password.reveal().is_empty() { user } else { password }.reveal();
                secrets.extend([secret.to_owned(), encode(secret), encoded]);
            }
            Auth::Bearer(token) => {
                headers.push(("Authorization", Secret::new(format!("Bearer {}", token.reveal()))));
                secrets.push(token.reveal().to_owned());
            }
        }
        if let Some(workspace) = &settings.workspace {
            headers.push(("X-MLFLOW-WORKSPACE", Secret::new(workspace.clone())));
        }
        for (name, value) in &headers {
            if value.reveal().parse::<ureq::http::HeaderValue>().is_err() {
                return Err(SettingsError::Invalid(format!(
                    "{name}: a character that no HTTP header may hold"
                )));
            }
        }
        // One or two letters would blank out half of every text.
        secrets.retain(|s| s.len() > 2);
        Ok(Self {
            agent,
            server: settings.server.clone(),
            headers,
            secrets,
            timeout: settings.timeout,
            settings: settings.clone(),
            warm: false,
        })
    }

    pub fn server(&self) -> &Address {
        &self.server
    }

    pub fn set_timeout(&mut self, timeout: Duration) {
        self.timeout = timeout;
    }

    /// The body of a successful answer.
    pub fn send(&mut self, call: &Call) -> Result<Vec<u8>, Error> {
        for _ in 0..=MAX_REDIRECTS {
            let url = format!("{}{}", self.server, call.path);
            let mut response = self.reach(call, &url)?;
            if !is_redirect(response.status().as_u16()) {
                return self.answer(&mut response, &url);
            }
            let server = self.moved(&response, call, &url)?;
            if server.https != self.server.https {
                self.agent = agent(&self.settings, server.https)?;
            }
            self.server = server;
        }
        let url = self.shown(&format!("{}{}", self.server, call.path));
        Err(Error::Redirect { from: url.clone(), to: url, status: 302 })
    }

    /// Sends it, once more if the pooled connection turned out to be dead.
    fn reach(&mut self, call: &Call, url: &str) -> Result<Response<ureq::Body>, Error> {
        let first = self.once(call, url, self.warm && call.repeatable);
        let result = match first {
            Err(error) if self.warm && call.repeatable && closed(&error) => self.once(call, url, false),
            other => other,
        };
        self.warm = result.is_ok();
        result.map_err(|error| self.no_answer(url, &error))
    }

    fn once(&self, call: &Call, url: &str, pooled: bool) -> Result<Response<ureq::Body>, ureq::Error> {
        let mut request = Request::builder().method(call.method).uri(url);
        for (name, value) in &self.headers {
            request = request.header(*name, value.reveal());
        }
        if call.body.is_some() {
            request = request.header(header::CONTENT_TYPE, call.content_type);
        }
        let idle = if pooled { IDLE } else { Duration::ZERO };
        match call.body {
            Some(body) => self.agent.run(self.timed(request.body(body)?, idle)),
            None => self.agent.run(self.timed(request.body(())?, idle)),
        }
    }

    fn timed<B: ureq::AsSendBody>(&self, request: Request<B>, idle: Duration) -> Request<B> {
        self.agent
            .configure_request(request)
            .timeout_global(Some(self.timeout))
            .timeout_connect(Some(self.timeout.min(CONNECT)))
            .max_idle_age(idle)
            .build()
    }

    /// Where the server is now. The same method and body go there again; credentials never go to another host.
    fn moved(&self, response: &Response<ureq::Body>, call: &Call, url: &str) -> Result<Address, Error> {
        let status = response.status().as_u16();
        let location = text_header(response, header::LOCATION.as_str()).unwrap_or_default();
        let target = match location.starts_with('/') && !location.starts_with("//") {
            true => {
                let root = Address { path: String::new(), ..self.server.clone() };
                format!("{root}{location}")
            }
            false => location.to_owned(),
        };
        let refused = || Error::Redirect { from: self.shown(url), to: self.shown(&target), status };
        // Only the part before our own path may change: scheme, port, prefix.
        let to = target.strip_suffix(&call.path).and_then(Address::parse).ok_or_else(refused)?.0;
        let upgrade = to.https && !self.server.https;
        let same = to.https == self.server.https && to.port() == self.server.port();
        let allowed = self.settings.follow_redirects && status != 303 && to != self.server;
        match allowed && to.host().eq_ignore_ascii_case(self.server.host()) && (upgrade || same) {
            true => Ok(to),
            false => Err(refused()),
        }
    }

    fn answer(&self, response: &mut Response<ureq::Body>, url: &str) -> Result<Vec<u8>, Error> {
        let status = response.status();
        let header = |name| text_header(response, name).map(str::to_owned);
        let (date, wait) = (header("date"), header("retry-after"));
        let retry_after = wait.and_then(|w| retry_after::parse(&w, date.as_deref()));
        let limit = if status.is_success() { MAX_ANSWER } else { 1 << 20 };
        let read = response.body_mut().with_config().limit(limit).read_to_vec();
        let body = match read {
            Ok(body) => body,
            // The status says enough.
            Err(_) if !status.is_success() => Vec::new(),
            Err(error) => return Err(self.no_answer(url, &error)),
        };
        let text = String::from_utf8_lossy(&body);
        let (url, status) = (self.shown(url), status.as_u16());
        if text.trim_start().starts_with('<') {
            return Err(Error::Html { url, status, retry_after });
        }
        if (200..300).contains(&status) {
            return Ok(body);
        }
        #[derive(Deserialize)]
        struct Said {
            error_code: Option<String>,
            message: Option<String>,
        }
        let said = serde_json::from_str(&text).unwrap_or(Said { error_code: None, message: None });
        let message = self.scrubbed(said.message.as_deref().unwrap_or(text.trim()));
        Err(Error::Status {
            url,
            status,
            code: said.error_code.map(|c| self.scrubbed(&c)),
            message,
            retry_after,
        })
    }

    /// An answer of a form that we don't know.
    pub fn unexpected(&self, call: &Call, detail: &str) -> Error {
        let url = self.shown(&format!("{}{}", self.server, call.path));
        Error::Unexpected { url, detail: self.scrubbed(detail) }
    }

    /// An answer whose end is missing, though nothing else says so.
    pub fn cut_short(&self, call: &Call) -> Error {
        let url = self.shown(&format!("{}{}", self.server, call.path));
        Error::Connection { url, broken: Broken::CutShort, detail: String::new() }
    }

    fn no_answer(&self, url: &str, error: &ureq::Error) -> Error {
        let (broken, detail) = match error {
            ureq::Error::Io(e) => (broken(e), e.to_string()),
            ureq::Error::Timeout(what) => (Broken::Timeout, format!("{what}, limit {:?}", self.timeout)),
            ureq::Error::HostNotFound => (Broken::NameNotFound, String::new()),
            ureq::Error::Tls(e) => (Broken::Tls, (*e).to_owned()),
            ureq::Error::ConnectProxyFailed(e) => (Broken::Proxy, e.clone()),
            ureq::Error::Protocol(e) => (Broken::Other, format!("not an HTTP answer: {e}")),
            // Its text may hold the address.
            ureq::Error::BadUri(_) => (Broken::Other, "not a usable address".to_owned()),
            other => (Broken::Other, other.to_string()),
        };
        Error::Connection { url: self.shown(url), broken, detail: self.scrubbed(&detail) }
    }

    /// An address for people: no user information, no query (a login page's holds tokens).
    fn shown(&self, url: &str) -> String {
        let bare = url.split(['?', '#']).next().unwrap_or(url);
        let end = bare.find("://").map_or(0, |at| at + 3);
        let (scheme, rest) = bare.split_at(end);
        let host_end = rest.find('/').unwrap_or(rest.len());
        let start = rest[..host_end].rfind('@').map_or(0, |at| at + 1);
        self.scrubbed(&format!("{scheme}{}", &rest[start..]))
    }

    fn scrubbed(&self, text: &str) -> String {
        let mut text: String = text.to_owned();
        for secret in &self.secrets {
            text = text.replace(secret.as_str(), "***");
        }
        match text.char_indices().nth(MAX_MESSAGE) {
            Some((at, _)) => format!("{}…", &text[..at]),
            None => text,
        }
    }
}

fn agent(settings: &Settings, https: bool) -> Result<ureq::Agent, SettingsError> {
    let proxy = settings.proxy.as_ref().map(|p| ureq::Proxy::new(p.reveal())).transpose();
    let bad_proxy = "the HTTP proxy (HTTP_PROXY, HTTPS_PROXY) is not a valid address";
    let proxy = proxy.map_err(|_| SettingsError::Invalid(bad_proxy.to_owned()))?;
    let config = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .max_idle_age(IDLE)
        .user_agent(concat!("rankscope/", env!("CARGO_PKG_VERSION")))
        .proxy(proxy)
        .build();
    let tcp = ().chain(ConnectProxyConnector::default()).chain(TcpConnector::default());
    let resolver = DefaultResolver::default();
    // Certificates are read only if they are needed.
    Ok(match https {
        true => {
            let tls = TlsConnector(Arc::new(tls::config(settings)?));
            ureq::Agent::with_parts(config, tcp.chain(tls), resolver)
        }
        false => ureq::Agent::with_parts(config, tcp, resolver),
    })
}

fn is_redirect(status: u16) -> bool {
    matches!(status, 301 | 302 | 303 | 307 | 308)
}

fn text_header<'a>(response: &'a Response<ureq::Body>, name: &str) -> Option<&'a str> {
    response.headers().get(name)?.to_str().ok()
}

fn closed(error: &ureq::Error) -> bool {
    matches!(error, ureq::Error::Io(e) if broken(e) == Broken::Closed)
}

fn broken(error: &io::Error) -> Broken {
    use io::ErrorKind as Kind;
    if error.get_ref().is_some_and(|inner| inner.is::<rustls::Error>()) {
        return Broken::Tls;
    }
    match error.kind() {
        Kind::ConnectionRefused => Broken::Refused,
        Kind::TimedOut | Kind::WouldBlock => Broken::Timeout,
        Kind::UnexpectedEof | Kind::ConnectionReset | Kind::ConnectionAborted | Kind::BrokenPipe => {
            Broken::Closed
        }
        _ => Broken::Other,
    }
}
