// SPDX-License-Identifier: GPL-2.0-or-later
//! The thread: hears what changes, asks what was lost, and writes it into the book.
//!
//! Whatever goes wrong with the radios, it goes on: an access point may vanish, nl80211 be
//! unloaded and loaded again, and events may be lost. Then all of them are listed anew.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use pemi_engine::Nanos;
use pemi_radio::counting::Counting;
use pemi_radio::event::Event;
use pemi_radio::interface::Interface;
use pemi_radio::kernel::driver;
use pemi_radio::mac::Mac;
use pemi_radio::neighbour::Neighbour;
use pemi_radio::radio::{Events, Radio};
use pemi_radio::route::{Changes, Route};
use pemi_radio::schedule::{Ask, Schedule};
use pemi_radio::solicit::Solicit;
use pemi_radio::station::Station;

use super::book::Book;
use super::realm::Realm;
use super::share::{Share, now};
use super::view::{AccessPoint, Condition};
use crate::sys::poll::{self, Interest};

/// Between two lists, however much happens to devices.
const LEAST: Duration = Duration::from_secs(1);
/// After this long there is a new list though nothing was heard: the channel may be another one.
const MOST: Duration = Duration::from_secs(60);
/// When no list could be made, it is tried again after this long.
const RETRY: Duration = Duration::from_secs(10);
/// Messages heard before others have their turn.
const TURN: usize = 64;

/// Everything that the thread has.
pub(super) struct Watch {
    /// The helped devices; none: all will do.
    devices: Option<Vec<String>>,
    /// What they are now; nothing before the first list.
    realm: Option<Realm>,
    share: Arc<Share>,
    /// Its number, by which it may write.
    turn: u32,
    route: Route,
    changes: Changes,
    radio: Option<Radio>,
    events: Option<Events>,
    schedule: Schedule,
    solicit: Solicit,
    listed: Duration,
    /// When the next list is due; nothing where only an event can bring something new.
    due: Option<Duration>,
}

impl Watch {
    /// Opens what it needs on any machine, be there a radio or not.
    pub fn open(devices: Option<Vec<String>>, share: Arc<Share>, turn: u32) -> io::Result<Watch> {
        Ok(Watch {
            devices,
            realm: None,
            share,
            turn,
            route: Route::open()?,
            changes: Changes::open()?,
            radio: None,
            events: None,
            schedule: Schedule::default(),
            solicit: Solicit::default(),
            listed: Duration::ZERO,
            due: Some(Duration::ZERO),
        })
    }

    /// Works until it is told to end.
    pub fn run(mut self) -> io::Result<()> {
        loop {
            if self.due.is_some_and(|due| due <= now()) {
                self.resolve()?;
                self.list();
            }
            self.heed();
            self.ask();
            self.solicit();
            self.wait()?;
            if !self.share.is_turn(self.turn) {
                return Ok(());
            }
            self.changes()?;
            self.events();
        }
    }

    fn wait(&mut self) -> io::Result<()> {
        let due = [self.due, self.schedule.deadline(), self.solicit.deadline()]
            .into_iter()
            .flatten()
            .min();
        let wait = due.map(|due| due.saturating_sub(now()).as_nanos() as Nanos);
        let mut interests = vec![Interest::read(&self.share.waker), Interest::read(&self.changes)];
        interests.extend(self.events.as_ref().map(Interest::read));
        poll::wait(&mut interests, wait)?;
        self.share.waker.clear();
        Ok(())
    }

    /// Finds out which devices the helped ones are. Where they are others than before, so are
    /// the neighbours.
    fn resolve(&mut self) -> io::Result<()> {
        let link = |name: &String| self.route.link(name);
        let links = self.devices.as_ref().map(|names| names.iter().filter_map(link).collect());
        let realm = Realm::of(links);
        let same = self.realm.as_ref().is_some_and(|before| before.is_like(&realm));
        self.realm = Some(realm);
        if same { Ok(()) } else { self.learn() }
    }

    /// All neighbours.
    fn learn(&mut self) -> io::Result<()> {
        let mut found = Vec::new();
        self.route.neighbours(|neighbour| found.push(neighbour))?;
        self.take(found);
        Ok(())
    }

    /// Those of these neighbours that are behind the helped devices. Gives them.
    fn take(&mut self, mut found: Vec<Neighbour>) -> Vec<Neighbour> {
        let Watch { realm, route, .. } = self;
        found.retain(|it| {
            realm
                .as_mut()
                .is_some_and(|realm| realm.has_neighbours(it.device, |index| route.link_of(index)))
        });
        if !found.is_empty() {
            self.write(|book| found.iter().for_each(|neighbour| book.learn(*neighbour)));
        }
        found
    }

    /// What changed among devices and neighbours.
    fn changes(&mut self) -> io::Result<()> {
        for _ in 0..TURN {
            let Some(heard) = self.changes.hear()? else { break };
            if heard.missed {
                self.write(|book| book.hear(now(), &Event::Missed));
                self.learn()?;
            }
            if heard.links || heard.missed {
                self.list_soon();
            }
            let taken = self.take(heard.neighbours);
            taken.iter().filter(|it| it.reachable).for_each(|it| self.solicit.answered(it));
        }
        Ok(())
    }

    /// What happened to stations.
    fn events(&mut self) {
        for _ in 0..TURN {
            let heard = self.events.as_mut().map(Events::hear);
            let event = match heard {
                Some(Ok(Some(event))) => event,
                Some(Err(error)) => return self.fail(&error),
                Some(Ok(None)) | None => return,
            };
            match event {
                Event::Joined { interface, .. } => self.schedule.hurry(interface),
                Event::Left { .. } => {}
                _ => self.list_soon(),
            }
            let mut came = Vec::new();
            self.write(|book| {
                book.hear(now(), &event);
                came = book.came(&event);
            });
            if self.solicits() {
                came.iter().for_each(|it| self.solicit.came(now(), *it));
            }
        }
    }

    /// Whether clients are asked for their addresses: where nobody is helped only losses are
    /// counted, and nothing is done.
    fn solicits(&self) -> bool {
        self.devices.is_some()
    }

    /// Has those asked for their addresses who came and have not answered.
    fn solicit(&mut self) {
        while let Some(neighbour) = self.solicit.next(now()) {
            if let Err(error) = self.route.solicit(&neighbour) {
                log::debug!("radio: {} is not asked for its address: {error}", neighbour.address);
                self.solicit.answered(&neighbour);
            }
        }
    }

    /// Those who are helped are asked about more often.
    fn heed(&mut self) {
        for client in self.share.helped() {
            if let Some(place) = self.share.place(client) {
                self.schedule.helping(now(), place.interface, place.mac);
            }
        }
    }

    /// Asks what is due.
    fn ask(&mut self) {
        let from = now();
        let (Some(ask), Some(radio)) = (self.schedule.next(from), &mut self.radio) else { return };
        let mut found = Vec::new();
        let answer = match ask {
            Ask::Interface(index) => radio.stations(index, |station| found.push(*station)),
            Ask::Station(index, mac) => radio.station(index, mac).map(|station| {
                found.extend(station);
                true
            }),
        };
        let to = now();
        self.schedule.asked(ask, from, to);
        let complete = match answer {
            Ok(there) => there,
            // Some drivers tell of no station (brcmfmac); others go on meanwhile.
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {
                log::debug!("radio: {ask:?}: {error}");
                return self.schedule.refused(ask);
            }
            Err(error) => return self.fail(&error),
        };
        if !complete {
            self.list_soon();
        }
        let mut busy = Vec::new();
        self.write(|book| busy = book.look((from, to), ask, &found, complete));
        self.attend(to, &found, &busy);
    }

    /// Nobody sees the packets of a client whose gate is closed. While there are many, its station
    /// is asked about as often as those that are helped, so that the gate opens soon.
    fn attend(&mut self, now: Duration, found: &[Station], busy: &[Mac]) {
        let clean = self.share.clean();
        for station in found.iter().filter(|station| busy.contains(&station.mac)) {
            if clean.iter().any(|client| client.mac == station.mac) {
                self.schedule.helping(now, station.interface, station.mac);
            }
        }
    }

    /// Lists all access points anew, by new sockets: nl80211 may be another one than before.
    fn list(&mut self) {
        (self.radio, self.events) = (None, None);
        self.listed = now();
        let found = match self.open_radio() {
            Ok(found) => {
                self.due = Some(self.listed + MOST);
                Ok(found)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // Asking again would have the kernel start modprobe each time.
                self.events = Events::without_radio().ok();
                self.due = None;
                Err(Condition::NoRadio)
            }
            Err(error) => {
                self.due = Some(self.listed + RETRY);
                Err(Condition::Fails(error.to_string()))
            }
        };
        let indices: Vec<u32> = found.iter().flatten().map(|it| it.index).collect();
        self.schedule.interfaces(&indices);
        let mut found = Some(found);
        self.write(|book| {
            if let Some(found) = found.take() {
                book.list(now(), found);
            }
        });
    }

    fn open_radio(&mut self) -> io::Result<Vec<AccessPoint>> {
        let mut radio = Radio::open()?;
        // Before the list, so that nothing is missed in between.
        self.events = Some(radio.events()?);
        let interfaces = radio.interfaces()?;
        self.radio = Some(radio);
        let mut found = Vec::new();
        for interface in interfaces.into_iter().filter(Interface::has_stations) {
            let link = self.route.link_of(interface.index);
            if self.realm.as_ref().is_some_and(|realm| realm.has_access_point(link.as_ref())) {
                let Interface { index, name, mhz, .. } = interface;
                let driver = driver(&name).unwrap_or_default();
                let counting = Counting::of(&driver);
                found.push(AccessPoint { index, name, mhz, driver, counting });
            }
        }
        Ok(found)
    }

    fn write(&self, mut change: impl FnMut(&mut Book)) {
        self.share.write(self.turn, &mut change);
    }

    fn list_soon(&mut self) {
        let soon = self.listed + LEAST;
        self.due = Some(self.due.map_or(soon, |due| due.min(soon)));
    }

    /// It is told, and a new list tells whether it passes.
    fn fail(&mut self, error: &io::Error) {
        log::debug!("radio: {error}; listing access points anew");
        self.list_soon();
        // Meanwhile nothing is asked, and nothing heard.
        (self.radio, self.events) = (None, None);
        self.schedule.interfaces(&[]);
    }
}
