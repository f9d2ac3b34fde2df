-- Requests of wrk, and its results as one line of JSON.
--
-- wrk ... -s load.lua URL -- get PATH
-- wrk ... -s load.lua URL -- query QUESTIONS
-- wrk ... -s load.lua URL -- add PIECES PREFIX DOCUMENTS
--
-- QUESTIONS contains a query text per line as a JSON string, PIECES a piece of a text per line as a JSON string without
-- quotation marks. A new document is composed of pieces as in benchmarks/server/texts.py; its id begins with PREFIX.

local TEXT_BYTES = 2000
local PERCENTILES = { 50, 90, 99, 99.9 }

local headers = { ["Content-Type"] = "application/json" }
local next_request

local function lines_of(path)
   local lines = {}
   for line in io.lines(path) do
      lines[#lines + 1] = line
   end
   return lines
end

local function get_requests(path)
   local request = wrk.format("GET", path)
   return function()
      return request
   end
end

local function query_requests(path)
   local requests, turn = {}, 0
   for number, text in ipairs(lines_of(path)) do
      requests[number] = wrk.format("POST", "/v1/query", headers, '{"text":' .. text .. "}")
   end
   return function()
      turn = turn % #requests + 1
      return requests[turn]
   end
end

local function add_requests(path, prefix, documents)
   local pieces, count = lines_of(path), 0
   local random = math.random

   local function document()
      local chosen, size = {}, 0
      while size < TEXT_BYTES do
         local piece = pieces[random(#pieces)]
         chosen[#chosen + 1] = piece
         size = size + #piece + 1
      end
      count = count + 1
      return '{"id":"' .. prefix .. count .. '","text":"' .. table.concat(chosen, " ") .. '"}'
   end

   return function()
      if documents == 1 then
         return wrk.format("POST", "/v1/documents", headers, document())
      end
      local several = {}
      for number = 1, documents do
         several[number] = document()
      end
      local body = '{"documents":[' .. table.concat(several, ",") .. "]}"
      return wrk.format("POST", "/v1/documents", headers, body)
   end
end

function init(arguments)
   local kind = arguments[1]
   if kind == "get" then
      next_request = get_requests(arguments[2])
   elseif kind == "query" then
      next_request = query_requests(arguments[2])
   else
      next_request = add_requests(arguments[2], arguments[3], tonumber(arguments[4]))
   end
end

function request()
   return next_request()
end

function done(summary, latency)
   local parts = {}
   for _, share in ipairs(PERCENTILES) do
      parts[#parts + 1] = string.format('"p%g": %.6f', share, latency:percentile(share) / 1e6)
   end
   parts[#parts + 1] = string.format('"max": %.6f', latency.max / 1e6)
   local errors = summary.errors
   for _, kind in ipairs({ "connect", "read", "write", "timeout", "status" }) do
      parts[#parts + 1] = string.format('"%s_errors": %d', kind, errors[kind])
   end
   parts[#parts + 1] = string.format('"requests": %d, "seconds": %.6f', summary.requests, summary.duration / 1e6)
   io.write("\n", "{", table.concat(parts, ", "), "}", "\n")
end
