//! What both applications share on quinn: options and endpoints.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use quinn::congestion::{BbrConfig, ControllerFactory, CubicConfig, NewRenoConfig};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{ClientConfig, Endpoint, EndpointConfig, ServerConfig, TokioRuntime, TransportConfig};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme};

use crate::options::{Cc, TransportOptions};
use crate::output::print_json;
use crate::{ALPN, HOST, program, socket};

/// Options of quinn's servers and clients.
#[derive(Clone, Debug, clap::Args)]
pub struct QuinnOptions {
    /// What every stack has.
    #[command(flatten)]
    pub common: TransportOptions,
    /// Use UDP segmentation offload, so that links see bursts in large frames
    #[arg(long)]
    gso: bool,
}

impl QuinnOptions {
    /// quinn's configuration; what is not set here has quinn's default.
    pub fn transport(&self) -> Result<TransportConfig> {
        let mut transport = TransportConfig::default();
        let cc: Arc<dyn ControllerFactory + Send + Sync> = match self.common.cc {
            Cc::Cubic => Arc::new(CubicConfig::default()),
            Cc::Newreno => Arc::new(NewRenoConfig::default()),
            Cc::Bbr => Arc::new(BbrConfig::default()),
        };
        transport.congestion_controller_factory(cc).enable_segmentation_offload(self.gso);
        if let Some(mtu) = self.common.mtu {
            transport.initial_mtu(mtu).min_mtu(mtu).mtu_discovery_config(None);
        }
        Ok(transport)
    }
}

/// Runs a program's future to its end on a runtime of this one thread.
pub fn run(options: &QuinnOptions, program: impl Future<Output = Result<()>>) -> ExitCode {
    program::run(options.common.rt, || {
        tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(program)
    })
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// A listening endpoint with a certificate of its own making.
pub fn server(listen: SocketAddr, transport: TransportConfig) -> Result<Endpoint> {
    let certified = rcgen::generate_simple_self_signed([HOST.to_owned()])?;
    let key = PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der());
    let mut tls = rustls::ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(vec![certified.cert.into()], key.into())?;
    tls.alpn_protocols = vec![ALPN.to_vec()];
    let mut config = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls)?));
    config.transport_config(Arc::new(transport));
    let endpoint = Endpoint::new(
        EndpointConfig::default(),
        Some(config),
        socket::bind(listen)?,
        Arc::new(TokioRuntime),
    )?;
    Ok(endpoint)
}

/// An endpoint that connects from any port and believes any certificate.
pub fn client(connect: SocketAddr, transport: TransportConfig) -> Result<Endpoint> {
    let provider = provider();
    let mut tls = rustls::ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
        .with_no_client_auth();
    tls.alpn_protocols = vec![ALPN.to_vec()];
    let mut config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?));
    config.transport_config(Arc::new(transport));
    let any = socket::any_port_for(connect);
    let mut endpoint =
        Endpoint::new(EndpointConfig::default(), None, socket::bind(any)?, Arc::new(TokioRuntime))?;
    endpoint.set_default_client_config(config);
    Ok(endpoint)
}

/// Starts the handshake with a server.
pub fn connect(endpoint: &Endpoint, address: SocketAddr) -> Result<quinn::Connecting> {
    Ok(endpoint.connect(address, HOST)?)
}

/// Tells the other sides that this one goes, and sees that they are told.
pub async fn close(endpoint: &Endpoint, reason: &str) {
    endpoint.close(0u32.into(), reason.as_bytes());
    let _ = tokio::time::timeout(Duration::from_secs(1), endpoint.wait_idle()).await;
}

/// Serves connections with `handle` until SIGTERM or SIGINT. Prints the address
/// that it listens on as one JSON object.
pub async fn serve<H, F>(endpoint: Endpoint, handle: H) -> Result<()>
where
    H: Fn(quinn::Connection) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Result<()>> + Send,
{
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    print_json(&serde_json::json!({"listening": endpoint.local_addr()?}), None)?;
    loop {
        let incoming = tokio::select! {
            incoming = endpoint.accept() => incoming.context("the endpoint is closed")?,
            _ = terminate.recv() => break,
            _ = tokio::signal::ctrl_c() => break,
        };
        let peer = incoming.remote_address();
        let connecting = match incoming.accept() {
            Ok(connecting) => connecting,
            Err(error) => {
                eprintln!("{peer}: {error}");
                continue;
            }
        };
        let handle = handle.clone();
        tokio::spawn(async move {
            let served = async { handle(connecting.await?).await };
            if let Err(error) = served.await {
                eprintln!("{peer}: {error:#}");
            }
        });
    }
    close(&endpoint, "the server ends").await;
    Ok(())
}

/// Believes every certificate: this is a test tool, and the server's certificate
/// is new in every run.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer,
        _intermediates: &[CertificateDer],
        _server_name: &ServerName,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, cert, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, cert, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
