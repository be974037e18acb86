// SPDX-License-Identifier: GPL-2.0-or-later
//! Whether settings make sense: a channel of others would stand still or never end.

use super::{LinkSettings, Settings};

/// An aggregate's block ack has room for so many.
const MOST_FRAMES: u32 = 64;
/// A channel has 32 stations: two access points, and clients of its user's besides.
const MOST_NEIGHBOURS: usize = 16;
/// Shorter times would be so many that nothing else is done.
const LEAST_MS: f64 = 0.1;
const HOUR_MS: f64 = 3_600_000.0;
const MOST_MBIT: f64 = 10_000.0;

/// What is wrong, by its name in the file, and what may be there.
pub(super) fn check(settings: &Settings) -> Result<(), String> {
    let radio = &settings.radio;
    ensure(radio.attempts >= 1, "radio.attempts", radio.attempts, "at least 1")?;
    let frames = (1..=MOST_FRAMES).contains(&radio.aggregate);
    ensure(frames, "radio.aggregate", radio.aggregate, "from 1 to 64")?;
    link("link", &settings.link)?;
    if let Some(sleep) = &settings.sleep {
        time("sleep.after_ms", sleep.after_ms)?;
    }
    if let Some(roam) = &settings.roam {
        time("roam.every_ms", roam.every_ms)?;
        time("roam.silence_ms", roam.silence_ms)?;
    }
    let count = settings.neighbours.len();
    ensure(count <= MOST_NEIGHBOURS, "neighbours", count, "at most 16 of them")?;
    for (number, neighbour) in settings.neighbours.iter().enumerate() {
        let name = |field: &str| format!("neighbours[{number}].{field}");
        link(&name("link"), &neighbour.link)?;
        rate(&name("down_mbit"), neighbour.down_mbit, 0.0)?;
        rate(&name("up_mbit"), neighbour.up_mbit, 0.0)?;
        let burst = (1..=MOST_FRAMES).contains(&neighbour.burst);
        ensure(burst, &name("burst"), neighbour.burst, "from 1 to 64")?;
    }
    Ok(())
}

fn link(name: &str, link: &LinkSettings) -> Result<(), String> {
    rate(&format!("{name}.rate_mbit"), link.rate_mbit, 1.0)?;
    let errors = &link.errors;
    let by_attempt = errors.by_attempt.iter().map(|chance| ("by_attempt", *chance));
    for (field, chance) in
        [("good", errors.good), ("bad", errors.bad)].into_iter().chain(by_attempt)
    {
        let field = format!("{name}.errors.{field}");
        ensure((0.0..=1.0).contains(&chance), &field, chance, "a probability from 0 to 1")?;
    }
    if errors.bad_ms != 0.0 {
        time(&format!("{name}.errors.bad_ms"), errors.bad_ms)?;
        time(&format!("{name}.errors.good_ms"), errors.good_ms)?;
    }
    Ok(())
}

fn rate(name: &str, mbit: f64, least: f64) -> Result<(), String> {
    let wanted = format!("from {least} to {MOST_MBIT} Mbit/s");
    ensure((least..=MOST_MBIT).contains(&mbit), name, mbit, &wanted)
}

fn time(name: &str, ms: f64) -> Result<(), String> {
    ensure((LEAST_MS..=HOUR_MS).contains(&ms), name, ms, "from 0.1 ms to an hour")
}

fn ensure(
    holds: bool,
    name: &str,
    value: impl std::fmt::Display,
    wanted: &str,
) -> Result<(), String> {
    if holds { Ok(()) } else { Err(format!("{name} is {value}: wanted {wanted}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_passes() {
        for (name, settings) in Settings::presets() {
            assert_eq!(check(&settings), Ok(()), "{name}");
            assert_eq!(check(&settings.without_loss()), Ok(()), "{name}");
        }
    }

    #[test]
    fn what_would_stand_still_or_never_end_is_named() {
        for (text, name) in [
            ("radio.attempts = 0", "radio.attempts"),
            ("radio.aggregate = 65", "radio.aggregate"),
            ("link.rate_mbit = 0", "link.rate_mbit"),
            ("link.errors.good = 1.5", "link.errors.good"),
            ("link.errors.by_attempt = [0.1, -1.0]", "link.errors.by_attempt"),
            ("link.errors = { bad_ms = 5.0 }", "link.errors.good_ms"),
            ("sleep.after_ms = -1", "sleep.after_ms"),
            ("roam = { every_ms = 0.0, silence_ms = 20.0 }", "roam.every_ms"),
            ("neighbours = [{}, { burst = 0 }]", "neighbours[1].burst"),
            ("neighbours = [{ down_mbit = nan }]", "neighbours[0].down_mbit"),
        ] {
            let error = Settings::parse(text).unwrap_err();
            assert!(error.starts_with(name) && error.contains("wanted"), "{text}: {error}");
        }
    }
}
