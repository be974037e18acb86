// SPDX-License-Identifier: GPL-2.0-or-later
//! What the engine noticed, as log lines and as lines of an event file.

use std::fmt;

use log::Level;
use pemi_engine::{Direction, Event, EventKind, US};
use serde_json::{Value, json};

/// The kind's name in event files.
pub fn name(kind: EventKind) -> &'static str {
    match kind {
        EventKind::FlowStart => "flow_start",
        EventKind::FlowEnd { .. } => "flow_end",
        EventKind::Loss { .. } => "loss",
        EventKind::Resend { .. } => "resend",
        EventKind::Repair { .. } => "repair",
        EventKind::Abandon => "abandon",
        EventKind::HoldStart => "hold_start",
        EventKind::HoldEnd { .. } => "hold_end",
    }
}

/// The log level an event belongs to.
pub fn level(kind: EventKind) -> Level {
    match kind {
        EventKind::FlowStart | EventKind::FlowEnd { .. } => Level::Info,
        _ => Level::Debug,
    }
}

/// The line of an event file, without the newline.
pub fn json(event: &Event) -> Value {
    let mut line = json!({
        "t_us": event.at.as_nanos() / 1_000,
        "client": event.client.to_string(),
        "server": event.server.to_string(),
        "kind": name(event.kind),
        "direction": if event.direction == Direction::Down { "down" } else { "up" },
    });
    for (key, value) in fields(event.kind).into_iter().flatten() {
        line[key] = value.into();
    }
    line
}

/// The log line of an event, without level and newline.
pub struct Text<'a>(pub &'a Event);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.0.kind {
            EventKind::FlowStart => "flow started",
            EventKind::FlowEnd { .. } => "flow ended",
            EventKind::Loss { .. } => "loss inferred",
            EventKind::Resend { .. } => "copy sent",
            EventKind::Repair { .. } => "loss repaired",
            EventKind::Abandon => "loss given up",
            EventKind::HoldStart => "holding replies",
            EventKind::HoldEnd { .. } => "replies let go",
        };
        write!(f, "{what} client={} server={}", self.0.client, self.0.server)?;
        if self.0.direction == Direction::Up {
            write!(f, " direction=up")?;
        }
        for (key, value) in fields(self.0.kind).into_iter().flatten() {
            write!(f, " {key}={value}")?;
        }
        Ok(())
    }
}

fn fields(kind: EventKind) -> [Option<(&'static str, u64)>; 4] {
    let micros = |nanos| u64::try_from(nanos / US).unwrap_or(0);
    match kind {
        EventKind::FlowEnd { packets_down, inferred, repaired, resent } => [
            Some(("packets_down", packets_down)),
            Some(("inferred", inferred)),
            Some(("repaired", repaired)),
            Some(("resent", resent)),
        ],
        EventKind::Loss { packet } | EventKind::Resend { packet } => {
            [Some(("packet", packet)), None, None, None]
        }
        EventKind::Repair { after_ns } => [Some(("after_us", micros(after_ns))), None, None, None],
        EventKind::HoldEnd { packets, held_ns } => {
            [Some(("packets", packets.into())), Some(("held_us", micros(held_ns))), None, None]
        }
        EventKind::FlowStart | EventKind::Abandon | EventKind::HoldStart => [None; 4],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pemi_engine::Time;

    fn event(kind: EventKind) -> Event {
        Event {
            at: Time::from_nanos(1_234_567_890),
            client: "192.0.2.9:50000".parse().unwrap(),
            server: "[2001:db8::1]:443".parse().unwrap(),
            direction: Direction::Down,
            kind,
        }
    }

    #[test]
    fn lines_of_an_event_file() {
        assert_eq!(
            json(&event(EventKind::HoldEnd { packets: 3, held_ns: 4_500_999 })),
            json!({"t_us": 1_234_567, "client": "192.0.2.9:50000", "server": "[2001:db8::1]:443",
                "kind": "hold_end", "direction": "down", "packets": 3, "held_us": 4_500})
        );
        assert_eq!(json(&event(EventKind::Abandon))["kind"], "abandon");
    }

    #[test]
    fn log_lines() {
        assert_eq!(
            Text(&event(EventKind::Loss { packet: 17 })).to_string(),
            "loss inferred client=192.0.2.9:50000 server=[2001:db8::1]:443 packet=17"
        );
        let up = Event { direction: Direction::Up, ..event(EventKind::HoldStart) };
        assert!(Text(&up).to_string().ends_with("server=[2001:db8::1]:443 direction=up"));
        assert_eq!(json(&up)["direction"], "up");
        assert_eq!(level(EventKind::FlowStart), Level::Info);
        assert_eq!(level(EventKind::Abandon), Level::Debug);
    }
}
