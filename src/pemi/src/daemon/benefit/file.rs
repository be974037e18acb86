// SPDX-License-Identifier: GPL-2.0-or-later
//! The comparison as the text of a file: JSON, a few kilobytes long.

use std::time::Duration;

use serde_json::{Map, Value};

use super::Network;
use super::looks::Looks;
use super::sample::{KINDS, Sample, Samples};

/// The networks of these lists as they are written.
pub fn text(lists: &[&[Network]], now_unix: u64) -> String {
    let mut file = Map::new();
    for network in lists.iter().copied().flatten() {
        let mut its = Map::new();
        if let Some(left) = network.back_left() {
            its.insert("back_until".into(), (now_unix + left.as_secs()).into());
        }
        for (kind, samples) in KINDS.iter().zip(&network.kinds) {
            let numbers = |it: &Sample| vec![it.helped.into(), it.kbit_s, it.stalls.into()];
            if !samples.is_empty() {
                its.insert(kind.name().into(), samples.iter().map(numbers).collect());
            }
        }
        let Looks { taken, alone, due } = network.looks;
        its.insert("looks".into(), vec![taken, alone, due].into());
        file.insert(network.name.clone(), its.into());
    }
    Value::from(file).to_string()
}

/// Those that are in a text, if it is one of ours.
pub fn parse(text: &str, now_unix: u64) -> Option<Vec<Network>> {
    let Value::Object(file) = serde_json::from_slice(text.as_bytes()).ok()? else { return None };
    let mut networks = Vec::new();
    for (name, its) in file {
        let mut network = Network::new(name);
        if let Some(until) = its["back_until"].as_u64() {
            network.stand_back_for(Duration::from_secs(until.saturating_sub(now_unix)));
            if network.back.is_none() {
                // That day is over, and what did harm then is not to decide about this one.
                networks.push(network);
                continue;
            }
        }
        for (kind, samples) in KINDS.iter().zip(&mut network.kinds) {
            read(&its[kind.name()], samples)?;
        }
        let number = |at: usize| u32::try_from(its["looks"][at].as_u64()?).ok();
        if let (Some(taken), Some(alone), Some(due)) = (number(0), number(1), number(2)) {
            network.looks = Looks { taken, alone, due };
        }
        networks.push(network);
    }
    Some(networks)
}

/// The downloads of a kind.
fn read(list: &Value, samples: &mut Samples) -> Option<()> {
    for it in list.as_array().into_iter().flatten() {
        samples.add(Sample {
            helped: it[0].as_u64()? != 0,
            kbit_s: u32::try_from(it[1].as_u64()?).ok()?,
            stalls: u16::try_from(it[2].as_u64()?).ok()?,
        });
    }
    (list.is_array() || list.is_null()).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network() -> Network {
        let mut network = Network::new("br-lan".into());
        for kbit_s in 1..=200 {
            network.kinds[0].add(Sample { helped: kbit_s % 3 != 0, kbit_s, stalls: 2 });
        }
        network.kinds[2].add(Sample { helped: true, kbit_s: u32::MAX, stalls: 0 });
        network.looks = Looks { taken: 7, alone: 60, due: 90 };
        network.stand_back_for(Duration::from_secs(5000));
        network
    }

    #[test]
    fn what_is_written_is_read() {
        let written = [network(), Network::new("br-guest".into())];
        let read = parse(&text(&[&written], 1_800_000_000), 1_800_001_000).unwrap();
        let [guest, lan] = &read[..] else { panic!("{read:?}") };
        assert_eq!((&lan.name[..], &guest.name[..]), ("br-lan", "br-guest"));
        assert_eq!(lan.kinds, written[0].kinds);
        assert_eq!(lan.looks, written[0].looks);
        let left = lan.back_left().unwrap().as_secs();
        assert!((3990..=4000).contains(&left), "{left}");
        assert_eq!(guest.back_left(), None);
        assert!(text(&[&written[..1], &written[1..]], 0).len() < 4000);
    }

    #[test]
    fn a_clock_that_is_wrong_makes_nobody_wait_for_long() {
        // Routers without a battery begin in the past.
        let read = parse(&text(&[&[network()]], 1_800_000_000), 0).unwrap();
        assert!(read[0].back_left().unwrap() <= super::super::BACK);
        let late = parse(&text(&[&[network()]], 0), 1_800_000_000).unwrap();
        assert_eq!(late[0].back_left(), None);
        assert!(!late[0].is_worth_keeping(), "the day without help is over, all begins anew");
    }

    #[test]
    fn nonsense_is_no_file() {
        for text in ["", "[]", "{", "7", r#"{"a":{"replies":[[1]]}}"#, r#"{"a":{"replies":7}}"#] {
            assert!(parse(text, 0).is_none(), "{text}");
        }
        assert_eq!(parse("{}", 0).unwrap().len(), 0);
        let strange = r#"{"a":7,"b":{"more":1,"looks":[1]}}"#;
        assert_eq!(parse(strange, 0).unwrap().len(), 2);
    }
}
