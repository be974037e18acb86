-- SPDX-License-Identifier: GPL-2.0-or-later
-- In the place of libubus' binding for Lua: the same questions, asked through the daemon's
-- control socket, whose answers are the same.

local cjson = require "cjson"
local unix = require "socket.unix"

local ubus = {}

-- What is null on ubus is not there in a table of libubus'.
local function without_null(value)
  if type(value) ~= "table" then return value end
  for key, member in pairs(value) do
    if member == cjson.null then value[key] = nil else without_null(member) end
  end
  return value
end

function ubus.connect()
  local stream = unix()
  if not stream:connect(ubus.path) then stream = nil end
  local connection = {}

  function connection:call(object, method, arguments)
    assert(object == "pemi")
    if not stream then return nil, 4 end
    local question = { method = method }
    for key, value in pairs(arguments) do question[key] = value end
    stream:send(cjson.encode(question) .. "\n")
    local line = stream:receive "*l"
    if not line then return nil, 7 end
    local answer = without_null(cjson.decode(line))
    if answer.status ~= 0 then return nil, answer.status end
    return answer.data
  end

  function connection:close()
    if stream then stream:close() end
  end

  return connection
end

return ubus
