//! The daemon and command line of PEMI. All I/O lives here; what to do with the
//! packets is the business of [`pemi_engine`].

pub mod ask;
pub mod bench;
pub mod bridge;
pub mod check;
pub mod cli;
pub mod clock;
pub mod config;
pub mod control;
pub mod direction;
pub mod entropy;
pub mod events;
pub mod firewall;
pub mod history;
pub mod inject;
pub mod logger;
pub mod nfqueue;
pub mod path;
pub mod poll;
pub mod privileges;
pub mod probe;
pub mod replay;
pub mod reply;
pub mod request;
pub mod rules;
pub mod run;
pub mod sched;
pub mod show;
pub mod sidekick;
pub mod signals;
pub mod socket;
pub mod status;
pub mod ubus;
pub mod udp;
pub mod writer;
