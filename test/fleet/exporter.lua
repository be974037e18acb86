-- SPDX-License-Identifier: GPL-2.0-or-later
-- In the place of prometheus-node-exporter-lua: what it gives collectors, `metric` and `output`, and
-- what it does with one. A collector and the folder with the stand-in for ubus are the arguments, and
-- the daemon's control socket, which that asks; then each line of the input is a scrape, which ends
-- with a line that tells how long it took.

local collector_path, standins, control = arg[1], arg[2], arg[3]
package.path = standins .. "/?.lua;" .. package.path
local socket = require "socket"
require("ubus").path = control

function output(line) print(line) end

function metric(name, kind)
  output("# TYPE " .. name .. " " .. kind)
  return function(labels, value)
    local list = {}
    for key, text in pairs(labels or {}) do list[#list + 1] = key .. '="' .. text .. '"' end
    local shown = labels and "{" .. table.concat(list, ",") .. "}" or ""
    output(string.format("%s%s %s", name, shown, value))
  end
end

local collector = dofile(collector_path)
for _ in io.lines() do
  local begin = socket.gettime()
  collector.scrape()
  print(string.format("#! %.6f", socket.gettime() - begin))
  io.stdout:flush()
end
