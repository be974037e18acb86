// SPDX-License-Identifier: GPL-2.0-or-later
//! The links of a scenario, as linkem has them.

use linkem::MS;
use linkem::link::Link;
use linkem::loss::Model;
use linkem::pipe::{Delay, Pipe, Rate, Settings};
use linkem::queue::Discipline;
use linkem::trace::{OPPORTUNITY_BYTES, Trace};
use linkem::wifi;

use crate::scenario::{LossModel, Qdisc, Wan, Wifi, ms};
use crate::trace_file::{self, Way};

/// Towards the clients and back, as the links have them.
pub const DOWN: linkem::Direction = linkem::Direction::Ab;
/// The way back.
pub const UP: linkem::Direction = linkem::Direction::Ba;

fn model(loss: &LossModel) -> Model {
    match loss {
        // Recorded losses are taken behind the link.
        LossModel::None | LossModel::Trace(_) => Model::Bernoulli(0.0),
        LossModel::Percent(percent) => Model::Bernoulli(percent / 100.0),
        LossModel::Gemodel([p, r, bad, good]) => Model::GilbertElliott {
            p: p / 100.0,
            r: r / 100.0,
            bad_loss: bad / 100.0,
            good_loss: good / 100.0,
        },
        LossModel::Outages([gap_ms, length_ms]) => {
            Model::Outages { gap: gap_ms * MS as f64, length: length_ms * MS as f64 }
        }
    }
}

fn discipline(qdisc: Qdisc) -> Discipline {
    match qdisc {
        Qdisc::Droptail => Discipline::Droptail,
        Qdisc::Codel => Discipline::Codel,
        Qdisc::FqCodel => Discipline::FqCodel,
    }
}

/// Towards the router and towards the servers.
pub fn wan<T>(wan: &Wan, path_ms: f64, seed: u64) -> anyhow::Result<[Pipe<T>; 2]> {
    let rate = match &wan.trace {
        None => Rate::Constant(wan.rate_mbit * 1e6),
        Some(path) => {
            Rate::Trace(Trace::read(path, OPPORTUNITY_BYTES).map_err(anyhow::Error::msg)?)
        }
    };
    let queue_bytes = (wan.queue_bdp * wan.rate_mbit * 1e3 / 8.0 * path_ms) as u64;
    let settings = |rate, loss| Settings {
        rate,
        light: None,
        delay: Delay::Constant(ms(wan.delay_ms)),
        jitter: 0,
        queue_bytes,
        discipline: discipline(wan.qdisc),
        loss: model(loss),
    };
    let down = settings(rate, &wan.loss_down);
    let up = settings(Rate::Constant(wan.rate_mbit * 1e6), &wan.loss_up);
    let seed = seed ^ 0x3a_0000;
    Ok([Pipe::new(down, seed, DOWN, 0), Pipe::new(up, seed, UP, 0)])
}

/// Towards the clients and towards the router.
pub fn wifi<T>(wifi: &Wifi, clients: usize, seed: u64) -> anyhow::Result<Link<T>> {
    if let Some(air) = &wifi.air {
        anyhow::ensure!(
            wifi.trace.is_none(),
            "wifi.air and wifi.trace exclude each other: a radio channel has its own rate and delay"
        );
        return Ok(Link::Wifi(Box::new(wifi::Wifi::new(air, clients, seed, 0))));
    }
    let traces = wifi.trace.as_deref().map(|name| trace_file::read(name, seed)).transpose()?;
    let [down, up] = traces.map_or([None, None], |ways| ways.map(Some));
    let settings = |way: Option<Way>, loss| {
        let (rate, delay) = way.map_or((None, None), |way| (way.rate, way.delay));
        Settings {
            rate: rate.map_or(Rate::Constant(wifi.rate_mbit * 1e6), Rate::Trace),
            light: None,
            delay: delay.map_or(Delay::Constant(ms(wifi.delay_ms)), Delay::Trace),
            jitter: ms(wifi.delay_ms * wifi.jitter_percent / 100.0),
            queue_bytes: wifi.queue_bytes,
            discipline: discipline(wifi.qdisc),
            loss: model(loss),
        }
    };
    Ok(Link::Pipes(Box::new([
        Pipe::new(settings(down, &wifi.loss_down), seed, DOWN, 0),
        Pipe::new(settings(up, &wifi.loss_up), seed, UP, 0),
    ])))
}
