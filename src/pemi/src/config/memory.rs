// SPDX-License-Identifier: GPL-2.0-or-later
//! Whether this router has the memory that a configuration asks for.

use std::fs;

use super::{Config, Problem, Repaired};

/// What a flow costs at most, measured with all of its parts in use; the same again for
/// its other direction.
const FLOW_BYTES: u64 = 3584;
/// Copies and flows may have one part in so many of the memory: the rest is for the kernel
/// and for everybody else, and a router that runs out of it kills programs.
const SHARE: u64 = 4;

/// The memory of this machine, KiB. A jail may hide it; then nothing is refused for it.
pub(super) fn total_kib() -> Option<u64> {
    read(&fs::read_to_string("/proc/meminfo").ok()?)
}

fn read(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

/// What this machine lacks the memory for, a problem a line.
pub fn fits(config: &Config) -> Result<(), String> {
    let problems = total_kib().map(|kib| problems(config, kib)).unwrap_or_default();
    let lines: Vec<String> = problems.iter().map(Problem::to_string).collect();
    if lines.is_empty() { Ok(()) } else { Err(lines.join("\n")) }
}

/// Options that ask for more than there is in a machine of `total_kib`. Those that ask for
/// no more than by default are never among them: then there is nothing to fall back to.
pub(super) fn problems(config: &Config, total_kib: u64) -> Vec<Problem> {
    let default = Config::default();
    let directions = if config.direction == Repaired::Both { 2 } else { 1 };
    let flow_bytes = FLOW_BYTES * directions;
    let limit = total_kib / SHARE;
    let cache = u64::from(config.cache_kib);
    let flows = (u64::from(config.max_flows) * flow_bytes).div_ceil(1024);
    if cache + flows <= limit {
        return Vec::new();
    }
    // The other one at its default, or below, takes this much.
    let cache_least = cache.min(default.cache_kib.into());
    let flows_least = (u64::from(config.max_flows.min(default.max_flows)) * flow_bytes) / 1024;
    let mut problems = Vec::new();
    let mut refuse = |option: &str, value: u32, allowed: u64| {
        problems.push(Problem::new(
            option,
            value.to_string(),
            format!(
                "up to {allowed} with the other options as they are: copies and flows may take \
                 {limit} KiB, a quarter of this router's memory, not {} KiB (cache_kib + max_flows x \
                 {flow_bytes} bytes)",
                cache + flows
            ),
        ));
    };
    // Whichever can be made smaller by itself; both if neither is enough.
    let cache_room = limit.saturating_sub(flows).max(default.cache_kib.into());
    let flows_room =
        (limit.saturating_sub(cache) * 1024 / flow_bytes).max(default.max_flows.into());
    if config.cache_kib > default.cache_kib && (cache >= flows || flows_least + cache > limit) {
        refuse("cache_kib", config.cache_kib, cache_room);
    }
    if config.max_flows > default.max_flows && (flows > cache || cache_least + flows > limit) {
        refuse("max_flows", config.max_flows, flows_room);
    }
    problems
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::{parse, without_problems};
    use super::*;

    const MIB: u64 = 1024;

    fn refused(cache_kib: u32, max_flows: u32, total_kib: u64) -> Vec<String> {
        let config = Config { cache_kib, max_flows, ..Config::default() };
        problems(&config, total_kib).iter().map(|it| it.option().to_string()).collect()
    }

    #[test]
    fn memory_is_read_from_what_the_kernel_says() {
        let text = "MemTotal:         59904 kB\nMemFree:          1234 kB\n";
        assert_eq!(read(text), Some(59904));
        assert_eq!(read("MemFree: 1 kB\n"), None);
        assert_eq!(read(""), None);
        assert!(total_kib().is_none_or(|kib| kib > MIB));
    }

    #[test]
    fn defaults_are_never_refused() {
        for total in [1, 16 * MIB, 64 * MIB] {
            assert_eq!(refused(4096, 1024, total), [] as [&str; 0]);
            assert_eq!(refused(64, 16, total), [] as [&str; 0]);
        }
        let both = Config { direction: Repaired::Both, ..Config::default() };
        assert_eq!(problems(&both, 16 * MIB), []);
    }

    #[test]
    fn more_than_a_quarter_is_refused() {
        // 64 MiB: 16 MiB for both, of which 1024 flows take 3.5.
        assert_eq!(refused(12800, 1024, 64 * MIB), [] as [&str; 0]);
        assert_eq!(refused(12801, 1024, 64 * MIB), ["cache_kib"]);
        assert_eq!(refused(4096, 3510, 64 * MIB), [] as [&str; 0]);
        assert_eq!(refused(4096, 3511, 64 * MIB), ["max_flows"]);
        assert_eq!(refused(1_048_576, 65_536, 64 * MIB), ["cache_kib", "max_flows"]);
        // What the largest values really took: 281 MB with the flows of a review.
        assert_eq!(refused(65_536, 65_536, 1024 * MIB), ["max_flows"]);
        assert_eq!(refused(65_536, 65_536, 2048 * MIB), [] as [&str; 0]);
    }

    #[test]
    fn a_flow_in_both_directions_costs_twice() {
        let mut config = Config { max_flows: 3000, ..Config::default() };
        assert_eq!(problems(&config, 64 * MIB), []);
        config.direction = Repaired::Both;
        let problems = problems(&config, 64 * MIB);
        assert_eq!(problems.len(), 1);
        let text = problems[0].to_string();
        for part in ["'max_flows'", "value 3000", "up to 1755", "16384 KiB", "7168 bytes"] {
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn what_does_not_fit_into_memory_is_taken_out() {
        let text = r#"{"cache_kib":"262144","max_flows":2048}"#;
        assert!(parse(text, None).is_ok());
        let small = Some(64 << 10);
        let lines = parse(text, small).unwrap_err().lines(Path::new("f"));
        assert_eq!(lines.len(), 1);
        assert!(
            lines[0].starts_with(
                "f: option 'cache_kib': value 262144 is not valid; allowed: up to 9216 "
            )
        );
        assert_eq!(without_problems(text, small), r#"{"max_flows":2048}"#);
        let text = r#"{"cache_kib":262144,"max_flows":65536}"#;
        assert_eq!(without_problems(text, small), "{}");
    }
}
