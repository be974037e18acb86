// SPDX-License-Identifier: GPL-2.0-or-later
//! Radio: a thread that asks this router's access points what they lost, per client.
//!
//! How to ask and what counters mean is the business of [`pemi_radio`]; here are a thread, the
//! addresses of stations, and what others want to know. Asking may sleep until a radio's
//! firmware has answered, so nobody else does it.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::thread::JoinHandle;

use crate::config::{self, Config};
use crate::sys::poll::Interest;
use crate::sys::{privileges, thread};

mod book;
mod directory;
mod gate;
pub mod news;
mod realm;
pub mod share;
pub mod view;
mod watch;

use news::Clean;
use share::Share;
use view::{Condition, View};
use watch::Watch;

const STACK: usize = 128 << 10;

/// What it works by. With others it starts anew.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Settings {
    /// Access points of other devices are not looked at. Without a list all of them are.
    devices: Option<Vec<String>>,
}

impl Settings {
    /// None if it is not to run.
    fn of(config: &Config) -> Option<Settings> {
        let any = config.device.is_empty() && config.network.is_empty();
        (config.radio != config::Radio::Off)
            .then(|| Settings { devices: (!any).then(|| config.device.clone()) })
    }
}

#[derive(Debug)]
struct Running {
    settings: Settings,
    thread: JoinHandle<io::Result<()>>,
}

/// The thread, if it is to run and can, and what it knows.
#[derive(Debug)]
pub(crate) struct Radio {
    share: Arc<Share>,
    running: Option<Running>,
    error: Option<String>,
}

impl Radio {
    /// Without a thread.
    pub fn new() -> io::Result<Radio> {
        Ok(Radio { share: Arc::new(Share::new()?), running: None, error: None })
    }

    /// Starts, ends, or starts it anew, as `config` says; if that changes nothing it
    /// goes on.
    pub fn configure(&mut self, config: &Config) {
        self.share.release_after(if config.gates() { config.release_s } else { 0 });
        let settings = Settings::of(config);
        let same = self.running.as_ref().map(|running| &running.settings) == settings.as_ref();
        if same && self.error.is_none() {
            return;
        }
        self.stop();
        self.error = None;
        match settings.map(|settings| start(settings, &self.share)).transpose() {
            Ok(running) => self.running = running,
            Err(error) => self.fail(&error.to_string()),
        }
    }

    /// Ends the thread; one that a radio's firmware keeps waiting ends after that. What it
    /// knows of stations stays, for a thread to come.
    pub fn stop(&mut self) {
        if self.running.take().is_some() {
            self.forget();
        }
    }

    /// To be called now and then: notices that the thread has ended by itself.
    pub fn look(&mut self) {
        if let Some(running) = self.running.take_if(|running| running.thread.is_finished()) {
            match running.thread.join() {
                Ok(Err(error)) => self.fail(&error.to_string()),
                _ => self.fail("its thread ended"),
            }
        }
    }

    /// What others may ask, and subscribe to.
    pub fn share(&self) -> Arc<Share> {
        self.share.clone()
    }

    /// Says that packets for this client are being helped.
    pub fn helping(&self, client: IpAddr) {
        self.share.helping(client);
    }

    /// How many addresses of clients are known to be on a radio.
    pub fn clients(&self) -> usize {
        self.share.clients()
    }

    /// Clients whose gate is closed: their radio loses nothing.
    pub fn clean(&self) -> Vec<Clean> {
        self.share.clean()
    }

    /// What is ready when a gate has opened, until [`Radio::heed`].
    pub fn opened(&self) -> Interest {
        Interest::read(&self.share.opened)
    }

    /// To be called before looking at the gates.
    pub fn heed(&self) {
        self.share.opened.clear();
    }

    /// What is known now.
    pub fn view(&self) -> View {
        self.share.view()
    }

    /// What the user should know.
    pub fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    /// Where clients are holds no longer.
    fn forget(&self) {
        let turn = self.share.next_turn();
        self.share.write(turn, &mut |book| book.list(share::now(), Err(Condition::Off)));
    }

    fn fail(&mut self, error: &str) {
        self.forget();
        let error = format!("option 'radio': access points cannot be asked: {error}");
        log::error!("{error}; packets pass as without it");
        self.error = Some(error);
    }
}

fn start(settings: Settings, share: &Arc<Share>) -> io::Result<Running> {
    let watch = Watch::open(settings.devices.clone(), share.clone(), share.next_turn())?;
    // To have clients asked for their addresses, which nobody is where nobody is helped.
    let rights: &[_] = if settings.devices.is_some() { &[privileges::NET_ADMIN] } else { &[] };
    let work = move || {
        privileges::keep_in_thread(rights);
        watch.run()
    };
    let thread = thread::start("pemi-radio", STACK, Box::new(work))?;
    Ok(Running { settings, thread })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_say_which_access_points_are_looked_at() {
        let mut config = Config::default();
        assert_eq!(Settings::of(&config), Some(Settings { devices: None }));
        config.network = vec!["lan".into()];
        assert_eq!(Settings::of(&config).unwrap().devices, Some(vec![]));
        config.device = vec!["br-lan".into()];
        assert_eq!(Settings::of(&config).unwrap().devices, Some(vec!["br-lan".into()]));
        config.radio = config::Radio::Off;
        assert_eq!(Settings::of(&config), None);
    }
}
