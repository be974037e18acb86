// SPDX-License-Identifier: GPL-2.0-or-later
//! A trace as a JSON text sequence (RFC 7464) in the manner of qlog: a header,
//! then one record for each thing that happened, times in ms.

use pemi_engine::{Direction, EventKind};
use serde_json::{Value, json};

use crate::trace::{Entry, Trace, What};
use crate::world::Moment;

const RECORD_SEPARATOR: char = '\u{1e}';

pub fn text(trace: &Trace) -> String {
    let header = json!({
        "qlog_version": "0.3",
        "qlog_format": "JSON-SEQ",
        "title": trace.name,
        "trace": {
            "title": format!(
                "{}, seed {}, assistance {:?}", trace.name, trace.outcome.seed, trace.outcome.assist
            ),
            "vantage_point": { "type": "network", "name": "simulator" },
            "common_fields": { "time_format": "relative", "reference_time": 0 },
        },
    });
    let mut text = String::new();
    for record in std::iter::once(header).chain(trace.entries.iter().map(record)) {
        text.push(RECORD_SEPARATOR);
        text += &record.to_string();
        text.push('\n');
    }
    text
}

fn record(entry: &Entry) -> Value {
    let (name, mut data) = match entry.what {
        What::Parcel { direction, number, bytes, copy, moment } => {
            let down = direction == Direction::Down;
            let name = match moment {
                Moment::WanLost => "wan:packet_dropped",
                Moment::AtRouter => "router:packet_at_router",
                Moment::Sent => "router:packet_sent",
                Moment::Lost => "hop:packet_lost",
                Moment::Dropped => "hop:packet_dropped",
                Moment::Arrived => "client:packet_arrived",
            };
            let direction = if down { "down" } else { "up" };
            let data = json!({
                "direction": direction, "packet": number, "bytes": bytes, "copy": copy,
            });
            (name, data)
        }
        What::Engine { kind, packet } => engine(kind, packet),
    };
    data["flow"] = entry.flow.into();
    json!({ "time": entry.at as f64 / 1e6, "name": name, "data": data })
}

fn engine(kind: EventKind, packet: Option<u32>) -> (&'static str, Value) {
    let ms = |nanos: i64| nanos as f64 / 1e6;
    match kind {
        EventKind::FlowStart => ("engine:flow_start", json!({})),
        EventKind::FlowEnd { packets_down, inferred, repaired, resent } => (
            "engine:flow_end",
            json!({
                "packets_down": packets_down,
                "inferred": inferred,
                "repaired": repaired,
                "resent": resent,
            }),
        ),
        EventKind::Loss { .. } => ("engine:loss_inferred", json!({ "packet": packet })),
        EventKind::Resend { .. } => ("engine:resend", json!({ "packet": packet })),
        EventKind::Repair { after_ns } => ("engine:repair", json!({ "after_ms": ms(after_ns) })),
        EventKind::Abandon => ("engine:abandon", json!({})),
        EventKind::HoldStart => ("engine:hold", json!({})),
        EventKind::HoldEnd { packets, held_ns } => {
            ("engine:release", json!({ "packets": packets, "held_ms": ms(held_ns) }))
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::run::Assist;
    use crate::scenario::{Flow, LossModel, Scenario, Wifi};
    use crate::trace::record;

    #[test]
    fn a_run_becomes_a_sequence_of_records() {
        let scenario = Scenario {
            wifi: Wifi { loss_down: LossModel::Percent(2.0), ..Wifi::default() },
            flows: vec![Flow { bytes: 500_000, ..Flow::default() }],
            ..Scenario::default()
        };
        let trace = record("a test".into(), &scenario, Assist::On, 1).unwrap();
        let text = super::text(&trace);
        let records: Vec<serde_json::Value> = text
            .split_terminator('\n')
            .map(|line| serde_json::from_str(line.strip_prefix('\u{1e}').unwrap()).unwrap())
            .collect();
        assert_eq!(records[0]["qlog_format"], "JSON-SEQ");
        let count = |name: &str| records.iter().filter(|record| record["name"] == name).count();
        let flow = &trace.outcome.flows[0].inference;
        let first_time = |record: &&serde_json::Value| record["data"]["copy"] == false;
        let lost = records.iter().filter(|record| record["name"] == "hop:packet_lost");
        assert_eq!(lost.filter(first_time).count() as u64, flow.losses, "a copy may be lost, too");
        assert_eq!(count("engine:resend") as u64, flow.copies);
        assert!(flow.losses > 0 && count("engine:hold") > 0);
        assert_eq!(count("engine:hold"), count("engine:release"));
        let times: Vec<f64> =
            records[1..].iter().map(|record| record["time"].as_f64().unwrap()).collect();
        assert!(times.is_sorted());
        // What the engine names is what the router sends again.
        let packets = |name: &str, copy: Option<bool>| -> Vec<u64> {
            let named = records.iter().filter(|record| record["name"] == name);
            named
                .map(|record| &record["data"])
                .filter(|data| data["direction"] != "up" && copy.is_none_or(|c| data["copy"] == c))
                .map(|data| data["packet"].as_u64().unwrap())
                .collect()
        };
        assert_eq!(packets("engine:resend", None), packets("router:packet_sent", Some(true)));
    }
}
