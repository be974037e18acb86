// SPDX-License-Identifier: GPL-2.0-or-later
//! Answers of the daemon as text for people.

use std::fmt::Write;

use serde_json::Value;

/// `pemi status`
pub fn status(s: &Value) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "{name:<12} {value}");
    };
    line(
        "version",
        format!("{}, up {} s, {}", word(&s["version"]), s["uptime_s"], word(&s["mode"])),
    );
    for queue in s["queues"].as_array().into_iter().flatten() {
        line(
            "queue",
            format!(
                "{}: {} packets, passed unseen {}, dropped by the kernel {}",
                queue["id"],
                queue["packets"],
                queue["missed"],
                queue["kernel_dropped"].as_u64().unwrap_or(0)
                    + queue["user_dropped"].as_u64().unwrap_or(0)
            ),
        );
    }
    let each = |section: &str, names: &[&str]| {
        names
            .iter()
            .map(|name| format!("{name} {}", s[section][*name]))
            .collect::<Vec<_>>()
            .join(", ")
    };
    line("packets", each("packets", &["down", "up", "quic", "other", "malformed"]));
    line("bytes", each("bytes", &["down", "up"]));
    line("flows", each("flows", &["active", "protected", "bypassed", "evicted"]));
    line("losses", each("losses", &["inferred", "repaired", "upstream", "congestion"]));
    line("resent", each("resent", &["packets", "bytes", "limited", "errors"]));
    line("concealed", each("concealed", &["gaps", "held", "late", "now"]));
    line(
        "local RTT",
        format!("{} us median, {} us p99", s["local_rtt_us"]["p50"], s["local_rtt_us"]["p99"]),
    );
    line("cache", format!("{} of {} bytes", s["cache"]["bytes"], s["cache"]["limit"]));
    if let Some(radio) = radio(&s["radio"]) {
        line("radio", radio);
    }
    if s["sidekick"]["enabled"] == true {
        let names = ["sessions", "packets", "quacks", "losses", "late", "refused"];
        line("sidekick", each("sidekick", &names));
    }
    for error in s["errors"].as_array().into_iter().flatten() {
        line("attention", word(error).into());
    }
    text
}

/// What is asked of access points; nothing where that is switched off.
fn radio(radio: &Value) -> Option<String> {
    let list = radio["access_points"].as_array().filter(|list| !list.is_empty());
    let Some(list) = list else {
        let why = radio["state"].as_str().filter(|state| *state != "off")?;
        return Some(why.into());
    };
    let access_points = list.iter().map(|it| {
        format!("{} on {} ({})", it["stations"], word(&it["interface"]), word(&it["driver"]))
    });
    let access_points: Vec<String> = access_points.collect();
    Some(format!(
        "stations {}; asked {} times, longest {} us, missed {}",
        access_points.join(", "),
        radio["asked"],
        radio["longest_us"],
        radio["missed"]
    ))
}

/// `pemi clients`
pub fn clients(answer: &Value) -> String {
    let row = |c: &Value| {
        let (address, radio) = (&c["addresses"][0], told(&c["interface"]));
        let its = [
            if c["name"].is_null() { address } else { &c["name"] },
            address,
            &c["mac"],
            &c["signal_dbm"],
            &c["hour"]["lost_per_mille"],
            &c["hour"]["retries_percent"],
            &c["queue"]["packets"],
            &c["queue"]["drops"],
            &c["helped"]["flows"],
            &c["helped"]["repaired"],
            &c["helped"]["copies"],
            &c["sentence"],
        ];
        let mut row: Vec<String> = its.into_iter().map(told).collect();
        row.insert(3, format!("{radio} {}", c["band"].as_str().unwrap_or("")));
        row.insert(9, gate(c, answer["helping"] == true).into());
        row
    };
    let rows: Vec<Vec<String>> = list(&answer["clients"]).iter().map(row).collect();
    if rows.is_empty() {
        return format!("{}\n", nobody(answer["radio"].as_str().unwrap_or("")));
    }
    table(&CLIENTS, rows)
}

/// Why there is no client to be shown.
fn nobody(radio: &str) -> &'static str {
    match radio {
        "off" => "no clients now; access points are not asked (option 'radio')",
        "no radio" => "no clients now; this router has no Wi-Fi to ask",
        "no access point" => "no clients now; no access point is on the helped networks",
        "fails" => "no clients now; the Wi-Fi cannot be asked: see the log",
        _ => "no clients now",
    }
}

/// What becomes of a client's packets: they pass by the queue, or are looked at.
fn gate(client: &Value, helping: bool) -> &'static str {
    match (helping, client["gate"].as_str(), client["helped"]["flows"].as_u64()) {
        (false, ..) => "-",
        (true, Some("closed"), _) => "pass by",
        (true, _, Some(1..)) => "helped",
        (true, ..) => "watched",
    }
}

/// As it is, without quotes; a dash for what is not known.
pub fn told(value: &Value) -> String {
    match value {
        Value::Null => "-".into(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Of the last hour, after all retries; "queue" and "drops" are the radio's.
const CLIENTS: [&str; 14] = [
    "client",
    "address",
    "station",
    "radio",
    "dBm",
    "lost ‰",
    "retries %",
    "queue",
    "drops",
    "packets",
    "flows",
    "repaired",
    "copies",
    "",
];

/// `pemi flows`
pub fn flows(answer: &Value) -> String {
    let row = |f: &Value| {
        vec![
            word(&f["client"]).into(),
            word(&f["server"]).into(),
            told(&f["protocol"]),
            f["age_s"].to_string(),
            f["packets_down"].to_string(),
            f["local_rtt_us"].to_string(),
            f["loss_percent"].to_string(),
            f["repaired"].to_string(),
            word(&f["state"]).to_string(),
        ]
    };
    let head = [
        "client", "server", "protocol", "age s", "packets", "RTT us", "loss %", "repaired", "state",
    ];
    table(&head, list(&answer["flows"]).iter().map(row).collect())
}

/// `pemi benefit`: a sentence for each network, and how many downloads stood still.
pub fn benefit(answer: &Value) -> String {
    let mut text = String::new();
    for network in list(&answer["networks"]) {
        let device = network["device"].as_str().filter(|device| !device.is_empty());
        let _ =
            writeln!(text, "{}: {}", device.unwrap_or("all networks"), word(&network["sentence"]));
        let stalled = |side: &str| {
            let (stalled, of) = (&network[side]["stalled"], &network[side]["downloads"]);
            format!("{stalled} of {of}")
        };
        let (helped, alone) = (stalled("helped"), stalled("alone"));
        let _ = write!(
            text,
            "  stood still for 200 ms or more: {helped} downloads with help, {alone} without"
        );
        let (points, between) = (&network["stalled_percent"], &network["stalled_interval"]);
        if points.is_number() {
            let (low, high) = (&between[0], &between[1]);
            let _ = write!(text, ": a difference of {points} percentage points ({low} to {high})");
        }
        text.push('\n');
    }
    text
}

/// `pemi history`
pub fn history(answer: &Value) -> String {
    let names = ["t", "down_bps", "up_bps", "inferred", "repaired", "held", "flows"];
    let row = |s: &Value| names.iter().map(|name| s[*name].to_string()).collect();
    let head = ["t", "down bit/s", "up bit/s", "inferred", "repaired", "held", "flows"];
    table(&head, list(&answer["history"]).iter().map(row).collect())
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or("?")
}

/// Columns as wide as they have to be, under their names.
pub fn table(head: &[&str], rows: Vec<Vec<String>>) -> String {
    let mut all = vec![head.iter().map(ToString::to_string).collect()];
    all.extend(rows);
    let width = |row: &Vec<String>, column: usize| row[column].chars().count();
    let mut text = String::new();
    for row in &all {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            let widest = all.iter().map(|row| width(row, column)).max().unwrap_or(0);
            let _ = write!(line, "{cell:<widest$}  ");
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn columns_are_aligned() {
        let answer = json!({"flows": [{"client": "192.0.2.9:50000", "server": "s:1", "age_s": 1, "packets_down": 10,
            "local_rtt_us": 2300, "loss_percent": 1.5, "repaired": 3, "protocol": "QUIC",
            "state": "protected"}]});
        let text = flows(&answer);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0].find("server"), lines[1].find("s:1"));
        assert_eq!(lines[0].find("protocol"), lines[1].find("QUIC"));
        assert!(lines[1].ends_with("protected"));
        assert_eq!(history(&json!({"history": []})).lines().count(), 1);
    }

    #[test]
    fn sidekick_is_shown_where_it_is_on() {
        let text = |enabled| {
            status(&json!({"sidekick": {"enabled": enabled, "sessions": 2, "quacks": 30,
                "packets": 70, "losses": 3, "late": 4, "refused": 0}}))
        };
        assert!(!text(false).contains("sidekick"));
        assert!(text(true).contains(
            "sidekick     sessions 2, packets 70, quacks 30, losses 3, late 4, refused 0"
        ));
    }

    #[test]
    fn troubles_are_shown() {
        assert!(
            status(&json!({"errors": ["device x does not exist"]}))
                .contains("attention    device x")
        );
    }

    #[test]
    fn where_there_is_no_client_it_is_said_why() {
        let text = |radio| clients(&json!({"clients": [], "helping": true, "radio": radio}));
        assert!(text("no radio").contains("has no Wi-Fi"));
        assert_eq!(text("works"), "no clients now\n");
    }

    #[test]
    fn clients_have_their_sentences_at_the_end() {
        let phone = json!({"name": "phone", "addresses": ["192.0.2.9"], "mac": "02:00:00:00:02:00",
            "interface": "phy1-ap0", "band": "5 GHz", "signal_dbm": -54,
            "hour": {"lost_per_mille": 0.525, "retries_percent": 2.5},
            "queue": {"packets": 3, "drops": 2},
            "helped": {"flows": 1, "repaired": 13, "copies": 15}, "gate": "open",
            "sentence": "helping: 14 losses"});
        let wired = json!({"name": null, "addresses": ["192.0.2.4"],
            "helped": {"flows": 2, "repaired": 0, "copies": 0}, "sentence": "on no radio"});
        let text = clients(&json!({"clients": [phone, wired], "helping": true}));
        let lines: Vec<Vec<&str>> =
            text.lines().map(|line| line.split("  ").map(str::trim).collect()).collect();
        let cells = |line: usize| {
            lines[line].iter().copied().filter(|cell| !cell.is_empty()).collect::<Vec<_>>()
        };
        assert_eq!(cells(0), CLIENTS[..13]);
        assert_eq!(
            cells(1),
            [
                "phone",
                "192.0.2.9",
                "02:00:00:00:02:00",
                "phy1-ap0 5 GHz",
                "-54",
                "0.525",
                "2.5",
                "3",
                "2",
                "helped",
                "1",
                "13",
                "15",
                "helping: 14 losses"
            ]
        );
        assert_eq!(cells(2)[..4], ["192.0.2.4", "192.0.2.4", "-", "-"]);
        assert_eq!(cells(2)[9..], ["helped", "2", "0", "0", "on no radio"]);
    }

    #[test]
    fn a_gate_in_words() {
        let client = |gate, flows| json!({"gate": gate, "helped": {"flows": flows}});
        assert_eq!(gate(&client("closed", 1), true), "pass by");
        assert_eq!(gate(&client("open", 1), true), "helped");
        assert_eq!(gate(&client("open", 0), true), "watched");
        assert_eq!(gate(&client("open", 0), false), "-", "a loss meter");
    }

    #[test]
    fn a_sentence_for_each_network() {
        let side = |stalled: u64| json!({"downloads": 12, "stalled": stalled});
        let one = |device: &str| json!({"device": device, "sentence": "Words.", "helped": side(1), "alone": side(7)});
        let mut known = one("");
        known["stalled_percent"] = json!(-50.0);
        known["stalled_interval"] = json!([-71.49, -12.5]);
        let text = benefit(&json!({"networks": [one("br-lan"), known]}));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!((lines[0], lines[2]), ("br-lan: Words.", "all networks: Words."));
        assert!(lines[1].ends_with("1 of 12 downloads with help, 7 of 12 without"));
        assert!(lines[3].ends_with(
            "7 of 12 without: a difference of -50.0 percentage points (-71.49 to -12.5)"
        ));
    }

    #[test]
    fn what_access_points_there_are() {
        let text = |radio: Value| status(&json!({"radio": radio}));
        assert!(!text(json!({"state": "off", "access_points": []})).contains("radio"));
        assert!(
            text(json!({"state": "no radio", "access_points": []}))
                .contains("radio        no radio")
        );
        let one = json!({"interface": "phy0-ap0", "driver": "ath9k", "stations": 3});
        let works = json!({"state": "works", "access_points": [one], "asked": 7, "longest_us": 84,
            "missed": 0});
        assert!(text(works).contains(
            "radio        stations 3 on phy0-ap0 (ath9k); asked 7 times, longest 84 us, missed 0"
        ));
    }
}
