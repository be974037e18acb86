// SPDX-License-Identifier: GPL-2.0-or-later
//! `sim`: the simulator's command line.

use std::path::PathBuf;

use anyhow::Context;
use clap::{Parser, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};
use pemi_sim::ablation;
use pemi_sim::bars::{self, Goodput, Row};
use pemi_sim::captures;
use pemi_sim::real;
use pemi_sim::run::{Assist, Outcome, run_all};
use pemi_sim::sweep::{self, Sweep};
use pemi_sim::unseen;
use pemi_sim::why;

/// How many of the cases nobody has chosen are shown.
const WORST: usize = 12;

/// QUIC across a lossy hop in virtual time, with the engine and without.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run one scenario with several seeds.
    Run {
        /// A TOML file; see scenarios/ for examples.
        scenario: PathBuf,
        /// How many seeds.
        #[arg(long, default_value_t = 20)]
        seeds: u64,
        /// The first of them.
        #[arg(long, default_value_t = 1)]
        first: u64,
        /// How it is run; all three if not given.
        #[arg(long)]
        assist: Vec<Assist>,
        /// Options changed, as in `wifi.delay_ms=5`, `flow.cc="bbr"`.
        #[arg(long = "set", value_name = "OPTION=VALUE")]
        changes: Vec<String>,
        /// Print the results of all runs as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Run the rows of `make sim` and judge them.
    Bars {
        /// How many seeds.
        #[arg(long, default_value_t = 100)]
        seeds: u64,
        /// Only rows whose case has this in its name.
        #[arg(long, default_value = "")]
        only: String,
        /// Write the rows to this file as JSON.
        #[arg(long)]
        out: Option<PathBuf>,
        /// Fail if a row does not nearly hold that has no reason for it; cases that hold with a third of the seeds
        /// are not run with the others.
        #[arg(long)]
        check: bool,
    },
    /// What each rule of the engine is worth, as a table.
    Ablate {
        /// How many seeds.
        #[arg(long, default_value_t = 60)]
        seeds: u64,
        /// Print the cells as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Run a scenario with all combinations of some options.
    #[command(visible_alias = "sweep")]
    Matrix {
        /// A TOML file; see scenarios/ for examples.
        scenario: PathBuf,
        /// An option and its values, as in `wifi.delay_ms=1,5,10`, or a constant of the engine's
        /// rules, as in `tunables.proven_copies=4,8,16`.
        #[arg(long, required = true, value_name = "OPTION=V1,V2,...")]
        vary: Vec<String>,
        /// Options changed in all of them, as with `run`.
        #[arg(long = "set", value_name = "OPTION=VALUE")]
        changes: Vec<String>,
        /// How many seeds.
        #[arg(long, default_value_t = 20)]
        seeds: u64,
        /// How it is run; all three if not given.
        #[arg(long)]
        assist: Vec<Assist>,
        /// Print the cells as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Put together the cells that several machines have run, as one sweep would print them.
    Merge {
        /// What `sim matrix --json` printed, in the order of the cells.
        #[arg(required = true)]
        cells: Vec<PathBuf>,
        /// Print the cells as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Why the sender learned of losses although it was helped.
    Why {
        /// A TOML file; see scenarios/ for examples.
        scenario: PathBuf,
        /// How many seeds.
        #[arg(long, default_value_t = 20)]
        seeds: u64,
        /// Options changed, as with `run`.
        #[arg(long = "set", value_name = "OPTION=VALUE")]
        changes: Vec<String>,
        /// Print the numbers as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Record one run: what happened as JSON, and a drawing of it.
    Trace {
        /// A TOML file; see scenarios/ for examples.
        scenario: PathBuf,
        /// The run's seed.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// How it is run.
        #[arg(long, default_value = "on")]
        assist: Assist,
        /// Options changed, as with `run`.
        #[arg(long = "set", value_name = "OPTION=VALUE")]
        changes: Vec<String>,
        /// The flow that is drawn, counted from 0.
        #[arg(long, default_value_t = 0)]
        flow: usize,
        /// The folder for trace.sqlog and timeline.svg.
        #[arg(long)]
        out: PathBuf,
    },
    /// Simulate what was measured in real time; fails if a goodput is further from it than a fifth.
    Real {
        /// What `measured.py` wrote; the repository's if not given.
        file: Option<PathBuf>,
        /// How many seeds.
        #[arg(long, default_value_t = 48)]
        seeds: u64,
        /// Options changed, as with `run`.
        #[arg(long = "set", value_name = "OPTION=VALUE")]
        changes: Vec<String>,
    },
    /// Paths and clients drawn at random: whether help does harm where no row was made for it.
    Unseen {
        #[command(flatten)]
        plan: unseen::Plan,
        /// Print all of them as JSON.
        #[arg(long)]
        json: bool,
        /// Fail if more are harmed than may be.
        #[arg(long)]
        check: bool,
    },
    /// Score the engine's inference on recorded packet logs.
    Captures {
        /// A folder of logs; the repository's if not given.
        dir: Option<PathBuf>,
        /// Print each loss and each false mark.
        #[arg(long)]
        verbose: bool,
        /// Print the scores as JSON.
        #[arg(long)]
        json: bool,
    },
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().command {
        Command::Run { scenario, seeds, first, assist, changes, json } => {
            let scenario = pemi_sim::matrix::read(&scenario, &changes)?;
            let assists = all_if_none(assist);
            let jobs: Vec<_> = assists
                .iter()
                .flat_map(|assist| (first..first + seeds).map(|seed| (&scenario, *assist, seed)))
                .collect();
            let bar = bar(jobs.len());
            let outcomes = run_all(&jobs, &bar)?;
            bar.finish_and_clear();
            if json {
                println!("{}", serde_json::to_string_pretty(&outcomes)?);
            } else {
                for assist in assists {
                    let runs: Vec<&Outcome> =
                        outcomes.iter().filter(|run| run.assist == assist).collect();
                    println!("{}", pemi_sim::report::summary(assist, &runs));
                }
            }
        }
        Command::Matrix { scenario, vary, changes, seeds, assist, json } => {
            let sweep = Sweep { changes, vary, assists: all_if_none(assist), seeds };
            print_cells(&sweep::run(&scenario, &sweep, bar)?, json)?;
        }
        Command::Merge { cells, json } => print_cells(&sweep::read(&cells)?, json)?,
        Command::Why { scenario, seeds, changes, json } => {
            let scenario = pemi_sim::matrix::read(&scenario, &changes)?;
            let bar = bar(seeds as usize);
            let causes = why::run(&scenario, seeds, &bar)?;
            bar.finish_and_clear();
            if json {
                println!("{}", serde_json::to_string_pretty(&causes)?);
            } else {
                print!("{}", why::table(&causes));
            }
        }
        Command::Trace { scenario: path, seed, assist, changes, flow, out } => {
            let scenario = pemi_sim::matrix::read(&path, &changes)?;
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            let name = std::iter::once(&*name).chain(changes.iter().map(String::as_str));
            let name = name.collect::<Vec<_>>().join(", ");
            let trace = pemi_sim::trace::record(name, &scenario, assist, seed)?;
            pemi_sim::export::write(&trace, &out, flow)?;
        }
        Command::Real { file, seeds, changes } => {
            let rows =
                real::compare(&file.unwrap_or_else(real::default_file), seeds, &changes, bar)?;
            print!("{}", real::show(&rows));
            real::check(&rows)?;
        }
        Command::Unseen { plan, json, check } => {
            let cases = unseen::run(&plan, bar)?;
            if json {
                println!("{}", serde_json::to_string_pretty(&cases)?);
            } else {
                print!("{}", unseen::show(&cases, WORST));
            }
            if check {
                unseen::check(&cases)?;
            }
        }
        Command::Captures { dir, verbose, json } => {
            let reports = captures::reports(&dir.unwrap_or_else(captures::default_dir))?;
            if verbose {
                for report in &reports {
                    println!("{}\n{}", report.score.name, report.details());
                }
            }
            let scores: Vec<_> = reports.into_iter().map(|report| report.score).collect();
            if json {
                println!("{}", serde_json::to_string_pretty(&scores)?);
            } else {
                print!("{}", captures::table(&scores));
            }
        }
        Command::Bars { seeds, only, out, check } => show_bars(seeds, &only, out, check)?,
        Command::Ablate { seeds, json } => {
            let cells = ablation::run(seeds, bar)?;
            if json {
                println!("{}", serde_json::to_string_pretty(&cells)?);
            } else {
                print!("{}", ablation::table(&cells));
            }
        }
    }
    Ok(())
}

fn show_bars(seeds: u64, only: &str, out: Option<PathBuf>, check: bool) -> anyhow::Result<()> {
    let mut cases = bars::cases();
    cases.retain(|case| case.name.contains(only));
    let mut rows = if check {
        bars::judge_in_doubt(&cases, seeds, bar)?
    } else {
        bars::judge(&cases, seeds, bar)?
    };
    let recorded = bars::offline::rows(&captures::default_dir())?;
    rows.extend(recorded.into_iter().filter(|row| row.name.contains(only)));
    for row in &rows {
        let Row { name, value, bar, holds, goodput_mbps, reason, .. } = row;
        let mark = if *holds { ' ' } else { '!' };
        print!("{mark} {name:74} {value:9.4}  {bar:25}");
        if let Some(Goodput { off, on, lossless }) = goodput_mbps {
            print!(" {off:6.2} {on:6.2}");
            if let Some(lossless) = lossless {
                print!(" {lossless:6.2}");
            }
        }
        println!("{}", reason.map_or(String::new(), |reason| format!("\n      {reason}")));
    }
    let held = rows.iter().filter(|row| row.holds).count();
    println!("{held} of {} rows hold", rows.len());
    if let Some(out) = out {
        let text = serde_json::to_string_pretty(&serde_json::json!({ "rows": rows }))?;
        std::fs::write(&out, text + "\n")
            .with_context(|| format!("cannot write {}", out.display()))?;
    }
    let wrong: Vec<_> = rows.iter().filter(|row| row.is_wrong()).collect();
    if check && !wrong.is_empty() {
        let names: Vec<_> = wrong.iter().map(|row| row.name.as_str()).collect();
        anyhow::bail!("these rows should hold: {}", names.join("; "));
    }
    Ok(())
}

fn print_cells(cells: &[sweep::Cell], json: bool) -> anyhow::Result<()> {
    if json {
        println!("{}", serde_json::to_string_pretty(cells)?);
    } else {
        print!("{}", sweep::table(cells));
    }
    Ok(())
}

fn all_if_none(assists: Vec<Assist>) -> Vec<Assist> {
    if assists.is_empty() { vec![Assist::Off, Assist::On, Assist::Lossless] } else { assists }
}

fn bar(runs: usize) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} runs, {eta} left")
        .expect("the template is valid");
    ProgressBar::new(runs as u64).with_style(style)
}
