// SPDX-License-Identifier: GPL-2.0-or-later
//! What readers are told, and what people are shown.

use pemi_radio::counting::Counting;
use pemi_radio::mac::Mac;
use pemi_radio::meter::Worth;
use pemi_radio::station::{Counters, Queue};

use super::*;

const MAC: Mac = Mac([2, 0, 0, 0, 2, 0]);

fn neighbour(host: u8, mac: Mac) -> Neighbour {
    Neighbour { address: client(host), mac, device: 3, reachable: true, fixed: false }
}

fn client(host: u8) -> IpAddr {
    IpAddr::from([192, 0, 2, host])
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn access_point(index: u32) -> AccessPoint {
    let (name, driver) = (format!("phy{index}-ap0"), "ath9k".into());
    AccessPoint { index, name, mhz: Some(5180), driver, counting: Counting::Losses }
}

/// With two access points, and a client whose station nobody has seen.
fn book() -> Book {
    let mut book = Book::default();
    book.list(ms(0), Ok(vec![access_point(3), access_point(4)]));
    book.learn(neighbour(9, MAC));
    assert_eq!(book.news(ms(0)), []);
    book
}

fn station(interface: u32, sent: u32, failed: u32) -> Station {
    let counters = Counters { sent, retries: 2 * failed, failed, received: sent };
    let queue = Some(Queue { packets: 5, drops: failed / 2, ..Queue::default() });
    Station { interface, mac: MAC, counters, queue, ..Station::default() }
}

fn look(book: &mut Book, at: u64, found: &[Station]) -> Vec<Mac> {
    let ask = Ask::Interface(found.first().map_or(3, |station| station.interface));
    book.look((ms(at), ms(at + 1)), ask, found, true)
}

/// Changes of stations among the news.
fn changes(book: &mut Book, at: u64) -> Vec<(IpAddr, Change)> {
    let news = book.news(ms(at));
    news.iter()
        .filter_map(|news| match news {
            News::Station { client, change, .. } => Some((*client, *change)),
            News::Sample(_) => None,
        })
        .collect()
}

#[test]
fn samples_are_told_by_address_with_their_times() {
    let mut book = book();
    look(&mut book, 10, &[station(3, 1000, 10)]);
    assert_eq!(changes(&mut book, 12), [(client(9), Change::Joined)]);
    let place = Place { interface: 3, mac: MAC, quality: Worth::Exact };
    assert_eq!(book.places(), [(client(9), place)]);
    // It has another address.
    book.learn(neighbour(7, MAC));
    assert_eq!(changes(&mut book, 13), [(client(7), Change::Joined)]);
    look(&mut book, 110, &[station(3, 1400, 14)]);
    let sample = |host| {
        News::Sample(RadioSample {
            client: client(host),
            from: time(ms(11)),
            to: time(ms(111)),
            sent: 400,
            lost: 4,
            quality: Worth::Exact,
            queued: 5,
            drops: 2,
        })
    };
    assert_eq!(book.news(ms(112)), [sample(7), sample(9)]);
}

#[test]
fn stations_that_come_move_and_go() {
    let mut book = book();
    look(&mut book, 10, &[station(3, 1000, 10)]);
    assert_eq!(changes(&mut book, 11), [(client(9), Change::Joined)]);
    // To the other access point, whose event comes first.
    book.hear(ms(20), &Event::Joined { interface: 4, mac: MAC });
    book.hear(ms(21), &Event::Left { interface: 3, mac: MAC });
    assert_eq!(changes(&mut book, 22), [(client(9), Change::Moved)]);
    assert_eq!(find(book.places(), client(9)).unwrap().interface, 4);
    // Gone and back before anybody looked.
    book.hear(ms(30), &Event::Left { interface: 4, mac: MAC });
    book.hear(ms(31), &Event::Joined { interface: 4, mac: MAC });
    assert_eq!(changes(&mut book, 32), [(client(9), Change::Moved)]);
    // The same, and each event is heard by itself.
    book.hear(ms(33), &Event::Left { interface: 4, mac: MAC });
    assert_eq!(changes(&mut book, 34), [(client(9), Change::Left)]);
    book.hear(ms(35), &Event::Joined { interface: 4, mac: MAC });
    let back = [(client(9), Change::Moved), (client(9), Change::Joined)];
    assert_eq!(changes(&mut book, 36), back);
    // The address is another client's now.
    book.learn(neighbour(9, Mac([2, 0, 0, 0, 9, 9])));
    assert_eq!(changes(&mut book, 40), [(client(9), Change::Left)]);
    book.learn(neighbour(9, MAC));
    assert_eq!(changes(&mut book, 41), [(client(9), Change::Joined)]);
    // Events of interfaces that are not looked at are none.
    book.hear(ms(50), &Event::Joined { interface: 5, mac: MAC });
    assert_eq!(book.news(ms(51)), []);
    // The access point vanishes.
    book.list(ms(60), Ok(vec![access_point(3)]));
    assert_eq!(changes(&mut book, 61), [(client(9), Change::Left)]);
    assert_eq!(book.places(), []);
}

#[test]
fn who_has_left_is_shown_for_an_hour() {
    let mut book = book();
    look(&mut book, 1_000, &[station(3, 1000, 10)]);
    look(&mut book, 2_000, &[station(3, 1500, 11)]);
    let view = book.view(ms(3_000));
    assert_eq!((view.condition, view.asked.times), (Condition::Works, 2));
    let [shown] = &view.stations[..] else { panic!("{:?}", view.stations) };
    assert_eq!((shown.hour().sent, shown.hour().lost, shown.lost_minute), (500, 1, 1));
    assert_eq!((shown.left_s, &shown.addresses[..]), (None, &[client(9)][..]));
    look(&mut book, 3_000, &[]);
    assert_eq!(book.view(ms(10_000)).stations[0].left_s, Some(7));
    assert_eq!(book.view(ms(3_602_000)).stations.len(), 1);
    assert_eq!(book.view(ms(3_603_000)).stations.len(), 0);
}

#[test]
fn an_answer_that_was_cut_short_makes_nobody_leave() {
    let mut book = book();
    look(&mut book, 10, &[station(3, 1000, 10)]);
    book.look((ms(20), ms(25)), Ask::Interface(3), &[], false);
    assert_eq!(book.view(ms(30)).stations[0].left_s, None);
    let asked = book.view(ms(30)).asked;
    assert_eq!((asked.times, asked.last_us, asked.longest_us), (2, 5_000, 5_000));
    book.hear(ms(40), &Event::Missed);
    assert_eq!(book.view(ms(40)).asked.missed, 1);
}

#[test]
fn why_there_is_nothing() {
    let mut book = Book::default();
    assert_eq!(book.view(ms(0)).condition, Condition::Off);
    book.list(ms(0), Ok(vec![]));
    assert_eq!(book.view(ms(0)).condition, Condition::NoAccessPoint);
    book.list(ms(0), Err(Condition::NoRadio));
    assert_eq!(book.view(ms(0)).condition, Condition::NoRadio);
}

/// Gates close 30 s after the last loss.
const RELEASE: Duration = Duration::from_secs(30);

/// Looks each second from one to another, while so many packets a second are sent; gives when
/// the gate was closed first.
fn closed_at(
    book: &mut Book,
    seconds: std::ops::Range<u64>,
    rate: u32,
    its: &Station,
) -> Option<u64> {
    let mut its = *its;
    seconds.into_iter().find(|second| {
        its.counters.sent += rate;
        its.counters.received += rate;
        look(book, second * 1000, &[its]);
        !book.clean(ms(second * 1000 + 2), RELEASE).is_empty()
    })
}

#[test]
fn the_gate_of_who_loses_nothing_is_closed() {
    let mut book = book();
    look(&mut book, 0, &[station(3, 7000, 10)]);
    assert_eq!(book.clean(ms(1), RELEASE), [], "what was before is not known");
    // Who has not lost anything need not wait for longer than its packets take.
    assert_eq!(closed_at(&mut book, 1..60, 100, &station(3, 7000, 10)), Some(10));
    let clean = [Clean { mac: MAC, addresses: vec![client(9)] }];
    assert_eq!(book.clean(ms(10_010), RELEASE), clean);
    // One loss opens it, for 30 s and a thousand packets.
    look(&mut book, 11_000, &[station(3, 8100, 11)]);
    assert_eq!(book.clean(ms(11_002), RELEASE), []);
    assert_eq!(closed_at(&mut book, 12..100, 100, &station(3, 8100, 11)), Some(41));
    look(&mut book, 43_000, &[station(3, 12_000, 12)]);
    assert_eq!(closed_at(&mut book, 44..1000, 0, &station(3, 12_000, 12)), None, "silence");
    assert_eq!(closed_at(&mut book, 1000..1100, 10, &station(3, 12_000, 12)), Some(1099));
}

#[test]
fn a_gate_goes_with_its_station() {
    let mut book = book();
    look(&mut book, 0, &[station(3, 0, 0)]);
    assert_eq!(closed_at(&mut book, 1..9, 600, &station(3, 0, 0)), Some(2));
    // It roams; counters begin anew, and the next look is nothing but a look.
    book.hear(ms(3_000), &Event::Joined { interface: 4, mac: MAC });
    book.hear(ms(3_001), &Event::Left { interface: 3, mac: MAC });
    look(&mut book, 3_500, &[station(4, 20, 0)]);
    assert_eq!(book.clean(ms(3_600), RELEASE).len(), 1);
    // It associates again; what it lost there is counted from zero.
    book.hear(ms(4_000), &Event::Left { interface: 4, mac: MAC });
    assert_eq!(book.clean(ms(4_000), RELEASE), [], "nobody there");
    book.hear(ms(4_001), &Event::Joined { interface: 4, mac: MAC });
    assert_eq!(book.clean(ms(4_002), RELEASE).len(), 1);
    look(&mut book, 5_000, &[station(4, 10, 1)]);
    assert_eq!(book.clean(ms(5_002), RELEASE), []);
}

#[test]
fn a_station_is_busy_that_gets_many_packets() {
    let mut book = book();
    assert_eq!(look(&mut book, 0, &[station(3, 0, 0)]), [], "from now on");
    assert_eq!(look(&mut book, 1_000, &[station(3, 49, 0)]), []);
    assert_eq!(look(&mut book, 2_000, &[station(3, 99, 0)]), [MAC]);
    assert_eq!(look(&mut book, 2_100, &[station(3, 104, 0)]), [MAC]);
}

#[test]
fn a_gate_is_open_where_nothing_is_known() {
    let closed = |access_point: AccessPoint, failed: u32| {
        let mut book = book();
        book.list(ms(0), Ok(vec![access_point]));
        look(&mut book, 0, &[station(3, 0, 0)]);
        look(&mut book, 1_000, &[station(3, 2000, failed)]);
        (book.clean(ms(1_002), RELEASE).len(), book)
    };
    let (one, mut book) = closed(access_point(3), 0);
    assert_eq!(one, 1);
    assert_eq!(book.clean(ms(11_002), RELEASE), [], "nobody looks any more");
    look(&mut book, 11_000, &[station(3, 2100, 0)]);
    assert_eq!(book.clean(ms(11_002), RELEASE).len(), 1);
    // Another address of IPv4: it relays for somebody, as it seems.
    book.learn(neighbour(8, MAC));
    assert_eq!(book.clean(ms(11_003), RELEASE), []);
    book.list(ms(11_004), Err(Condition::Off));
    assert_eq!(book.clean(ms(11_005), RELEASE), []);
    // A driver that nobody has read, and one that counts attempts.
    let unread = AccessPoint { counting: Counting::AtMost, ..access_point(3) };
    assert_eq!(closed(unread, 0).0, 0);
    assert_eq!(closed(access_point(3), 1000).0, 0);
}

#[test]
fn a_station_that_comes_has_neighbours_to_ask() {
    let mut book = book();
    book.learn(neighbour(8, MAC));
    let other = Mac([2, 0, 0, 0, 9, 9]);
    book.learn(neighbour(7, other));
    let came = |interface, mac| book.came(&Event::Joined { interface, mac });
    assert_eq!(came(3, MAC).len(), 2);
    assert_eq!(came(3, other), [neighbour(7, other)]);
    assert_eq!(came(9, MAC), [], "of an access point that is not looked at");
    assert_eq!(book.came(&Event::Left { interface: 3, mac: MAC }), []);
}
