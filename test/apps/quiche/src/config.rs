// SPDX-License-Identifier: GPL-2.0-or-later
//! quiche's configuration: as its own example programs have it.

use anyhow::Result;
use boring::pkey::PKey;
use boring::ssl::{SslContextBuilder, SslMethod};
use boring::x509::X509;
use pemi_apps::options::{Cc, TransportOptions};
use pemi_apps::{ALPN, HOST, IDLE};
use quiche::{Config, CongestionControlAlgorithm};

/// The UDP payload of quiche's example programs, which look for no larger one.
const DATAGRAM_BYTES: u16 = 1350;
/// Where flow control begins; quiche enlarges the windows by itself.
const WINDOW_BYTES: u64 = 10_000_000;
const STREAM_WINDOW_BYTES: u64 = 1_000_000;
const STREAMS: u64 = 100;

/// For a client, which believes any certificate.
pub fn client(options: &TransportOptions) -> Result<Config> {
    let mut config = Config::new(quiche::PROTOCOL_VERSION)?;
    config.verify_peer(false);
    common(config, options)
}

/// For a server, with a certificate of its own making.
pub fn server(options: &TransportOptions) -> Result<Config> {
    let certified = rcgen::generate_simple_self_signed([HOST.to_owned()])?;
    let mut tls = SslContextBuilder::new(SslMethod::tls())?;
    tls.set_certificate(X509::from_der(certified.cert.der())?.as_ref())?;
    let key = PKey::private_key_from_pkcs8(&certified.signing_key.serialize_der())?;
    tls.set_private_key(&key)?;
    common(Config::with_boring_ssl_ctx_builder(quiche::PROTOCOL_VERSION, tls)?, options)
}

fn common(mut config: Config, options: &TransportOptions) -> Result<Config> {
    config.set_application_protos(&[ALPN])?;
    config.set_cc_algorithm(match options.cc {
        Cc::Cubic => CongestionControlAlgorithm::CUBIC,
        Cc::Newreno => CongestionControlAlgorithm::Reno,
        Cc::Bbr => CongestionControlAlgorithm::Bbr2Gcongestion,
    });
    config.set_max_send_udp_payload_size(options.mtu.unwrap_or(DATAGRAM_BYTES).into());
    config.set_max_idle_timeout(IDLE.as_millis() as u64);
    config.set_initial_max_data(WINDOW_BYTES);
    config.set_initial_max_stream_data_bidi_local(STREAM_WINDOW_BYTES);
    config.set_initial_max_stream_data_bidi_remote(STREAM_WINDOW_BYTES);
    config.set_initial_max_stream_data_uni(STREAM_WINDOW_BYTES);
    config.set_initial_max_streams_bidi(STREAMS);
    config.set_initial_max_streams_uni(STREAMS);
    Ok(config)
}
