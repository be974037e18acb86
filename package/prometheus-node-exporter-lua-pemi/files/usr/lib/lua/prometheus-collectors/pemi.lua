-- SPDX-License-Identifier: GPL-2.0-or-later
-- What PEMI does on this router, for prometheus-node-exporter-lua, which brings `metric` and
-- `output`.
--
-- How many series there are follows from the router (networks, access points, queues), not from
-- who uses it: clients are counted by how they are, never named. Phones change their addresses, so a
-- series each would grow without end, and who was there when is nobody's business.

local ubus = require "ubus"

-- Clients in one answer, about 750 bytes each, and the most that the daemon knows of.
local CLIENTS = 32
local MOST_CLIENTS = 512

-- Every way a client can be, so that a series does not come and go.
local STATES = { "clean", "helping", "losing", "elsewhere", "untold", "unbelieved", "left" }

-- Of `status`: where a figure is, what it is called, and what it means.
local COUNTERS = {
  { "losses", "inferred", "pemi_losses_noticed_total", "Losses noticed on the way to clients." },
  { "losses", "repaired", "pemi_losses_repaired_total", "Losses repaired before the sender saw them." },
  { "losses", "upstream", "pemi_losses_before_router_total", "Losses that happened before this router, left to the sender." },
  { "losses", "congestion", "pemi_losses_congestion_total", "Losses taken for congestion, left to the sender." },
  { "resent", "packets", "pemi_resent_packets_total", "Copies of packets sent again." },
  { "resent", "bytes", "pemi_resent_bytes_total", "Bytes of these copies." },
  { "resent", "limited", "pemi_resends_limited_total", "Copies not sent because of a limit." },
  { "resent", "errors", "pemi_resend_errors_total", "Copies that the kernel did not take." },
  { "reports", "asked", "pemi_reports_asked_total", "Packets whose fate the radio was asked for." },
  { "reports", "missing", "pemi_reports_missing_total", "Packets of which the radio said nothing." },
  { "reports", "losses", "pemi_reports_losses_total", "Losses that the radio reported." },
  { "concealed", "gaps", "pemi_concealed_gaps_total", "Losses of which the sender was told nothing." },
  { "concealed", "held", "pemi_held_packets_total", "Replies that waited for a repair." },
  { "concealed", "late", "pemi_held_late_packets_total", "Replies that waited in vain." },
  { "flows", "evicted", "pemi_flows_evicted_total", "Flows pushed out by newer ones." },
  { "log", "dropped", "pemi_log_dropped_total", "Lines and events that the log had no room for." },
}
local GAUGES = {
  { "concealed", "now", "pemi_held_packets", "Replies that wait for a repair now." },
  { "cache", "bytes", "pemi_cache_bytes", "Memory in use for copies of packets; all of it is normal." },
  { "cache", "limit", "pemi_cache_limit_bytes", "Memory that copies may use." },
}
local MICROSECONDS = {
  { "local_rtt_us", "p50", "pemi_local_rtt_median_seconds", "Round trip between router and client, the median of flows." },
  { "local_rtt_us", "p99", "pemi_local_rtt_p99_seconds", "The same of the slowest hundredth of flows." },
}

-- A name of a device may have any character; the exporter writes labels as they are.
local function label(text)
  return (tostring(text):gsub('[\\"\n]', { ["\\"] = "\\\\", ['"'] = '\\"', ["\n"] = "\\n" }))
end

-- Says what a metric means, and gives what writes its values.
local function family(name, kind, help)
  output("# HELP " .. name .. " " .. help)
  local write = metric(name, kind)
  return function(labels, value)
    if type(value) == "boolean" then value = value and 1 or 0 end
    -- What an older daemon does not tell is left out.
    if type(value) ~= "number" then return end
    -- Whole numbers as they are; Lua's own form rounds those of fifteen digits and more.
    local whole = value == math.floor(value) and math.abs(value) < 2 ^ 53
    write(labels, string.format(whole and "%.0f" or "%.6g", value))
  end
end

local function list(rows, kind, status, times)
  for _, row in ipairs(rows) do
    local group, member, name, help = unpack(row)
    local value = (status[group] or {})[member]
    if value then family(name, kind, help)(nil, value * times) end
  end
end

-- A figure for each of a few members of a group, by a label.
local function by(name, kind, help, key, group, members)
  local write = family(name, kind, help)
  for _, member in ipairs(members) do
    write({ [key] = member }, (group or {})[member])
  end
end

local function of_status(status)
  family("pemi_info", "gauge", "Version of the daemon, and its mode.")(
    { version = label(status.version), mode = label(status.mode) }, 1)
  family("pemi_helping", "gauge", "Whether anybody is to be helped.")(nil, status.helping)
  family("pemi_uptime_seconds", "gauge", "Time since the daemon's start.")(nil, status.uptime_s)
  family("pemi_complaints", "gauge", "What its owner should know of: lines of pemi status.")(
    nil, #(status.errors or {}))
  local ways = { "down", "up" }
  by("pemi_packets_total", "counter", "Packets seen, by the way they go.", "direction", status.packets, ways)
  by("pemi_bytes_total", "counter", "Bytes seen, by the way they go.", "direction", status.bytes, ways)
  by("pemi_recognised_packets_total", "counter", "Packets seen, by what they were taken for.", "kind",
    status.packets, { "quic", "other", "malformed" })
  by("pemi_flows", "gauge", "Flows in the table: all of QUIC, those of them that are watched, and those let go.",
    "state", status.flows, { "active", "protected", "bypassed" })
  list(COUNTERS, "counter", status, 1)
  list(GAUGES, "gauge", status, 1)
  list(MICROSECONDS, "gauge", status, 1e-6)
  local dropped = family("pemi_queue_dropped_packets_total", "counter",
    "Packets that a queue did not hand over: those missed passed unhelped, the others were lost.")
  for _, queue in ipairs(status.queues or {}) do
    for _, why in ipairs { "kernel_dropped", "user_dropped", "missed" } do
      dropped({ queue = string.format("%.0f", queue.id), why = why }, queue[why])
    end
  end
end

-- All clients, in several answers.
local function each_client(connection, take)
  local skip, total = 0, 1
  while skip < total and skip < MOST_CLIENTS do
    local answer = connection:call("pemi", "clients", { limit = CLIENTS, skip = skip })
    if not answer then return end
    for _, client in ipairs(answer.clients or {}) do take(client) end
    total, skip = answer.total or 0, skip + CLIENTS
  end
end

local function of_clients(connection, radio)
  local states, stations, sent, lost = {}, {}, {}, {}
  for _, state in ipairs(STATES) do states[state] = 0 end
  for _, point in ipairs((radio or {}).access_points or {}) do
    local name = point.interface
    stations[name], sent[name], lost[name] = point.stations, 0, 0
  end
  each_client(connection, function(client)
    if states[client.state] then states[client.state] = states[client.state] + 1 end
    local at = client.interface
    if at and sent[at] and client.connected and client.hour then
      sent[at], lost[at] = sent[at] + client.hour.sent, lost[at] + client.hour.lost
    end
  end)
  local write = family("pemi_clients", "gauge", "Clients, by what is known of their Wi-Fi and done about it.")
  for _, state in ipairs(STATES) do write({ state = state }, states[state]) end
  for _, row in ipairs {
    { "pemi_radio_stations", "Clients on an access point of this router.", stations },
    { "pemi_radio_hour_packets", "Packets to them in the last hour, by the radio's count.", sent },
    { "pemi_radio_hour_lost_packets", "Those of them lost after all retries.", lost },
  } do
    local name, help, values = unpack(row)
    write = family(name, "gauge", help)
    for interface, value in pairs(values) do write({ interface = label(interface) }, value) end
  end
end

local function of_benefit(benefit)
  local networks = benefit.networks or {}
  local function each(name, help, value)
    local write = family(name, "gauge", help)
    for _, network in ipairs(networks) do write({ device = label(network.device) }, value(network)) end
  end
  local function groups(name, help, member)
    local write = family(name, "gauge", help)
    for _, network in ipairs(networks) do
      for _, group in ipairs { "helped", "alone" } do
        write({ device = label(network.device), group = group }, (network[group] or {})[member])
      end
    end
  end
  each("pemi_benefit_ratio", "How many times as fast downloads are with help.",
    function(it) return it.ratio end)
  each("pemi_benefit_low_ratio", "Lower end of the interval of 95 % around that.",
    function(it) return (it.interval or {})[1] end)
  each("pemi_benefit_high_ratio", "Upper end of the interval of 95 % around that.",
    function(it) return (it.interval or {})[2] end)
  groups("pemi_benefit_downloads", "Downloads that this was compared with.", "downloads")
  groups("pemi_benefit_stalled_downloads", "Those of them that stood still for 200 ms or more.", "stalled")
  each("pemi_stands_back", "Whether help is off for a day because it did harm.",
    function(it) return it.back_s ~= nil end)
end

local function scrape()
  -- A daemon that hangs is not to keep the exporter for its half a minute.
  local connection = ubus.connect(nil, 5)
  local status = connection and connection:call("pemi", "status", {})
  family("pemi_up", "gauge", "Whether the daemon answers.")(nil, status ~= nil)
  if status then
    of_status(status)
    of_benefit(connection:call("pemi", "benefit", {}) or {})
    of_clients(connection, status.radio)
  end
  if connection then connection:close() end
end

return { scrape = scrape }
