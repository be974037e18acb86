// SPDX-License-Identifier: GPL-2.0-or-later
//! The command line.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use lexopt::{Arg, Parser, ValueExt};
use pemi_air::settings::Settings as Air;

use crate::delay::DelayTrace;
use crate::light::{self, Light};
use crate::loss::Model;
use crate::pipe::{Delay, Rate, Settings};
use crate::queue::Discipline;
use crate::trace::{self, Trace};
use crate::{Direction, MS, Nanos};

/// What `--help` prints.
pub const HELP: &str = "\
linkem [options] IF_A IF_B

Emulates a link between two Ethernet interfaces: every frame received on one goes
through a queue, serialisation, loss and delay and is sent on the other.

Of both directions; with -ab or -ba appended (--rate-ab) of one, which then wins:
  --rate MBIT       serialisation in Mbit/s of Ethernet frames; 0: unlimited (default 0)
  --trace FILE      mahimahi trace instead of a rate
  --cellreplay-light FILE, --cellreplay-heavy FILE, --cellreplay-offset FILE
                    CellReplay's recordings instead of a rate
  --delay MS        one-way propagation delay (default 0)
  --delay-trace FILE  instead, a line for each 10 ms
  --jitter MS       the delay varies uniformly by +-MS, never reordering (default 0)
  --queue BYTES     what may wait, without the frame in service (default 262144)
  --qdisc KIND      droptail (or tbf: the same), codel, fq_codel, red or none: no
                    limit but 256 MiB (default droptail)
  --loss PERCENT    independent losses (default 0)
  --ge 'P R 1-H 1-K'  Gilbert-Elliott losses in percent, as tc-netem's gemodel
  --outages 'GAP LENGTH'  all is lost for LENGTH ms at a time, GAP ms apart, on average

  --wifi PRESET     instead of all these: a Wi-Fi channel for both directions with the
                    access point at IF_A; a preset of test/air, or a file like one
  --wifi-lossless   the same, tried until every frame arrives

  --seed N          of losses and jitter (default 1)
  --lossy-all       lose ARP, neighbour and multicast upkeep and ping as well
  --log FILE        ground truth, one CSV row a frame
  --totals FILE     JSON at exit (default: to standard output)
  --rt PRIORITY     SCHED_FIFO priority, 0: none (default 45)
  --ready           print 'ready' when frames are forwarded
  --help, --version
Ends on SIGTERM or SIGINT.";

/// What was asked for.
#[derive(Debug)]
pub enum Command {
    /// Print the help text.
    Help,
    /// Print the version.
    Version,
    /// Emulate a link.
    Run(Box<Options>),
}

/// The options of a run.
#[derive(Debug)]
pub struct Options {
    /// The two interfaces.
    pub interfaces: [String; 2],
    /// The directions a to b and b to a.
    pub settings: [Settings; 2],
    /// A Wi-Fi channel in place of these.
    pub wifi: Option<Air>,
    /// Of losses and jitter.
    pub seed: u64,
    /// No frame is exempt from loss.
    pub lossy_all: bool,
    /// Where the ground truth goes.
    pub log: Option<PathBuf>,
    /// Where the totals go; none: to standard output.
    pub totals: Option<PathBuf>,
    /// SCHED_FIFO priority; 0: none.
    pub rt: u8,
    /// Print a line when forwarding.
    pub ready: bool,
}

/// Options of a direction, as far as they were given for it.
#[derive(Clone, Debug, Default)]
struct Given {
    rate: Option<Rate>,
    trace: Option<Rate>,
    heavy: Option<Rate>,
    light: Option<Light>,
    offset: Option<Vec<f64>>,
    delay: Option<Delay>,
    delay_trace: Option<Delay>,
    jitter: Option<Nanos>,
    queue: Option<u64>,
    qdisc: Option<Discipline>,
    loss: Option<Model>,
    ge: Option<Model>,
    outages: Option<Model>,
}

impl Given {
    /// Takes an option; false if there is none of this name.
    fn set(&mut self, name: &str, value: impl FnOnce() -> Result<String>) -> Result<bool> {
        match name {
            "rate" => self.rate = Some(rate(&value()?)?),
            "trace" => {
                self.trace = Some(Rate::Trace(file(value, |path| {
                    Trace::read(path, trace::OPPORTUNITY_BYTES)
                })?));
            }
            "cellreplay-light" => self.light = Some(file(value, Light::read)?),
            "cellreplay-heavy" => {
                self.heavy = Some(Rate::Trace(file(value, |path| {
                    Trace::read(path, light::OPPORTUNITY_BYTES)
                })?));
            }
            "cellreplay-offset" => self.offset = Some(file(value, Light::read_offsets)?),
            "delay" => self.delay = Some(Delay::Constant(milliseconds(&value()?)?)),
            "delay-trace" => {
                self.delay_trace = Some(Delay::Trace(file(value, DelayTrace::read)?));
            }
            "jitter" => self.jitter = Some(milliseconds(&value()?)?),
            "queue" => self.queue = Some(value()?.parse().context("not a number of bytes")?),
            "qdisc" => {
                let name = value()?;
                self.qdisc = Some(Discipline::named(&name).with_context(|| {
                    format!("'{name}' is none of droptail, tbf, codel, fq_codel, red, none")
                })?);
            }
            "loss" => self.loss = Some(Model::bernoulli(&value()?).map_err(|e| anyhow!(e))?),
            "ge" => self.ge = Some(Model::gilbert_elliott(&value()?).map_err(|e| anyhow!(e))?),
            "outages" => self.outages = Some(Model::outages(&value()?).map_err(|e| anyhow!(e))?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The settings of one direction, where `both` fills the gaps.
    fn settings(self, both: &Given) -> Result<Settings> {
        let both = both.clone();
        // A trace replaces a rate, but only one given for the same directions.
        let own_rate = self.heavy.or(self.trace).or(self.rate);
        let both_rate = both.heavy.or(both.trace).or(both.rate);
        let own_delay = self.delay_trace.or(self.delay);
        let own_loss = self.outages.or(self.ge).or(self.loss);
        let both_loss = both.outages.or(both.ge).or(both.loss);
        let rate = own_rate.or(both_rate).unwrap_or(Rate::Unlimited);
        let light = self.light.or(both.light);
        if light.is_some() && matches!(rate, Rate::Unlimited | Rate::Constant(_)) {
            bail!("--cellreplay-light needs --cellreplay-heavy");
        }
        let offset = self.offset.or(both.offset);
        if offset.is_some() && light.is_none() {
            bail!("--cellreplay-offset needs --cellreplay-light");
        }
        Ok(Settings {
            light: light.map(|light| light.with_offsets(offset.unwrap_or_default())),
            rate,
            delay: own_delay.or(both.delay_trace).or(both.delay).unwrap_or(Delay::Constant(0)),
            jitter: self.jitter.or(both.jitter).unwrap_or(0),
            queue_bytes: self.queue.or(both.queue).unwrap_or(262_144),
            discipline: self.qdisc.or(both.qdisc).unwrap_or(Discipline::Droptail),
            loss: own_loss.or(both_loss).unwrap_or(Model::Bernoulli(0.0)),
        })
    }
}

/// A preset, or a file with the settings of one.
fn air(name: &str) -> Result<Air> {
    match Air::preset(name) {
        Err(_) if Path::new(name).exists() => {
            let text = std::fs::read_to_string(name).with_context(|| name.to_owned())?;
            Air::parse(&text).map_err(|error| anyhow!("{name}: {error}"))
        }
        preset => preset.map_err(|error| anyhow!(error)),
    }
}

/// What a file holds, whose name is the option's value.
fn file<T>(
    name: impl FnOnce() -> Result<String>,
    read: impl FnOnce(&Path) -> Result<T, String>,
) -> Result<T> {
    read(name()?.as_ref()).map_err(|error| anyhow!(error))
}

fn number(text: &str) -> Result<f64> {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() && value >= 0.0 => Ok(value),
        _ => bail!("'{text}' is not a number of at least 0"),
    }
}

fn rate(text: &str) -> Result<Rate> {
    Ok(match number(text)? {
        0.0 => Rate::Unlimited,
        mbit if (1e-3..=1e6).contains(&mbit) => Rate::Constant(mbit * 1e6),
        _ => bail!("'{text}': rates are 0 or from 0.001 to 1000000 Mbit/s"),
    })
}

fn milliseconds(text: &str) -> Result<Nanos> {
    match number(text)? {
        ms if ms <= 3_600_000.0 => Ok((ms * MS as f64).round() as Nanos),
        _ => bail!("'{text}': at most an hour"),
    }
}

/// Parses the arguments (without the program's name).
pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Command> {
    let mut parser = Parser::from_args(arguments);
    let mut both = Given::default();
    let mut own = [Given::default(), Given::default()];
    let mut wifi = None;
    let mut wifi_lossless = false;
    let mut described = None;
    let mut interfaces = Vec::new();
    let mut seed = 1;
    let mut lossy_all = false;
    let mut log = None;
    let mut totals = None;
    let mut rt = 45;
    let mut ready = false;
    while let Some(argument) = parser.next()? {
        let name = match argument {
            Arg::Value(value) => {
                interfaces.push(value.string()?);
                continue;
            }
            Arg::Short('h') => return Ok(Command::Help),
            Arg::Short(_) => return Err(argument.unexpected().into()),
            Arg::Long(name) => name.to_owned(),
        };
        let mut value = || Ok(parser.value()?.string()?);
        match name.as_str() {
            "help" => return Ok(Command::Help),
            "version" => return Ok(Command::Version),
            "seed" => seed = value()?.parse().context("--seed takes a number")?,
            "wifi" => wifi = Some(air(&value()?).context("--wifi")?),
            "wifi-lossless" => wifi_lossless = true,
            "lossy-all" => lossy_all = true,
            "log" => log = Some(PathBuf::from(value()?)),
            "totals" => totals = Some(PathBuf::from(value()?)),
            "rt" => {
                rt = value()?.parse().context("--rt takes a number")?;
                if rt > 99 {
                    bail!("--rt takes a priority from 0 to 99");
                }
            }
            "ready" => ready = true,
            name => {
                let direction = Direction::ALL.into_iter().enumerate().find_map(|(n, d)| {
                    let bare = name.strip_suffix(d.name())?.strip_suffix('-')?;
                    Some((n, bare))
                });
                let (given, bare) = match direction {
                    Some((n, bare)) => (&mut own[n], bare),
                    None => (&mut both, name),
                };
                if !given.set(bare, value).with_context(|| format!("--{name}"))? {
                    bail!("unknown option --{name}");
                }
                described = Some(name.to_owned());
            }
        }
    }
    if let (Some(_), Some(other)) = (&wifi, described) {
        bail!("--wifi describes the whole link: leave out --{other}");
    }
    if wifi_lossless {
        wifi = Some(wifi.context("--wifi-lossless needs --wifi")?.without_loss());
    }
    for given in [&both, &own[0], &own[1]] {
        let models = [given.loss, given.ge, given.outages];
        if models.iter().flatten().count() > 1 {
            bail!("--loss, --ge and --outages exclude each other");
        }
    }
    let interfaces: [String; 2] =
        interfaces.try_into().map_err(|_| anyhow!("wanted two interfaces; see --help"))?;
    if interfaces[0] == interfaces[1] {
        bail!("the two interfaces must differ");
    }
    let [ab, ba] = own;
    Ok(Command::Run(Box::new(Options {
        interfaces,
        settings: [ab.settings(&both)?, ba.settings(&both)?],
        wifi,
        seed,
        lossy_all,
        log,
        totals,
        rt,
        ready,
    })))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(arguments: &str) -> Result<Box<Options>> {
        // As a shell would: words, and one level of quotes.
        let words = arguments.split('\'').enumerate().flat_map(|(n, part)| {
            if n % 2 == 0 { part.split_whitespace().collect() } else { vec![part] }
        });
        match parse(words.map(OsString::from))? {
            Command::Run(options) => Ok(options),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_channel_stands_for_the_whole_link() {
        let options = run("--wifi poor --wifi-lossless --seed 3 a b").unwrap();
        assert!(options.wifi.is_some_and(|wifi| wifi.radio.attempts > 1_000));
        assert!(run("a b").unwrap().wifi.is_none());
    }

    #[test]
    fn a_channel_may_be_a_file_like_a_preset() {
        let air = Scratch::new("air", "link.errors.good = 0.25\n");
        let options = run(&(air.option("wifi") + "a b")).unwrap();
        assert!(options.wifi.is_some_and(|wifi| wifi.link.errors.good == 0.25));
        let air = Scratch::new("endless", "link.errors.good = 25\n");
        let error = format!("{:#}", run(&(air.option("wifi") + "a b")).unwrap_err());
        for part in ["--wifi", "endless", "link.errors.good", "from 0 to 1"] {
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn defaults() {
        let options = run("a b").unwrap();
        assert_eq!(options.interfaces, ["a", "b"]);
        assert_eq!((options.seed, options.rt), (1, 45));
        for settings in options.settings {
            assert!(matches!(settings.rate, Rate::Unlimited));
            assert!(matches!(settings.delay, Delay::Constant(0)));
            assert_eq!(settings.queue_bytes, 262_144);
            assert_eq!(settings.loss, Model::Bernoulli(0.0));
        }
    }

    #[test]
    fn a_direction_wins_over_both_in_any_order() {
        let options = run("--delay-ba 5 --delay 2.5 --loss 1 --ge-ab '1 25 100 0' a b").unwrap();
        let [ab, ba] = options.settings;
        assert!(matches!(ab.delay, Delay::Constant(2_500_000)));
        assert!(matches!(ba.delay, Delay::Constant(5_000_000)));
        assert!(matches!(ab.loss, Model::GilbertElliott { .. }));
        assert_eq!(ba.loss, Model::Bernoulli(0.01));
    }

    #[test]
    fn outages_are_in_milliseconds() {
        let [ab, ba] = run("--outages '3000 200' --loss-ba 1 a b").unwrap().settings;
        assert_eq!(ab.loss, Model::Outages { gap: 3e9, length: 2e8 });
        assert_eq!(ba.loss, Model::Bernoulli(0.01));
    }

    /// A file that is gone with the test.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str, text: &str) -> Scratch {
            let name = format!("linkem-cli-{}-{name}", std::process::id());
            let path = std::env::temp_dir().join(name);
            std::fs::write(&path, text).unwrap();
            Scratch(path)
        }

        fn option(&self, name: &str) -> String {
            format!("--{name} {} ", self.0.display())
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    #[test]
    fn a_trace_replaces_the_rate_of_the_same_directions() {
        let trace = Scratch::new("trace", "1\n");
        let options = trace.option("trace") + "--rate 5 --rate-ba 6 a b";
        let [ab, ba] = run(&options).unwrap().settings;
        assert!(matches!(ab.rate, Rate::Trace(_)));
        assert!(matches!(ba.rate, Rate::Constant(rate) if rate == 6e6));
    }

    #[test]
    fn a_recorded_delay_replaces_a_number() {
        let delays = Scratch::new("delays", "12\n");
        let options = delays.option("delay-trace-ba") + "--delay 5 a b";
        let [ab, ba] = run(&options).unwrap().settings;
        assert!(matches!(ab.delay, Delay::Constant(5_000_000)));
        assert!(matches!(ba.delay, Delay::Trace(_)));
    }

    #[test]
    fn recordings_of_light_and_heavy_load_belong_together() {
        let light = Scratch::new("light", "0 20\n1 20\n2 20\n");
        let heavy = Scratch::new("heavy", "1\n");
        let offset = Scratch::new("offset", "100 0\n");
        let lit = light.option("cellreplay-light-ab");
        assert!(run(&(lit.clone() + "a b")).unwrap_err().to_string().contains("-heavy"));
        let alone = offset.option("cellreplay-offset") + "a b";
        assert!(run(&alone).unwrap_err().to_string().contains("-light"));
        let both = lit + &heavy.option("cellreplay-heavy") + "a b";
        let [ab, ba] = run(&both).unwrap().settings;
        assert!(ab.light.is_some() && ba.light.is_none());
        assert!(matches!(ab.rate, Rate::Trace(trace) if trace.bytes() == 1400));
    }

    #[test]
    fn says_what_is_wrong() {
        for (arguments, part) in [
            ("a", "two interfaces"),
            ("a b c", "two interfaces"),
            ("a a", "differ"),
            ("--rate fast a b", "--rate"),
            ("--rate -1 a b", "--rate"),
            ("--nonsense 1 a b", "--nonsense"),
            ("--qdisc-ab cake a b", "fq_codel"),
            ("--loss 1 --ge 1 a b", "exclude"),
            ("--outages-ab '1 1' --ge-ab 1 a b", "exclude"),
            ("--outages 200 a b", "GAP LENGTH"),
            ("--trace /nonexistent a b", "/nonexistent"),
            ("--rt 100 a b", "99"),
            ("--delay-trace-ab /nonexistent a b", "/nonexistent"),
            ("--cellreplay-offset /nonexistent a b", "/nonexistent"),
            ("--wifi perfect a b", "poor-no-bar"),
            ("--wifi poor --delay-ab 5 a b", "leave out --delay-ab"),
            ("--wifi-lossless a b", "needs --wifi"),
        ] {
            let error = format!("{:#}", run(arguments).unwrap_err());
            assert!(error.contains(part), "{arguments}: {error}");
        }
    }
}
